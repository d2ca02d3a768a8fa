//! What carries messages between a party and the coordinator.

use crate::error::{Error, Peer, Result};

/// What a link receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A message.
    Message {
        /// The sender; 0 is the coordinator.
        from: u16,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The other end is gone.
    Lost(u16),
    /// It is there again.
    Joined(u16),
    /// Nothing came until the deadline.
    Deadline,
}

/// One end of a transport: in-process ([`crate::net`]), a [`CommLink`], or a network connection.
pub trait Link: Send {
    /// Sends; messages between two ends arrive in the order in which they were sent.
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()>;

    /// Waits for what comes next, at most until `deadline` on this end's clock.
    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming>;

    /// This end's clock, in seconds.
    fn now(&self) -> f64;

    /// This end has computed for so long; a link with a real clock knows it without being told.
    fn spend(&mut self, _seconds: f64) {}
}

/// A link over a group of ranks ([`partwise::comm::Comm`]): rank 0 is the coordinator, rank r party r. Ranks do not leave.
///
/// A rank can only wait for one other at a time, so that the coordinator hears the parties in turn. That serves
/// every exchange in which all parties say equally much, as the synchronous methods' do.
pub struct CommLink<'a> {
    comm: &'a dyn partwise::comm::Comm,
    begin: std::time::Instant,
    next: usize,
    /// Ranks that have said that they need nothing more: an empty message.
    done: Vec<usize>,
}

impl<'a> CommLink<'a> {
    /// This rank's end.
    pub fn new(comm: &'a dyn partwise::comm::Comm) -> Self {
        CommLink { comm, begin: std::time::Instant::now(), next: 0, done: Vec::new() }
    }
}

impl Link for CommLink<'_> {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        Ok(self.comm.send(to.into(), partwise::comm::Tag::Gather, bytes)?)
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        if deadline.is_some() {
            // Cannot look without waiting.
            return Ok(Incoming::Deadline);
        }
        let mut from = 0;
        if self.comm.rank() == 0 {
            if self.comm.size() < 2 {
                return Err(Error::LinkLost { who: Peer(0), peer: Peer(1) });
            }
            let turns = (0..self.comm.size() - 1).map(|turn| (self.next + turn) % (self.comm.size() - 1) + 1);
            let next = turns.into_iter().find(|rank| !self.done.contains(rank));
            from = next.ok_or(Error::LinkLost { who: Peer(0), peer: Peer(1) })?;
            self.next = from;
        }
        let bytes = self.comm.receive(from, partwise::comm::Tag::Gather)?;
        if bytes.is_empty() {
            self.done.push(from);
        }
        Ok(Incoming::Message { from: from as u16, bytes })
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}
