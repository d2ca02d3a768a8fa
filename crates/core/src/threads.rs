//! The threads of one rank, which are passed to all code that uses them, and their processor time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// A rank's threads. Results never depend on their number: work is cut into pieces by size alone, and pieces are
/// combined in order.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    timed: Option<PoolTime>,
    cancel: Cancel,
}

/// Processor time of a pool, as if each thread had a core: for pieces of work that are done at the same time, the
/// sum divided by the number of threads, and at least the longest piece.
#[derive(Clone, Default)]
pub struct PoolTime(Arc<AtomicU64>);

impl PoolTime {
    /// Seconds so far.
    pub fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 * 1e-9
    }

    fn add(&self, pieces: &[f64], threads: usize) {
        let longest = pieces.iter().copied().fold(0.0, f64::max);
        let seconds = longest.max(pieces.iter().sum::<f64>() / threads as f64);
        self.0.fetch_add((seconds * 1e9) as u64, Ordering::Relaxed);
    }
}

/// Processor time of the calling thread in seconds; elapsed time if the system does not provide it.
pub fn thread_time() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }
    #[cfg(not(unix))]
    {
        let epoch = std::time::SystemTime::UNIX_EPOCH;
        epoch.elapsed().map_or(0.0, |passed| passed.as_secs_f64())
    }
}

impl Threads {
    /// `count` threads; one means the calling thread itself.
    pub fn new(count: usize) -> Result<Self> {
        if count <= 1 {
            return Ok(Threads { pool: None, timed: None, cancel: Cancel::default() });
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().map_err(|error| {
            Error::parameter("threads", format!("cannot start {count} threads ({error}); use fewer"))
        })?;
        Ok(Threads { pool: Some(pool), timed: None, cancel: Cancel::default() })
    }

    /// The same threads with the same counter of processor time, which excludes the calling thread.
    pub fn timed(self) -> (Self, PoolTime) {
        let time = PoolTime::default();
        (Threads { timed: Some(time.clone()), ..self }, time)
    }

    /// The same threads, which stop between two pieces of work once `cancel` is triggered.
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Threads { cancel: cancel.clone(), ..self }
    }

    /// What can cancel long-running work on these threads.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Applies `work` to every piece, with scratch memory made by `init` once per thread, and returns the results
    /// in the order of the pieces.
    pub fn map<P: Send, S, R: Send>(
        &self,
        pieces: Vec<P>,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, P) -> R + Sync,
    ) -> Vec<R> {
        // A single piece runs on the calling thread, without waking the others.
        let pool = self.pool.as_ref().filter(|_| pieces.len() > 1);
        let threads = pool.map_or(1, |pool| pool.current_num_threads());
        let mut done: Vec<Option<(R, f64)>> = pieces.iter().map(|_| None).collect();
        let left = Mutex::new(pieces.into_iter().zip(&mut done));
        on_each(pool, &|| {
            let mut scratch = None;
            loop {
                // Neighbouring pieces together, fewer toward the end, so that no thread waits long for another.
                let mut left = left.lock().unwrap();
                let count = left.len().div_ceil(2 * threads);
                let some: Vec<_> = left.by_ref().take(count).collect();
                drop(left);
                if some.is_empty() {
                    break;
                }
                let scratch = scratch.get_or_insert_with(&init);
                for (piece, done) in some {
                    if self.cancel.is_cancelled() {
                        return;
                    }
                    let begin = self.timed.as_ref().map(|_| thread_time());
                    let result = work(scratch, piece);
                    *done = Some((result, begin.map_or(0.0, |begin| thread_time() - begin)));
                }
            }
        });
        self.cancel.check();
        let (results, seconds): (Vec<R>, Vec<f64>) =
            done.into_iter().map(|done| done.expect("each was taken")).unzip();
        if let (Some(_), Some(time)) = (pool, &self.timed) {
            time.add(&seconds, threads);
        }
        results
    }
}

/// Calls `share` on every thread at the same time. It has no type parameters, so that the pool is compiled once and
/// not for each kernel.
fn on_each(pool: Option<&rayon::ThreadPool>, share: &(dyn Fn() + Sync)) {
    match pool {
        None => share(),
        Some(pool) => {
            pool.broadcast(|_| share());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_pieces() {
        for count in 1..=4 {
            let threads = Threads::new(count).unwrap();
            for pieces in 0..100usize {
                let made = AtomicUsize::new(0);
                let init = || {
                    made.fetch_add(1, Ordering::Relaxed);
                    0
                };
                let found = threads.map((0..pieces).collect(), init, |calls, piece| {
                    *calls += 1;
                    (piece * piece, *calls)
                });
                let squares: Vec<usize> = found.iter().map(|(square, _)| *square).collect();
                assert_eq!(squares, (0..pieces).map(|piece| piece * piece).collect::<Vec<_>>());
                assert!(made.into_inner() <= count.min(pieces));
                // Scratch memory is reused for the next piece.
                assert!(pieces == 0 || found.iter().any(|(_, calls)| calls * count >= pieces));
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        for count in 1..=3 {
            let threads = Threads::new(count).unwrap();
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                threads.map((0..20).collect(), || (), |(), piece| assert_ne!(piece, 13))
            }));
            assert!(caught.is_err());
            assert_eq!(threads.map(vec![1, 2, 3], || (), |(), piece| piece + 1), [2, 3, 4]);
        }
    }
}
