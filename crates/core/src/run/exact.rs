//! The exact methods (HALS, MU, ANLS/BPP) on the same ranks as DSANLS, every rank gathering the other factor.

use super::evaluate::{CANCELS_BELOW, Evaluation, relative_error};
use super::start::{Constants, State};
use super::{Method, Phases, Rank};
use crate::Real;
use crate::comm::{Numbers, Reduction, gather_all};
use crate::error::Result;
use crate::kernels::{Columns, Product, gram};
use crate::partition::Block;
use crate::solver::{Problem, Solver, Terms, Updated, update};

/// Alternating steps on the unsketched problem, unnormalised.
pub struct Exact {
    solver: Solver,
    terms: (Terms, Terms),
    constants: Constants,
    /// VᵀV, kept from the end of one iteration to the beginning of the next.
    gram_v: Option<Vec<f64>>,
}

impl Exact {
    /// A run about to begin.
    pub fn new(solver: Solver, terms: (Terms, Terms), constants: Constants) -> Self {
        Exact { solver, terms, constants, gram_v: None }
    }
}

/// XᵀX over the rows of all ranks.
fn gram_of_all<T: Real>(rank: &Rank<'_, T>, factor: &[T], phases: &mut Phases) -> Result<Vec<f64>> {
    let mut gram = phases.product(|| gram(rank.threads, factor, rank.k));
    rank.comm.all_reduce(Reduction::Sum, Numbers::F64(&mut gram))?;
    Ok(gram)
}

/// X ← one step on min ‖block − X Yᵀ‖, with all of Y.
fn half_step<T: Real>(
    rank: &Rank<'_, T>,
    block: &Block<T>,
    problem: &Problem<'_>,
    own: &mut [T],
    other: &[T],
    phases: &mut Phases,
) -> Result<Updated> {
    let gathered;
    let other = if rank.comm.size() == 1 {
        other
    } else {
        gathered = gather_all(rank.comm, other)?;
        &gathered
    };
    let product = phases.product(|| Product::new(rank.threads, block, Columns::All, other, rank.k));
    let updated = update(rank.threads, problem, &product, own, rank.k);
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
    let dead = (0..k).filter(|j| gram_v[j * (k + 1)] == 0.0).collect();
    // NaN passes on, to be reported.
    if error < CANCELS_BELOW { None } else { Some(Evaluation { error, dead }) }
}

impl<T: Real> Method<T> for Exact {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        _iteration: usize,
        state: &mut State<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let gram_v = match self.gram_v.take() {
            Some(gram) => gram,
            None => gram_of_all(rank, &state.v, phases)?,
        };
        let problem = Problem { solver: self.solver, gram: &gram_v, terms: self.terms.0 };
        half_step(rank, &rank.shard.by_rows, &problem, &mut state.u, &state.v, phases)?;
        let gram_u = gram_of_all(rank, &state.u, phases)?;
        let problem = Problem { solver: self.solver, gram: &gram_u, terms: self.terms.1 };
        let updated = half_step(rank, &rank.shard.by_cols, &problem, &mut state.v, &state.u, phases)?;
        let gram_v = gram_of_all(rank, &state.v, phases)?;

        // ⟨Mᵀ U, V⟩ is at hand, and so are the Gram matrices.
        let mut cross = [updated.cross];
        rank.comm.all_reduce(Reduction::Sum, Numbers::F64(&mut cross))?;
        let seen = evaluation(self.constants, cross[0], (&gram_u, &gram_v), rank.k);
        self.gram_v = Some(gram_v);
        Ok(seen)
    }

    fn factors_changed(&mut self) {
        self.gram_v = None;
    }
}
