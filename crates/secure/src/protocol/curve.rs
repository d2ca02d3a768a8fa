//! The error over rounds, and when it has converged. All parties see the same errors and stop together.

use partwise::run::Convergence;
use serde::{Deserialize, Serialize};

use super::{Common, Ended, Settings};
use crate::session::{Announcement, Session};

/// One point of the error-over-time curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Exchanges of U so far.
    pub round: usize,
    /// Seconds on the run's clock, without error evaluation.
    pub seconds: f64,
    /// Σ ‖M_r − U V_rᵀ‖² over all parties.
    pub squared_error: f64,
    /// Bytes that a party has sent and received so far.
    pub bytes: u64,
}

/// Notes the errors of an attempt.
pub(crate) struct Curve {
    tolerance: f64,
    /// ‖M‖² of all parties.
    norm: f64,
    /// Rounds of the attempt before.
    pub(super) before: usize,
    /// Errors of a second attempt may be of fewer parties; this makes them relative to the norm of all.
    scale: f64,
    convergence: Convergence,
    pub(super) trace: Vec<TracePoint>,
}

impl Curve {
    /// Of an attempt that is the first, or comes after another.
    pub fn new(settings: &Settings, common: &Common, before: Option<&Ended>) -> Self {
        Curve {
            tolerance: settings.tolerance,
            norm: common.norm,
            before: before.map_or(0, |before| before.rounds),
            scale: before.map_or(1.0, |before| common.norm / before.present_norm),
            convergence: Convergence::default(),
            trace: Vec::new(),
        }
    }

    /// Records a point and reports it; returns whether the error has converged.
    pub fn note(&mut self, point: TracePoint, session: &mut Session<'_>) -> bool {
        let TracePoint { round, squared_error, .. } = self.add(point);
        session.announce(Announcement::Error { round, squared_error });
        self.convergence.is_converged(self.tolerance)
    }

    /// Adds a point, in rounds of all attempts and relative to the norm of all parties.
    fn add(&mut self, mut point: TracePoint) -> TracePoint {
        point.round += self.before;
        point.squared_error *= self.scale;
        let error = (point.squared_error.max(0.0) / self.norm).sqrt();
        self.convergence.note(point.round, error, error);
        self.trace.push(point);
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;

    fn converges(errors: impl Fn(usize) -> f64) -> bool {
        let settings = Settings { tolerance: 1e-5, ..Settings::new(Protocol::SynSd, 3) };
        let common = Common { norm: 1.0, mean: 0.5, records: 9.0 };
        let mut curve = Curve::new(&settings, &common, None);
        for round in 1..=11 {
            let squared_error = errors(round).powi(2);
            curve.add(TracePoint { round, seconds: 0.0, squared_error, bytes: 0 });
        }
        curve.convergence.is_converged(curve.tolerance)
    }

    /// Errors that fall have not converged, those that stay have: by the rule of all methods, which compares the ends of its
    /// window.
    #[test]
    fn a_run_has_converged_when_the_error_stays() {
        assert!(converges(|_| 0.14));
        assert!(converges(|round| 0.14 - 1e-6 * round as f64));
        assert!(!converges(|round| 0.14 - 3e-6 * round as f64));
        assert!(!converges(|round| 0.14 + 3e-6 * round as f64));
        assert!(converges(|round| if round == 4 { 0.1401 } else { 0.14 }));
    }
}
