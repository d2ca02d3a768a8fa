//! The state of a run in addition to its factors.

use serde::{Deserialize, Serialize};

use super::convergence::Convergence;
use super::method::MethodState;
use super::report::{Phases, Redrawn, Stop, TraceLine};
use super::settings::Settings;

/// The state of a run without the factors; together they suffice to continue to the same bits. It is the same on
/// every rank except for the times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLog {
    pub(super) seed: u64,
    pub(super) iteration: usize,
    pub(super) seconds: f64,
    /// Seconds on further modelled networks.
    #[serde(default)]
    pub(super) elsewhere: Vec<f64>,
    pub(super) trace: Vec<TraceLine>,
    /// The evaluations that the tolerance still needs.
    pub(super) history: Convergence,
    pub(super) redrawn: Vec<Redrawn>,
    pub(super) phases: Phases,
    pub(super) bytes_sent: u64,
    pub(super) bytes_evaluate: u64,
    /// What the method does, in words.
    pub(super) plan: String,
    pub(super) method: MethodState,
}

impl RunLog {
    /// The log of a new run on this many networks.
    pub(super) fn new(seed: u64, networks: usize, plan: String) -> Self {
        RunLog {
            seed,
            iteration: 0,
            seconds: 0.0,
            elsewhere: vec![0.0; networks - 1],
            trace: Vec::new(),
            history: Convergence::default(),
            redrawn: Vec::new(),
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_evaluate: 0,
            plan,
            method: MethodState::Stateless,
        }
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// A description of the method; before the first iteration, of what it will try.
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// Whether it is plausible: its counts have room to grow, and it does not refer to the future.
    pub fn is_plausible(&self, settings: &Settings) -> bool {
        let counts = [self.iteration as u64, self.bytes_sent, self.bytes_evaluate];
        counts.iter().all(|&count| count < 1 << 60)
            && self.history.evaluations().iter().all(|seen| seen.iteration <= self.iteration)
            && self.method.is_plausible(settings.algorithm)
    }

    /// The last error evaluated.
    pub fn error(&self) -> f64 {
        self.history.last().map_or(f64::NAN, |seen| seen.error)
    }

    /// Seconds of computing so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The time between two readings of the clock.
    pub(super) fn spend(&mut self, begin: &[f64], end: &[f64]) {
        let all = std::iter::once(&mut self.seconds).chain(&mut self.elsewhere);
        for ((seconds, begin), end) in all.zip(begin).zip(end) {
            *seconds += end - begin;
        }
    }

    /// Whether to stop here.
    pub(super) fn decide(&self, settings: &Settings, asked: bool) -> Option<Stop> {
        let iteration = self.iteration;
        let last = self.history.last().filter(|last| last.iteration == iteration);
        if let Some(last) = last {
            if settings.target_error.is_some_and(|target| last.error <= target) {
                return Some(Stop::TargetError);
            }
            if self.history.is_converged(settings.tolerance) {
                return Some(Stop::Tolerance);
            }
        }
        if iteration >= settings.iterations {
            return Some(Stop::Iterations);
        }
        if asked {
            return Some(Stop::Interrupted);
        }
        settings.time_limit.filter(|&limit| self.seconds >= limit).map(|_| Stop::TimeLimit)
    }
}
