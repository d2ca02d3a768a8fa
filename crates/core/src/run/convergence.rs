//! The stopping rule of all methods: a run has converged when its objective changes by no more than a share of itself per
//! iteration, over a window of iterations.

use serde::{Deserialize, Serialize};

/// Iterations over which the tolerance is judged.
const WINDOW: usize = 10;

/// An evaluation, as the stopping rule keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The iterations that were done.
    pub iteration: usize,
    /// The relative error.
    pub error: f64,
    /// The error including the penalties, which a regularized run minimizes.
    pub objective: f64,
}

/// The evaluations that the stopping rule still needs, oldest first. They are part of a checkpoint; the tolerance belongs to
/// the settings, so that a run can be resumed with another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Convergence {
    evaluations: Vec<Evaluated>,
}

impl Convergence {
    /// Adds an evaluation, and drops those that no later one is compared with.
    pub fn note(&mut self, iteration: usize, error: f64, objective: f64) {
        let needed = self.window_start(iteration).unwrap_or(0);
        self.evaluations.drain(..needed);
        self.evaluations.push(Evaluated { iteration, error, objective });
    }

    /// The evaluations, oldest first.
    pub fn evaluations(&self) -> &[Evaluated] {
        &self.evaluations
    }

    /// The last evaluation.
    pub fn last(&self) -> Option<&Evaluated> {
        self.evaluations.last()
    }

    /// Whether the objective has changed, since the last evaluation that is a window or more ago, by no more than this share
    /// of itself per iteration. Never with a tolerance of 0.
    pub fn is_converged(&self, tolerance: f64) -> bool {
        let Some(last) = self.last() else { return false };
        let Some(past) = self.window_start(last.iteration).map(|place| self.evaluations[place]) else {
            return false;
        };
        // An increase does not count as convergence.
        tolerance > 0.0
            && (past.objective - last.objective).abs()
                <= tolerance * (last.iteration - past.iteration) as f64 * last.objective
    }

    /// The place of the latest evaluation that is a window or more before an iteration.
    fn window_start(&self, iteration: usize) -> Option<usize> {
        self.evaluations.iter().rposition(|past| past.iteration + WINDOW <= iteration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converged_at(objective: impl Fn(usize) -> f64, every: usize, tolerance: f64) -> Option<usize> {
        let mut convergence = Convergence::default();
        (0..200).step_by(every).find(|&iteration| {
            convergence.note(iteration, objective(iteration), objective(iteration));
            convergence.is_converged(tolerance)
        })
    }

    #[test]
    fn a_run_has_converged_when_the_objective_stays_for_a_window() {
        assert_eq!(converged_at(|_| 0.14, 1, 1e-5), Some(10));
        assert_eq!(converged_at(|_| 0.14, 4, 1e-5), Some(12), "evaluations may be rarer than iterations");
        assert_eq!(converged_at(|_| 0.14, 1, 0.0), None, "a tolerance of 0 asks for all iterations");
        assert_eq!(converged_at(|iteration| 0.14 - 1e-6 * iteration as f64, 1, 1e-5), Some(10));
        assert_eq!(converged_at(|iteration| 0.14 - 3e-6 * iteration as f64, 1, 1e-5), None);
        assert_eq!(converged_at(|iteration| 0.14 + 3e-6 * iteration as f64, 1, 1e-5), None, "it rises");
    }

    #[test]
    fn evaluations_before_the_window_are_dropped() {
        let mut convergence = Convergence::default();
        (0..100).for_each(|iteration| convergence.note(iteration, 1.0, 1.0));
        assert_eq!(convergence.evaluations().len(), WINDOW + 1);
        assert_eq!(convergence.last().map(|last| last.iteration), Some(99));
    }
}
