//! The treatment of the factors after the last iteration.

use super::plan::RunPlan;
use super::source::SharedMatrix;
use crate::Real;
use crate::error::Result;
use crate::matrix::Observed;
use crate::objective::Loss;
use crate::run::{Factorization, Factors, Side, residual_of, residual_of_observed};
use crate::solver::Penalty;
use crate::threads::Threads;

/// A matrix that is still needed after the run has consumed it.
pub(super) enum Again<'a, T> {
    Shared(Box<dyn SharedMatrix<T> + 'a>),
    Observed(Box<Observed<T>>),
}

/// Solves for U exactly, empties the components of V that it does not use, and evaluates the error again.
pub(super) fn finish<T: Real>(
    again: &Again<'_, T>,
    plan: &RunPlan,
    result: &mut Factorization<T>,
) -> Result<()> {
    let threads = &Threads::new(plan.machine.threads)?.with_cancel(&plan.machine.cancel);
    let (settings, factors) = (&plan.settings, &mut result.factors);
    let (terms, _) = settings.terms(factors.rows, factors.cols, f64::INFINITY);
    let loss = settings.loss;
    factors.u = match again {
        Again::Shared(shared) => solve_rows(&**shared, factors, loss, terms, Some(&factors.u), threads)?,
        Again::Observed(observed) => {
            factors.transform_observed(loss, observed, Side::Rows, terms, threads)?
        }
    };
    if settings.l1_v + settings.l2_v > 0.0 {
        drop_unused(factors);
    }
    factors.normalize(settings.normalization(), threads)?;
    let residual = match again {
        Again::Shared(shared) => residual_of(shared.matrix(&plan.machine.cancel), factors, loss, threads)?,
        Again::Observed(observed) => residual_of_observed(observed, factors, loss, threads)?,
    };
    result.report.relative_error = residual.relative_error;
    result.report.loss = Some(residual.loss);
    Ok(())
}

/// The nonnegative W that fits the rows of M best with V fixed; see [`Factors::transform_by`].
pub fn solve_rows<T: Real>(
    shared: &dyn SharedMatrix<T>,
    factors: &Factors<T>,
    loss: Loss,
    terms: Penalty,
    start: Option<&[T]>,
    threads: &Threads,
) -> Result<Vec<T>> {
    let (stored, transposed) = shared.stored();
    if !transposed {
        return factors.transform_by(loss, stored, Side::Rows, terms, start, threads);
    }
    // The rows of M are the columns of what is stored.
    let Factors { rows, cols, k, ref v, .. } = *factors;
    let turned = Factors { rows: cols, cols: rows, k, u: v.clone(), v: Vec::new() };
    turned.transform_by(loss, stored, Side::Columns, terms, start, threads)
}

/// Empties the components of V that U does not use: with a penalty on V that is what lowers the objective.
fn drop_unused<T: Real>(factors: &mut Factors<T>) {
    let Factors { k, u, v, .. } = factors;
    for component in 0..*k {
        if u.iter().skip(component).step_by(*k).all(|&value| value == T::ZERO) {
            v.iter_mut().skip(component).step_by(*k).for_each(|value| *value = T::ZERO);
        }
    }
}
