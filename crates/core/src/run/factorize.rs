//! Whole factorizations: on in-process ranks, or one rank's part over any communicator.

use std::sync::{Arc, Mutex};

use super::monitor::Monitor;
use super::report::{Report, timed};
use super::restarts;
use super::settings::{Algorithm, Init, Settings};
use super::{Factors, Snapshot};
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::{Clocked, Comm, Network, TurnLock, run_ranks};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::partition::{Shard, shards_until};
use crate::threads::Threads;

/// The best of a run's restarts, whole.
#[derive(Clone, Debug)]
pub struct Factorization<T> {
    /// The factors.
    pub factors: Factors<T>,
    /// How the best run went.
    pub report: Report,
    /// The final error of every run.
    pub errors: Vec<f64>,
}

/// What a run is computed with.
#[derive(Clone, Debug)]
pub struct Machine {
    /// In-process ranks.
    pub nodes: usize,
    /// Threads of each.
    pub threads: usize,
    /// How the exact methods arrange the ranks; by sizes if absent.
    pub grid: Option<Grid>,
    /// Networks to model between the ranks. If there are any, the ranks compute one at a time, and seconds are those of
    /// a virtual clock on the first of them.
    pub networks: Vec<Network>,
    /// Stops the run wherever it is, without a result.
    pub cancel: Cancel,
}

impl Machine {
    /// Ranks arranged by sizes.
    pub fn new(nodes: usize, threads: usize) -> Self {
        Machine { nodes, threads, grid: None, networks: Vec::new(), cancel: Cancel::default() }
    }
}

/// Where to begin, other than as the settings say.
#[derive(Clone, Copy, Debug)]
pub enum StartFrom<'a, T> {
    /// At these factors.
    Factors(&'a Factors<T>),
    /// Where this snapshot was taken; goes on to the same bits.
    Snapshot(&'a Snapshot<T>),
}

/// Factorizes on in-process ranks.
pub fn factorize<T: Real>(
    matrix: Matrix<T>,
    machine: Machine,
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    monitor: &mut dyn Monitor<T>,
) -> Result<Factorization<T>> {
    let (m, n, k) = (matrix.rows(), matrix.cols(), settings.rank);
    if machine.nodes == 0 {
        return Err(Error::parameter("--nodes", "0 nodes can compute nothing; give 1 or more"));
    }
    check(settings, from, m, n)?;
    let grid = settings.grid(machine.grid, (m, n), machine.nodes)?;
    let monitor = Mutex::new(monitor);
    let mut dealing = 0.0;
    let shards =
        timed(&mut dealing, || shards_until(matrix, grid, settings.algorithm.access(), &machine.cancel));
    let baton = Arc::new(TurnLock::default());
    let ranks = run_ranks(shards, |comm, shard| {
        let mut threads = Threads::new(machine.threads)?.with_cancel(&machine.cancel);
        let mut clocked = None;
        if !machine.networks.is_empty() {
            let time;
            (threads, time) = threads.timed();
            clocked = Some(Clocked::new(comm, &machine.networks, baton.clone(), time));
        }
        let comm = clocked.as_ref().map_or(comm as &dyn Comm, |clocked| clocked);
        let (outcome, errors) =
            T::best_of_restarts((&shard, None), comm, &threads, settings, from, &monitor)?;
        Ok((shard.own_rows, shard.own_cols, outcome, errors))
    })?;
    let mut factors = Factors { rows: m, cols: n, k, u: vec![T::ZERO; m * k], v: vec![T::ZERO; n * k] };
    for (own_rows, own_cols, outcome, _) in &ranks {
        factors.u[own_rows.start * k..own_rows.end * k].copy_from_slice(&outcome.u);
        factors.v[own_cols.start * k..own_cols.end * k].copy_from_slice(&outcome.v);
    }
    let Some((_, _, mut outcome, errors)) = ranks.into_iter().next() else {
        unreachable!("at least one rank")
    };
    outcome.report.phases.start += dealing;
    Ok(Factorization { factors, report: outcome.report, errors })
}

/// One rank's part in a factorization over any communicator; every rank gets the whole result. The monitor of rank 0
/// alone is asked.
pub fn factorize_on<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    threads: usize,
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    monitor: &mut dyn Monitor<T>,
) -> Result<Factorization<T>> {
    check(settings, from, shard.rows, shard.cols)?;
    let threads = Threads::new(threads)?;
    let (outcome, errors) =
        T::best_of_restarts((shard, None), comm, &threads, settings, from, &Mutex::new(monitor))?;
    let (factors, report) = restarts::whole(comm, shard, &outcome, settings.rank)?;
    Ok(Factorization { factors, report, errors })
}

/// Whether such a run can begin.
pub(super) fn check<T: Real>(
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    m: usize,
    n: usize,
) -> Result<()> {
    settings.check(m, n)?;
    // Sketches differ from run to run whatever the start.
    let same = settings.restarts > 1 && settings.algorithm != Algorithm::Dsanls;
    let problem = match from {
        None if same && matches!(settings.init, Init::Nndsvd | Init::Nndsvda) => {
            "runs from the same singular vectors are all the same; leave it out, or begin at random"
        }
        None => return Ok(()),
        Some(StartFrom::Snapshot(snapshot)) => return snapshot.check(settings, m, n),
        Some(StartFrom::Factors(factors)) => {
            factors.check(m, n, settings.rank)?;
            if !same {
                return Ok(());
            }
            "runs from one given start are all the same; leave it out, or the given start"
        }
    };
    Err(Error::parameter("--restarts", problem))
}
