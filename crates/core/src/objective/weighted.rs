//! Least squares over known entries with weights: ½ Σ w (m − x)², computed entry by entry.
//!
//! Every row has its own quadratic problem, with the Gram matrix Σ w v vᵀ over its entries. If a row lacks
//! only few entries, their terms are subtracted from the Gram matrix of all columns instead.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::losses::quadratic_forms;
use super::{Baseline, Constants, HalfStep, LeastSquares, Objective, TileOf, TileStep};
use crate::Real;
use crate::kernels::{Columns, Product, RowEntries, TILE, gram, gram_in_f64};
use crate::matrix::Unlisted;
use crate::partition::Block;
use crate::solver::pivoting::nnls;
use crate::solver::{Solver, Step};
use crate::threads::Threads;

/// The sum of weighted squared differences at known entries.
#[derive(Clone, Copy, Debug)]
pub struct WeightedLeastSquares {
    /// How unlisted entries are interpreted.
    pub unlisted: Unlisted,
}

impl<T: Real> Objective<T> for WeightedLeastSquares {
    fn supports(&self, solver: &dyn Solver<T>) -> bool {
        solver.step() != Step::Other
    }

    fn summarize(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        gram(threads, fixed, k)
    }

    fn summarize_exactly(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        gram_in_f64(threads, fixed, k)
    }

    fn squared_sizes(&self, summary: &[f64], k: usize) -> Option<Vec<f64>> {
        Objective::<T>::squared_sizes(&LeastSquares, summary, k)
    }

    fn prepare<'a>(&self, step: &'a HalfStep<'a, T>) -> Box<dyn TileStep<T> + 'a> {
        Box::new(Update { step, gram: step.summary.iter().map(|&value| T::from_f64(value)).collect() })
    }

    fn entry_losses(&self, threads: &Threads, block: &Block<T>, x: &[T], fixed: &[T], k: usize) -> Vec<f64> {
        let product = Product::new(threads, block, Columns::All, fixed, k);
        let of_row = |row: usize| {
            let x: Vec<f64> = x[row * k..][..k].iter().map(|value| value.to_f64()).collect();
            let mut loss = 0.0;
            product.entries(row).expect("a block by row").for_each_weighted(|m, weight, y| {
                let model: f64 = x.iter().zip(y).map(|(x, y)| x * y.to_f64()).sum();
                loss += weight.to_f64() * (m.to_f64() - model).powi(2);
                if self.unlisted == Unlisted::Zero {
                    // The model's terms over all columns include this one.
                    loss -= model * model;
                }
            });
            loss
        };
        let tiles: Vec<usize> = (0..block.rows()).step_by(TILE).collect();
        let of_tile = |(): &mut (), first: usize| -> Vec<f64> {
            (first..block.rows().min(first + TILE)).map(of_row).collect()
        };
        threads.map(tiles, || (), of_tile).concat()
    }

    fn model_losses(&self, threads: &Threads, x: &[T], summary: &[f64], k: usize) -> Vec<f64> {
        match self.unlisted {
            Unlisted::Unknown => Vec::new(),
            Unlisted::Zero => quadratic_forms(threads, x, summary, k),
        }
    }

    fn relative_error(&self, constants: Constants, entries: f64, model: f64) -> f64 {
        Objective::<T>::relative(self, entries + model, constants.baseline)
    }

    fn relative(&self, loss: f64, baseline: f64) -> f64 {
        if loss < 0.0 { 0.0 } else { Objective::<T>::relative(&LeastSquares, loss, baseline) }
    }

    fn loss(&self, error: f64, baseline: f64) -> f64 {
        Objective::<T>::loss(&LeastSquares, error, baseline)
    }

    fn whole_loss(&self, m: f64, x: f64) -> f64 {
        Objective::<T>::whole_loss(&LeastSquares, m, x)
    }

    fn merit(&self, error: f64, penalty: f64, baseline: f64) -> f64 {
        Objective::<T>::merit(&LeastSquares, error, penalty, baseline)
    }

    fn cancels_below(&self) -> f64 {
        Objective::<T>::cancels_below(&LeastSquares)
    }

    fn baseline(&self) -> Baseline {
        Baseline::Norm
    }

    fn error_at_hand(&self, constants: Constants, cross: f64, _of_u: &[f64], _of_v: &[f64]) -> Option<f64> {
        Some(Objective::<T>::relative(self, constants.norm + cross, constants.norm))
    }
}

/// A half step.
struct Update<'a, T> {
    step: &'a HalfStep<'a, T>,
    /// The Gram matrix over all columns.
    gram: Vec<T>,
}

/// The quadratic problem of one row, ½ x G xᵀ − x p.
#[derive(Default)]
struct RowProblem<T> {
    gram: Vec<T>,
    products: Vec<T>,
    /// The rows of the fixed factor whose products make up the Gram matrix, by entry.
    rows: Vec<T>,
    /// These rows times their weights.
    weighted: Vec<T>,
}

impl<T: Real> TileStep<T> for Update<'_, T> {
    /// ‖M − X Yᵀ‖² over the rows, without the term ‖M‖².
    fn move_tile(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64 {
        let TileOf { product, values, cancel, .. } = tile;
        let k = self.step.k;
        let mut x = vec![T::ZERO; k];
        let mut problem =
            RowProblem { gram: Vec::new(), products: Vec::new(), rows: Vec::new(), weighted: Vec::new() };
        let mut cross = 0.0;
        for (place, row) in rows.enumerate() {
            cancel.check();
            let column = |l: usize| l * TILE + place;
            x.iter_mut().enumerate().for_each(|(l, x)| *x = values.values[column(l)]);
            let entries = product.entries(row).expect("a block by row");
            self.state(&entries, &mut problem);
            cross += self.move_row(&problem, &mut x, cancel);
            x.iter().enumerate().for_each(|(l, &x)| values.values[column(l)] = x);
        }
        cross
    }
}

impl<T: Real> Update<'_, T> {
    /// Sets up the problem of a row, without penalties.
    fn state(&self, entries: &RowEntries<'_, T>, problem: &mut RowProblem<T>) {
        let k = self.step.k;
        let RowProblem { gram, products, rows, weighted } = problem;
        products.clear();
        products.resize(k, T::ZERO);
        entries.for_each_weighted(|m, weight, y| {
            let m = weight * m;
            products.iter_mut().zip(y).for_each(|(sum, &y)| *sum = m.mul_add(y, *sum));
        });
        rows.clear();
        weighted.clear();
        let mut list = |y: &[T], weight: T| {
            rows.extend_from_slice(y);
            weighted.extend(y.iter().map(|&y| weight * y));
        };
        let from_all = if entries.unlisted() == Unlisted::Zero {
            // All other columns have weight 1.
            entries.for_each_weighted(|_, weight, y| {
                if weight != T::ONE {
                    list(y, weight - T::ONE)
                }
            });
            true
        } else if entries.lacks_few() {
            entries.for_each_unlisted(|y| list(y, -T::ONE));
            true
        } else {
            entries.for_each_weighted(|_, weight, y| list(y, weight));
            false
        };
        gram.clear();
        if from_all {
            gram.extend_from_slice(&self.gram);
        } else {
            gram.resize(k * k, T::ZERO);
        }
        let count = rows.len() / k;
        if count > 0 {
            let target = MatMut::from_column_major_slice_mut(gram, k, k);
            let rows = MatRef::from_column_major_slice(rows, k, count);
            let weighted = MatRef::from_column_major_slice(weighted, k, count);
            matmul(target, Accum::Add, rows, weighted.transpose(), T::ONE, Par::Seq);
        }
    }

    /// Moves a row, and returns x G xᵀ − 2 x p.
    fn move_row(&self, problem: &RowProblem<T>, x: &mut [T], cancel: &crate::cancel::Cancel) -> f64 {
        let RowProblem { gram, products, .. } = problem;
        let (k, terms) = (self.step.k, self.step.terms);
        let (l1, l2, upper) = (T::from_f64(terms.l1), T::from_f64(terms.l2), T::from_f64(terms.upper));
        let image = |l: usize, x: &[T]| {
            gram[l * k..][..k].iter().zip(x).fold(T::ZERO, |sum, (&g, &x)| g.mul_add(x, sum))
        };
        match self.step.solver.step() {
            Step::Descent { sweeps } => {
                for l in (0..sweeps).flat_map(|_| 0..k) {
                    let weight = gram[l * k + l] + l2;
                    // A component that no entry of the row involves keeps its value, unless the products
                    // lower it.
                    if weight > T::ZERO && (T::ONE / weight).to_f64().is_finite() {
                        let slope = products[l] - l1 - image(l, x) - l2 * x[l];
                        let new = x[l] + slope / weight;
                        x[l] = crate::kernels::clamp(new, upper);
                    } else if products[l] <= T::ZERO {
                        x[l] = T::ZERO;
                    }
                }
            }
            Step::Multiplicative => {
                let old = x.to_vec();
                for (l, x) in x.iter_mut().enumerate() {
                    let down = l2.mul_add(old[l], image(l, &old) + l1);
                    if down > T::ZERO {
                        *x *= products[l] / down;
                    } else if products[l] <= T::ZERO {
                        *x = T::ZERO;
                    }
                }
            }
            Step::Exact | Step::Other => {
                let mut wide: Vec<f64> = gram.iter().map(|value| value.to_f64()).collect();
                wide.iter_mut().step_by(k + 1).for_each(|diagonal| *diagonal += terms.l2);
                let wanted: Vec<f64> = products.iter().map(|value| value.to_f64() - terms.l1).collect();
                let guess: Vec<f64> = x.iter().map(|value| value.to_f64()).collect();
                let solved = nnls(&wide, &wanted, Some(&guess), k, cancel);
                x.iter_mut().zip(solved).for_each(|(x, value)| *x = T::from_f64(value));
            }
        }
        let term =
            |(l, &value): (usize, &T)| value.to_f64() * (image(l, x).to_f64() - 2.0 * products[l].to_f64());
        x.iter().enumerate().map(term).sum()
    }
}
