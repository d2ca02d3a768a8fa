//! The exact methods (HALS, MU, ANLS/BPP), a pass an iteration.

use super::Streamed;
use crate::Real;
use crate::error::Result;
use crate::kernels::{Product, gram};
use crate::objective::Constants;
use crate::run::evaluate::Evaluation;
use crate::run::method::exact::evaluation;
use crate::run::method::{Beginning, Method, Rank};
use crate::run::report::Phases;
use crate::run::scale::Balance;
use crate::run::start::FactorRows;
use crate::solver::{MovingRows, Penalty, Problem, Solver, update};

/// The solvers of U and of V.
pub type Solvers<T> = (Box<dyn Solver<T>>, Box<dyn Solver<T>>);

/// Alternating steps on the unsketched problem.
///
/// Where lines are rows, U moves within the pass and V after it, from the sums. Where they are columns, V moves within
/// the pass and its sums, M V, wait for the next iteration's U, so that the order is U, V, U, V in either case; only
/// the first iteration takes a pass more.
pub struct Exact<'a, T> {
    plan: String,
    streamed: &'a Streamed,
    /// For (U, V), as the terms are.
    solvers: Solvers<T>,
    terms: (Penalty, Penalty),
    constants: Constants,
    /// VᵀV, kept from the end of one iteration to the beginning of the next.
    gram_v: Option<Vec<f64>>,
    /// Mᵀ X over lines, and whether it belongs to the present X.
    sums: Vec<T>,
    current: bool,
}

impl<'a, T: Real> Exact<'a, T> {
    /// A run about to begin, which `plan` describes.
    pub fn new(
        plan: String,
        streamed: &'a Streamed,
        solvers: Solvers<T>,
        beginning: &Beginning<'a, '_, T>,
    ) -> Self {
        let &Beginning { settings, terms, constants, .. } = beginning;
        let sums = vec![T::ZERO; streamed.stream.line_length() * settings.rank];
        Exact { plan, streamed, solvers, terms, constants, gram_v: None, sums, current: false }
    }
}

impl<T: Real> Method<T> for Exact<'_, T> {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        _iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let Exact { streamed, ref solvers, terms, ref mut sums, .. } = *self;
        let (threads, k, blocks) = (rank.threads, rank.k, &streamed.blocks);
        state.pull(rank.device)?;
        let (u, v) = (state.u.host_mut(), state.v.host_mut());
        let gram_v = match self.gram_v.take() {
            Some(gram) => gram,
            None => phases.product(|| gram(threads, v, k)),
        };
        let for_u = Problem { solver: &*solvers.0, gram: &gram_v, terms: terms.0 };
        let (gram_u, cross);
        if streamed.stream.by_columns() {
            if !self.current {
                streamed.step(threads, blocks, None, (v, u, sums), k, phases)?;
            }
            phases.add(&update(threads, &for_u, &Product::ready(&sums[..], k), MovingRows::plain(u), k));
            gram_u = phases.product(|| gram(threads, u, k));
            let for_v = Problem { solver: &*solvers.1, gram: &gram_u, terms: terms.1 };
            cross = streamed.step(threads, blocks, Some(&for_v), (v, u, sums), k, phases)?;
            self.current = true;
        } else {
            streamed.step(threads, blocks, Some(&for_u), (u, v, sums), k, phases)?;
            gram_u = phases.product(|| gram(threads, u, k));
            let for_v = Problem { solver: &*solvers.1, gram: &gram_u, terms: terms.1 };
            let updated = update(threads, &for_v, &Product::ready(&sums[..], k), MovingRows::plain(v), k);
            phases.add(&updated);
            cross = updated.cross;
        }
        let gram_v = phases.product(|| gram(threads, v, k));
        let seen = evaluation(rank.objective, self.constants, cross, (&gram_u, &gram_v), k);
        let balance = Balance::of_grams(&gram_u, &gram_v, k).filter(|_| Penalty::leave_scale_free(terms));
        self.gram_v = match balance {
            Some(balance) => {
                if self.current {
                    // M V waits for the next U.
                    balance.apply_to_v(sums);
                }
                balance.apply(rank.device, state)?;
                None
            }
            None => Some(gram_v),
        };
        Ok(seen)
    }

    fn plan(&self) -> String {
        self.plan.clone()
    }

    fn factors_changed(&mut self) {
        self.gram_v = None;
        self.current = false;
    }
}
