//! Participants that deviate from the protocol, to test how the others react.

use crate::aggregation::Words;
use crate::coordinator::{Answer, CohortSum};
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
    fn answer(&mut self, mut sum: CohortSum, now: f64) -> Words {
        if let Some(deviation) = self.deviation {
            sum.words = deviation.answer(sum.cohort, sum.words);
        }
        self.answer.answer(sum, now)
    }

    fn is_ordered(&self) -> bool {
        self.answer.is_ordered()
    }

    fn holds(&mut self, cohort: u8, epoch: u32) -> bool {
        self.answer.holds(cohort, epoch)
    }

    fn computes(&self) -> bool {
        self.answer.computes()
    }

    fn last_line(&self) -> Option<TracePoint> {
        self.answer.last_line()
    }
}
