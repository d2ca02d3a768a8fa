//! All restarts of a factorization on one rank, of which the best is kept.

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

/// The result of one rank.
#[derive(Clone, Debug)]
pub struct RankOutcome<T> {
    /// U_{I_r:}, by row.
    pub u: Vec<T>,
    /// V_{J_r:}, by row.
    pub v: Vec<T>,
    /// Everything else, the same on every rank except for the times.
    pub report: Report,
}

/// A process and its resources.
#[derive(Clone, Copy)]
pub struct Process<'a, T> {
    /// Its part of M.
    pub shard: &'a Shard<T>,
    /// The file of M, if it is streamed.
    pub streamed: Option<&'a Streamed>,
    /// The communicators.
    pub comm: &'a dyn Comm,
    /// Its threads.
    pub threads: &'a Threads,
}

precompiled! {
    /// One process's part in all restarts; every process keeps its rows of the same best run.
    pub(super) fn best_of_restarts<T>(
        process: Process<'_, T>,
        settings: &RunSettings,
        from: Option<StartFrom<'_, T>>,
        monitor: &Mutex<&mut dyn Monitor<T>>,
    ) -> Result<(RankOutcome<T>, Vec<f64>)> = run_restarts;
}

fn run_restarts<T: Real>(
    process: Process<'_, T>,
    settings: &RunSettings,
    from: Option<StartFrom<'_, T>>,
    monitor: &Mutex<&mut dyn Monitor<T>>,
) -> Result<(RankOutcome<T>, Vec<f64>)> {
    let Process { shard, streamed, comm, threads } = process;
    let groups = Groups::new(comm, shard.place)?;
    let device: &dyn Device<T> = &Cpu { threads };
    let blocks = &Blocks::load(device, shard)?;
    let job = Job { shard, blocks, streamed, groups: &groups, threads, device };
    let mut restarts = Restarts { process, settings, monitor, errors: Vec::new(), best: None, first: 0 };
    let mut middle = None;
    if let Some(StartFrom::Snapshot(snapshot)) = from {
        restarts.resume(snapshot);
        middle = Some(snapshot);
    }
    let mut limited: Settings = (**settings).clone();
    for restart in restarts.first..settings.restarts {
        let seed = settings.seed.wrapping_add(restart as u64);
        let begin = match (middle.take(), from) {
            (Some(snapshot), _) => Begin::Middle(snapshot),
            (None, Some(StartFrom::Factors(factors))) => Begin::Given(factors),
            _ => Begin::Init,
        };
        let run = Run::new(job, &limited, seed, begin)?;
        let outcome = restarts.run(run, restart)?;
        // The time limit is for all runs together; rank 0's clock counts.
        let used = gather_all(comm, &[outcome.report.seconds])?[0];
        limited.time_limit = limited.time_limit.map(|limit| (limit - used).max(0.0));
        if restarts.keep(outcome) {
            break;
        }
    }
    let Restarts { errors, best, .. } = restarts;
    let mut best = best.ok_or_else(|| Error::parameter("restarts", "0 is too few; give 1 or more"))?;
    scale::normalize(comm, threads, settings.normalization(), &mut best.u, &mut best.v, settings.rank)?;
    Ok((best, errors))
}

/// The runs so far.
struct Restarts<'a, 'm, T> {
    process: Process<'a, T>,
    settings: &'a RunSettings,
    monitor: &'a Mutex<&'m mut dyn Monitor<T>>,
    /// The final error of each finished run.
    errors: Vec<f64>,
    best: Option<RankOutcome<T>>,
    /// The first run of this process.
    first: usize,
}

impl<T: Real> Restarts<'_, '_, T> {
    /// Takes over the finished runs of a snapshot.
    fn resume(&mut self, snapshot: &Snapshot<T>) {
        self.errors = snapshot.errors.clone();
        self.first = self.errors.len();
        self.best = snapshot.best.as_ref().map(|(factors, report)| {
            let rows = start::given(self.process.shard, factors);
            RankOutcome { u: rows.u.into_host(), v: rows.v.into_host(), report: report.clone() }
        });
    }

    fn started(&self, log: &RunLog) {
        self.monitor.lock().map(|mut monitor| monitor.started(log.plan())).unwrap_or_default();
    }

    /// One monitored run to its end.
    fn run(&self, run: Run<'_, T>, restart: usize) -> Result<RankOutcome<T>> {
        let &Restarts { process: Process { shard, comm, .. }, settings, monitor, .. } = self;
        // The first iteration settles the plan; a resumed run has it already.
        let mut settled = run.log().iteration() > 0;
        if restart == self.first && comm.rank() == 0 && settled {
            self.started(run.log());
        }
        let watch = &mut |log: &RunLog| {
            if restart == self.first && !settled {
                settled = true;
                self.started(log);
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
        // Rank 0 has the best result as a whole only if all ranks send their parts.
        let whole_best = match (&self.best, settings.restarts) {
            (Some(best), 2..) => Some(whole(comm, shard, best, settings.rank)?),
            _ => None,
        };
        let save = &mut |factors: Factors<T>, auxiliary: Option<Factors<T>>, log: RunLog| {
            let snapshot = Snapshot {
                settings: (**settings).clone(),
                factors,
                auxiliary,
                log,
                errors: self.errors.clone(),
                best: whole_best.clone(),
            };
            monitor.lock().map_or(Ok(()), |mut monitor| monitor.snapshot(snapshot))
        };
        run.run_on(watch, save)
    }

    /// Keeps a run's result if it is the best; returns whether no other run follows.
    fn keep(&mut self, outcome: RankOutcome<T>) -> bool {
        let Report { relative_error: error, stopped_by, .. } = outcome.report;
        self.errors.push(error);
        if self.best.as_ref().is_none_or(|best| error < best.report.relative_error) {
            self.best = Some(outcome);
        }
        matches!(stopped_by, Stop::Interrupted | Stop::TimeLimit)
    }
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
