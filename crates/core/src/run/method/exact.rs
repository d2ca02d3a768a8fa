//! The exact methods (HALS, MU, ANLS/BPP) on a process grid, as MPI-FAUN has them: all-gather within a grid column (or
//! row), reduce-scatter of the products within a row (or column), Gram matrices by one all-reduce.

use std::borrow::Cow;

use super::{Beginning, Method, Rank};
use crate::Real;
use crate::comm::{Numbers, Reduction};
use crate::device::{BlockEntries, Entries, Moving, Resident, Updated};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::Columns;
use crate::objective::{Constants, HalfStep, Objective};
use crate::partition::Access;
use crate::run::evaluate::{Evaluation, dead};
use crate::run::report::Phases;
use crate::run::scale::{Balance, column_scales, scale_columns, squared_norms};
use crate::run::start::FactorRows;
use crate::run::streamed;
use crate::solver::{Penalty, Pivoting, Solver};

/// Alternating steps on the unsketched problem.
struct Exact<T> {
    name: &'static str,
    solver: Box<dyn Solver<T>>,
    terms: (Penalty, Penalty),
    constants: Constants,
    /// The summary of V, kept from the end of one iteration to the beginning of the next.
    of_v: Option<Fixed<T>>,
    /// Whether the columns of a fixed factor are scaled before products are formed.
    scales_columns: bool,
}

/// Creates a run of the method `name`, which takes the same step on both sides.
pub fn start<'a, T: Real, S: Solver<T> + Clone + 'static>(
    name: &'static str,
    solver: S,
    beginning: &Beginning<'a, '_, T>,
) -> Result<Box<dyn Method<T> + 'a>> {
    beginning.require(&solver)?;
    let &Beginning { streamed, terms, constants, .. } = beginning;
    if let Some(streamed) = streamed {
        let solvers: streamed::Solvers<T> = (Box::new(solver.clone()), Box::new(solver));
        return Ok(Box::new(streamed::Exact::new(name.into(), streamed, solvers, beginning)));
    }
    let scales_columns = scales_columns(&solver, terms) && beginning.settings.access() == Access::Whole;
    Ok(Box::new(Exact { name, solver: Box::new(solver), terms, constants, of_v: None, scales_columns }))
}

/// The summary of a fixed factor, over the rows of all processes.
pub fn summary_of_all<T: Real>(
    rank: &Rank<'_, T>,
    factor: &mut Resident<T>,
    phases: &mut Phases,
) -> Result<Vec<f64>> {
    let mut summary = phases.product(|| rank.device.summarize(rank.objective, factor, rank.k))?;
    rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut summary))?;
    Ok(summary)
}

/// X ← one step on the loss of X Yᵀ (for V of the transpose), where this process has some rows of X and of Y.
pub fn half_step<T: Real>(
    rank: &Rank<'_, T>,
    factor: Factor,
    step: &HalfStep<'_, T>,
    own: Moving<'_, T>,
    other: &mut Resident<T>,
    phases: &mut Phases,
) -> Result<Updated> {
    let &Rank { shard, links, device, objective, k, blocks, .. } = rank;
    let place = shard.place;
    let mut gathered = links.gather(place, factor, device, other, k)?;
    let fixed = gathered.rows();
    let block = blocks.of(factor);
    let entries = if links.is_complete(place, factor) {
        Entries::Block(BlockEntries { block, columns: Columns::All, fixed })
    } else {
        let partial = phases.product(|| device.multiply(block, fixed, k))?;
        Entries::Products(links.sum_rows(place, factor, partial, k)?)
    };
    let updated = device.half_step(objective, step, entries, own)?;
    phases.add(&updated);
    Ok(updated)
}

/// The error from available products and summaries; `None` if it would cancel.
pub fn evaluation<T: Real>(
    objective: &dyn Objective<T>,
    constants: Constants,
    cross: f64,
    summaries: (&[f64], &[f64]),
    k: usize,
) -> Option<Evaluation> {
    let (of_u, of_v) = summaries;
    let error = objective.error_at_hand(constants, cross, of_u, of_v)?;
    // NaN is kept, to be reported.
    let dead = dead(objective.squared_sizes(of_v, k), k);
    if error < objective.cancels_below() { None } else { Some(Evaluation { error, dead }) }
}

/// The fixed factor as half steps need it.
struct Fixed<T> {
    /// Its summary; of the scaled rows, if there are any.
    summary: Vec<f64>,
    scaled: Option<Scaled<T>>,
}

/// Rows whose columns are multiplied by powers of two.
struct Scaled<T> {
    rows: Resident<T>,
    scales: Vec<f64>,
}

impl<T: Real> Fixed<T> {
    /// The summary of the rows as they are. Only Gram matrices are ever scaled.
    fn plain(&self) -> Cow<'_, [f64]> {
        unscaled(&self.summary, self.scaled.as_ref().map(|scaled| &scaled.scales[..]))
    }
}

/// The Gram matrix of columns that were multiplied by these scales, before they were.
pub fn unscaled<'a>(gram: &'a [f64], scales: Option<&[f64]>) -> Cow<'a, [f64]> {
    let Some(scales) = scales else { return Cow::Borrowed(gram) };
    let rows = gram.chunks_exact(scales.len()).zip(scales);
    let plain = rows.flat_map(|(row, by)| row.iter().zip(scales).map(move |(g, scale)| g / (by * scale)));
    Cow::Owned(plain.collect())
}

/// Whether the columns of a fixed factor are scaled before products are formed: an exact solution can have any scale, and
/// penalties forbid balancing it.
pub fn scales_columns<T: Real>(solver: &dyn Solver<T>, terms: (Penalty, Penalty)) -> bool {
    solver.name() == Solver::<T>::name(&Pivoting) && !Penalty::leave_scale_free(terms)
}

impl<T: Real> Exact<T> {
    /// Summarizes a factor that will be fixed, scaled if its Gram matrix could overflow.
    fn fix(&self, rank: &Rank<'_, T>, rows: &mut Resident<T>, phases: &mut Phases) -> Result<Fixed<T>> {
        if !self.scales_columns {
            return Ok(Fixed { summary: summary_of_all(rank, rows, phases)?, scaled: None });
        }
        rank.device.pull(rows)?;
        let scales = column_scales(rank.links.all, rows.host(), rank.k)?;
        let mut even = rows.clone();
        scale_columns(even.host_mut(), &scales);
        let summary = summary_of_all(rank, &mut even, phases)?;
        Ok(Fixed { summary, scaled: Some(Scaled { rows: even, scales }) })
    }

    /// X ← one step.
    fn half(
        &self,
        rank: &Rank<'_, T>,
        factor: Factor,
        fixed: &mut Fixed<T>,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Updated> {
        let FactorRows { u, v } = state;
        let (own, other, terms) = match factor {
            Factor::U => (u, v, self.terms.0),
            Factor::V => (v, u, self.terms.1),
        };
        let (solver, k, summary) = (&*self.solver, rank.k, &fixed.summary);
        let (other, scales) = match &mut fixed.scaled {
            Some(Scaled { rows, scales }) => (rows, Some(&scales[..])),
            None => (other, None),
        };
        let wants_error = factor == Factor::V;
        let step = HalfStep { solver, summary, terms, scales, wants_error, k };
        half_step(rank, factor, &step, Moving::plain(own), other, phases)
    }

    /// What balances the components, whose squared norms the summaries may have.
    fn balance(
        &self,
        rank: &Rank<'_, T>,
        state: &mut FactorRows<T>,
        summaries: (&[f64], &[f64]),
    ) -> Result<Option<Balance>> {
        if !Penalty::leave_scale_free(self.terms) {
            return Ok(None);
        }
        let &Rank { objective, links, threads, device, k, .. } = rank;
        let squares = |summary: &[f64], rows: &mut Resident<T>| match objective.squared_sizes(summary, k) {
            Some(squares) => Ok(squares),
            None => {
                device.pull(rows)?;
                squared_norms(links.all, threads, rows.host(), k)
            }
        };
        Ok(Balance::needed(&squares(summaries.0, &mut state.u)?, &squares(summaries.1, &mut state.v)?))
    }
}

impl<T: Real> Method<T> for Exact<T> {
    fn iterate(
        &mut self,
        rank: &Rank<'_, T>,
        _iteration: usize,
        state: &mut FactorRows<T>,
        phases: &mut Phases,
    ) -> Result<Option<Evaluation>> {
        let mut of_v = match self.of_v.take() {
            Some(fixed) => fixed,
            None => self.fix(rank, &mut state.v, phases)?,
        };
        self.half(rank, Factor::U, &mut of_v, state, phases)?;
        let mut of_u = self.fix(rank, &mut state.u, phases)?;
        let updated = self.half(rank, Factor::V, &mut of_u, state, phases)?;
        let of_v = self.fix(rank, &mut state.v, phases)?;

        // ⟨Mᵀ U, V⟩ is available, and so are the summaries.
        let mut cross = [updated.cross];
        rank.links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut cross))?;
        let summaries = (&*of_u.plain(), &*of_v.plain());
        let seen = evaluation(rank.objective, self.constants, cross[0], summaries, rank.k);
        self.of_v = match self.balance(rank, state, summaries)? {
            Some(balance) => {
                balance.apply(rank.device, state)?;
                None
            }
            None => Some(of_v),
        };
        Ok(seen)
    }

    fn plan(&self) -> String {
        self.name.to_string()
    }

    fn factors_changed(&mut self) {
        self.of_v = None;
    }
}
