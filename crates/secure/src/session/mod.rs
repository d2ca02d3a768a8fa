//! A party's session: its link and state machines, and sums of numbers on top of sums of words.

mod clock;
mod envelope;
mod mailbox;
mod meter;
mod options;
mod order;
mod replay;
mod rounds;
#[cfg(test)]
mod tests;
mod votes;

use std::collections::BTreeMap;

use chacha20::ChaCha20Rng;

use crate::aggregation::{OrderTip, Party, Words};
use crate::coordinator::CohortSum;
use crate::error::{Error, Peer, Result};
use crate::fixed::{self, Part};
use crate::link::Link;
use crate::plausible::Known;
use crate::protocol::leak::OpenedSketches;
use crate::safeguards::Safeguards;
use crate::sum::SumKind;
use clock::Speed;
pub use clock::{Clock, SystemClock};
pub use envelope::{addressed, parse};
use mailbox::Mailbox;
pub use meter::Meter;
pub use options::{Announcement, BeforeSum, NextSum, SessionOptions};
use order::Order;
use replay::Replay;
pub use replay::{Answered, Journal, Kept, OtherSum};
pub(crate) use votes::plain_numbers;
use votes::{Pending, Ranges};

/// The cohort of all parties.
pub const ALL: u8 = 0;

/// The result of an opened sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The sums of the parts.
    pub parts: Vec<Vec<f64>>,
    /// How many parties are in them.
    pub parties: usize,
    /// Without masks, what the server made of the sum.
    pub answer: Option<Words>,
}

/// A digest of what a cohort has told a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CohortDigest {
    /// The cohort.
    pub cohort: u8,
    /// The hash over all that it was told.
    pub hash: [u8; 32],
    /// How many sums it has seen answered.
    pub sums: u64,
}

/// A sum that was opened.
struct Opened {
    cohort: u8,
    /// The parties whose words are in it.
    parties: Vec<u16>,
    words: Words,
    epoch: u32,
    /// The order of sums with it, where it has a place there.
    order: Option<OrderTip>,
}

/// A party's connection to its cohorts.
pub struct Session<'a> {
    link: Box<dyn Link + 'a>,
    me: u16,
    plain: bool,
    machines: BTreeMap<u8, Party>,
    /// Whether the machines have joined.
    live: bool,
    entropy: ChaCha20Rng,
    ranges: Ranges,
    pending: Option<Pending>,
    opened: Option<Opened>,
    replay: Replay<'a>,
    mailbox: Mailbox,
    /// The order of the sums of all groups, where there are groups whose sums are masked.
    order: Option<Order>,
    clock: Box<dyn Clock + 'a>,
    speed: Speed,
    meter: Meter,
    watch: Option<Box<dyn FnMut(Announcement) + Send + 'a>>,
    before_sum: Option<BeforeSum<'a>>,
    most_rounds: Option<usize>,
    safeguards: Safeguards,
    known: Known,
    /// Why this party's next numbers are withheld, if they are.
    withheld: Option<String>,
    sketches_before: Vec<OpenedSketches>,
    most_sums: Option<u64>,
    /// How often this party has uploaded words, uploads before a restart included.
    attempts: u64,
    /// Whether a party was missing from a sum of this attempt that this party saw.
    pub(crate) incomplete: bool,
    /// The number of earlier attempts.
    attempt: u8,
}

impl<'a> Session<'a> {
    /// Joins cohorts with a machine for each of them, all of one party.
    pub fn join(link: impl Link + 'a, machines: Vec<Party>, options: SessionOptions<'a>) -> Result<Self> {
        let Some((me, plain)) = machines.first().map(|first| (first.me(), first.is_plain())) else {
            return Err(Error::parameter("cohorts", "a party has no records; give it at least one"));
        };
        let machines: BTreeMap<u8, Party> =
            machines.into_iter().map(|party| (party.cohort().number, party)).collect();
        let has_group = !plain && machines.keys().any(|number| *number != ALL);
        let SessionOptions {
            entropy,
            clock,
            slowness,
            journal,
            watch,
            before_sum,
            most_rounds,
            most_sums,
            safeguards,
            sketches_before,
            other_groups,
        } = options;
        let mut session = Session {
            link: Box::new(link),
            me,
            plain,
            machines,
            live: false,
            entropy,
            ranges: Ranges::default(),
            pending: None,
            opened: None,
            replay: Replay::new(journal),
            mailbox: Mailbox::default(),
            order: has_group.then(|| Order::new(other_groups)),
            clock,
            speed: Speed { slowness },
            meter: Meter::default(),
            watch,
            before_sum,
            most_rounds,
            safeguards,
            known: Known::default(),
            withheld: None,
            sketches_before,
            most_sums,
            attempts: 0,
            incomplete: false,
            attempt: 0,
        };
        session.look_up()?;
        if !session.replay.is_active() {
            session.begin()?;
        }
        Ok(session)
    }

    /// The machines join.
    fn begin(&mut self) -> Result<()> {
        self.live = true;
        let numbers: Vec<u8> = self.machines.keys().copied().collect();
        for number in numbers {
            let actions = self.machines.get_mut(&number).map(Party::begin).unwrap_or_default();
            self.act(number, actions)?;
        }
        Ok(())
    }

    /// Reports progress.
    pub fn announce(&mut self, announcement: Announcement) {
        if let Some(watch) = &mut self.watch {
            watch(announcement);
        }
    }

    /// This party's number.
    pub fn me(&self) -> u16 {
        self.me
    }

    /// The clock of this party's link.
    pub fn now(&self) -> f64 {
        self.link.now()
    }

    /// The costs of the sums so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Rounds after which the coordinator must have ended the run, where it does.
    pub fn most_rounds(&self) -> Option<usize> {
        self.most_rounds
    }

    /// Sketches of this party's records that earlier runs have opened.
    pub fn sketches_before(&self) -> &[OpenedSketches] {
        &self.sketches_before
    }

    /// Counts multiplications.
    pub fn work(&mut self, multiplications: f64) {
        self.link.spend(self.speed.of_work(multiplications));
    }

    /// The hashes over all that this party was told, by cohort.
    pub fn digests(&self) -> Vec<CohortDigest> {
        let digest = |(&cohort, party): (&u8, &Party)| CohortDigest {
            cohort,
            hash: *party.transcript(),
            sums: party.rounds(),
        };
        self.machines.iter().map(digest).collect()
    }

    /// The sum over a cohort of what each of it has of this kind.
    pub fn sum(&mut self, cohort: u8, kind: SumKind, parts: Vec<Part>) -> Result<Total> {
        self.start(cohort, kind, parts)?;
        self.wait()
    }

    /// The number and size of every group, in their order.
    pub(crate) fn groups(&self) -> Vec<(u8, usize)> {
        let own = self.machines.keys().filter(|number| **number != ALL);
        let mut groups: Vec<(u8, usize)> = own.map(|number| (*number, self.size(*number))).collect();
        groups.extend(self.order.iter().flat_map(Order::others));
        groups.sort_unstable();
        groups
    }

    /// The sums of all groups up to the last answer to this party, in their order, which it has not taken before.
    pub(crate) fn applied(&mut self) -> Vec<CohortSum> {
        self.order.as_mut().map_or_else(Vec::new, Order::take)
    }

    /// Waits for the started sum.
    pub fn wait(&mut self) -> Result<Total> {
        loop {
            if let Some(total) = self.next(None)? {
                return Ok(total);
            }
        }
    }

    /// Whether any party of a cohort raises a flag; not whose it is, nor how many do.
    pub fn any(&mut self, cohort: u8, kind: SumKind, flag: bool) -> Result<bool> {
        debug_assert!(kind.is_flag());
        let total = self.sum(cohort, kind, vec![Part::scalars(&[if flag { 1.0 } else { 0.0 }])])?;
        Ok(total.parts.concat().iter().any(|&raised| raised != 0.0))
    }

    /// Begins a sum that [`Session::poll`] will have the result of.
    pub fn start(&mut self, cohort: u8, kind: SumKind, mut parts: Vec<Part>) -> Result<()> {
        if self.pending.is_some() {
            return Err(self.out_of_turn());
        }
        if let Some(before_sum) = &mut self.before_sum {
            before_sum(NextSum { answered: self.meter.sums, kind, parts: &mut parts })?;
        }
        let withheld = self.withheld.is_some();
        if withheld && self.plain {
            return Err(self.stopped());
        }
        self.pending = Some(Pending { cohort, kind, parts, voting: false, withheld, revotes: 0 });
        self.submit()
    }

    /// The started sum, if it has arrived.
    pub fn poll(&mut self) -> Result<Option<Total>> {
        let now = self.link.now();
        self.next(Some(now))
    }

    /// This party needs nothing more.
    pub fn leave(mut self) -> Result<Self> {
        self.link.send(0, Vec::new())?;
        Ok(self)
    }

    /// Whether every sum of this party's cohorts is opened although a party is missing.
    pub fn may_miss(&self) -> bool {
        self.machines.values().all(Party::may_miss)
    }

    /// Resets everything for a new attempt, except for who is present.
    pub fn restart(&mut self) {
        self.ranges.clear();
        self.incomplete = false;
        self.attempt += 1;
    }

    /// Sets the ranges of the next sum of this kind from numbers that the whole cohort knows.
    pub fn expect(&mut self, cohort: u8, kind: SumKind, like: &[Part]) {
        self.ranges.set(cohort, kind, fixed::follow(like));
    }

    /// Withholds the numbers of the next sum: noise is sent instead, with a flag that makes all parties stop.
    pub(crate) fn withhold(&mut self, reason: String) {
        self.withheld = Some(reason);
    }

    /// The limits that this party checks by itself.
    pub(crate) fn safeguards(&self) -> &Safeguards {
        &self.safeguards
    }

    /// Sets the features that no party has from now on.
    pub(crate) fn leave_out(&mut self, left_out: Vec<bool>) {
        self.known.leave_out(left_out);
    }

    /// The error for an impossible sum.
    pub(crate) fn implausible(&self, kind: SumKind, problem: String) -> Error {
        Error::Implausible { who: Peer(self.me), sum: kind.label(), problem }
    }

    /// The error after a gate has stopped the run.
    fn stopped(&self) -> Error {
        Error::Withheld { who: Peer(self.me), reason: self.withheld.clone() }
    }

    /// The coordinator did what it must not.
    pub(crate) fn dishonest(&self, problem: &str) -> Error {
        Error::Dishonest { who: Peer(self.me), from: Peer(0), problem: problem.into() }
    }

    fn out_of_turn(&self) -> Error {
        let problem = "a sum before the last was answered".into();
        Error::Dishonest { who: Peer(self.me), from: Peer(self.me), problem }
    }

    /// How many are in a cohort.
    pub(crate) fn members(&self, cohort: u8) -> usize {
        self.size(cohort)
    }

    fn size(&self, cohort: u8) -> usize {
        self.machines.get(&cohort).map_or(1, |party| party.cohort().members.len())
    }
}
