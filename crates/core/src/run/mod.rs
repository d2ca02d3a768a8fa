//! The drivers: where communication and arithmetic meet.
//!
//! [`factorize`] runs in-process ranks, each of them a `driver::Run` on its communicator.

mod auto;
mod driver;
mod dsanls;
mod evaluate;
mod exact;
mod factors;
mod links;
mod memory;
mod sample;
mod scale;
mod settings;
mod snapshot;
mod start;
mod streamed;
mod svd;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use auto::Plan;
pub use factors::{Factors, Side};
pub use memory::{memory_needed, memory_needed_whole};
pub use scale::Normalize;
pub use settings::{Algorithm, Amount, Init, Settings, SketchedSolver, Step};
pub use snapshot::Snapshot;
pub use start::draw;
pub use streamed::{Demand, Streamed, factorize_streamed};

use crate::Real;
use crate::cancel::Cancel;
use crate::comm::{Clocked, Comm, Meter, Network, TurnLock, gather_all, run_ranks};
use crate::error::{Error, Result};
use crate::grid::{Factor, Grid};
use crate::matrix::Matrix;
use crate::partition::{Access, Shard, shards};
use crate::solver::Updated;
use crate::threads::Threads;
pub use driver::Directive;
use driver::{Begin, Run, RunLog};
pub use dsanls::{Damping, SketchedSide};
use evaluate::{Evaluation, evaluate};
use links::{Groups, Links};
use start::{FactorRows, MatrixStats};

/// What a method sees of its rank.
struct Rank<'a, T> {
    shard: &'a Shard<T>,
    links: Links<'a>,
    threads: &'a Threads,
    k: usize,
}

/// One way to take a step.
trait Method<T> {
    /// One iteration, U then V; returns the error where the method has it for nothing.
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>>;

    /// Something else changed the factors: nothing kept from the last iteration holds.
    fn factors_changed(&mut self) {}

    /// What the method does, in words.
    fn plan(&self) -> String;

    /// What the method knows in addition to the factors and cannot recompute from them.
    fn save_state(&self) -> MethodState {
        MethodState::Stateless
    }

    /// Its own rows of two further factors, if it has them.
    fn auxiliary_factors(&self) -> Option<&FactorRows<T>> {
        None
    }

    /// Takes back what [`Method::save_state`] and [`Method::auxiliary_factors`] gave; false if that was another
    /// method's.
    fn restore(&mut self, state: &MethodState, _auxiliary: Option<FactorRows<T>>) -> bool {
        *state == MethodState::Stateless
    }
}

/// What a method needs from a checkpoint in addition to the factors to continue as if it had never stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MethodState {
    /// HALS, MU and ANLS/BPP, and `auto` on a matrix that stays in its file.
    Stateless,
    /// `auto` in memory.
    Auto(auto::Momentum),
    /// DSANLS in memory: the damping of both sides.
    Dsanls { u: dsanls::Damping, v: dsanls::Damping },
    /// DSANLS on a matrix that stays in its file: only one side is sampled.
    StreamedDsanls { damping: dsanls::Damping },
}

impl MethodState {
    /// Whether a run of this method can have had it.
    fn is_plausible(&self, algorithm: Algorithm) -> bool {
        match (self, algorithm) {
            (MethodState::Stateless, algorithm) => algorithm != Algorithm::Dsanls,
            (MethodState::Auto(momentum), Algorithm::Auto) => momentum.is_plausible(),
            (MethodState::Dsanls { u, v }, Algorithm::Dsanls) => u.is_plausible() && v.is_plausible(),
            (MethodState::StreamedDsanls { damping }, Algorithm::Dsanls) => damping.is_plausible(),
            _ => false,
        }
    }
}

/// Seconds by phase. Gram matrices count as products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Before the first iteration: dealing M out, its sums, the start values.
    #[serde(default)]
    pub start: f64,
    /// Drawing and applying sketches to factors.
    pub sketch: f64,
    /// Products with M, and Gram matrices.
    pub product: f64,
    /// Moving the factors.
    pub solve: f64,
    /// Collectives, waiting for slower ranks included.
    pub reduce: f64,
    /// Evaluating the error, its communication included.
    pub evaluate: f64,
    /// Waiting for a matrix that stays in its file.
    #[serde(default)]
    pub read: f64,
}

impl Phases {
    fn sketch<R>(&mut self, work: impl FnOnce() -> R) -> R {
        timed(&mut self.sketch, work)
    }

    fn product<R>(&mut self, work: impl FnOnce() -> R) -> R {
        timed(&mut self.product, work)
    }

    fn add(&mut self, updated: &Updated) {
        self.product += updated.product.as_secs_f64();
        self.solve += updated.solve.as_secs_f64();
    }
}

fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = work();
    *seconds += begin.elapsed().as_secs_f64();
    result
}

/// One line of the error-over-time curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// Iterations done.
    pub iteration: usize,
    /// Seconds of computing so far, without error evaluation.
    pub seconds: f64,
    /// The same on the second network that is modelled, the third, and so on.
    #[serde(default)]
    pub elsewhere: Vec<f64>,
    /// ‖M − U Vᵀ‖_F / ‖M‖_F.
    pub relative_error: f64,
    /// Bytes that each rank has handed to collectives so far, without error evaluation.
    pub bytes_sent: u64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Stop {
    /// All iterations done.
    Iterations,
    /// The error hardly fell any more.
    Tolerance,
    /// The wanted error was reached.
    TargetError,
    /// The time was up.
    TimeLimit,
    /// Somebody asked it to stop.
    Interrupted,
}

impl Stop {
    const ALL: [Stop; 5] =
        [Stop::Iterations, Stop::Tolerance, Stop::TargetError, Stop::TimeLimit, Stop::Interrupted];
}

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
    /// Before the first iteration: what the method will do, in words.
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

/// How a run went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What the method did, in words.
    #[serde(default)]
    pub plan: String,
    /// The seed of this run: with restarts, not always the first.
    pub seed: u64,
    /// Iterations done.
    pub iterations: usize,
    /// The final error.
    pub relative_error: f64,
    /// Seconds of computing, without error evaluation.
    pub seconds: f64,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Iterations between two lines of the trace.
    pub trace_every: usize,
    /// Components of V that died and were redrawn, and when.
    pub redrawn: Vec<Redrawn>,
    /// Seconds by phase.
    pub phases: Phases,
    /// Bytes that each rank handed to collectives.
    pub bytes_sent: u64,
    /// The same for error evaluation, stopping and the start.
    pub bytes_evaluate: u64,
    /// What each rank did, by rank; of a run that was taken up again, since then.
    #[serde(default)]
    pub ranks: Vec<RankReport>,
    /// The curve.
    pub trace: Vec<TraceLine>,
}

/// One rank's work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// Seconds of computing, without error evaluation.
    pub seconds: f64,
    /// Seconds by phase.
    pub phases: Phases,
    /// What the method handed to each collective.
    pub method: Meter,
    /// The same for error evaluation, stopping and the start.
    #[serde(rename = "aside")]
    pub overhead: Meter,
}

/// A component that was drawn anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redrawn {
    /// After this iteration.
    pub iteration: usize,
    /// Which component, before the final ordering.
    pub component: usize,
}

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
    let shards = timed(&mut dealing, || shards(matrix, grid, settings.algorithm.access()));
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
    let (factors, report) = whole(comm, shard, &outcome, settings.rank)?;
    Ok(Factorization { factors, report, errors })
}

/// Whether such a run can begin.
fn check<T: Real>(settings: &Settings, from: Option<StartFrom<'_, T>>, m: usize, n: usize) -> Result<()> {
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

/// One rank's part in all runs; the same rank has the best on every rank.
pub(crate) fn best_of_restarts_here<T: Real>(
    (shard, streamed): (&Shard<T>, Option<&Streamed>),
    comm: &dyn Comm,
    threads: &Threads,
    settings: &Settings,
    from: Option<StartFrom<'_, T>>,
    monitor: &Mutex<&mut dyn Monitor<T>>,
) -> Result<(RankOutcome<T>, Vec<f64>)> {
    let groups = Groups::new(comm, shard.place)?;
    let (mut errors, mut best) = (Vec::new(), None);
    let mut middle = None;
    if let Some(StartFrom::Snapshot(snapshot)) = from {
        errors = snapshot.errors.clone();
        best = snapshot.best.as_ref().map(|(factors, report)| {
            let FactorRows { u, v } = start::given(shard, factors);
            RankOutcome { u, v, report: report.clone() }
        });
        middle = Some(snapshot);
    }
    let mut limited = settings.clone();
    let first = errors.len();
    for restart in first..settings.restarts {
        let seed = settings.seed.wrapping_add(restart as u64);
        let begin = match (middle.take(), from) {
            (Some(snapshot), _) => Begin::Middle(snapshot),
            (None, Some(StartFrom::Factors(factors))) => Begin::Given(factors),
            _ => Begin::Init,
        };
        let run = Run::new((shard, streamed), &groups, threads, &limited, seed, begin)?;
        if restart == first && comm.rank() == 0 {
            monitor.lock().map(|mut monitor| monitor.started(run.plan())).unwrap_or_default();
        }
        let watch = &mut |log: &RunLog| {
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
                settings: settings.clone(),
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
    let mut best = best.ok_or_else(|| Error::parameter("--restarts", "0 is too few; give 1 or more"))?;
    let factors = (&mut best.u[..], &mut best.v[..]);
    scale::normalize(comm, threads, settings.normalization(), factors, settings.rank)?;
    Ok((best, errors))
}

/// A rank's outcome, joined with those of the others.
fn whole<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    outcome: &RankOutcome<T>,
    k: usize,
) -> Result<(Factors<T>, Report)> {
    let u = links::whole(comm, shard.place, Factor::U, &outcome.u, k)?;
    let v = links::whole(comm, shard.place, Factor::V, &outcome.v, k)?;
    Ok((Factors { rows: shard.rows, cols: shard.cols, k, u, v }, outcome.report.clone()))
}

/// How far factors are from a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// ‖M − U Vᵀ‖_F / ‖M‖_F.
    pub relative_error: f64,
    /// ‖M‖_F.
    pub norm: f64,
}

/// The relative error of given factors on a matrix.
pub fn error_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<f64> {
    Ok(residual_of(matrix, factors, threads)?.relative_error)
}

/// The error of given factors on a matrix, and what it is relative to.
pub fn residual_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    factors.check(matrix.rows(), matrix.cols(), factors.k)?;
    let shard = shards(matrix, Grid::ONE, Access::Whole).remove(0);
    residual_on(&shard, factors, threads)
}

/// The same of a matrix that one rank holds whole.
pub fn residual_on<T: Real>(shard: &Shard<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    T::residual(shard, factors, threads)
}

pub(crate) fn residual_here<T: Real>(
    shard: &Shard<T>,
    factors: &Factors<T>,
    threads: &Threads,
) -> Result<Residual> {
    let rank = Rank { shard, links: Links::alone(), threads, k: factors.k };
    let constants = MatrixStats::of(&rank.links, shard, threads)?.constants;
    let relative_error = evaluate(&rank, constants, &start::given(shard, factors))?.error;
    Ok(Residual { relative_error, norm: constants.norm.sqrt() })
}
