//! The coordinator's answers to opened sums.

use crate::aggregation::Words;
use crate::protocol::TracePoint;

/// Determines the coordinator's answers to opened sums.
pub trait Answer: Send {
    /// The answer to a sum over this many parties, at this time.
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words;

    /// Whether a cohort is to be answered later, when another is back.
    fn holds(&mut self, _cohort: u8) -> bool {
        false
    }

    /// The keys of a cohort are exchanged again: one of its parties is back.
    fn returned(&mut self, _cohort: u8) {}

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
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words {
        (**self).answer(cohort, sum, parties, now)
    }

    fn holds(&mut self, cohort: u8) -> bool {
        (**self).holds(cohort)
    }

    fn returned(&mut self, cohort: u8) {
        (**self).returned(cohort);
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
    fn answer(&mut self, _: u8, sum: Words, _: usize, _: f64) -> Words {
        sum
    }
}
