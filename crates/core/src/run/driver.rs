//! One rank's run, iteration by iteration: what is done, noted, evaluated and agreed on between two steps.

use serde::{Deserialize, Serialize};

use super::convergence::Convergence;
use super::evaluate::{Evaluation, evaluate};
use super::links::{Groups, Meters, whole};
use super::method::{Method, MethodState, Rank};
use super::monitor::Directive;
use super::report::{Phases, RankReport, Redrawn, Report, Stop, TraceLine};
use super::restarts::RankOutcome;
use super::scale::{Balance, squared_norms};
use super::settings::{Algorithm, Init, Settings};
use super::start::{self, FactorRows, MatrixStats};
use super::streamed::Streamed;
use super::{Factors, Snapshot};
use super::{auto, dsanls, exact, svd};
use crate::Real;
use crate::comm::{Comm, Numbers, Reduction, sum_exactly};
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::partition::Shard;
use crate::solver::{Penalty, Solver};
use crate::threads::Threads;

/// A component that dies is redrawn this often; then it is left dead.
const REDRAWS: usize = 3;

/// All of a run's state but the factors: with them, enough to go on to the same bits. The same on every rank but for
/// the times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLog {
    seed: u64,
    iteration: usize,
    seconds: f64,
    /// The same on further networks that are modelled.
    #[serde(default)]
    elsewhere: Vec<f64>,
    trace: Vec<TraceLine>,
    /// The evaluations that the tolerance still needs.
    history: Convergence,
    redrawn: Vec<Redrawn>,
    phases: Phases,
    bytes_sent: u64,
    bytes_evaluate: u64,
    /// What the method does, in words.
    plan: String,
    method: MethodState,
}

impl RunLog {
    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// What the method does, in words; before the first iteration, what it is about to try.
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// Whether it can be a run's: its counts have room to grow, and it remembers only what was.
    pub fn is_plausible(&self, settings: &Settings) -> bool {
        let counts = [self.iteration as u64, self.bytes_sent, self.bytes_evaluate];
        counts.iter().all(|&count| count < 1 << 60)
            && self.history.evaluations().iter().all(|seen| seen.iteration <= self.iteration)
            && self.method.is_plausible(settings.algorithm)
    }

    /// The last error evaluated.
    pub fn error(&self) -> f64 {
        self.history.last().map_or(f64::NAN, |seen| seen.error)
    }

    /// Seconds of computing so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The time between two readings of the clock.
    fn spend(&mut self, begin: &[f64], end: &[f64]) {
        let all = std::iter::once(&mut self.seconds).chain(&mut self.elsewhere);
        for ((seconds, begin), end) in all.zip(begin).zip(end) {
            *seconds += end - begin;
        }
    }

    /// Whether to stop here.
    fn decide(&self, settings: &Settings, asked: bool) -> Option<Stop> {
        let iteration = self.iteration;
        let last = self.history.last().filter(|last| last.iteration == iteration);
        if let Some(last) = last {
            if settings.target_error.is_some_and(|target| last.error <= target) {
                return Some(Stop::TargetError);
            }
            if self.history.is_converged(settings.tolerance) {
                return Some(Stop::Tolerance);
            }
        }
        if iteration >= settings.iterations {
            return Some(Stop::Iterations);
        }
        if asked {
            return Some(Stop::Interrupted);
        }
        settings.time_limit.filter(|&limit| self.seconds >= limit).map(|_| Stop::TimeLimit)
    }
}

/// Where a run begins.
pub enum Begin<'a, T> {
    /// As the settings say.
    Init,
    /// At these factors.
    Given(&'a Factors<T>),
    /// In the middle of another run.
    Middle(&'a Snapshot<T>),
}

/// What rank 0 decides between two iterations, and all follow.
#[derive(Clone, Copy, Debug, Default)]
struct Decision {
    stop: Option<Stop>,
    snapshot: bool,
}

/// Takes the factors, a method's auxiliary factors, and all else.
type Save<'s, T> = dyn FnMut(Factors<T>, Option<Factors<T>>, RunLog) -> Result<()> + 's;

/// One rank in the middle of a run.
pub struct Run<'a, T> {
    shard: &'a Shard<T>,
    /// Where M is, if not in the shard.
    streamed: Option<&'a Streamed>,
    groups: &'a Groups<'a>,
    threads: &'a Threads,
    settings: &'a Settings,
    /// The communication of the method itself.
    work: Meters<'a>,
    /// All other: evaluation, stopping, snapshots.
    overhead: Meters<'a>,
    known: MatrixStats,
    terms: (Penalty, Penalty),
    every: usize,
    state: FactorRows<T>,
    method: Box<dyn Method<T> + 'a>,
    log: RunLog,
    /// What the meters had counted, and phases measured, before this process took over.
    before: RunLog,
}

impl<'a, T: Real> Run<'a, T> {
    /// A run about to take its next step.
    pub fn new(
        (shard, streamed): (&'a Shard<T>, Option<&'a Streamed>),
        groups: &'a Groups<'a>,
        threads: &'a Threads,
        settings: &'a Settings,
        seed: u64,
        begin: Begin<'_, T>,
    ) -> Result<Self> {
        let started = groups.all().clock()[0];
        let (work, overhead) = (groups.metered(shard.place), groups.metered(shard.place));
        let links = overhead.links();
        let known = match streamed {
            Some(streamed) => streamed.known.clone(),
            None => MatrixStats::of(&links, shard, threads)?,
        };
        let constants = known.constants;
        if constants.norm == 0.0 {
            return Err(Error::parameter("matrix", "every entry is 0, so there is nothing to factorize"));
        }
        let terms = settings.terms(shard.rows, shard.cols, constants.norm);
        let state = match begin {
            Begin::Init => match settings.init {
                Init::Random => {
                    start::random(links.all, shard, &known, (seed, settings.rank), threads.cancel())?
                }
                init => svd::nndsvd(links, threads, shard, constants, (init, seed, settings.rank))?,
            },
            Begin::Given(factors) => {
                let mut state = start::given(shard, factors);
                if settings.algorithm != Algorithm::Dsanls && Penalty::leave_scale_free(terms) {
                    balance(links.all, threads, &mut state, settings.rank)?;
                }
                state
            }
            Begin::Middle(snapshot) => start::given(shard, &snapshot.factors),
        };
        let every = settings.trace_every.unwrap_or_else(|| evaluation_interval(settings, shard));
        let exactly = |name, solver| Box::new(exact::Exact::new(name, solver, terms, constants));
        let mut method: Box<dyn Method<T> + 'a> = match (streamed, settings.algorithm) {
            (Some(streamed), _) => streamed.method(settings, (seed, every), terms, &state),
            (None, Algorithm::Dsanls) => {
                Box::new(dsanls::Dsanls::new(links.all, shard, settings, (seed, terms), &state)?)
            }
            (None, Algorithm::Auto) => {
                let auto = auto::Auto::new(shard, settings.rank, terms, constants, seed);
                Box::new(if settings.samples { auto } else { auto.without_samples() })
            }
            (None, Algorithm::Hals) => exactly("hals", Solver::CoordinateDescent { mu: 0.0, sweeps: 1 }),
            (None, Algorithm::Mu) => exactly("mu", Solver::Multiplicative),
            (None, Algorithm::Bpp) => exactly("bpp", Solver::Pivoting),
        };
        let empty = RunLog {
            seed,
            iteration: 0,
            seconds: 0.0,
            elsewhere: vec![0.0; groups.all().clock().len() - 1],
            trace: Vec::new(),
            history: Convergence::default(),
            redrawn: Vec::new(),
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_evaluate: 0,
            plan: method.plan(),
            method: MethodState::Stateless,
        };
        let log = match begin {
            Begin::Middle(snapshot) => snapshot.log.clone(),
            _ => empty,
        };
        if let Begin::Middle(Snapshot { auxiliary, .. }) = begin {
            let auxiliary = auxiliary.as_ref().map(|factors| start::given(shard, factors));
            if !method.restore(&log.method, auxiliary) {
                let problem = "the checkpoint is of a run that held the matrix in another way; use --memory as that run \
                               did, or start again without --resume";
                return Err(Error::parameter("--resume", problem));
            }
        }
        let before = log.clone();
        let mut run = Run {
            shard,
            streamed,
            groups,
            threads,
            settings,
            work,
            overhead,
            known,
            terms,
            every,
            state,
            method,
            log,
            before,
        };
        run.log.phases.start += groups.all().clock()[0] - started;
        if let Begin::Init | Begin::Given(_) = begin {
            let error = run.evaluate()?.error;
            run.note(error)?;
            run.trace(error);
        }
        Ok(run)
    }

    fn k(&self) -> usize {
        self.settings.rank
    }

    /// The state so far, but for the factors.
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    fn evaluate(&mut self) -> Result<Evaluation> {
        self.wait_for_all()?;
        let begin = self.groups.all().clock()[0];
        let Run { shard, threads, ref overhead, ref known, ref state, .. } = *self;
        let rank = Rank { shard, links: overhead.links(), threads, k: self.settings.rank };
        let evaluation = match self.streamed {
            Some(streamed) => streamed.evaluate(threads, known.constants, state, rank.k),
            None => evaluate(&rank, known.constants, state),
        };
        self.log.phases.evaluate += self.groups.all().clock()[0] - begin;
        evaluation
    }

    /// Ranks wait for each other in an evaluation, which does not count; so the iterations before it have taken what they
    /// took on the slowest one.
    fn wait_for_all(&mut self) -> Result<()> {
        if self.overhead.all.size() == 1 {
            return Ok(());
        }
        let mut times = vec![self.log.seconds];
        times.extend(&self.log.elsewhere);
        self.overhead.all.all_reduce(Reduction::Max, Numbers::F64(&mut times))?;
        (self.log.seconds, self.log.elsewhere) = (times[0], times[1..].to_vec());
        Ok(())
    }

    fn note(&mut self, error: f64) -> Result<()> {
        if !error.is_finite() {
            return Err(Error::Diverged { iteration: self.log.iteration });
        }
        let penalty = penalty(&self.overhead.all, &self.state, self.terms, self.k())?;
        let objective = (error * error + 2.0 * penalty / self.known.constants.norm).sqrt();
        self.log.history.note(self.log.iteration, error, objective);
        Ok(())
    }

    fn trace(&mut self, relative_error: f64) {
        let RunLog { iteration, seconds, ref elsewhere, .. } = self.log;
        let elsewhere = elsewhere.clone();
        let bytes_sent = self.before.bytes_sent + self.work.all.bytes();
        self.log.trace.push(TraceLine { iteration, seconds, relative_error, bytes_sent, elsewhere });
    }

    /// One iteration, with what belongs to it.
    fn step(&mut self) -> Result<()> {
        let begin = self.groups.all().clock();
        let links = self.work.links();
        let rank = Rank { shard: self.shard, links, threads: self.threads, k: self.k() };
        let mut seen =
            self.method.iterate(&rank, self.log.iteration, &mut self.state, &mut self.log.phases)?;
        self.log.spend(&begin, &self.groups.all().clock());
        if self.log.iteration == 0 {
            // The first iteration shows whether samples were worth it.
            self.log.plan = self.method.plan();
        }
        self.log.iteration += 1;
        let iteration = self.log.iteration;
        let due = iteration.is_multiple_of(self.every) || iteration == self.settings.iterations;
        if due && seen.is_none() {
            seen = Some(self.evaluate()?);
        }
        if let Some(Evaluation { error, dead }) = seen {
            self.note(error)?;
            if due {
                self.trace(error);
            }
            // Multiplicative updates could not fill the column of U that a redraw empties.
            if iteration < self.settings.iterations && self.settings.algorithm != Algorithm::Mu {
                self.redraw(&dead);
            }
        }
        Ok(())
    }

    fn redraw(&mut self, dead: &[usize]) {
        let RunLog { iteration, seed, ref mut redrawn, .. } = self.log;
        for &component in dead {
            if redrawn.iter().filter(|past| past.component == component).count() < REDRAWS {
                let place = (iteration, component, self.settings.rank);
                start::redraw(&mut self.state, self.shard, &self.known, seed, place);
                redrawn.push(Redrawn { iteration, component });
                self.method.factors_changed();
            }
        }
    }

    /// Steps until it is time to stop. `watch` is asked on rank 0 after every iteration; `save` then gets all of it
    /// there.
    pub fn run_on(
        mut self,
        watch: &mut dyn FnMut(&RunLog) -> Directive,
        save: &mut Save<'_, T>,
    ) -> Result<RankOutcome<T>> {
        // A run taken up where it had ended, before its results were written, does not go further.
        let mut stop =
            if self.log.iteration > 0 { self.decide(&mut |_| Directive::default())?.stop } else { None };
        while stop.is_none() {
            self.step()?;
            let decision = self.decide(watch)?;
            if decision.snapshot {
                self.snapshot(save)?;
            }
            stop = decision.stop;
        }
        self.finish(stop.unwrap_or(Stop::Iterations))
    }

    /// Rank 0 alone has the clock and the user.
    fn decide(&self, watch: &mut dyn FnMut(&RunLog) -> Directive) -> Result<Decision> {
        let mut decision = Decision::default();
        if self.overhead.all.rank() == 0 {
            let wish = watch(&self.log);
            let stop = self.log.decide(self.settings, wish.stop);
            let early = matches!(stop, Some(Stop::Interrupted | Stop::TimeLimit));
            decision = Decision { stop, snapshot: wish.save || early && wish.save_if_stopped };
        }
        agree(&self.overhead.all, decision)
    }

    fn snapshot(&self, save: &mut Save<'_, T>) -> Result<()> {
        let whole = |state: &FactorRows<T>| -> Result<Factors<T>> {
            let (comm, place, k) = (&self.overhead.all, self.shard.place, self.k());
            let u = whole(comm, place, Factor::U, &state.u, k)?;
            let v = whole(comm, place, Factor::V, &state.v, k)?;
            Ok(Factors { rows: self.shard.rows, cols: self.shard.cols, k, u, v })
        };
        let (factors, auxiliary) =
            (whole(&self.state)?, self.method.auxiliary_factors().map(whole).transpose()?);
        if self.overhead.all.rank() == 0 {
            save(factors, auxiliary, self.log_so_far())?;
        }
        Ok(())
    }

    /// The log with the meters and the method read.
    fn log_so_far(&self) -> RunLog {
        let mut log = self.log.clone();
        log.phases.reduce = self.before.phases.reduce + self.work.all.seconds();
        log.bytes_sent = self.before.bytes_sent + self.work.all.bytes();
        log.bytes_evaluate = self.before.bytes_evaluate + self.overhead.all.bytes();
        log.method = self.method.save_state();
        log
    }

    fn finish(mut self, stopped_by: Stop) -> Result<RankOutcome<T>> {
        if self.log.trace.last().is_none_or(|last| last.iteration != self.log.iteration) {
            let error = self.evaluate()?.error;
            self.trace(error);
        }
        let log = self.log_so_far();
        let own = RankReport {
            seconds: log.seconds - self.before.seconds,
            phases: log.phases,
            method: self.work.meter(),
            overhead: self.overhead.meter(),
        };
        let ranks = reports(self.groups.all(), &own)?;
        let report = Report {
            plan: log.plan,
            seed: log.seed,
            iterations: log.iteration,
            relative_error: log.trace.last().map_or(f64::NAN, |last| last.relative_error),
            seconds: log.seconds,
            stopped_by,
            trace_every: self.every,
            redrawn: log.redrawn,
            phases: log.phases,
            bytes_sent: log.bytes_sent,
            bytes_evaluate: log.bytes_evaluate,
            ranks,
            trace: log.trace,
        };
        Ok(RankOutcome { u: self.state.u, v: self.state.v, report })
    }
}

/// Balances a given start, whose scale may be such that its products in `f32` would be infinite or zero.
fn balance<T: Real>(comm: &dyn Comm, threads: &Threads, state: &mut FactorRows<T>, k: usize) -> Result<()> {
    let (u, v) = (squared_norms(comm, threads, &state.u, k)?, squared_norms(comm, threads, &state.v, k)?);
    if let Some(balance) = Balance::needed(&u, &v) {
        balance.apply(state);
    }
    Ok(())
}

/// What every rank says of itself, by rank.
fn reports(comm: &dyn Comm, own: &RankReport) -> Result<Vec<RankReport>> {
    let text = serde_json::to_vec(own).unwrap_or_default();
    let all = comm.all_gather(&text)?;
    // All ranks are the same program, so that they read what they wrote.
    Ok(all.iter().filter_map(|text| serde_json::from_slice(text).ok()).collect())
}

/// Both sides' penalties, over all ranks.
pub fn penalty<T: Real>(
    comm: &dyn Comm,
    state: &FactorRows<T>,
    (of_u, of_v): (Penalty, Penalty),
    k: usize,
) -> Result<f64> {
    if [of_u.l1, of_u.l2, of_v.l1, of_v.l2] == [0.0; 4] {
        return Ok(0.0);
    }
    let rows = |factor: &[T], terms: Penalty| -> Vec<f64> {
        let term = |value: f64| terms.l1 * value + 0.5 * terms.l2 * value * value;
        factor.chunks_exact(k).map(|row| row.iter().map(|value| term(value.to_f64())).sum()).collect()
    };
    let [u, v] = sum_exactly(comm, [&rows(&state.u, of_u), &rows(&state.v, of_v)])?;
    Ok(u + v)
}

/// Rank 0's decision, on every rank.
fn agree(comm: &dyn Comm, decision: Decision) -> Result<Decision> {
    if comm.size() == 1 {
        return Ok(decision);
    }
    let stop = decision.stop.map_or(u8::MAX, |stop| stop as u8);
    let message = comm.broadcast(vec![stop, decision.snapshot.into()])?;
    let stop = message.first().and_then(|&byte| Stop::ALL.get(byte as usize).copied());
    Ok(Decision { stop, snapshot: message.get(1) == Some(&1) })
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
        Algorithm::Auto | Algorithm::Hals | Algorithm::Mu | Algorithm::Bpp => return 1,
        Algorithm::Dsanls => {
            let (cols, rows) = settings.sketch_sizes(shard.rows, shard.cols);
            let (cols, rows) = (cols as f64, rows as f64);
            stored * k * (cols / n + rows / m) + sweeps + (cols + rows) * k * k
        }
    };
    (10.0 * evaluation / iteration).ceil().clamp(1.0, 1000.0) as usize
}
