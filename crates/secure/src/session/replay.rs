//! The journal of a party: what it needs to resume its run, and how it replays the run up to that point.

use crate::aggregation::{OrderTip, Words};
use crate::coordinator::CohortSum;
use crate::error::Result;

/// A record that a party stores to resume its run.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// An answer.
    Answer(Answered),
    /// A sum of a group that the party is not in.
    Other(OtherSum),
    /// The parties for whom masks are about to be revealed in this round of a cohort, if that may be only some of
    /// them. A party that forgot it could be asked for a second sum over others, and the difference would be one
    /// party's words.
    Promise {
        /// The cohort.
        cohort: u8,
        /// The parties.
        survivors: Vec<u16>,
    },
}

/// An answer: what a party computes follows from its data, its seeds and these.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The cohort.
    pub cohort: u8,
    /// The parties in the sum.
    pub parties: Vec<u16>,
    /// The number of unsuccessful calls of [`Session::poll`](super::Session::poll) before it.
    pub polls: u32,
    /// The hash over all answers of the cohort, this one included.
    pub answers: [u8; 32],
    /// The opened words.
    pub words: Words,
    /// The epoch of its keys.
    pub epoch: u32,
    /// The order of the sums of all groups with it, where it has a place there.
    pub order: Option<OrderTip>,
}

/// A sum of a group that a party is not in.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherSum {
    /// The sum.
    pub sum: CohortSum,
    /// The hash over all answers of the group, this one included.
    pub answers: [u8; 32],
    /// The order of the sums of all groups with it.
    pub order: OrderTip,
}

/// Storage for the records of a party.
pub trait Journal: Send {
    /// The next from before.
    fn next(&mut self) -> Result<Option<Kept>>;

    /// Keeps this.
    fn keep(&mut self, kept: &Kept) -> Result<()>;
}

/// What a journal has between two answers.
pub(super) enum Restored {
    /// For whom masks are about to be revealed in a cohort.
    Promise(u8, Vec<u16>),
    /// A sum of another group.
    Other(OtherSum),
}

/// A journal that is read first, then appended to. While it is read, nothing is sent.
pub(super) struct Replay<'a> {
    journal: Option<Box<dyn Journal + 'a>>,
    /// The answer that the journal has next.
    next: Option<Answered>,
    /// The number of unsuccessful polls since the last answer.
    polls: u32,
}

impl<'a> Replay<'a> {
    pub fn new(journal: Option<Box<dyn Journal + 'a>>) -> Self {
        Replay { journal, next: None, polls: 0 }
    }

    /// Whether there are answers from before.
    pub fn is_active(&self) -> bool {
        self.next.is_some()
    }

    /// Reads up to the next answer; `restore` receives what is before it.
    pub fn advance(&mut self, mut restore: impl FnMut(Restored)) -> Result<()> {
        loop {
            match self.journal.as_mut().map_or(Ok(None), |journal| journal.next())? {
                Some(Kept::Promise { cohort, survivors }) => restore(Restored::Promise(cohort, survivors)),
                Some(Kept::Other(other)) => restore(Restored::Other(other)),
                Some(Kept::Answer(answered)) => {
                    self.next = Some(answered);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    /// Whether the next answer had not come yet when it was looked for this time.
    pub fn is_awaited(&mut self) -> bool {
        match &mut self.next {
            Some(next) if next.polls > 0 => {
                next.polls -= 1;
                true
            }
            _ => false,
        }
    }

    /// The next answer from before.
    pub fn take(&mut self) -> Option<Answered> {
        self.next.take()
    }

    /// Counts an unsuccessful poll.
    pub fn note_poll(&mut self) {
        self.polls += 1;
    }

    /// Stores the record that `answered` builds from the number of unsuccessful polls since the previous
    /// answer.
    pub fn keep_answer(&mut self, answered: impl FnOnce(u32) -> Answered) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.keep(&Kept::Answer(answered(std::mem::take(&mut self.polls))))
    }

    /// Stores a sum of a group that this party is not in.
    pub fn keep_other(&mut self, other: OtherSum) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.keep(&Kept::Other(other))
    }

    /// Stores for whom masks are about to be revealed.
    pub fn keep_promise(&mut self, cohort: u8, survivors: &[u16]) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.keep(&Kept::Promise { cohort, survivors: survivors.into() })
    }
}
