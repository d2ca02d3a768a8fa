//! Answers to sums of asynchronous protocols, which wait for groups that were away.

use partwise_secure::aggregation::Words;
use partwise_secure::coordinator::{Answer, CohortSum};
use partwise_secure::protocol::{Server, TracePoint};

/// A server that holds back answers that would end the run without a group that is away.
pub struct PatientServer(pub Server);

impl Answer for PatientServer {
    fn answer(&mut self, sum: CohortSum, now: f64) -> Words {
        self.0.answer(sum, now)
    }

    fn is_ordered(&self) -> bool {
        self.0.is_ordered()
    }

    fn holds(&mut self, cohort: u8, epoch: u32) -> bool {
        self.0.holds(cohort, epoch)
    }

    fn computes(&self) -> bool {
        true
    }

    fn last_line(&self) -> Option<TracePoint> {
        self.0.trace.last().copied()
    }
}
