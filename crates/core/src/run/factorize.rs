//! Whole factorizations: on in-process workers, of a streamed matrix, or as one rank of any communicator.

use std::sync::{Arc, Mutex};

use super::checked::RunSettings;
use super::monitor::Monitor;
use super::report::{Report, timed};
use super::restarts::{self, Process};
use super::settings::Settings;
use super::streamed::Streamed;
use super::{Factors, Snapshot};
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::{Clocked, Comm, Network, TurnLock, run_ranks};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::matrix::{Matrix, Observed, Shape};
use crate::partition::{Shard, observed_shards, shards_until};
use crate::threads::Threads;

/// The best of a run's restarts.
#[derive(Clone, Debug)]
pub struct Factorization<T> {
    /// The factors.
    pub factors: Factors<T>,
    /// The report of the best run.
    pub report: Report,
    /// The final error of every run.
    pub errors: Vec<f64>,
}

/// The machine that a run uses.
#[derive(Clone, Debug)]
pub struct Machine {
    /// In-process ranks.
    pub nodes: usize,
    /// Threads of each.
    pub threads: usize,
    /// The process grid of the exact methods; chosen by sizes if absent.
    pub grid: Option<Grid>,
    /// Networks to model between the ranks. If there are any, the ranks compute one at a time, and seconds are
    /// those of a virtual clock on the first network.
    pub networks: Vec<Network>,
    /// Stops the run at any point, without a result.
    pub cancel: Cancel,
}

impl Machine {
    /// Ranks arranged by sizes.
    pub fn new(nodes: usize, threads: usize) -> Self {
        Machine { nodes, threads, grid: None, networks: Vec::new(), cancel: Cancel::default() }
    }
}

/// A starting point other than that of the settings.
#[derive(Clone, Copy, Debug)]
pub enum StartFrom<'a, T> {
    /// These factors.
    Factors(&'a Factors<T>),
    /// This snapshot; the run continues to the same bits.
    Snapshot(&'a Snapshot<T>),
}

/// Factorizes a matrix in memory on in-process ranks.
pub fn factorize<T: Real>(
    matrix: Matrix<T>,
    machine: Machine,
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    monitor: &mut dyn Monitor<T>,
) -> Result<Factorization<T>> {
    if machine.nodes == 0 {
        return Err(Error::parameter("nodes", "0 is too few; give 1 or more"));
    }
    let (m, n) = (matrix.rows(), matrix.cols());
    let settings = settings.clone().checked()?.for_matrix(m, n)?;
    settings.check_start(from)?;
    let grid = settings.grid(machine.grid, Shape { rows: m, cols: n }, machine.nodes)?;
    on_workers(matrix, grid, &machine, Task { settings: &settings, from, monitor })
}

/// Factorizes a streamed matrix.
pub fn factorize_streamed<T: Real>(
    streamed: &Streamed,
    threads: usize,
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    monitor: &mut dyn Monitor<T>,
) -> Result<Factorization<T>> {
    let (m, n) = (streamed.stream().rows(), streamed.stream().cols());
    let settings = settings.clone().checked()?.for_matrix(m, n)?;
    settings.check_start(from)?;
    settings.check_streamed(streamed, from.is_some())?;
    on_stream(streamed, &Machine::new(1, threads), Task { settings: &settings, from, monitor })
}

/// The inputs of a run other than the matrix: checked settings, a checked start, and the monitor.
pub(crate) struct Task<'a, T> {
    pub settings: &'a RunSettings,
    pub from: Option<StartFrom<'a, T>>,
    pub monitor: &'a mut dyn Monitor<T>,
}

/// Factorizes on in-process workers, arranged as `grid`.
pub(crate) fn on_workers<T: Real>(
    matrix: Matrix<T>,
    grid: Grid,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    let access = task.settings.access();
    on_shards(|| shards_until(matrix, grid, access, &machine.cancel), machine, task)
}

/// Factorizes weighted entries on in-process workers.
pub(crate) fn on_observed<T: Real>(
    observed: &Observed<T>,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    on_shards(|| observed_shards(observed, machine.nodes, &machine.cancel), machine, task)
}

fn on_shards<T: Real>(
    deal: impl FnOnce() -> Vec<Shard<T>>,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    let mut dealing = 0.0;
    let shards = timed(&mut dealing, deal);
    let mut result = in_process(shards, None, machine, task)?;
    result.report.phases.start += dealing;
    Ok(result)
}

/// Factorizes on one worker, which reads the file block by block.
pub(crate) fn on_stream<T: Real>(
    streamed: &Streamed,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    in_process(vec![streamed.shard()], Some(streamed), machine, task)
}

fn in_process<T: Real>(
    shards: Vec<Shard<T>>,
    streamed: Option<&Streamed>,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    let Task { settings, from, monitor } = task;
    let monitor = Mutex::new(monitor);
    let turns = Arc::new(TurnLock::default());
    let ranks = run_ranks(shards, |comm, shard| {
        let mut threads = Threads::new(machine.threads)?.with_cancel(&machine.cancel);
        let mut clocked = None;
        if !machine.networks.is_empty() {
            let time;
            (threads, time) = threads.timed();
            clocked = Some(Clocked::new(comm, &machine.networks, turns.clone(), time));
        }
        let comm = clocked.as_ref().map_or(comm as &dyn Comm, |clocked| clocked);
        let (outcome, errors) = restarts::best_of_restarts(
            Process { shard: &shard, streamed, comm, threads: &threads },
            settings,
            from,
            &monitor,
        )?;
        Ok((shard.own_rows, shard.own_cols, outcome, errors))
    })?;
    let ((rows, cols), k) = (settings.size(), settings.rank);
    let mut factors = Factors { rows, cols, k, u: vec![T::ZERO; rows * k], v: vec![T::ZERO; cols * k] };
    for (own_rows, own_cols, outcome, _) in &ranks {
        factors.u[own_rows.start * k..own_rows.end * k].copy_from_slice(&outcome.u);
        factors.v[own_cols.start * k..own_cols.end * k].copy_from_slice(&outcome.v);
    }
    let Some((_, _, outcome, errors)) = ranks.into_iter().next() else { unreachable!("at least one rank") };
    Ok(Factorization { factors, report: outcome.report, errors })
}

/// Runs as one rank of any communicator; every rank returns the whole result. Only the monitor of rank 0 is called.
pub(crate) fn on_comm<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    machine: &Machine,
    task: Task<'_, T>,
) -> Result<Factorization<T>> {
    let Task { settings, from, monitor } = task;
    let threads = Threads::new(machine.threads)?.with_cancel(&machine.cancel);
    let (outcome, errors) = restarts::best_of_restarts(
        Process { shard, streamed: None, comm, threads: &threads },
        settings,
        from,
        &Mutex::new(monitor),
    )?;
    let (factors, report) = restarts::whole(comm, shard, &outcome, settings.rank)?;
    Ok(Factorization { factors, report, errors })
}
