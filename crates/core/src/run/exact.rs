//! The exact methods (HALS, MU, ANLS/BPP) on a process grid, as MPI-FAUN has them: all-gather within a grid column (or
//! row), reduce-scatter of the products within a row (or column), Gram matrices by one all-reduce.

use super::evaluate::{CANCELS_BELOW, Evaluation, dead, relative_error};
use super::method::{Method, Rank};
use super::report::Phases;
use super::scale::Balance;
use super::start::{Constants, FactorRows};
use crate::Real;
use crate::comm::{Numbers, Reduction};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::{Columns, Product, gram, multiply};
use crate::solver::{Moving, Penalty, Problem, Solver, Updated, update};

/// Alternating steps on the unsketched problem.
pub struct Exact {
    name: &'static str,
    solver: Solver,
    terms: (Penalty, Penalty),
    constants: Constants,
    /// VᵀV, kept from the end of one iteration to the beginning of the next.
    gram_v: Option<Vec<f64>>,
}

impl Exact {
    /// A run about to begin of the method `name`.
    pub fn new(name: &'static str, solver: Solver, terms: (Penalty, Penalty), constants: Constants) -> Self {
        Exact { name, solver, terms, constants, gram_v: None }
    }
}

/// XᵀX over the rows of all ranks.
pub fn gram_of_all<T: Real>(rank: &Rank<'_, T>, factor: &[T], phases: &mut Phases) -> Result<Vec<f64>> {
    let mut gram = phases.product(|| gram(rank.threads, factor, rank.k));
    rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut gram))?;
    Ok(gram)
}

/// X ← one step on min ‖M − X Yᵀ‖ (for V of the transpose), where this rank has some rows of X and of Y.
pub fn half_step<T: Real>(
    rank: &Rank<'_, T>,
    factor: Factor,
    problem: &Problem<'_>,
    own: Moving<'_, T>,
    other: &[T],
    phases: &mut Phases,
) -> Result<Updated> {
    let &Rank { shard, links, threads, k } = rank;
    let place = shard.place;
    let other = links.gather(place, factor, other, k)?;
    let block = shard.block(factor);
    let product = if links.is_complete(place, factor) {
        phases.product(|| Product::new(threads, block, Columns::All, &other, k))
    } else {
        let partial = phases.product(|| multiply(threads, block, Columns::All, &other, k));
        Product::ready(links.sum_rows(place, factor, partial, k)?, k)
    };
    let updated = update(threads, problem, &product, own, k);
    phases.add(&updated);
    Ok(updated)
}

/// The error from ⟨Mᵀ U, V⟩ and the Gram matrices; nothing where it cancels.
pub fn evaluation(
    constants: Constants,
    cross: f64,
    (gram_u, gram_v): (&[f64], &[f64]),
    k: usize,
) -> Option<Evaluation> {
    let model = gram_u.iter().zip(gram_v).map(|(u, v)| u * v).sum();
    let error = relative_error(constants.norm, cross, model);
    // NaN passes on, to be reported.
    if error < CANCELS_BELOW { None } else { Some(Evaluation { error, dead: dead(gram_v, k) }) }
}

impl<T: Real> Method<T> for Exact {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        _iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let gram_v = match self.gram_v.take() {
            Some(gram) => gram,
            None => gram_of_all(rank, &state.v, phases)?,
        };
        let problem = Problem { solver: self.solver, gram: &gram_v, terms: self.terms.0 };
        half_step(rank, Factor::U, &problem, Moving::plain(&mut state.u), &state.v, phases)?;
        let gram_u = gram_of_all(rank, &state.u, phases)?;
        let problem = Problem { solver: self.solver, gram: &gram_u, terms: self.terms.1 };
        let updated = half_step(rank, Factor::V, &problem, Moving::plain(&mut state.v), &state.u, phases)?;
        let gram_v = gram_of_all(rank, &state.v, phases)?;

        // ⟨Mᵀ U, V⟩ is at hand, and so are the Gram matrices.
        let mut cross = [updated.cross];
        rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut cross))?;
        let seen = evaluation(self.constants, cross[0], (&gram_u, &gram_v), rank.k);
        let balance =
            Balance::of_grams(&gram_u, &gram_v, rank.k).filter(|_| Penalty::leave_scale_free(self.terms));
        self.gram_v = match balance {
            Some(balance) => {
                balance.apply(state);
                None
            }
            None => Some(gram_v),
        };
        Ok(seen)
    }

    fn plan(&self) -> String {
        self.name.to_string()
    }

    fn factors_changed(&mut self) {
        self.gram_v = None;
    }
}
