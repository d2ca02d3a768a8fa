//! DSANLS (Alg. `alg:disSANLS`): each step solves a sketched subproblem, of which only B (k x d) is communicated.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::evaluate::Evaluation;
use super::links::numbers;
use super::method::{Method, MethodState, Rank};
use super::report::Phases;
use super::settings::{Settings, SketchedSolver, Step};
use super::start::FactorRows;
use crate::Real;
use crate::comm::{Comm, Reduction, sum_exactly};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::{Columns, Product, gram};
use crate::partition::{Block, Shard};
use crate::random::Purpose;
use crate::sketch::Distribution;
use crate::solver::{Moving, Penalty, Problem, Solver, update};
use crate::threads::Threads;

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

    /// Whether it can be a run's.
    pub(super) fn is_plausible(&self) -> bool {
        let &Damping { alpha, beta, first, sum, count, .. } = self;
        [alpha, beta, first, sum, count - 1.0].iter().all(|number| (0.0..f64::MAX).contains(number))
    }

    /// The step of iteration t; then `diagonal`, this iteration's mean Gram diagonal, joins the mean for later ones. `l2` is
    /// the penalty's part of the curvature.
    pub fn next(&mut self, iteration: usize, diagonal: f64, l2: f64) -> Solver {
        let weight = self.alpha + self.beta * iteration as f64;
        // Not `clamp`, which panics where the start was so large that its squares are no numbers.
        let mean = (self.sum / self.count).max(0.1 * self.first).min(10.0 * self.first);
        self.sum += diagonal;
        self.count += 1.0;
        match (self.solver, self.step) {
            (SketchedSolver::Pcd, Step::UnitFree) => {
                Solver::CoordinateDescent { mu: weight * mean, sweeps: 1 }
            }
            (SketchedSolver::Pcd, Step::Absolute) => Solver::CoordinateDescent { mu: weight, sweeps: 1 },
            (SketchedSolver::Pgd, Step::UnitFree) => {
                Solver::GradientDescent { eta: 1.0 / (weight * (self.k as f64 * mean + l2)) }
            }
            (SketchedSolver::Pgd, Step::Absolute) => Solver::GradientDescent { eta: 1.0 / weight },
        }
    }
}

/// One of the two alternating subproblems, sketched anew every iteration.
#[derive(Clone, Debug)]
pub struct SketchedSide {
    /// Where S is drawn from.
    pub distribution: Distribution,
    /// The damping of its steps.
    pub damping: Damping,
    /// Penalty and bound.
    pub terms: Penalty,
}

/// The state of a DSANLS run beside the factors.
pub struct Dsanls {
    u: SketchedSide,
    v: SketchedSide,
}

impl Dsanls {
    /// A run about to begin from `state`.
    pub fn new<T: Real>(
        comm: &dyn Comm,
        shard: &Shard<T>,
        settings: &Settings,
        (seed, terms): (u64, (Penalty, Penalty)),
        state: &FactorRows<T>,
    ) -> Result<Self> {
        let k = settings.rank;
        let (cols, rows) = settings.sketch_sizes(shard.rows, shard.cols);
        let squares = |factor: &[T]| -> Vec<f64> {
            factor.chunks_exact(k).map(|row| row.iter().map(|value| value.to_f64().powi(2)).sum()).collect()
        };
        let [u, v] = sum_exactly(comm, [&squares(&state.u), &squares(&state.v)])?;
        let side = |purpose, length, size, squares: f64, terms| SketchedSide {
            distribution: Distribution { kind: settings.sketch, length, size, seed, purpose },
            damping: Damping::new(settings, squares / k as f64),
            terms,
        };
        Ok(Dsanls {
            u: side(Purpose::SketchU, shard.cols, cols, v, terms.0),
            v: side(Purpose::SketchV, shard.rows, rows, u, terms.1),
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
        own: &mut [T],
        (other, other_rows): (&[T], std::ops::Range<usize>),
        phases: &mut Phases,
    ) -> Result<()> {
        let k = rank.k;
        let operator;
        let (b, columns, weights);
        if self.distribution.size == self.distribution.length {
            let all = rank.links.gather(rank.shard.place, factor, other, k)?;
            (b, columns, weights) = (all.clone(), Columns::All, all);
        } else {
            operator = phases.sketch(|| self.distribution.draw::<T>(iteration));
            let mut sum = phases.sketch(|| operator.project(rank.threads, other_rows, other, k));
            rank.links.all.all_reduce(Reduction::Sum, numbers(&mut sum))?;
            let lifted = phases.sketch(|| operator.lift(rank.threads, &sum, k));
            (b, columns, weights) = (Cow::Owned(sum), lifted.0, Cow::Owned(lifted.1));
        }
        let block = rank.shard.block(factor);
        self.solve((rank.threads, k), iteration, block, own, (&b, columns, &weights), phases);
        Ok(())
    }

    /// The step itself, given Bᵀ = SᵀY and S Bᵀ.
    pub fn solve<T: Real>(
        &mut self,
        (threads, k): (&Threads, usize),
        iteration: usize,
        block: &Block<T>,
        own: &mut [T],
        (b, columns, weights): (&[T], Columns<'_>, &[T]),
        phases: &mut Phases,
    ) {
        let gram = phases.product(|| gram(threads, b, k));
        let diagonal = (0..k).map(|j| gram[j * (k + 1)]).sum::<f64>() / k as f64;
        let problem = Problem {
            solver: self.damping.next(iteration, diagonal, self.terms.l2),
            gram: &gram,
            terms: self.terms,
        };
        let product = phases.product(|| Product::new(threads, block, columns, weights, k));
        phases.add(&update(threads, &problem, &product, Moving::plain(own), k));
    }
}

impl<T: Real> Method<T> for Dsanls {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let shard = rank.shard;
        let v = (&state.v[..], shard.own_cols.clone());
        self.u.step(rank, iteration, Factor::U, &mut state.u, v, phases)?;
        let u = (&state.u[..], shard.own_rows.clone());
        self.v.step(rank, iteration, Factor::V, &mut state.v, u, phases)?;
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
