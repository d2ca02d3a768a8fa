//! Participants that deviate from the protocol, to test how the others react.

use crate::aggregation::Words;
use crate::coordinator::Answer;
use crate::fixed::Part;
use crate::protocol::TracePoint;
use crate::sum::SumKind;

/// A coordinator or a party that deviates.
pub(crate) trait Deviation: Sync {
    /// The party that deviates; `None` for the coordinator.
    fn party(&self) -> Option<u16>;

    /// The answer that the coordinator sends to all parties of a cohort in place of a sum.
    fn answer(&self, cohort: u8, sum: Words) -> Words;

    /// Changes what the party uploads.
    fn upload(&self, kind: SumKind, parts: &mut Vec<Part>);
}

/// Forwards to another server, unless the coordinator deviates.
pub(super) struct Deviating<'a> {
    pub answer: &'a mut dyn Answer,
    pub deviation: Option<&'a dyn Deviation>,
}

impl Answer for Deviating<'_> {
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words {
        let sum = match self.deviation {
            Some(deviation) => deviation.answer(cohort, sum),
            None => sum,
        };
        self.answer.answer(cohort, sum, parties, now)
    }

    fn holds(&mut self, cohort: u8) -> bool {
        self.answer.holds(cohort)
    }

    fn returned(&mut self, cohort: u8) {
        self.answer.returned(cohort);
    }

    fn computes(&self) -> bool {
        self.answer.computes()
    }

    fn last_line(&self) -> Option<TracePoint> {
        self.answer.last_line()
    }
}
