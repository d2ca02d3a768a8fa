//! The gate of a party: its checks of what was opened, and of its own data before each upload.
//!
//! All parties see the same opened values, and openly reject impossible ones. A party's own records stay
//! private: if a single record would show in an upload, the party uploads noise with a masked flag instead,
//! as for numbers out of range, and all parties stop without learning whose gate it was.

use partwise::Real;

use super::Local;
use crate::error::Result;
use crate::safeguards::Safeguards;
use crate::session::{ALL, Session};
use crate::sum::SumKind;

/// A record that supplies less than this share of a column of M_r V_r is not compared with the column of U.
const COMPARED_SHARE: f64 = 0.1;

/// A record, numbered from 0, and the share that it makes up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordShare {
    /// The record.
    pub record: usize,
    /// Its share.
    pub share: f64,
}

/// The record that supplies most of a column of M_r V_r.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dominant {
    /// The record, and its share of the column's sum.
    pub of: RecordShare,
    /// The cosine between the record and the column of U.
    pub cosine: f64,
}

/// U as the parties last agreed on it, and how far this party has moved it since.
struct Step {
    from: Vec<f64>,
    own: f64,
}

/// A party's gate.
pub(crate) struct Gate {
    limits: Option<Safeguards>,
    step: Option<Step>,
    /// The mean number of records per party.
    mean_records: f64,
}

impl Gate {
    /// A gate with the thresholds of a session, whose parties have this many records together.
    pub fn new(session: &Session<'_>, records: f64) -> Self {
        let (limits, mean_records) = (*session.safeguards(), records / session.members(ALL) as f64);
        Gate { limits: limits.gate.then_some(limits), step: None, mean_records }
    }

    /// Checks M_r V_r, or a U that was fitted to it, before it is uploaded; withholds it if a single record
    /// would show.
    pub fn before_upload<T: Real>(&self, local: &Local<T>, session: &mut Session<'_>) {
        let Some(limits) = self.limits.as_ref().filter(|limits| limits.watches_records()) else { return };
        let RecordShare { record, share } = local.largest_share();
        if share > limits.record_share {
            let percent = |share: f64| (share * 100.0).round();
            return session.withhold(format!(
                "record {} of this party makes up {}% of a combination of components of the upload, but its \
                 policy allows at most {}%",
                record + 1,
                percent(share),
                percent(limits.record_share)
            ));
        }
        let dominant = (1..).zip(local.dominant_records(COMPARED_SHARE));
        let mut near = dominant.filter(|(_, dominant)| dominant.cosine > limits.record_cosine);
        if let Some((component, Dominant { of, cosine })) = near.next() {
            session.withhold(format!(
                "component {component} of U is nearly equal to record {} of this party (cosine {cosine:.3})",
                of.record + 1
            ));
        }
    }

    /// Remembers the common U before local steps.
    pub fn begin_steps<T: Real>(&mut self, local: &Local<T>) {
        if self.limits.is_some() {
            self.step = Some(Step { from: numbers(&local.u), own: 0.0 });
        }
    }

    /// Measures the local steps.
    pub fn end_steps<T: Real>(&mut self, local: &Local<T>) {
        if let Some(step) = &mut self.step {
            step.own = distance(&step.from, &numbers(&local.u));
        }
    }

    /// Rejects a U that was opened, or computed from opened sums, if it is impossible.
    pub fn check_u<T: Real>(&mut self, local: &Local<T>, kind: SumKind, session: &Session<'_>) -> Result<()> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let (u, k) = (numbers(&local.u), local.rank());
        if u.iter().any(|value| !value.is_finite() || *value < 0.0) {
            return Err(session.implausible(kind, "U has entries that are negative or not finite".into()));
        }
        if let Some((component, share)) =
            most_concentrated(&u, k).filter(|(_, share)| *share > limits.feature_share)
        {
            let problem = format!(
                "a single feature dominates component {} of U ({:.1}%), more than this party's feature_share allows",
                component + 1,
                share * 100.0
            );
            return Err(session.implausible(kind, problem));
        }
        if let Some(Step { from, own }) = self.step.take() {
            let moved = distance(&from, &u);
            // With damping, the length of a step depends on the number of records.
            let own = own * (self.mean_records / local.records() as f64).max(1.0);
            if moved > limits.step * own {
                let times = moved / own;
                let problem = format!(
                    "U moved {times:.1} times as far as this party's own steps would, more than its step allows"
                );
                return Err(session.implausible(kind, problem));
            }
        }
        Ok(())
    }

    /// Rejects a diagonal of V_rᵀV_r, summed over the parties, that no V fitted to U has: ‖U_j‖² ‖V_j‖² ≤
    /// ‖M‖² if no record's model is longer than the record.
    pub fn check_diagonal<T: Real>(
        &self,
        local: &Local<T>,
        opened: OpenedDiagonal,
        session: &Session<'_>,
    ) -> Result<()> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let squares = local.squares_u();
        let longest: f64 = squares.iter().filter(|&&square| square > 0.0).map(|square| 1.0 / square).sum();
        let bound = opened.norm * longest / local.rank() as f64;
        if opened.sum > limits.diagonal * bound {
            let problem = format!("it is {:.1} times the maximum for a V fitted to U", opened.sum / bound);
            return Err(session.implausible(SumKind::FirstDiagonal, problem));
        }
        Ok(())
    }
}

/// A diagonal of V_rᵀV_r and ‖M‖², each summed over the parties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedDiagonal {
    pub sum: f64,
    pub norm: f64,
}

fn numbers<T: Real>(factor: &[T]) -> Vec<f64> {
    factor.iter().map(|value| value.to_f64()).collect()
}

fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The component with the largest share of a single feature in its squares, and that share.
fn most_concentrated(u: &[f64], k: usize) -> Option<(usize, f64)> {
    let share = |component: usize| {
        let squares = u.iter().skip(component).step_by(k).map(|value| value * value);
        let (largest, sum) =
            squares.fold((0f64, 0.0), |(largest, sum), square| (largest.max(square), sum + square));
        if sum > 0.0 { largest / sum } else { 0.0 }
    };
    (0..k).map(|component| (component, share(component))).max_by(|a, b| a.1.total_cmp(&b.1))
}
