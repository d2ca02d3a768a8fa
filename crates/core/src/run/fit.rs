//! Fits new rows (or columns) to fixed factors, with the loss of the factorization.

use std::sync::Arc;

use super::{Factors, Side};
use crate::Real;
use crate::device::{MovingRows, update_tiles};
use crate::error::{Error, Result};
use crate::kernels::{Columns, Product};
use crate::matrix::{Matrix, Observed};
use crate::objective::{HalfStep, Loss};
use crate::partition::Block;
use crate::solver::{CoordinateDescent, Multiplicative, Penalty, Pivoting, Solver};
use crate::threads::Threads;

/// The maximum number of steps of a fit, and the change of an entry relative to the largest one at which it
/// ends.
const STEPS: usize = 1000;
const SETTLED: f64 = 1e-8;

/// The number of sweeps per step.
const SWEEPS: usize = 10;

impl<T: Real> Factors<T> {
    /// The nonnegative W that best fits new rows (or columns) of M with the other factor fixed: exactly for
    /// least squares, as in [`Factors::transform`], and iteratively until convergence for other losses.
    pub fn transform_by(
        &self,
        loss: Loss,
        matrix: Matrix<T>,
        side: Side,
        terms: Penalty,
        start: Option<&[T]>,
        threads: &Threads,
    ) -> Result<Vec<T>> {
        if loss == Loss::Frobenius {
            return self.transform(matrix, side, terms, start, threads);
        }
        let matrix = match side {
            Side::Rows => matrix,
            Side::Columns => matrix.into_transpose(),
        };
        self.fit_block(loss, &Block::of(matrix, false), side, terms, threads)
    }

    /// The nonnegative W that best fits the known entries of new rows (or columns) of M with the other factor
    /// fixed.
    pub fn transform_observed(
        &self,
        loss: Loss,
        observed: &Observed<T>,
        side: Side,
        terms: Penalty,
        threads: &Threads,
    ) -> Result<Vec<T>> {
        let observed = match side {
            Side::Rows => observed.clone(),
            Side::Columns => observed.transpose_until(threads.cancel()),
        };
        self.fit_block(loss, &Block::Observed(Arc::new(observed)), side, terms, threads)
    }

    /// Fits the rows of a block.
    fn fit_block(
        &self,
        loss: Loss,
        block: &Block<T>,
        side: Side,
        terms: Penalty,
        threads: &Threads,
    ) -> Result<Vec<T>> {
        let fixed = if side == Side::Rows { &self.v } else { &self.u };
        self.check_new(block, side, None, threads)?;
        let sums = block.row_sums(threads).sums;
        let count = match block.row_weights() {
            Some(weights) => weights.iter().sum(),
            None => (block.rows() * block.cols()) as f64,
        };
        let objective = loss.objective::<T>(sums.iter().sum::<f64>() / count, block.unlisted());
        if let (true, Some(row)) = (objective.needs_positive_entries(), block.first_row_with_zero()) {
            let problem = format!(
                "{loss} is undefined at 0, but row {} (counted from 1) of the new data contains a 0; give \
                 positive entries",
                row + 1
            );
            return Err(Error::parameter("loss", problem));
        }
        let descent = CoordinateDescent { mu: 0.0, sweeps: SWEEPS };
        // Exactly, if the problem has a closed form.
        let solvers: [&dyn Solver<T>; 3] = [&Pivoting, &descent, &Multiplicative];
        let solver =
            solvers.into_iter().find(|&solver| objective.supports(solver)).unwrap_or(&Multiplicative);
        let (k, summary) = (self.k, objective.summarize_exactly(threads, fixed, self.k));
        let step = HalfStep { solver, summary: &summary, terms, scales: None, wants_error: false, k };
        let product = Product::new(threads, block, Columns::All, fixed, k);
        // Start with rows at the mean of the data.
        let total: f64 = summary.iter().sum();
        let level = |sum: &f64| T::from_f64(if total > 0.0 { sum / total } else { 0.0 });
        let mut w: Vec<T> = sums.iter().flat_map(|sum| std::iter::repeat_n(level(sum), k)).collect();
        for _ in 0..STEPS {
            let before = w.clone();
            update_tiles(threads, &*objective, &step, &product, MovingRows::plain(&mut w));
            if has_settled(&before, &w, k) {
                break;
            }
        }
        Ok(w)
    }
}

/// Whether every entry changed by less than a share of the largest entry in its row.
fn has_settled<T: Real>(before: &[T], after: &[T], k: usize) -> bool {
    before.chunks_exact(k).zip(after.chunks_exact(k)).all(|(before, after)| {
        let largest = after.iter().fold(0.0, |most: f64, value| most.max(value.to_f64()));
        let rounding = if size_of::<T>() == 4 { 1e-6 } else { SETTLED };
        before.iter().zip(after).all(|(a, b)| (a.to_f64() - b.to_f64()).abs() <= rounding * largest)
    })
}
