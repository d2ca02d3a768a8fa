//! Whoever watches a run: what it is told, and what it may ask for.

use super::Snapshot;
use crate::error::Result;

/// Where a run is, for whoever watches it.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Which of the restarts, from 0.
    pub restart: usize,
    /// Iterations done.
    pub iteration: usize,
    /// The last error evaluated.
    pub relative_error: f64,
    /// Seconds of computing so far in this run.
    pub seconds: f64,
}

/// Watches a run on rank 0.
pub trait Monitor<T>: Send {
    /// After the first iteration, which settles it, or before the next one of a run that goes on: what the method does,
    /// in words.
    fn started(&mut self, _plan: &str) {}

    /// After every iteration: what to do now.
    fn progress(&mut self, progress: &Progress) -> Directive;

    /// Saves.
    fn snapshot(&mut self, _snapshot: Snapshot<T>) -> Result<()> {
        Ok(())
    }
}

/// A function that says whether to stop.
impl<T, F: FnMut(&Progress) -> bool + Send> Monitor<T> for F {
    fn progress(&mut self, progress: &Progress) -> Directive {
        Directive { stop: self(progress), ..Directive::default() }
    }
}

/// What whoever watches wants after an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directive {
    /// To stop.
    pub stop: bool,
    /// To save now.
    pub save: bool,
    /// To save if the run stops before its end.
    pub save_if_stopped: bool,
}
