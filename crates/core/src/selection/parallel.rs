//! Many independent jobs, each on one thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::error::{Error, Result};

/// Runs every job on one of `threads` threads, and passes each result to `finished` on the calling thread, in
/// order of completion. After an error no further job starts, and the first error is returned.
pub(super) fn for_each_job<J: Sync, R: Send>(
    threads: usize,
    jobs: &[J],
    work: impl Fn(&J) -> Result<R> + Sync,
    mut finished: impl FnMut(&J, R) -> Result<()>,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let (sender, next, stop, work) = (sender.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if sender.send((job, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut failed: Option<Error> = None;
        for (job, result) in results {
            if failed.is_some() {
                continue;
            }
            if let Err(error) = result.and_then(|result| finished(job, result)) {
                stop.store(true, Ordering::Relaxed);
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_ends_once_for_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let jobs: Vec<usize> = (0..40).collect();
            let mut seen = [0; 40];
            let done = for_each_job(
                threads,
                &jobs,
                |&job| Ok(job * job),
                |&job, square| {
                    assert_eq!(square, job * job);
                    seen[job] += 1;
                    Ok(())
                },
            );
            assert!(done.is_ok() && seen.iter().all(|&count| count == 1));
        }
    }

    #[test]
    fn no_job_starts_after_an_error() {
        let jobs: Vec<usize> = (0..10).collect();
        let mut finished = Vec::new();
        let fail = |&job: &usize| if job == 3 { Err(Error::parameter("rank", "job 3")) } else { Ok(()) };
        let result = for_each_job(1, &jobs, fail, |&job, ()| {
            finished.push(job);
            Ok(())
        });
        assert!(result.unwrap_err().to_string().contains("job 3"));
        assert_eq!(finished, [0, 1, 2]);
    }
}
