//! `auto`: HALS with several sweeps per product, and momentum with restarts (Ang and Gillis 2019).
//!
//! U is solved for at V_y = max{V + β (V − V'), 0}, where V' is the previous V, and V at U_y likewise. The factors
//! are (U_y, V), whose error comes for free. If it rises, V_y falls back to V and β shrinks.

use serde::{Deserialize, Serialize};

use super::exact::{self, half_step, summary_of_all};
use super::{Beginning, Blocks, Method, MethodSpec, MethodState, Rank};
use crate::Real;
use crate::comm::{Numbers, Reduction};
use crate::device::{Moving, MovingMomentum, Resident, Updated};
use crate::error::Result;
use crate::grid::{Factor, Grid};
use crate::matrix::Matrix;
use crate::objective::{Constants, HalfStep, Loss};
use crate::partition::{Access, Shard, shards};
use crate::random::Purpose;
use crate::run::driver::penalty;
use crate::run::evaluate::{Evaluation, dead};
use crate::run::links::{Links, numbers, whole};
use crate::run::report::Phases;
use crate::run::sample::rows_of;
use crate::run::scale::Balance;
use crate::run::start::{FactorRows, MatrixStats};
use crate::run::streamed::{self, Streamed};
use crate::sketch::{Distribution, SketchKind};
use crate::solver::{CoordinateDescent, Multiplicative, Penalty, Solver};

pub const SPEC: MethodSpec = MethodSpec { uses: &["grid", "bound", "samples"], ..MethodSpec::EXACT };

/// Creates a run; on a streamed matrix it is HALS with the same number of sweeps per product as in memory, without
/// momentum.
pub fn start<'a, T: Real>(beginning: &Beginning<'a, '_, T>) -> Result<Box<dyn Method<T> + 'a>> {
    let &Beginning { shard, streamed, settings, terms, constants, seed, .. } = beginning;
    if settings.loss == Loss::Is {
        return exact::start("auto: multiplicative updates (Itakura-Saito)", Multiplicative, beginning);
    }
    beginning.require(&CoordinateDescent::HALS)?;
    let k = settings.rank;
    if let Some(streamed) = streamed {
        if settings.loss == Loss::Kl {
            return Ok(Box::new(on_lines(streamed, beginning)));
        }
        let plan = Plan::of(shard.rows, shard.cols, shard.stored, k).streamed();
        let descent = |sweeps| -> Box<dyn Solver<T>> { Box::new(CoordinateDescent { mu: 0.0, sweeps }) };
        let solvers = (descent(plan.sweeps.0), descent(plan.sweeps.1));
        return Ok(Box::new(streamed::Exact::new(format!("auto: {plan}"), streamed, solvers, beginning)));
    }
    let mut auto = Auto::new(shard, k, terms, constants, seed);
    if settings.access() == Access::Lines {
        auto.plan = auto.plan.by_entries();
    }
    Ok(Box::new(if settings.samples { auto } else { auto.without_samples() }))
}

/// The Kullback-Leibler divergence from a streamed matrix: coordinate descent for the factor of the file's lines, which are
/// read whole, and multiplicative updates, which sum over lines, for the other.
fn on_lines<'a, T: Real>(streamed: &'a Streamed, beginning: &Beginning<'a, '_, T>) -> streamed::Exact<'a, T> {
    let descent = Box::new(CoordinateDescent { mu: 0.0, sweeps: SWEEPS_BY_ENTRIES });
    let (lines, other, solvers): (_, _, streamed::Solvers<T>) = match streamed.stream().by_columns() {
        true => ("V", "U", (Box::new(Multiplicative), descent)),
        false => ("U", "V", (descent, Box::new(Multiplicative))),
    };
    let plan = format!("auto: coordinate descent of {lines}, multiplicative updates of {other} (streamed)");
    streamed::Exact::new(plan, streamed, solvers, beginning)
}

/// The current and the maximum weight of the momentum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Momentum {
    /// β.
    weight: f64,
    /// The current ceiling of β.
    ceiling: f64,
    /// The merit after the last iteration; for least squares the squared relative error, penalties included.
    last: Option<f64>,
}

impl Momentum {
    const BEGIN: Momentum = Momentum { weight: 0.3, ceiling: 1.0, last: None };

    /// Whether it is plausible.
    pub(super) fn is_plausible(&self) -> bool {
        [self.weight, self.ceiling].iter().all(|share| (0.0..=1.0).contains(share))
    }

    /// Updates the weight after an iteration that led to `objective`; returns whether the error rose.
    fn judge(&mut self, objective: f64, beta: f64) -> bool {
        let rose = self.last.is_some_and(|last| objective > last);
        if beta == 0.0 {
            // Nothing to learn from.
        } else if rose {
            self.ceiling = self.weight;
            self.weight /= 1.5;
        } else {
            self.weight = (1.05 * self.weight).min(self.ceiling);
            self.ceiling = (1.01 * self.ceiling).min(1.0);
        }
        self.last = Some(objective);
        rose
    }
}

/// The decisions, by counts alone: the same on every machine and for any number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    length: usize,
    rows: bool,
    momentum: bool,
    /// Iterations of plain HALS at the beginning.
    plain: usize,
    /// Whether a row's entries are gathered instead of multiplied.
    by_entries: bool,
    /// Sweeps of U and of V per product.
    pub(super) sweeps: (usize, usize),
    /// Rows (or columns, if there are more of them) of the samples that the run starts on.
    samples: Vec<usize>,
}

/// The maximum number of iterations on one sample, and their maximum cost in iterations on all of M.
const ON_A_SAMPLE: usize = 30;
const COST_OF_A_SAMPLE: usize = 3;

/// A sample is used until its error falls by less than this share per iteration.
const STALLED: f64 = 3e-3;

/// The first sample must lower its error by this share, or the start is kept.
const WORTH_IT: f64 = 0.02;

/// If M is sparse, the first iterations decide which of many local optima is found; with one sweep and without
/// momentum they find that of HALS, or a better one.
const PLAIN: usize = 5;

/// Sweeps for a factor that is far from the other one.
const SETTLING: usize = 5;

/// Sweeps per gathering of a row's entries.
const SWEEPS_BY_ENTRIES: usize = 2;

/// The maximum number of entries of a sample, because every rank holds all of it.
const LARGEST_SAMPLE: f64 = (1 << 24) as f64;

impl Plan {
    /// The plan for an m x n matrix with this many stored entries.
    pub fn of(rows: usize, cols: usize, stored: usize, k: usize) -> Self {
        let sweeps = |length: usize| {
            // A sweep costs k² per row, a product k per entry: additional sweeps as long as they are cheap in
            // comparison.
            let ratio = stored as f64 / (length as f64 * k as f64);
            ((1.0 + 0.5 * ratio) as usize).clamp(1, 3)
        };
        let (length, a_row) = (rows.max(cols), stored as f64 / rows.max(cols) as f64);
        // A sample of a sparse matrix leaves too little in its columns: measurements show no gain.
        let dense = stored as f64 > 0.5 * rows as f64 * cols as f64;
        let mut samples = Vec::new();
        let mut size = (length / 4).min((LARGEST_SAMPLE / a_row) as usize);
        while dense && size >= 20 * k {
            samples.insert(0, size);
            size /= 4;
        }
        let (sweeps, plain) = ((sweeps(rows), sweeps(cols)), if dense { 0 } else { PLAIN });
        Plan { length, rows: rows >= cols, momentum: true, plain, by_entries: false, sweeps, samples }
    }

    /// Sweeps of U and of V per product.
    pub fn sweeps(&self) -> (usize, usize) {
        self.sweeps
    }

    /// The plan without samples.
    pub fn without_samples(self) -> Self {
        Plan { samples: Vec::new(), ..self }
    }

    /// Rows, or columns if there are more of them, of each of the samples.
    pub fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// Whether U and V have penalties. If only one of them has, the objective decreases without bound as the scale
    /// moves to the other one, and momentum would accelerate that.
    pub fn penalized(self, u: bool, v: bool) -> Self {
        Plan { momentum: self.momentum && u == v, ..self }
    }

    /// The plan for entry-wise losses: two sweeps per gathering of a row's entries, and no samples.
    pub fn by_entries(self) -> Self {
        Plan {
            plain: 0,
            sweeps: (SWEEPS_BY_ENTRIES, SWEEPS_BY_ENTRIES),
            samples: Vec::new(),
            by_entries: true,
            ..self
        }
    }

    /// For a streamed matrix: without momentum, which would need a second pass, and without samples.
    pub fn streamed(self) -> Self {
        Plan { momentum: false, plain: 0, samples: Vec::new(), ..self }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (u, v) = self.sweeps;
        if self.by_entries {
            let momentum = if self.momentum { "accelerated " } else { "" };
            return write!(f, "{momentum}coordinate descent; {u} sweeps per gathering of a row's entries");
        }
        f.write_str(if self.momentum { "accelerated HALS" } else { "HALS" })?;
        if let Some(last) = self.samples.last() {
            let percent = 100.0 * *last as f64 / self.length as f64;
            write!(f, ", warm-started on a {percent:.0$}% sample", usize::from(percent < 1.0))?;
        }
        write!(f, "; {u} sweeps of U and {v} of V per product")?;
        if self.plain > 0 {
            write!(f, "; {} plain iterations first (sparse matrix)", self.plain)?;
        }
        if let [.., last] = self.samples[..] {
            let kind = if self.rows { "rows" } else { "columns" };
            write!(f, "; samples: {} of up to {last} of {} {kind}", self.samples.len(), self.length)?;
        }
        Ok(())
    }
}

/// The errors on a sample after the first and after the last iteration.
struct SampleErrors {
    first: f64,
    last: f64,
}

/// A run's state in addition to the factors.
pub struct Auto<T> {
    terms: (Penalty, Penalty),
    constants: Constants,
    seed: u64,
    plan: Plan,
    momentum: Momentum,
    /// The last U that was solved for, and V_y.
    auxiliary: Option<FactorRows<T>>,
}

impl<T: Real> Auto<T> {
    /// A run about to begin.
    pub fn new(
        shard: &Shard<T>,
        k: usize,
        terms: (Penalty, Penalty),
        constants: Constants,
        seed: u64,
    ) -> Self {
        let penalized = |terms: Penalty| terms.l1 + terms.l2 > 0.0;
        let plan = Plan::of(shard.rows, shard.cols, shard.stored, k)
            .penalized(penalized(terms.0), penalized(terms.1));
        Auto { terms, constants, seed, plan, momentum: Momentum::BEGIN, auxiliary: None }
    }

    /// The same method without samples.
    pub fn without_samples(self) -> Self {
        Auto { plan: self.plan.without_samples(), ..self }
    }

    /// X ← several sweeps of coordinate descent with the other factor fixed.
    fn half(
        &self,
        rank: &Rank<'_, T>,
        factor: Factor,
        sweeps: usize,
        own: Moving<'_, T>,
        other: &mut Resident<T>,
        phases: &mut Phases,
    ) -> Result<(Updated, Vec<f64>)> {
        let gram = summary_of_all(rank, other, phases)?;
        let terms = if factor == Factor::U { self.terms.0 } else { self.terms.1 };
        let solver = &CoordinateDescent { mu: 0.0, sweeps };
        let wants_error = factor == Factor::V;
        let step = HalfStep { solver, summary: &gram, terms, scales: None, wants_error, k: rank.k };
        Ok((half_step(rank, factor, &step, own, other, phases)?, gram))
    }

    /// One iteration with the given sweeps of U and V, and with momentum unless `still`.
    fn step(
        &mut self,
        rank: &Rank<'_, T>,
        sweeps: (usize, usize),
        still: bool,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Evaluation> {
        let (u_sweeps, v_sweeps) = sweeps;
        if self.auxiliary.is_none() {
            state.pull(rank.device)?;
        }
        let mut auxiliary = self.auxiliary.take().unwrap_or_else(|| state.clone());
        // The first iteration starts from an arbitrary point, or from a factor of a sample: its direction says
        // nothing about the next one's.
        let still = still || !self.plan.momentum || self.momentum.last.is_none();
        let beta = if still { 0.0 } else { self.momentum.weight };
        let momentum = |last| Some(MovingMomentum { weight: beta, last });
        let u = Moving { rows: &mut state.u, momentum: momentum(&mut auxiliary.u) };
        self.half(rank, Factor::U, u_sweeps, u, &mut auxiliary.v, phases)?;
        let v = Moving { rows: &mut auxiliary.v, momentum: momentum(&mut state.v) };
        let (updated, of_u) = self.half(rank, Factor::V, v_sweeps, v, &mut state.u, phases)?;

        let of_v = summary_of_all(rank, &mut state.v, phases)?;
        let mut cross = [updated.cross];
        rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut cross))?;
        let (objective, k) = (rank.objective, rank.k);
        let error = objective.error_at_hand(self.constants, cross[0], &of_u, &of_v).unwrap_or(f64::NAN);
        let penalty = penalty(rank, state, self.terms)?;
        if self.momentum.judge(objective.merit(error, penalty, self.constants.baseline), beta) {
            rank.device.pull(&mut state.v)?;
            auxiliary.v = state.v.clone();
        }
        if Penalty::leave_scale_free(self.terms)
            && let (Some(u), Some(v)) = (objective.squared_sizes(&of_u, k), objective.squared_sizes(&of_v, k))
            && let Some(balance) = Balance::needed(&u, &v)
        {
            balance.apply(rank.device, state)?;
            balance.apply(rank.device, &mut auxiliary)?;
        }
        self.auxiliary = Some(auxiliary);
        Ok(Evaluation { error, dead: dead(objective.squared_sizes(&of_v, k), k) })
    }

    /// Iterations on a sample of the long side, until they stall.
    fn learn(
        &self,
        rank: &Rank<'_, T>,
        long: Factor,
        sample: Matrix<T>,
        sampled: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<SampleErrors> {
        let (length, size) = (rank.shard.rows.max(rank.shard.cols), sample.rows());
        let part = shards(sample, Grid::ONE, Access::Whole).remove(0);
        let links = Links::alone();
        let constants = MatrixStats::of(&links, &part, rank.threads)?.constants;
        let share = size as f64 / length as f64;
        let (of_long, of_short) = match long {
            Factor::U => self.terms,
            Factor::V => (self.terms.1, self.terms.0),
        };
        let of_short = Penalty { l1: of_short.l1 * share, l2: of_short.l2 * share, ..of_short };
        let mut auto = Auto::new(&part, rank.k, (of_long, of_short), constants, self.seed);
        let blocks = &Blocks::load(rank.device, &part)?;
        let rank = Rank { shard: &part, blocks, links, ..*rank };
        let first = auto.step(&rank, (SETTLING, auto.plan.sweeps.1), false, sampled, phases)?.error;
        let mut last = first;
        for _ in 1..ON_A_SAMPLE.min(COST_OF_A_SAMPLE * length / size) {
            let error = auto.step(&rank, auto.plan.sweeps, false, sampled, phases)?.error;
            let stalled = error.is_nan() || error > last * (1.0 - STALLED);
            last = error;
            if stalled {
                break;
            }
        }
        Ok(SampleErrors { first, last })
    }

    /// Learns the factor of the shorter side from increasingly large samples of the longer one. Every rank works on
    /// the whole sample, so that the result does not depend on their number.
    fn begin(&mut self, rank: &Rank<'_, T>, state: &mut FactorRows<T>, phases: &mut Phases) -> Result<()> {
        let (shard, k) = (rank.shard, rank.k);
        let long = if shard.rows >= shard.cols { Factor::U } else { Factor::V };
        let length = shard.rows.max(shard.cols);
        let place = shard.place;
        state.pull(rank.device)?;
        let (own_long, own_short) = match long {
            Factor::U => (state.u.host(), state.v.host()),
            Factor::V => (state.v.host(), state.u.host()),
        };
        let mut short = whole(rank.links.all, place, long.other(), own_short, k)?;
        let own = place.own(long);
        for (level, size) in self.plan.samples.clone().into_iter().enumerate() {
            let (kind, seed, purpose) = (SketchKind::Subsample, self.seed, Purpose::Sample);
            let wanted = Distribution { kind, length, size, seed, purpose }.choose(level);
            let mut start = vec![T::ZERO; size * k];
            for (row, target) in wanted.iter().zip(start.chunks_exact_mut(k)) {
                if own.contains(row) {
                    target.copy_from_slice(&own_long[(row - own.start) * k..][..k]);
                }
            }
            rank.links.all.all_reduce(Reduction::Sum, numbers(&mut start))?;
            let matrix = phases.sketch(|| rows_of(rank, long, &wanted))?;
            let mut sampled = FactorRows::new(start, short);
            let errors = self.learn(rank, long, matrix, &mut sampled, phases)?;
            // A start that is already good would only lose information.
            if level == 0 && (errors.last.is_nan() || errors.last > errors.first * (1.0 - WORTH_IT)) {
                self.plan.samples.clear();
                return Ok(());
            }
            rank.device.pull(&mut sampled.v)?;
            short = sampled.v.into_host();
        }
        let own_short = place.own(long.other());
        let short = &short[own_short.start * k..own_short.end * k];
        match long {
            Factor::U => state.v.host_mut().copy_from_slice(short),
            Factor::V => {
                state.u.host_mut().copy_from_slice(short);
                let v = Moving::plain(&mut state.v);
                self.half(rank, Factor::V, SETTLING, v, &mut state.u, phases)?;
            }
        }
        Ok(())
    }
}

impl<T: Real> Method<T> for Auto<T> {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let plain = iteration < self.plan.plain;
        let mut sweeps = if plain { (1, 1) } else { self.plan.sweeps };
        if iteration == 0 && !self.plan.samples.is_empty() {
            self.begin(rank, state, phases)?;
            sweeps.0 = SETTLING;
        }
        let evaluation = self.step(rank, sweeps, plain, state, phases)?;
        // NaN is kept, to be reported.
        Ok(if evaluation.error < rank.objective.cancels_below() { None } else { Some(evaluation) })
    }

    fn factors_changed(&mut self) {
        self.auxiliary = None;
    }

    fn plan(&self) -> String {
        format!("auto: {}", self.plan)
    }

    fn save_state(&self) -> MethodState {
        MethodState::Auto(self.momentum)
    }

    fn auxiliary_factors(&mut self) -> Option<&mut FactorRows<T>> {
        self.auxiliary.as_mut()
    }

    fn restore(&mut self, state: &MethodState, auxiliary: Option<FactorRows<T>>) -> bool {
        let MethodState::Auto(momentum) = state else { return false };
        self.momentum = *momentum;
        self.auxiliary = auxiliary;
        true
    }
}
