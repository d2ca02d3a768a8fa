//! What carries messages between a party and the coordinator, and what looks at them on their way.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::aggregation::{Message, Words};
use crate::error::Result;
use crate::fixed::Part;
use crate::sum::SumKind;

/// An event that a link receives.
#[derive(Clone, PartialEq)]
pub enum Incoming {
    /// A message.
    Message {
        /// The sender; 0 is the coordinator.
        from: u16,
        /// The bytes of the message.
        bytes: Vec<u8>,
    },
    /// The other end has left.
    Lost(u16),
    /// The end has reconnected.
    Joined(u16),
    /// No message arrived before the deadline.
    Deadline,
}

/// One end of a transport: in-process ([`crate::net`]), ranks of a communicator ([`crate::run_on_rank`]), or a network
/// connection.
pub trait Link: Send {
    /// Sends; messages between two ends arrive in the order in which they were sent.
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()>;

    /// Waits for what comes next, at most until `deadline` on this end's clock.
    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming>;

    /// This end's clock, in seconds.
    fn now(&self) -> f64;

    /// Advances this end's clock by a computation; a link with a real clock ignores it.
    fn spend(&mut self, _seconds: f64) {}

    /// Announces that this end is about to join a sum. Nothing is sent; a [`Recorder`] records it.
    fn asks(&mut self, _sum: &Asked<'_>) {}
}

impl<L: Link + ?Sized> Link for &mut L {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        (**self).send(to, bytes)
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        (**self).receive(deadline)
    }

    fn now(&self) -> f64 {
        (**self).now()
    }

    fn spend(&mut self, seconds: f64) {
        (**self).spend(seconds);
    }

    fn asks(&mut self, sum: &Asked<'_>) {
        (**self).asks(sum);
    }
}

/// A message that passes through a [`Recorded`] link.
pub struct Passed<'a> {
    /// The sender; 0 is the coordinator.
    pub from: u16,
    /// The receiver.
    pub to: u16,
    /// The clock of the end that recorded it.
    pub seconds: f64,
    /// The message; empty if its sender needs nothing more.
    pub bytes: &'a [u8],
}

/// A party's view of a sum: its subject, which all know, and the party's own words, which only it knows.
pub struct Asked<'a> {
    /// The party.
    pub party: u16,
    /// The number of the cohort.
    pub cohort: u8,
    /// How many are in the cohort.
    pub size: usize,
    /// The kind of the sum.
    pub kind: SumKind,
    /// The number of earlier attempts.
    pub attempt: u8,
    /// Whether this sum only agrees on ranges.
    pub voting: bool,
    /// The parts, whose shapes all know.
    pub parts: &'a [Part],
    /// The ranges of their columns, if words are fixed point.
    pub exponents: &'a [i16],
    /// The words below the masks.
    pub words: &'a Words,
}

/// Takes note of what passes. Ends on several threads may share one.
pub trait Recorder: Sync {
    /// Called for each message that an end sends or receives.
    fn passed(&self, message: &Passed<'_>);

    /// Called before a party joins a sum.
    fn asked(&self, _sum: &Asked<'_>) {}

    /// Called for each sum that the coordinator opens.
    fn opened(&self, _cohort: u8, _sum: &Words) {}
}

/// Keeps nothing.
impl Recorder for () {
    fn passed(&self, _: &Passed<'_>) {}
}

/// A link that lets a [`Recorder`] see all that leaves and reaches its end.
pub struct Recorded<'a, L> {
    link: L,
    me: u16,
    recorder: &'a dyn Recorder,
}

impl<'a, L: Link> Recorded<'a, L> {
    /// The end of party `me`, or of the coordinator.
    pub fn new(link: L, me: u16, recorder: &'a dyn Recorder) -> Self {
        Recorded { link, me, recorder }
    }
}

impl<L: Link> Link for Recorded<'_, L> {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        self.recorder.passed(&Passed { from: self.me, to, seconds: self.link.now(), bytes: &bytes });
        self.link.send(to, bytes)
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        let incoming = self.link.receive(deadline)?;
        if let Incoming::Message { from, bytes } = &incoming {
            let (from, to) = (*from, self.me);
            self.recorder.passed(&Passed { from, to, seconds: self.link.now(), bytes });
        }
        Ok(incoming)
    }

    fn now(&self) -> f64 {
        self.link.now()
    }

    fn spend(&mut self, seconds: f64) {
        self.link.spend(seconds);
    }

    fn asks(&mut self, sum: &Asked<'_>) {
        self.recorder.asked(sum);
        self.link.asks(sum);
    }
}

/// How many messages of a kind an end has sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// [`Message::kind`].
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Bytes of these messages.
    pub bytes: u64,
}

/// Counts what one end sends, by kind.
pub struct Summary {
    me: u16,
    sent: Mutex<BTreeMap<&'static str, (u64, u64)>>,
}

impl Summary {
    /// A link of party `me`, or of the coordinator.
    pub fn new(me: u16) -> Self {
        Summary { me, sent: Mutex::default() }
    }

    /// The counts so far.
    pub fn sent(&self) -> Vec<Sent> {
        let sent = self.sent.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        sent.iter().map(|(kind, &(count, bytes))| Sent { kind: kind.to_string(), count, bytes }).collect()
    }
}

impl Recorder for Summary {
    fn passed(&self, message: &Passed<'_>) {
        if message.from != self.me {
            return;
        }
        let mut sent = self.sent.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (count, bytes) = sent.entry(Message::kind_of(message.bytes)).or_default();
        *count += 1;
        *bytes += message.bytes.len() as u64;
    }
}
