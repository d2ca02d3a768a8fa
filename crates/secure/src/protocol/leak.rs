//! How much of a party's records the sketches that it has opened give away, all others assumed to collude (Theorems
//! `theorem:secure` and `theorem:nosecure`).
//!
//! Others know S_r and M_r S_r of every iteration so far. Record j is a column of M_r, and it is known for certain once
//! M_r e_j is a combination of the columns of M_r S_r, that is, once the unit vector e_j lies in the span of the columns
//! of all S_r so far. The bound is necessary, not sufficient: nonnegativity and sparsity reveal records long before.

use partwise::random::Purpose;
use partwise::sketch::{Distribution, SketchKind};
use serde::{Deserialize, Serialize};

use super::{Protocol, Settings, limited_sketch};
use crate::basis::Basis;

/// The sketches of a party's records that a run opens, or may open, one per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedSketches {
    /// The distribution of the sketches.
    pub kind: SketchKind,
    /// The number of columns of each sketch.
    pub size: usize,
    /// The seed, which is public among the parties.
    pub seed: u64,
    /// The number of sketches.
    pub rounds: usize,
}

impl OpenedSketches {
    /// The sketches that a run with these settings may open of a party with this many records; `None` if the
    /// protocol opens none.
    pub fn planned(settings: &Settings, party: u16, records: usize) -> Option<Self> {
        (settings.protocol == Protocol::DsanlsLimited).then(|| {
            let Distribution { kind, size, seed, .. } = limited_sketch(settings, party, records);
            OpenedSketches { kind, size, seed, rounds: settings.rounds }
        })
    }

    /// The distribution of the sketches for this many records.
    pub(super) fn distribution(&self, records: usize) -> Distribution {
        let &OpenedSketches { kind, size, seed, .. } = self;
        Distribution { kind, length: records, size, seed, purpose: Purpose::SketchU }
    }
}

/// The span of the opened sketches, and how close each record's unit vector is to it.
pub struct Budget {
    records: usize,
    basis: Basis,
    /// ‖Qᵀ e_j‖² of each record.
    leverage: Vec<f64>,
}

/// The span after one more sketch.
struct After {
    fresh: Vec<f64>,
    leverage: Vec<f64>,
}

/// A unit vector this near to the span counts as in it.
const NEAR: f64 = 1e-6;

impl Budget {
    /// The state of a party that has opened nothing.
    pub fn new(records: usize) -> Self {
        Budget { records, basis: Basis::new(records), leverage: vec![0.0; records] }
    }

    /// Takes a sketch (records x `size`, by row) into account, if no record is known for certain after it.
    pub fn open(&mut self, sketch: &[f64], size: usize) -> bool {
        let after = self.after(sketch, size);
        let shows_none = !after.leverage.iter().any(|&leverage| leverage > 1.0 - NEAR);
        if shows_none {
            self.take(after);
        }
        shows_none
    }

    /// Records a sketch that was already opened, even if it determines records.
    pub fn open_before(&mut self, sketch: &[f64], size: usize) {
        let after = self.after(sketch, size);
        self.take(after);
    }

    /// The state after a sketch.
    fn after(&self, sketch: &[f64], size: usize) -> After {
        let columns = (0..size).flat_map(|col| sketch.iter().skip(col).step_by(size).copied()).collect();
        // What is left of a column within the span is rounding.
        let fresh = self.basis.fresh(columns, 1e-9);
        let mut leverage = self.leverage.clone();
        for column in fresh.chunks_exact(self.records) {
            leverage.iter_mut().zip(column).for_each(|(sum, entry)| *sum += entry * entry);
        }
        After { fresh, leverage }
    }

    fn take(&mut self, after: After) {
        self.basis.extend(after.fresh);
        self.leverage = after.leverage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partwise::random::{stream, uniform};

    fn gaussian_like(records: usize, size: usize, seed: u64) -> Vec<f64> {
        let mut rng = stream(seed, Purpose::SketchU, 0, 0);
        (0..records * size).map(|_| uniform(&mut rng) - 0.5).collect()
    }

    /// Theorem `theorem:nosecure`: in general position nothing is determined until there are as many columns as
    /// records.
    #[test]
    fn general_sketches_are_safe_up_to_the_number_of_records() {
        let mut budget = Budget::new(20);
        for seed in 0..4 {
            assert!(budget.open(&gaussian_like(20, 4, seed), 4), "{seed}");
        }
        // 19 of 20 leave one direction, in which no unit vector lies alone.
        assert!(budget.open(&gaussian_like(20, 3, 8), 3));
        assert!(!budget.open(&gaussian_like(20, 1, 9), 1));
        // A refusal changes nothing: sketches that add nothing are still allowed.
        let again = gaussian_like(20, 3, 8);
        assert!(budget.open(&again, 3));
    }

    #[test]
    fn a_subsampled_record_is_open_at_once() {
        let mut budget = Budget::new(6);
        let mut unit = vec![0.0; 6];
        unit[2] = 2.0;
        assert!(!budget.open(&unit, 1));
        // A sum of two records reveals neither; together with their difference it reveals both.
        assert!(budget.open(&[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1));
        assert!(!budget.open(&[1.0, -1.0, 0.0, 0.0, 0.0, 0.0], 1));
    }

    #[test]
    fn earlier_sketches_count_against_the_budget() {
        let mut budget = Budget::new(20);
        for seed in 0..6 {
            budget.open_before(&gaussian_like(20, 4, seed), 4);
        }
        // All is known by now, and what adds nothing is refused too.
        assert!(!budget.open(&gaussian_like(20, 4, 0), 4));
    }

    #[test]
    fn more_columns_than_records_are_refused() {
        assert!(!Budget::new(3).open(&gaussian_like(3, 5, 1), 5));
    }
}
