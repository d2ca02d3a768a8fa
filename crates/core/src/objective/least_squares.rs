//! Least squares, ½ ‖M − U Vᵀ‖²: one Gram matrix for all rows, products with M, tiles that stay in cache.

use std::ops::Range;
use std::time::Instant;

use super::losses::{crosses, quadratic_forms, residuals};
use super::{Baseline, Constants, HalfStep, Objective, TileOf, TileStep};
use crate::Real;
use crate::kernels::{TILE, Tile, gram, gram_in_f64};
use crate::partition::Block;
use crate::solver::{Quadratic, Solver};
use crate::threads::Threads;

/// Below this error ‖M‖² − 2⟨M V, U⟩ + ⟨UᵀU, VᵀV⟩ has lost too many of `f32`'s digits (at 1e-2 four of seven are
/// left), and the residual itself is summed.
const CANCELS_BELOW: f64 = 1e-2;

/// The sum of squared differences.
#[derive(Clone, Copy, Debug)]
pub struct LeastSquares;

/// ‖M‖² − 2⟨M V, U⟩ + ⟨UᵀU, VᵀV⟩ as a relative error; NaN stays NaN.
pub fn relative_error(norm: f64, cross: f64, model: f64) -> f64 {
    let squared = (norm - 2.0 * cross + model) / norm;
    if squared <= 0.0 { 0.0 } else { squared.sqrt() }
}

impl<T: Real> Objective<T> for LeastSquares {
    fn supports(&self, _solver: &dyn Solver<T>) -> bool {
        true
    }

    fn summarize(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        gram(threads, fixed, k)
    }

    fn summarize_exactly(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        gram_in_f64(threads, fixed, k)
    }

    fn squared_sizes(&self, summary: &[f64], k: usize) -> Option<Vec<f64>> {
        Some(summary.iter().copied().step_by(k + 1).collect())
    }

    fn prepare<'a>(&self, step: &'a HalfStep<'a, T>) -> Box<dyn TileStep<T> + 'a> {
        Box::new(Prepared::new(step))
    }

    fn entry_losses(&self, threads: &Threads, block: &Block<T>, x: &[T], fixed: &[T], k: usize) -> Vec<f64> {
        crosses(threads, block, x, fixed, k)
    }

    fn model_losses(&self, threads: &Threads, x: &[T], summary: &[f64], k: usize) -> Vec<f64> {
        quadratic_forms(threads, x, summary, k)
    }

    fn relative_error(&self, constants: Constants, entries: f64, model: f64) -> f64 {
        relative_error(constants.norm, entries, model)
    }

    fn losses_where_cancelled(
        &self,
        threads: &Threads,
        error: f64,
        block: &Block<T>,
        x: &[T],
        fixed: &[T],
        k: usize,
    ) -> Option<Vec<f64>> {
        match block {
            Block::Dense(dense) if error < CANCELS_BELOW => Some(residuals(threads, dense, x, fixed, k)),
            _ => None,
        }
    }

    fn relative(&self, loss: f64, baseline: f64) -> f64 {
        (loss / baseline).sqrt()
    }

    fn loss(&self, error: f64, baseline: f64) -> f64 {
        0.5 * error * error * baseline
    }

    fn whole_loss(&self, m: f64, x: f64) -> f64 {
        0.5 * (m - x).powi(2)
    }

    fn merit(&self, error: f64, penalty: f64, baseline: f64) -> f64 {
        error * error + 2.0 * penalty / baseline
    }

    fn cancels_below(&self) -> f64 {
        CANCELS_BELOW
    }

    fn baseline(&self) -> Baseline {
        Baseline::Norm
    }

    fn error_at_hand(&self, constants: Constants, cross: f64, of_u: &[f64], of_v: &[f64]) -> Option<f64> {
        let model = of_u.iter().zip(of_v).map(|(u, v)| u * v).sum();
        Some(relative_error(constants.norm, cross, model))
    }
}

/// The quadratic problem of all rows.
struct Prepared<'a, T> {
    step: &'a HalfStep<'a, T>,
    problem: Quadratic<T>,
    /// The l1 penalty of each component, where the columns were scaled.
    scaled_l1: Option<Vec<T>>,
}

impl<'a, T: Real> Prepared<'a, T> {
    fn new(step: &'a HalfStep<'a, T>) -> Self {
        let &HalfStep { summary, terms, scales, k, .. } = step;
        let mut exact_gram = summary.to_vec();
        for (j, diagonal) in exact_gram.iter_mut().step_by(k + 1).enumerate() {
            *diagonal += terms.l2 * scales.map_or(1.0, |scales| scales[j] * scales[j]);
        }
        let scaled = |scales: &[f64]| scales.iter().map(|scale| T::from_f64(terms.l1 * scale)).collect();
        Prepared {
            step,
            problem: Quadratic {
                k,
                gram: exact_gram.iter().map(|&value| T::from_f64(value)).collect(),
                exact_gram,
                l1: T::from_f64(terms.l1),
                upper: T::from_f64(terms.upper),
            },
            scaled_l1: scales.map(scaled),
        }
    }

    /// P − l1.
    fn subtract_l1(&self, products: &mut Tile<T>) {
        match &self.scaled_l1 {
            None => products.values.iter_mut().for_each(|value| *value -= self.problem.l1),
            Some(penalties) => {
                for (column, &l1) in products.values.chunks_exact_mut(TILE).zip(penalties) {
                    column.iter_mut().for_each(|value| *value -= l1);
                }
            }
        }
    }
}

impl<T: Real> TileStep<T> for Prepared<'_, T> {
    fn move_tile(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64 {
        let TileOf { product, values, products, scratch, multiplied, cancel } = tile;
        let (solver, k, count) = (self.step.solver, self.problem.k, rows.len());
        product.tile(rows, scratch, products);
        *multiplied = Instant::now();
        // Solvers may change the product, of which the error needs the original.
        let original = (self.problem.l1 > T::ZERO).then(|| products.clone());
        if original.is_some() && !solver.adds_l1() {
            self.subtract_l1(products);
        }
        solver.move_tile(&self.problem, products, values, count, cancel);
        let cross = cross(original.as_ref().unwrap_or(products), values, k, count);
        if let Some(scales) = self.step.scales {
            for (column, &scale) in values.values.chunks_exact_mut(TILE).zip(scales) {
                column.iter_mut().for_each(|value| *value = T::from_f64(value.to_f64() * scale));
            }
        }
        cross
    }
}

/// ⟨P, X⟩ over the rows in use: k terms a row in the factor's own type, rows in `f64`.
fn cross<T: Real>(products: &Tile<T>, values: &Tile<T>, k: usize, rows: usize) -> f64 {
    let mut sums = [T::ZERO; TILE];
    for col in 0..k {
        for ((sum, &p), &x) in sums.iter_mut().zip(products.column(col)).zip(values.column(col)) {
            *sum += p * x;
        }
    }
    sums[..rows].iter().map(|sum| sum.to_f64()).sum()
}
