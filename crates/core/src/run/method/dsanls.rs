//! DSANLS (Alg. `alg:disSANLS`): each step solves a sketched subproblem, of which only B (k x d) is communicated.

use serde::{Deserialize, Serialize};

use super::{Beginning, Method, MethodSpec, MethodState, Rank, Sizes};
use crate::Real;
use crate::comm::{Reduction, sum_exactly};
use crate::device::{BlockEntries, Entries, Moving, Resident};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::{Columns, Product, gram};
use crate::objective::HalfStep;
use crate::partition::{Access, Block};
use crate::random::Purpose;
use crate::run::evaluate::Evaluation;
use crate::run::links::numbers;
use crate::run::report::Phases;
use crate::run::settings::{Settings, Step};
use crate::run::start::FactorRows;
use crate::run::streamed;
use crate::sketch::{CustomSketch, Distribution};
use crate::solver::{
    CoordinateDescent, Damped, MovingRows, Penalty, Problem, SketchedSolver, Solver, update,
};
use crate::threads::Threads;

pub const SPEC: MethodSpec = MethodSpec {
    uses: &["sketch", "sketch_cols", "sketch_rows", "solver", "alpha", "beta", "step", "bound"],
    access: Access::Sampled,
    balances: false,
    draws: true,
    fills_zeros: true,
    evaluate_every,
};

/// A run about to begin.
pub fn start<'a, T: Real>(beginning: &Beginning<'a, '_, T>) -> Result<Box<dyn Method<T> + 'a>> {
    // Its sketches need a quadratic problem that all rows share.
    beginning.require(&CoordinateDescent { mu: 1.0, sweeps: 1 })?;
    match beginning.streamed {
        Some(streamed) => Ok(Box::new(streamed::Sampled::new(streamed, beginning))),
        None => Ok(Box::new(Dsanls::new(beginning)?)),
    }
}

/// Iterations between two evaluations, such that evaluating costs about a tenth of iterating. By counts, not by
/// clocks: the same seed must stop at the same iteration everywhere.
fn evaluate_every(settings: &Settings, sizes: &Sizes) -> usize {
    let (m, n, k) = (sizes.rows as f64, sizes.cols as f64, settings.rank as f64);
    let stored = sizes.stored as f64;
    let sweeps = (m + n) * k * k;
    let evaluation = stored * k + 2.0 * sweeps;
    let (cols, rows) = settings.sketch_sizes(sizes.rows, sizes.cols);
    let (cols, rows) = (cols as f64, rows as f64);
    let iteration = stored * k * (cols / n + rows / m) + sweeps + (cols + rows) * k * k;
    (10.0 * evaluation / iteration).ceil().clamp(1.0, 1000.0) as usize
}

/// The damping of one side's steps.
///
/// Unit-free, its weight is (α + β t) g_t with g_t the mean Gram diagonal over *earlier* iterations: with the current
/// sketch's own diagonal the step would be biased, and Theorem `theorem:pgd` would not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Damping {
    alpha: f64,
    beta: f64,
    step: Step,
    solver: SketchedSolver,
    k: usize,
    first: f64,
    sum: f64,
    count: f64,
}

impl Damping {
    /// `start` is the mean Gram diagonal of the start values.
    pub fn new(settings: &Settings, start: f64) -> Self {
        Damping {
            alpha: settings.alpha,
            beta: settings.beta,
            step: settings.step,
            solver: settings.solver,
            k: settings.rank,
            first: start,
            sum: start,
            count: 1.0,
        }
    }

    /// Whether it is plausible.
    pub(super) fn is_plausible(&self) -> bool {
        let &Damping { alpha, beta, first, sum, count, .. } = self;
        [alpha, beta, first, sum, count - 1.0].iter().all(|number| (0.0..f64::MAX).contains(number))
    }

    /// The step of iteration t; then `diagonal`, this iteration's mean Gram diagonal, joins the mean for later ones. `l2` is
    /// the penalty's part of the curvature.
    pub fn next<T: Real>(&mut self, iteration: usize, diagonal: f64, l2: f64) -> Box<dyn Solver<T>> {
        let weight = self.alpha + self.beta * iteration as f64;
        // Not `clamp`, which panics if the squares of the start overflowed.
        let mean = (self.sum / self.count).max(0.1 * self.first).min(10.0 * self.first);
        self.sum += diagonal;
        self.count += 1.0;
        let mean = (self.step == Step::UnitFree).then_some(mean);
        self.solver.damped(Damped { weight, mean, k: self.k, l2 })
    }
}

/// One of the two alternating subproblems, with a new sketch in every iteration.
#[derive(Clone, Debug)]
pub struct SketchedSide {
    /// The stream that S is drawn from.
    pub distribution: Distribution,
    /// The damping of its steps.
    pub damping: Damping,
    /// Penalty and bound.
    pub terms: Penalty,
}

/// The state of a DSANLS run in addition to the factors.
struct Dsanls {
    u: SketchedSide,
    v: SketchedSide,
    custom: Option<CustomSketch>,
}

impl Dsanls {
    /// A run about to begin.
    fn new<T: Real>(beginning: &Beginning<'_, '_, T>) -> Result<Self> {
        let &Beginning { shard, links, settings, seed, terms, state, .. } = beginning;
        let k = settings.rank;
        let (cols, rows) = settings.sketch_sizes(shard.rows, shard.cols);
        let squares = |factor: &[T]| -> Vec<f64> {
            factor.chunks_exact(k).map(|row| row.iter().map(|value| value.to_f64().powi(2)).sum()).collect()
        };
        let [u, v] = sum_exactly(links.all, [&squares(state.u.host()), &squares(state.v.host())])?;
        let side = |purpose, length, size, squares: f64, terms| SketchedSide {
            distribution: Distribution { kind: settings.sketch, length, size, seed, purpose },
            damping: Damping::new(settings, squares / k as f64),
            terms,
        };
        Ok(Dsanls {
            u: side(Purpose::SketchU, shard.cols, cols, v, terms.0),
            v: side(Purpose::SketchV, shard.rows, rows, u, terms.1),
            custom: settings.custom_sketch.clone(),
        })
    }
}

impl SketchedSide {
    /// X ← one proximal step on min ‖(M − X Yᵀ) S‖ (for V of the transpose).
    fn step<T: Real>(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        factor: Factor,
        custom: Option<&CustomSketch>,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<()> {
        let &Rank { shard, links, threads, device, k, .. } = rank;
        let (own, other, other_rows) = match factor {
            Factor::U => (&mut state.u, &mut state.v, shard.own_cols.clone()),
            Factor::V => (&mut state.v, &mut state.u, shard.own_rows.clone()),
        };
        if self.distribution.size == self.distribution.length {
            let mut all = links.gather(shard.place, factor, device, other, k)?;
            return self.move_rows(rank, iteration, factor, own, Sketched::Unsketched(all.rows()), phases);
        }
        device.pull(other)?;
        if let Some(custom) = custom {
            let operator = phases.sketch(|| custom.draw(&self.distribution, iteration))?;
            let mut sum = phases.sketch(|| operator.project(other_rows, other.host(), k));
            links.all.all_reduce(Reduction::Sum, numbers(&mut sum))?;
            let weights = Resident::new(phases.sketch(|| operator.lift(threads, &sum, k)));
            let sketched = Sketched::By { b: Resident::new(sum), columns: Columns::All, weights };
            return self.move_rows(rank, iteration, factor, own, sketched, phases);
        }
        let operator = phases.sketch(|| self.distribution.draw::<T>(iteration));
        let mut sum = phases.sketch(|| operator.project(threads, other_rows, other.host(), k));
        links.all.all_reduce(Reduction::Sum, numbers(&mut sum))?;
        let (columns, weights) = phases.sketch(|| operator.lift(threads, &sum, k));
        let (b, weights) = (Resident::new(sum), Resident::new(weights));
        self.move_rows(rank, iteration, factor, own, Sketched::By { b, columns, weights }, phases)
    }

    /// The step itself, on the device that has the block.
    fn move_rows<T: Real>(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        factor: Factor,
        own: &mut Resident<T>,
        mut sketched: Sketched<'_, T>,
        phases: &mut Phases,
    ) -> Result<()> {
        let &Rank { device, objective, k, .. } = rank;
        let b = match &mut sketched {
            Sketched::Unsketched(fixed) => &mut **fixed,
            Sketched::By { b, .. } => b,
        };
        let gram = phases.product(|| device.summarize(objective, b, k))?;
        let solver = self.next::<T>(iteration, &gram, k);
        let step = HalfStep {
            solver: &*solver,
            summary: &gram,
            terms: self.terms,
            scales: None,
            wants_error: false,
            k,
        };
        let (columns, fixed) = match &mut sketched {
            Sketched::Unsketched(fixed) => (Columns::All, &mut **fixed),
            Sketched::By { columns, weights, .. } => (*columns, weights),
        };
        let entries = Entries::Block(BlockEntries { block: rank.blocks.of(factor), columns, fixed });
        phases.add(&device.half_step(objective, &step, entries, Moving::plain(own))?);
        Ok(())
    }

    /// The damped solver of an iteration.
    fn next<T: Real>(&mut self, iteration: usize, gram: &[f64], k: usize) -> Box<dyn Solver<T>> {
        let diagonal = (0..k).map(|j| gram[j * (k + 1)]).sum::<f64>() / k as f64;
        self.damping.next(iteration, diagonal, self.terms.l2)
    }

    /// The step on the host, given Bᵀ = SᵀY and S Bᵀ.
    pub fn solve<T: Real>(
        &mut self,
        threads: &Threads,
        iteration: usize,
        block: &Block<T>,
        own: &mut [T],
        fixed: SketchedFactor<'_, T>,
        phases: &mut Phases,
    ) {
        let SketchedFactor { b, columns, weights, k } = fixed;
        let gram = phases.product(|| gram(threads, b, k));
        let solver = self.next::<T>(iteration, &gram, k);
        let problem = Problem { solver: &*solver, gram: &gram, terms: self.terms };
        let product = phases.product(|| Product::new(threads, block, columns, weights, k));
        phases.add(&update(threads, &problem, &product, MovingRows::plain(own), k));
    }
}

/// A sketch of the fixed factor on the host.
pub struct SketchedFactor<'a, T> {
    /// Bᵀ = SᵀY.
    pub b: &'a [T],
    /// The columns of M that S Bᵀ belongs to.
    pub columns: Columns<'a>,
    /// S Bᵀ.
    pub weights: &'a [T],
    /// Number of components.
    pub k: usize,
}

/// The fixed factor as a step uses it.
enum Sketched<'a, T> {
    /// All of it.
    Unsketched(&'a mut Resident<T>),
    /// Bᵀ = SᵀY, and S Bᵀ with the columns that it belongs to.
    By { b: Resident<T>, columns: Columns<'a>, weights: Resident<T> },
}

impl<T: Real> Method<T> for Dsanls {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let custom = self.custom.as_ref();
        self.u.step(rank, iteration, Factor::U, custom, state, phases)?;
        self.v.step(rank, iteration, Factor::V, custom, state, phases)?;
        Ok(None)
    }

    fn plan(&self) -> String {
        let side = |Distribution { size, length, .. }: &Distribution, what: &str| {
            if size == length { format!("all {length} {what}") } else { format!("{size} of {length} {what}") }
        };
        let (u, v) = (&self.u.distribution, &self.v.distribution);
        format!("dsanls, sketched to {} and {}", side(u, "columns"), side(v, "rows"))
    }

    fn save_state(&self) -> MethodState {
        MethodState::Dsanls { u: self.u.damping.clone(), v: self.v.damping.clone() }
    }

    fn restore(&mut self, state: &MethodState, _: Option<FactorRows<T>>) -> bool {
        let MethodState::Dsanls { u, v } = state else { return false };
        (self.u.damping, self.v.damping) = (u.clone(), v.clone());
        true
    }
}
