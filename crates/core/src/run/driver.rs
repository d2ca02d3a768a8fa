//! One rank's run, iteration by iteration, with logging, evaluation and agreement between steps.

use super::evaluate::{Evaluation, evaluate, refuse_zeros, with_baseline};
use super::links::{Groups, Links, Meters, whole};
use super::log::RunLog;
use super::method::{Beginning, Blocks, Method, Rank, Sizes};
use super::monitor::Directive;
use super::report::{HeldOutError, RankReport, Redrawn, Report, Stop, TraceLine};
use super::restarts::RankOutcome;
use super::scale::{Balance, squared_norms};
use super::settings::{Init, Settings};
use super::start::{self, Death, FactorRows, MatrixStats};
use super::streamed::Streamed;
use super::svd;
use super::{Factors, Snapshot};
use crate::Real;
use crate::comm::{Comm, Numbers, Reduction, sum_exactly};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::objective::{Loss, Objective};
use crate::partition::Shard;
use crate::solver::Penalty;
use crate::threads::Threads;
use crate::wording::Wording;

/// How often a dead component is redrawn before it is left dead.
const REDRAWS: usize = 3;

/// Iterations between two evaluations of a divergence from a streamed matrix.
const EVERY_IF_STREAMED: usize = 5;

/// The start of a run.
pub enum Begin<'a, T> {
    /// The start that the settings specify.
    Init,
    /// Starts from these factors.
    Given(&'a Factors<T>),
    /// Resumes in the middle of another run.
    Middle(&'a Snapshot<T>),
}

/// A decision of rank 0 between two iterations, which all ranks follow.
#[derive(Clone, Copy, Debug, Default)]
struct Decision {
    stop: Option<Stop>,
    snapshot: bool,
}

/// Consists of the factors, the auxiliary factors of a method, and everything else.
type Save<'s, T> = dyn FnMut(Factors<T>, Option<Factors<T>>, RunLog) -> Result<()> + 's;

/// The data and resources shared by all runs of a factorization.
#[derive(Clone, Copy)]
pub struct Job<'a, T> {
    /// The process's part of M.
    pub shard: &'a Shard<T>,
    /// Its blocks, as the device needs them.
    pub blocks: &'a Blocks<'a, T>,
    /// The file of M, if it is streamed.
    pub streamed: Option<&'a Streamed>,
    /// The communicators of this process.
    pub groups: &'a Groups<'a>,
    /// The host's threads.
    pub threads: &'a Threads,
    /// The device on which half steps run.
    pub device: &'a dyn Device<T>,
}

impl<'a, T> Job<'a, T> {
    /// The view of this process for a method or an evaluation, with these communicators.
    fn rank<'r>(&self, links: Links<'r>, objective: &'r dyn Objective<T>, k: usize) -> Rank<'r, T>
    where
        'a: 'r,
    {
        let &Job { shard, blocks, threads, device, .. } = self;
        Rank { shard, blocks, links, threads, device, objective, k }
    }
}

/// A process in the middle of a run.
pub struct Run<'a, T> {
    job: Job<'a, T>,
    settings: &'a Settings,
    objective: Box<dyn Objective<T>>,
    /// The communicators of the method.
    work: Meters<'a>,
    /// The communicators of everything else: evaluation, stopping, snapshots.
    overhead: Meters<'a>,
    known: MatrixStats,
    terms: (Penalty, Penalty),
    every: usize,
    state: FactorRows<T>,
    method: Box<dyn Method<T> + 'a>,
    log: RunLog,
    /// The counts of the meters and the phases before this process took over.
    before: RunLog,
}

impl<'a, T: Real> Run<'a, T> {
    /// Creates a run before its first step.
    pub fn new(job: Job<'a, T>, settings: &'a Settings, seed: u64, begin: Begin<'_, T>) -> Result<Self> {
        let Job { shard, streamed, groups, .. } = job;
        let started = groups.all().clock()[0];
        let (work, overhead) = (groups.metered(shard.place), groups.metered(shard.place));
        let mut known = match streamed {
            Some(streamed) => streamed.known.clone(),
            None => MatrixStats::of(&overhead.links(), shard, job.threads)?,
        };
        if known.constants.norm == 0.0 {
            return Err(Error::parameter("matrix", "every entry is 0, so there is nothing to factorize"));
        }
        let objective = settings.loss.objective::<T>(known.constants.mean, shard.by_rows.unlisted());
        refuse_zeros(&overhead.links(), shard, &*objective)?;
        known.constants = match streamed {
            Some(streamed) => streamed.with_baseline(job.threads, &*objective, known.constants)?,
            None => with_baseline(&job.rank(overhead.links(), &*objective, 1), known.constants)?,
        };
        let terms = settings.terms(shard.rows, shard.cols, known.constants.norm);
        let state = first_state(job, &overhead.links(), settings, seed, &known, terms, &begin)?;
        let sizes = Sizes { rows: shard.rows, cols: shard.cols, stored: shard.stored };
        let by_cost = || match streamed {
            // An evaluation is another pass over the file.
            Some(_) if settings.loss != Loss::Frobenius => EVERY_IF_STREAMED,
            _ => (settings.algorithm.spec().evaluate_every)(settings, &sizes),
        };
        let every = settings.trace_every.unwrap_or_else(by_cost);
        let (links, constants) = (overhead.links(), known.constants);
        let beginning = Beginning {
            shard,
            streamed,
            links,
            settings,
            seed,
            every,
            terms,
            constants,
            objective: &*objective,
            state: &state,
        };
        let mut method = settings.algorithm.start(&beginning)?;
        let log = match begin {
            Begin::Middle(snapshot) => restored(method.as_mut(), shard, snapshot)?,
            _ => RunLog::new(seed, groups.all().clock().len(), method.plan()),
        };
        let before = log.clone();
        let mut run =
            Run { job, settings, objective, work, overhead, known, terms, every, state, method, log, before };
        run.log.phases.start += groups.all().clock()[0] - started;
        if let Begin::Init | Begin::Given(_) = begin {
            let error = run.evaluate()?.error;
            run.note(error)?;
            run.trace(error)?;
        }
        Ok(run)
    }

    fn k(&self) -> usize {
        self.settings.rank
    }

    /// The current state without the factors.
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    fn evaluate(&mut self) -> Result<Evaluation> {
        self.wait_for_all()?;
        let begin = self.job.groups.all().clock()[0];
        let (constants, k) = (self.known.constants, self.k());
        let evaluation = match self.job.streamed {
            Some(streamed) => {
                self.state.pull(self.job.device)?;
                streamed.evaluate(self.job.threads, &*self.objective, constants, &self.state, k)
            }
            None => {
                let rank = self.job.rank(self.overhead.links(), &*self.objective, k);
                evaluate(&rank, constants, &mut self.state)
            }
        };
        self.log.phases.evaluate += self.job.groups.all().clock()[0] - begin;
        evaluation
    }

    /// Ranks wait for each other in an evaluation, whose time is not counted; so the iterations before it have
    /// taken the time of the slowest rank.
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
        let rank = self.job.rank(self.overhead.links(), &*self.objective, self.settings.rank);
        let penalty = penalty(&rank, &mut self.state, self.terms)?;
        let merit = self.objective.merit(error, penalty, self.known.constants.baseline);
        let objective = self.objective.relative(merit, 1.0);
        self.log.history.note(self.log.iteration, error, objective);
        Ok(())
    }

    fn trace(&mut self, relative_error: f64) -> Result<()> {
        let held_out = self.held_out()?;
        let RunLog { iteration, seconds, ref elsewhere, .. } = self.log;
        let elsewhere = elsewhere.clone();
        let bytes_sent = self.before.bytes_sent + self.work.all.bytes();
        let loss = self.objective.loss(relative_error, self.known.constants.baseline);
        self.log.trace.push(TraceLine {
            iteration,
            seconds,
            relative_error,
            loss,
            held_out,
            bytes_sent,
            elsewhere,
        });
        Ok(())
    }

    /// The error on the held-out entries.
    fn held_out(&mut self) -> Result<Option<HeldOutError>> {
        if self.settings.holdout.is_none() {
            return Ok(None);
        }
        let (shard, device, k, links) = (self.job.shard, self.job.device, self.k(), self.overhead.links());
        device.pull(&mut self.state.u)?;
        let u = self.state.u.host();
        let mut gathered = links.gather(shard.place, Factor::U, device, &mut self.state.v, k)?;
        device.pull(gathered.rows())?;
        let v = gathered.rows().host();
        // Sums of losses, of squares and of weights.
        let mut sums = [0.0; 3];
        for held in &shard.held {
            let (u, v) = (&u[(held.row - shard.own_rows.start) * k..][..k], &v[held.col * k..][..k]);
            let model: f64 = u.iter().zip(v).map(|(u, v)| u.to_f64() * v.to_f64()).sum();
            sums[0] += held.weight * self.objective.whole_loss(held.value, model);
            sums[1] += held.weight * (held.value - model).powi(2);
            sums[2] += held.weight;
        }
        links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut sums))?;
        let [loss, squares, weight] = sums;
        Ok(Some(HeldOutError { loss: loss / weight, rmse: (squares / weight).sqrt() }))
    }

    /// One iteration and the work around it.
    fn step(&mut self) -> Result<()> {
        let begin = self.job.groups.all().clock();
        let rank = self.job.rank(self.work.links(), &*self.objective, self.settings.rank);
        let mut seen =
            self.method.iterate(&rank, self.log.iteration, &mut self.state, &mut self.log.phases)?;
        self.log.spend(&begin, &self.job.groups.all().clock());
        if self.log.iteration == 0 {
            // After the first iteration it is known whether samples helped.
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
                self.trace(error)?;
            }
            // Multiplicative updates could not fill the column of U that a redraw empties.
            let fills = self.job.streamed.is_none() || self.settings.loss == Loss::Frobenius;
            if iteration < self.settings.iterations && fills && self.settings.fills_zeros() {
                self.redraw(&dead)?;
            }
        }
        Ok(())
    }

    fn redraw(&mut self, dead: &[usize]) -> Result<()> {
        if !dead.is_empty() {
            self.state.pull(self.job.device)?;
        }
        let RunLog { iteration, seed, ref mut redrawn, .. } = self.log;
        for &component in dead {
            if redrawn.iter().filter(|past| past.component == component).count() < REDRAWS {
                let death = Death { iteration, component, k: self.settings.rank };
                start::redraw(&mut self.state, self.job.shard, &self.known, seed, death);
                redrawn.push(Redrawn { iteration, component });
                self.method.factors_changed();
            }
        }
        Ok(())
    }

    /// Iterates until it is time to stop. On rank 0, `watch` is called after every iteration, and `save` receives
    /// snapshots.
    pub fn run_on(
        mut self,
        watch: &mut dyn FnMut(&RunLog) -> Directive,
        save: &mut Save<'_, T>,
    ) -> Result<RankOutcome<T>> {
        // A run that had ended before its results were written is not continued.
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

    /// Only rank 0 has the clock and the user.
    fn decide(&self, watch: &mut dyn FnMut(&RunLog) -> Directive) -> Result<Decision> {
        let mut decision = Decision::default();
        if self.overhead.all.rank() == 0 {
            let directive = watch(&self.log);
            let stop = self.log.decide(self.settings, directive.stop);
            let early = matches!(stop, Some(Stop::Interrupted | Stop::TimeLimit));
            decision = Decision { stop, snapshot: directive.save || early && directive.save_if_stopped };
        }
        agree(&self.overhead.all, decision)
    }

    fn snapshot(&mut self, save: &mut Save<'_, T>) -> Result<()> {
        let (comm, shard, device, k) =
            (&self.overhead.all, self.job.shard, self.job.device, self.settings.rank);
        let whole = |state: &mut FactorRows<T>| -> Result<Factors<T>> {
            state.pull(device)?;
            let u = whole(comm, shard.place, Factor::U, state.u.host(), k)?;
            let v = whole(comm, shard.place, Factor::V, state.v.host(), k)?;
            Ok(Factors { rows: shard.rows, cols: shard.cols, k, u, v })
        };
        let factors = whole(&mut self.state)?;
        let auxiliary = self.method.auxiliary_factors().map(whole).transpose()?;
        if comm.rank() == 0 {
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
            self.trace(error)?;
        }
        let log = self.log_so_far();
        let own = RankReport {
            seconds: log.seconds - self.before.seconds,
            phases: log.phases,
            method: self.work.meter(),
            overhead: self.overhead.meter(),
        };
        let ranks = reports(self.job.groups.all(), &own)?;
        let report = Report {
            plan: log.plan,
            seed: log.seed,
            iterations: log.iteration,
            relative_error: log.trace.last().map_or(f64::NAN, |last| last.relative_error),
            loss: log.trace.last().map(|last| last.loss),
            held_out: log.trace.last().and_then(|last| last.held_out),
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
        self.state.pull(self.job.device)?;
        Ok(RankOutcome { u: self.state.u.into_host(), v: self.state.v.into_host(), report })
    }
}

/// The starting factors of a run.
fn first_state<T: Real>(
    job: Job<'_, T>,
    links: &Links<'_>,
    settings: &Settings,
    seed: u64,
    known: &MatrixStats,
    terms: (Penalty, Penalty),
    begin: &Begin<'_, T>,
) -> Result<FactorRows<T>> {
    let (shard, threads, k) = (job.shard, job.threads, settings.rank);
    match begin {
        Begin::Init => match settings.init {
            Init::Random => start::random(links.all, shard, known, seed, k, threads.cancel()),
            init => svd::nndsvd(*links, threads, shard, known.constants, init, seed, k),
        },
        Begin::Given(factors) => {
            let mut state = start::given(shard, factors);
            if settings.algorithm.spec().balances && Penalty::leave_scale_free(terms) {
                balance(links.all, job, &mut state, k)?;
            }
            Ok(state)
        }
        Begin::Middle(snapshot) => Ok(start::given(shard, &snapshot.factors)),
    }
}

/// The log of a checkpoint, after its state is restored in the method.
fn restored<T: Real>(method: &mut dyn Method<T>, shard: &Shard<T>, snapshot: &Snapshot<T>) -> Result<RunLog> {
    let auxiliary = snapshot.auxiliary.as_ref().map(|factors| start::given(shard, factors));
    if !method.restore(&snapshot.log.method, auxiliary) {
        let problem =
            Wording::new("the checkpoint belongs to a run that stored the matrix differently; use ")
                .field("memory")
                .text(" as in that run, or start over without ")
                .field("resume");
        return Err(Error::parameter("resume", problem));
    }
    Ok(snapshot.log.clone())
}

/// Balances a given start, whose products could otherwise overflow or underflow in `f32`.
fn balance<T: Real>(comm: &dyn Comm, job: Job<'_, T>, state: &mut FactorRows<T>, k: usize) -> Result<()> {
    let squares = |rows: &[T]| squared_norms(comm, job.threads, rows, k);
    let (u, v) = (squares(state.u.host())?, squares(state.v.host())?);
    if let Some(balance) = Balance::of_start(&u, &v) {
        balance.apply(job.device, state)?;
    }
    Ok(())
}

/// The report of every rank about itself, by rank.
fn reports(comm: &dyn Comm, own: &RankReport) -> Result<Vec<RankReport>> {
    let text = serde_json::to_vec(own).unwrap_or_default();
    let all = comm.all_gather(&text)?;
    // All ranks run the same program, so they can decode what they encoded.
    Ok(all.iter().filter_map(|text| serde_json::from_slice(text).ok()).collect())
}

/// The penalties of both sides, over all processes.
pub fn penalty<T: Real>(
    rank: &Rank<'_, T>,
    state: &mut FactorRows<T>,
    terms: (Penalty, Penalty),
) -> Result<f64> {
    let (of_u, of_v) = terms;
    if [of_u.l1, of_u.l2, of_v.l1, of_v.l2] == [0.0; 4] {
        return Ok(0.0);
    }
    state.pull(rank.device)?;
    let rows = |factor: &[T], terms: Penalty| -> Vec<f64> {
        let term = |value: f64| terms.l1 * value + 0.5 * terms.l2 * value * value;
        factor.chunks_exact(rank.k).map(|row| row.iter().map(|value| term(value.to_f64())).sum()).collect()
    };
    let [u, v] = sum_exactly(rank.links.all, [&rows(state.u.host(), of_u), &rows(state.v.host(), of_v)])?;
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
