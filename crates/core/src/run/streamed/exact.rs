//! The exact methods (HALS, MU, ANLS/BPP), one pass per iteration; and the Kullback-Leibler divergence, whose multiplicative
//! steps sum over lines as well.

use super::{PassOver, Streamed};
use crate::Real;
use crate::comm::Alone;
use crate::device::{MovingRows, update_tiles};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::Product;
use crate::objective::{Constants, HalfStep};
use crate::run::evaluate::Evaluation;
use crate::run::method::exact::{evaluation, scales_columns, unscaled};
use crate::run::method::{Beginning, Method, Rank};
use crate::run::report::Phases;
use crate::run::scale::{Balance, column_scales, scale_columns};
use crate::run::start::FactorRows;
use crate::solver::{Penalty, Solver};

/// The solvers of U and of V.
pub type Solvers<T> = (Box<dyn Solver<T>>, Box<dyn Solver<T>>);

/// Alternating steps on the unsketched problem.
///
/// If lines are rows, U is updated within the pass and V after it, from the sums. If they are columns, V is updated
/// within the pass and its sums, M V, wait for the next iteration's U, so that the order is U, V, U, V in either
/// case; only the first iteration takes one more pass.
pub struct Exact<'a, T> {
    plan: String,
    streamed: &'a Streamed,
    /// For (U, V), as the terms are.
    solvers: Solvers<T>,
    terms: (Penalty, Penalty),
    constants: Constants,
    /// The summary of V, kept from the end of one iteration to the beginning of the next.
    of_v: Option<Fixed>,
    /// Mᵀ X over lines, and whether it belongs to the current X.
    sums: Vec<T>,
    current: bool,
    /// Whether the columns of a fixed factor are scaled before products and its Gram matrix are formed.
    scales_columns: bool,
}

/// The summary of a fixed factor.
struct Fixed {
    /// The summary of its scaled columns.
    summary: Vec<f64>,
    /// The powers of two by which they were multiplied.
    scales: Option<Vec<f64>>,
}

impl Fixed {
    /// Scales the columns of a factor, which [`Fixed::release`] undoes, and summarizes them.
    fn new<T: Real>(
        rank: &Rank<'_, T>,
        rows: &mut [T],
        scales: Option<Vec<f64>>,
        phases: &mut Phases,
    ) -> Self {
        if let Some(scales) = &scales {
            scale_columns(rows, scales);
        }
        Fixed { summary: phases.product(|| rank.objective.summarize(rank.threads, rows, rank.k)), scales }
    }

    fn half_step<'a, T>(&'a self, solver: &'a dyn Solver<T>, terms: Penalty, k: usize) -> HalfStep<'a, T> {
        HalfStep {
            solver,
            summary: &self.summary,
            terms,
            scales: self.scales.as_deref(),
            wants_error: true,
            k,
        }
    }

    /// The scales of a factor that was solved for while this one was fixed, which restore the size of M.
    fn inverse(&self) -> Option<Vec<f64>> {
        self.scales.as_ref().map(|scales| scales.iter().map(|scale| scale.recip()).collect())
    }

    fn release<T: Real>(&self, rows: &mut [T]) {
        if let Some(inverse) = self.inverse() {
            scale_columns(rows, &inverse);
        }
    }
}

/// The outcome of an iteration.
struct Iterated {
    of_u: Fixed,
    of_v: Fixed,
    /// ⟨M V, U⟩.
    cross: f64,
}

impl<'a, T: Real> Exact<'a, T> {
    /// Creates a run, which `plan` describes.
    pub fn new(
        plan: String,
        streamed: &'a Streamed,
        solvers: Solvers<T>,
        beginning: &Beginning<'a, '_, T>,
    ) -> Self {
        let &Beginning { settings, terms, constants, .. } = beginning;
        let sums = vec![T::ZERO; streamed.stream.line_length() * settings.rank];
        let scales_columns = scales_columns(&*solvers.0, terms);
        Exact { plan, streamed, solvers, terms, constants, of_v: None, sums, current: false, scales_columns }
    }

    /// Scales a factor by its own entries, if requested, and summarizes it.
    fn fix(&self, rank: &Rank<'_, T>, rows: &mut [T], phases: &mut Phases) -> Result<Fixed> {
        let scales = match self.scales_columns {
            true => Some(column_scales(&Alone, rows, rank.k)?),
            false => None,
        };
        Ok(Fixed::new(rank, rows, scales, phases))
    }

    /// The summary of V at the beginning of an iteration.
    fn take_of_v(&mut self, rank: &Rank<'_, T>, v: &mut [T], phases: &mut Phases) -> Result<Fixed> {
        if let Some(fixed) = self.of_v.take() {
            return Ok(fixed);
        }
        let fixed = self.fix(rank, v, phases)?;
        fixed.release(v);
        Ok(fixed)
    }

    /// U within a pass, then V from its sums.
    fn iterate_rows(
        &mut self,
        rank: &Rank<'_, T>,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Iterated> {
        let (streamed, k) = (self.streamed, rank.k);
        let (u, v) = (state.u.host_mut(), state.v.host_mut());
        let of_v = self.take_of_v(rank, v, phases)?;
        if let Some(scales) = &of_v.scales {
            scale_columns(v, scales);
        }
        let for_u = of_v.half_step(&*self.solvers.0, self.terms.0, k);
        let scales = of_v.inverse();
        let over = PassOver {
            objective: rank.objective,
            x: u,
            y: v,
            sums: &mut self.sums,
            scales: scales.as_deref(),
            k,
        };
        streamed.step(rank.threads, &streamed.blocks, Some(&for_u), over, phases)?;
        let of_u = Fixed::new(rank, u, scales, phases);
        of_u.release(u);
        let cross = self.step_of_sums(rank, Factor::V, &of_u, v, phases);
        let of_v = self.fix(rank, v, phases)?;
        of_v.release(v);
        Ok(Iterated { of_u, of_v, cross })
    }

    /// U from the sums of the last pass, then V within the next one.
    fn iterate_columns(
        &mut self,
        rank: &Rank<'_, T>,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Iterated> {
        let (streamed, k) = (self.streamed, rank.k);
        let (u, v) = (state.u.host_mut(), state.v.host_mut());
        let of_v = self.take_of_v(rank, v, phases)?;
        if !self.current {
            let over = PassOver {
                objective: rank.objective,
                x: v,
                y: u,
                sums: &mut self.sums,
                scales: of_v.scales.as_deref(),
                k,
            };
            streamed.step(rank.threads, &streamed.blocks, None, over, phases)?;
        }
        self.step_of_sums(rank, Factor::U, &of_v, u, phases);
        let of_u = self.fix(rank, u, phases)?;
        let for_v = of_u.half_step(&*self.solvers.1, self.terms.1, k);
        let scales = of_u.inverse();
        let over = PassOver {
            objective: rank.objective,
            x: v,
            y: u,
            sums: &mut self.sums,
            scales: scales.as_deref(),
            k,
        };
        let cross = streamed.step(rank.threads, &streamed.blocks, Some(&for_v), over, phases)?;
        self.current = true;
        of_u.release(u);
        let of_v = Fixed::new(rank, v, scales, phases);
        of_v.release(v);
        Ok(Iterated { of_u, of_v, cross })
    }

    /// Updates the factor whose products are the sums; returns ⟨M V, U⟩.
    fn step_of_sums(
        &self,
        rank: &Rank<'_, T>,
        factor: Factor,
        fixed: &Fixed,
        rows: &mut [T],
        phases: &mut Phases,
    ) -> f64 {
        let (solver, terms) = match factor {
            Factor::U => (&*self.solvers.0, self.terms.0),
            Factor::V => (&*self.solvers.1, self.terms.1),
        };
        let (step, product) =
            (fixed.half_step(solver, terms, rank.k), Product::ready(&self.sums[..], rank.k));
        let updated = update_tiles(rank.threads, rank.objective, &step, &product, MovingRows::plain(rows));
        phases.add(&updated);
        updated.cross
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
        let k = rank.k;
        state.pull(rank.device)?;
        let Iterated { of_u, of_v, cross } = match self.streamed.stream.by_columns() {
            true => self.iterate_columns(rank, state, phases)?,
            false => self.iterate_rows(rank, state, phases)?,
        };
        let plain_u = unscaled(&of_u.summary, of_u.scales.as_deref());
        let plain_v = unscaled(&of_v.summary, of_v.scales.as_deref());
        let seen = evaluation(rank.objective, self.constants, cross, (&plain_u, &plain_v), k);
        let squares = |summary: &[f64]| rank.objective.squared_sizes(summary, k);
        let balance = match (squares(&plain_u), squares(&plain_v)) {
            (Some(u), Some(v)) if Penalty::leave_scale_free(self.terms) => Balance::needed(&u, &v),
            _ => None,
        };
        self.of_v = match balance {
            Some(balance) => {
                if self.current {
                    // M V waits for the next U.
                    balance.apply_to_v(&mut self.sums);
                }
                balance.apply(rank.device, state)?;
                None
            }
            None => Some(of_v),
        };
        Ok(seen)
    }

    fn plan(&self) -> String {
        self.plan.clone()
    }

    fn factors_changed(&mut self) {
        self.of_v = None;
        self.current = false;
    }
}
