//! All runs of one factorization on one rank, of which the best is kept.

use std::sync::Mutex;

use super::checked::RunSettings;
use super::driver::{Begin, Job, Run};
use super::links::{self, Groups};
use super::log::RunLog;
use super::method::Blocks;
use super::monitor::{Directive, Monitor, Progress};
use super::report::{Report, Stop};
use super::settings::Settings;
use super::start;
use super::{Factors, Snapshot, StartFrom, Streamed, scale};
use crate::Real;
use crate::comm::{Comm, gather_all};
use crate::device::{Cpu, Device};
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::partition::Shard;
use crate::real::precompiled;
use crate::threads::Threads;

/// What one rank has at the end.
#[derive(Clone, Debug)]
pub struct RankOutcome<T> {
    /// U_{I_r:}, by row.
    pub u: Vec<T>,
    /// V_{J_r:}, by row.
    pub v: Vec<T>,
    /// All else, the same on every rank but for the times.
    pub report: Report,
}

precompiled! {
    /// One rank's part in all runs; the same rank has the best on every rank.
    pub(super) fn best_of_restarts<T>(
        input: (&Shard<T>, Option<&Streamed>),
        comm: &dyn Comm,
        threads: &Threads,
        settings: &RunSettings,
        from: Option<StartFrom<'_, T>>,
        monitor: &Mutex<&mut dyn Monitor<T>>,
    ) -> Result<(RankOutcome<T>, Vec<f64>)> = run_restarts;
}

fn run_restarts<T: Real>(
    (shard, streamed): (&Shard<T>, Option<&Streamed>),
    comm: &dyn Comm,
    threads: &Threads,
    settings: &RunSettings,
    from: Option<StartFrom<'_, T>>,
    monitor: &Mutex<&mut dyn Monitor<T>>,
) -> Result<(RankOutcome<T>, Vec<f64>)> {
    let groups = Groups::new(comm, shard.place)?;
    let device: &dyn Device<T> = &Cpu { threads };
    let blocks = &Blocks::load(device, shard)?;
    let job = Job { shard, blocks, streamed, groups: &groups, threads, device };
    let (mut errors, mut best) = (Vec::new(), None);
    let mut middle = None;
    if let Some(StartFrom::Snapshot(snapshot)) = from {
        errors = snapshot.errors.clone();
        best = snapshot.best.as_ref().map(|(factors, report)| {
            let rows = start::given(shard, factors);
            RankOutcome { u: rows.u.into_host(), v: rows.v.into_host(), report: report.clone() }
        });
        middle = Some(snapshot);
    }
    let mut limited: Settings = (**settings).clone();
    let first = errors.len();
    for restart in first..settings.restarts {
        let seed = settings.seed.wrapping_add(restart as u64);
        let begin = match (middle.take(), from) {
            (Some(snapshot), _) => Begin::Middle(snapshot),
            (None, Some(StartFrom::Factors(factors))) => Begin::Given(factors),
            _ => Begin::Init,
        };
        let run = Run::new(job, &limited, seed, begin)?;
        // The first iteration settles the plan; a run that goes on has it already.
        let mut settled = run.log().iteration() > 0;
        if restart == first && comm.rank() == 0 && settled {
            monitor.lock().map(|mut monitor| monitor.started(run.log().plan())).unwrap_or_default();
        }
        let watch = &mut |log: &RunLog| {
            if restart == first && !settled {
                settled = true;
                monitor.lock().map(|mut monitor| monitor.started(log.plan())).unwrap_or_default();
            }
            let progress = Progress {
                restart,
                iteration: log.iteration(),
                relative_error: log.error(),
                seconds: log.seconds(),
            };
            // A poisoned lock means that a monitor panicked: stop.
            let stop = Directive { stop: true, ..Directive::default() };
            monitor.lock().map_or(stop, |mut monitor| monitor.progress(&progress))
        };
        // The best so far is whole on rank 0 only if all ranks send it there.
        let whole_best = match (&best, settings.restarts) {
            (Some(best), 2..) => Some(whole(comm, shard, best, settings.rank)?),
            _ => None,
        };
        let save = &mut |factors: Factors<T>, auxiliary: Option<Factors<T>>, log: RunLog| {
            let snapshot = Snapshot {
                settings: (**settings).clone(),
                factors,
                auxiliary,
                log,
                errors: errors.clone(),
                best: whole_best.clone(),
            };
            monitor.lock().map_or(Ok(()), |mut monitor| monitor.snapshot(snapshot))
        };
        let outcome = run.run_on(watch, save)?;
        let report = &outcome.report;
        errors.push(report.relative_error);
        // The time limit is for all runs together; rank 0's clock counts.
        let used = gather_all(comm, &[report.seconds])?[0];
        limited.time_limit = limited.time_limit.map(|limit| (limit - used).max(0.0));
        let ended = matches!(report.stopped_by, Stop::Interrupted | Stop::TimeLimit);
        if best
            .as_ref()
            .is_none_or(|best: &RankOutcome<T>| report.relative_error < best.report.relative_error)
        {
            best = Some(outcome);
        }
        if ended {
            break;
        }
    }
    let mut best = best.ok_or_else(|| Error::parameter("restarts", "0 is too few; give 1 or more"))?;
    let factors = (&mut best.u[..], &mut best.v[..]);
    scale::normalize(comm, threads, settings.normalization(), factors, settings.rank)?;
    Ok((best, errors))
}

/// A rank's outcome, joined with those of the others.
pub(super) fn whole<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    outcome: &RankOutcome<T>,
    k: usize,
) -> Result<(Factors<T>, Report)> {
    let u = links::whole(comm, shard.place, Factor::U, &outcome.u, k)?;
    let v = links::whole(comm, shard.place, Factor::V, &outcome.v, k)?;
    Ok((Factors { rows: shard.rows, cols: shard.cols, k, u, v }, outcome.report.clone()))
}
