//! The drivers: where communication and arithmetic meet.
//!
//! [`factorize`] runs in-process ranks; [`run_rank`] is one rank on any communicator.

mod dsanls;
mod evaluate;
mod exact;
mod factors;
mod memory;
mod settings;
mod start;

use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;

pub use dsanls::Damping;
pub use factors::{Factors, Side};
pub use memory::memory_needed;
pub use settings::{Algorithm, Amount, Init, Settings, SketchedSolver, Step};

use crate::Real;
use crate::comm::{Comm, Metered, gather_all, run_ranks, sum_exactly};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::partition::{Access, Shard, shards};
use crate::solver::{Solver, Terms, Updated};
use crate::threads::Threads;
use evaluate::{Evaluation, evaluate};
use start::{Constants, State};

/// A component that dies is redrawn this often; then it is left dead.
const REDRAWS: usize = 3;

/// Iterations over which the tolerance is judged.
const WINDOW: usize = 10;

/// What a method sees of its rank.
struct Rank<'a, T> {
    shard: &'a Shard<T>,
    comm: &'a dyn Comm,
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
        state: &mut State<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>>;

    /// Something else changed the factors: nothing kept from the last iteration holds.
    fn factors_changed(&mut self);
}

/// Seconds by phase. Gram matrices count as products.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Phases {
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TraceLine {
    /// Iterations done.
    pub iteration: usize,
    /// Seconds of computing so far, without error evaluation.
    pub seconds: f64,
    /// ‖M − U Vᵀ‖_F / ‖M‖_F.
    pub relative_error: f64,
    /// Bytes that each rank has handed to collectives so far, without error evaluation.
    pub bytes_sent: u64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

const STOPS: [Stop; 5] =
    [Stop::Iterations, Stop::Tolerance, Stop::TargetError, Stop::TimeLimit, Stop::Interrupted];

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

/// Watches a run on rank 0, after every iteration; returning true asks it to stop.
pub type Monitor<'a> = dyn FnMut(&Progress) -> bool + Send + 'a;

/// What one rank has at the end.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// U_{I_r:}, by row.
    pub u: Vec<T>,
    /// V_{J_r:}, by row.
    pub v: Vec<T>,
    /// All else, the same on every rank but for the times.
    pub report: Report,
}

/// How a run went.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
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
    /// The curve.
    #[serde(skip)]
    pub trace: Vec<TraceLine>,
}

/// A component that was drawn anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Redrawn {
    /// After this iteration.
    pub iteration: usize,
    /// Which component, before the final ordering.
    pub component: usize,
}

/// Runs one rank from start to end.
pub fn run_rank<T: Real>(
    shard: &Shard<T>,
    comm: &dyn Comm,
    threads: &Threads,
    settings: &Settings,
    seed: u64,
    start: Option<&Factors<T>>,
    monitor: &mut dyn FnMut(usize, f64, f64) -> bool,
) -> Result<Outcome<T>> {
    let k = settings.rank;
    let (work, aside) = (Metered::new(comm), Metered::new(comm));
    let rank = Rank { shard, comm: &work, threads, k };
    let constants = Constants::of(&aside, shard)?;
    let mut state = match start {
        Some(factors) => start::given(shard, factors),
        None => start::random(&aside, shard, constants, seed, k)?,
    };
    let terms = settings.terms(shard.rows, shard.cols, constants.norm);
    let exactly = |solver| Box::new(exact::Exact::new(solver, terms, constants)) as Box<dyn Method<T>>;
    let mut method: Box<dyn Method<T>> = match settings.algorithm {
        Algorithm::Dsanls => Box::new(dsanls::Dsanls::new(&aside, shard, settings, (seed, terms), &state)?),
        Algorithm::Hals => exactly(Solver::CoordinateDescent { mu: 0.0 }),
        Algorithm::Mu => exactly(Solver::Multiplicative),
        Algorithm::Bpp => exactly(Solver::Pivoting),
    };
    let mut phases = Phases::default();
    let mut redrawn: Vec<Redrawn> = Vec::new();
    let every = settings.trace_every.unwrap_or_else(|| evaluation_interval(settings, shard));
    let mut seconds = 0.0;
    let look = |state: &State<T>, phases: &mut Phases| {
        timed(&mut phases.evaluate, || evaluate(threads, &aside, shard, constants, state, k))
    };
    let line = |iteration, seconds, relative_error| TraceLine {
        iteration,
        seconds,
        relative_error,
        bytes_sent: work.bytes(),
    };
    let mut trace = vec![line(0, 0.0, look(&state, &mut phases)?.error)];
    let objective = |state: &State<T>, error: f64| -> Result<f64> {
        let penalty = penalty(&aside, state, terms)?;
        Ok((error * error + 2.0 * penalty / constants.norm).sqrt())
    };
    let error = trace[0].relative_error;
    let mut history = vec![Seen { iteration: 0, error, objective: objective(&state, error)? }];
    let mut iteration = 0;
    let stopped_by = loop {
        let begin = Instant::now();
        let mut seen = method.iterate(&rank, iteration, &mut state, &mut phases)?;
        seconds += begin.elapsed().as_secs_f64();
        iteration += 1;
        let due = iteration % every == 0 || iteration == settings.iterations;
        if due && seen.is_none() {
            seen = Some(look(&state, &mut phases)?);
        }
        if let Some(Evaluation { error, dead }) = seen {
            if !error.is_finite() {
                return Err(Error::Diverged { iteration });
            }
            history.push(Seen { iteration, error, objective: objective(&state, error)? });
            if due {
                trace.push(line(iteration, seconds, error));
            }
            for component in dead {
                if iteration < settings.iterations
                    && redrawn.iter().filter(|past| past.component == component).count() < REDRAWS
                {
                    start::redraw(&mut state, shard, constants, seed, (iteration, component, k));
                    redrawn.push(Redrawn { iteration, component });
                    method.factors_changed();
                }
            }
        }
        let error = history[history.len() - 1].error;
        // Rank 0 alone has the clock and the user.
        let decision = (comm.rank() == 0).then(|| {
            let asked = monitor(iteration, error, seconds);
            decide(settings, &history, iteration, seconds, asked)
        });
        if let Some(stop) = agree(&aside, decision.flatten())? {
            break stop;
        }
    };
    if trace[trace.len() - 1].iteration != iteration {
        trace.push(line(iteration, seconds, look(&state, &mut phases)?.error));
    }
    phases.reduce = work.seconds();
    let report = Report {
        seed,
        iterations: iteration,
        relative_error: trace[trace.len() - 1].relative_error,
        seconds,
        stopped_by,
        trace_every: every,
        redrawn,
        phases,
        bytes_sent: work.bytes(),
        bytes_evaluate: aside.bytes(),
        trace,
    };
    Ok(Outcome { u: state.u, v: state.v, report })
}

/// An evaluation, as the stopping rule remembers it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    iteration: usize,
    error: f64,
    /// The error with the penalties counted in: what a regularized run lowers.
    objective: f64,
}

/// Both sides' penalties, over all ranks.
fn penalty<T: Real>(comm: &dyn Comm, state: &State<T>, (of_u, of_v): (Terms, Terms)) -> Result<f64> {
    if [of_u.l1, of_u.l2, of_v.l1, of_v.l2] == [0.0; 4] {
        return Ok(0.0);
    }
    let entries = |factor: &[T], terms: Terms| -> Vec<f64> {
        let term = |value: f64| terms.l1 * value + 0.5 * terms.l2 * value * value;
        factor.iter().map(|value| term(value.to_f64())).collect()
    };
    let [u, v] = sum_exactly(comm, [&entries(&state.u, of_u), &entries(&state.v, of_v)])?;
    Ok(u + v)
}

/// Whether to stop after `iteration`.
fn decide(
    settings: &Settings,
    history: &[Seen],
    iteration: usize,
    seconds: f64,
    asked: bool,
) -> Option<Stop> {
    let last = history[history.len() - 1];
    let fresh = last.iteration == iteration;
    if fresh && settings.target_error.is_some_and(|target| last.error <= target) {
        return Some(Stop::TargetError);
    }
    let before = history.iter().rev().find(|past| past.iteration + WINDOW <= iteration);
    if let (true, Some(past)) = (fresh && settings.tolerance > 0.0, before)
        && past.objective - last.objective
            <= settings.tolerance * (iteration - past.iteration) as f64 * last.objective
    {
        return Some(Stop::Tolerance);
    }
    if iteration == settings.iterations {
        return Some(Stop::Iterations);
    }
    if asked {
        return Some(Stop::Interrupted);
    }
    settings.time_limit.filter(|&limit| seconds >= limit).map(|_| Stop::TimeLimit)
}

/// Rank 0's decision, on every rank.
fn agree(comm: &dyn Comm, decision: Option<Stop>) -> Result<Option<Stop>> {
    if comm.size() == 1 {
        return Ok(decision);
    }
    let message = comm.broadcast(vec![decision.map_or(u8::MAX, |stop| stop as u8)])?;
    Ok(message.first().and_then(|&byte| STOPS.get(byte as usize).copied()))
}

/// Iterations between two evaluations, such that evaluating costs about a tenth of iterating. By counts, not by
/// clocks: the same seed must stop at the same iteration everywhere.
fn evaluation_interval<T>(settings: &Settings, shard: &Shard<T>) -> usize {
    let (m, n, k) = (shard.rows as f64, shard.cols as f64, settings.rank as f64);
    let stored = shard.stored as f64;
    let sweeps = (m + n) * k * k;
    let evaluation = stored * k + 2.0 * sweeps;
    let iteration = match settings.algorithm {
        // These have their error for nothing.
        Algorithm::Hals | Algorithm::Mu | Algorithm::Bpp => return 1,
        Algorithm::Dsanls => {
            let (cols, rows) = settings.sketch_sizes(shard.rows, shard.cols);
            let (cols, rows) = (cols as f64, rows as f64);
            stored * k * (cols / n + rows / m) + sweeps + (cols + rows) * k * k
        }
    };
    (10.0 * evaluation / iteration).ceil().clamp(1.0, 1000.0) as usize
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

/// Factorizes on `nodes` in-process ranks of `threads` threads each.
pub fn factorize<T: Real>(
    matrix: Matrix<T>,
    nodes: usize,
    threads: usize,
    settings: &Settings,
    start: Option<&Factors<T>>,
    monitor: &mut Monitor<'_>,
) -> Result<Factorization<T>> {
    let (m, n, k) = (matrix.rows(), matrix.cols(), settings.rank);
    settings.check(m, n)?;
    if nodes == 0 {
        return Err(Error::parameter("--nodes", "0 nodes can compute nothing; give 1 or more"));
    }
    if let Some(factors) = start {
        factors.check(m, n, k)?;
        if settings.restarts > 1 && settings.algorithm != Algorithm::Dsanls {
            let problem = "runs from one given start are all the same; leave it out, or the given start";
            return Err(Error::parameter("--restarts", problem));
        }
    }
    let monitor = Mutex::new(monitor);
    let shards = shards(matrix, nodes, settings.algorithm.access());
    let ranks = run_ranks(shards, |comm, shard| {
        let threads = Threads::new(threads)?;
        best_of_restarts(&shard, comm, &threads, settings, start, &monitor)
    })?;
    let mut ranks = ranks.into_iter();
    let Some((mut whole, errors)) = ranks.next() else { unreachable!("at least one rank") };
    for (part, _) in ranks {
        whole.u.extend(part.u);
        whole.v.extend(part.v);
    }
    let factors = Factors { rows: m, cols: n, k, u: whole.u, v: whole.v };
    Ok(Factorization { factors, report: whole.report, errors })
}

fn best_of_restarts<T: Real>(
    shard: &Shard<T>,
    comm: &dyn Comm,
    threads: &Threads,
    settings: &Settings,
    start: Option<&Factors<T>>,
    monitor: &Mutex<&mut Monitor<'_>>,
) -> Result<(Outcome<T>, Vec<f64>)> {
    let mut errors = Vec::new();
    let mut best: Option<Outcome<T>> = None;
    let mut limited = settings.clone();
    for restart in 0..settings.restarts {
        let seed = settings.seed.wrapping_add(restart as u64);
        let outcome =
            run_rank(shard, comm, threads, &limited, seed, start, &mut |iteration, error, seconds| {
                // A poisoned lock means that a monitor panicked: stop.
                monitor.lock().map_or(true, |mut monitor| {
                    monitor(&Progress { restart, iteration, relative_error: error, seconds })
                })
            })?;
        let report = &outcome.report;
        errors.push(report.relative_error);
        // The time limit is for all runs together; rank 0's clock counts.
        let used = gather_all(comm, &[report.seconds])?[0];
        limited.time_limit = limited.time_limit.map(|limit| (limit - used).max(0.0));
        let ended = matches!(report.stopped_by, Stop::Interrupted | Stop::TimeLimit);
        if best.as_ref().is_none_or(|best| report.relative_error < best.report.relative_error) {
            best = Some(outcome);
        }
        if ended {
            break;
        }
    }
    best.map(|best| (best, errors))
        .ok_or_else(|| Error::parameter("--restarts", "0 is too few; give 1 or more"))
}

/// The relative error of given factors on a matrix.
pub fn error_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: usize) -> Result<f64> {
    factors.check(matrix.rows(), matrix.cols(), factors.k)?;
    let threads = Threads::new(threads)?;
    let mut errors = run_ranks(shards(matrix, 1, Access::Whole), |comm, shard| {
        let constants = Constants::of(comm, &shard)?;
        let state = start::given(&shard, factors);
        evaluate(&threads, comm, &shard, constants, &state, factors.k).map(|evaluation| evaluation.error)
    })?;
    Ok(errors.remove(0))
}
