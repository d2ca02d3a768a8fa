//! Cancellation of long computations from another thread.
//!
//! A [`Cancel`] travels with the threads of a computation ([`crate::threads::Threads`]), which look at it between two
//! tiles. A cancelled computation unwinds to its [`Cancel::scope`], which returns [`Error::Interrupted`]: everything half
//! done is dropped on the way, and no kernel needs a result type for it. The panic hook is not called.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::Error;

/// Tells a computation to stop. Clones belong to the same computation; by default it is never cancelled.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// How long to wait between two looks.
pub const PAUSE: Duration = Duration::from_millis(50);

/// The payload of a cancellation's panic.
struct Cancelled;

impl Cancel {
    /// Tells the computation to stop, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Unwinds to [`Cancel::scope`] if the computation was told to stop.
    pub fn check(&self) {
        if self.is_cancelled() {
            resume_unwind(Box::new(Cancelled));
        }
    }

    /// Returns the result of `work`, which does not check for cancellation itself, such as reading a file. If it is
    /// cancelled, it ends in the background.
    pub fn wait_for<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        let (busy, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _busy = busy;
            work()
        });
        while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            self.check();
        }
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// What `work` returns, or [`Error::Interrupted`] if it was cancelled before its end.
    pub fn scope<R, E: From<Error>>(&self, work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        // Incomplete results are dropped.
        match catch_unwind(AssertUnwindSafe(work)) {
            // If one thread unwinds, others fail because it is missing.
            Ok(Err(_)) if self.is_cancelled() => Err(Error::Interrupted.into()),
            Ok(result) => result,
            Err(payload) if payload.is::<Cancelled>() => Err(Error::Interrupted.into()),
            Err(payload) => resume_unwind(payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;

    #[test]
    fn a_cancelled_computation_ends_before_its_next_piece() {
        for count in 1..=3 {
            let cancel = Cancel::default();
            let threads = Threads::new(count).unwrap().with_cancel(&cancel);
            let done = cancel.scope(|| {
                let work = |(), piece: usize| {
                    if piece == 5 {
                        cancel.cancel();
                    }
                    assert!(piece < 900, "far beyond the piece that cancelled");
                };
                Ok::<_, Error>(threads.map((0..1000).collect(), || (), |_, piece| work((), piece)))
            });
            assert!(matches!(done, Err(Error::Interrupted)));
            // A computation that begins after the cancellation is cancelled too.
            let late: Result<Vec<()>, Error> =
                cancel.scope(|| Ok(threads.map(vec![1], || (), |(), _| unreachable!("cancelled before"))));
            assert!(matches!(late, Err(Error::Interrupted)));
        }
    }

    #[test]
    fn a_panic_stays_a_panic() {
        let cancel = Cancel::default();
        let caught =
            catch_unwind(AssertUnwindSafe(|| cancel.scope(|| -> Result<(), Error> { panic!("mine") })));
        assert!(caught.unwrap_err().downcast_ref::<&str>() == Some(&"mine"));
    }
}
