//! Answers to sums of asynchronous protocols, which wait for groups that were away.

use partwise_secure::aggregation::Words;
use partwise_secure::coordinator::Answer;
use partwise_secure::protocol::{Server, TracePoint};

/// A server that holds back answers that would end the run without a group that is away.
pub struct PatientServer(pub Server);

impl Answer for PatientServer {
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words {
        self.0.answer(cohort, sum, parties, now)
    }

    fn holds(&mut self, cohort: u8) -> bool {
        self.0.holds(cohort)
    }

    fn returned(&mut self, cohort: u8) {
        self.0.returned(cohort);
    }

    fn computes(&self) -> bool {
        true
    }

    fn last_line(&self) -> Option<TracePoint> {
        self.0.trace.last().copied()
    }
}
