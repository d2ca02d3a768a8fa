//! The coordinator's answers to opened sums.

use crate::aggregation::Words;
use crate::protocol::TracePoint;

/// A sum of a cohort that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortSum {
    /// The cohort.
    pub cohort: u8,
    /// The epoch of its keys: where this is another than before, a party has returned.
    pub epoch: u32,
    /// How many parties are in it.
    pub parties: usize,
    /// The sum.
    pub words: Words,
}

/// Determines the coordinator's answers to opened sums.
pub trait Answer: Send {
    /// What parties whose words are not masked are told of a sum that was opened at this time.
    fn answer(&mut self, sum: CohortSum, now: f64) -> Words;

    /// Whether the sum that was answered last has a place in the order of sums that all parties see.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Whether a cohort's sum of this epoch is to be answered later, when another cohort is back.
    fn holds(&mut self, _cohort: u8, _epoch: u32) -> bool {
        false
    }

    /// Whether answers follow from more than the sum: then a restart needs all sums again.
    fn computes(&self) -> bool {
        false
    }

    /// The error after the last round, if the server knows it.
    fn last_line(&self) -> Option<TracePoint> {
        None
    }
}

impl<A: Answer + ?Sized> Answer for &mut A {
    fn answer(&mut self, sum: CohortSum, now: f64) -> Words {
        (**self).answer(sum, now)
    }

    fn is_ordered(&self) -> bool {
        (**self).is_ordered()
    }

    fn holds(&mut self, cohort: u8, epoch: u32) -> bool {
        (**self).holds(cohort, epoch)
    }

    fn computes(&self) -> bool {
        (**self).computes()
    }

    fn last_line(&self) -> Option<TracePoint> {
        (**self).last_line()
    }
}

/// Sends the sums to all parties and does nothing else: enough for the synchronous protocols.
pub struct Echo;

impl Answer for Echo {
    fn answer(&mut self, sum: CohortSum, _: f64) -> Words {
        sum.words
    }
}
