//! The monitor of a run: what it receives, and what it can request.

use super::Snapshot;
use crate::error::Result;

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The number of the restart, from 0.
    pub restart: usize,
    /// Iterations done.
    pub iteration: usize,
    /// The last error evaluated.
    pub relative_error: f64,
    /// Seconds of computing so far in this run.
    pub seconds: f64,
}

/// Monitors a run on rank 0.
pub trait Monitor<T>: Send {
    /// Called after the first iteration, or before the next one of a resumed run, with the method in words.
    fn started(&mut self, _plan: &str) {}

    /// Called after every iteration; returns what to do.
    fn progress(&mut self, progress: &Progress) -> Directive;

    /// Saves.
    fn snapshot(&mut self, _snapshot: Snapshot<T>) -> Result<()> {
        Ok(())
    }
}

/// A closure that returns whether to stop.
impl<T, F: FnMut(&Progress) -> bool + Send> Monitor<T> for F {
    fn progress(&mut self, progress: &Progress) -> Directive {
        Directive { stop: self(progress), ..Directive::default() }
    }
}

/// What the monitor requests after an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directive {
    /// To stop.
    pub stop: bool,
    /// Save now.
    pub save: bool,
    /// Save if the run stops early.
    pub save_if_stopped: bool,
}
