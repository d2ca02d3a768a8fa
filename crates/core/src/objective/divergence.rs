//! The Kullback-Leibler divergence Σ m ln(m / x) − m + x by multiplicative updates (Lee and Seung 2001): a second
//! objective, of the entry family, that shows under test that a run knows nothing of least squares.

use std::ops::Range;

use super::{Baseline, Constants, HalfStep, Needs, Objective, TileOf, TileStep};
use crate::Real;
use crate::kernels::{Columns, Product, TILE};
use crate::partition::Block;
use crate::solver::{Multiplicative, Solver};
use crate::threads::Threads;

#[derive(Clone, Copy, Debug)]
pub struct Divergence;

fn dot<T: Real>(x: &[T], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

impl<T: Real> Objective<T> for Divergence {
    fn name(&self) -> &'static str {
        "Kullback-Leibler divergence"
    }

    fn needs(&self) -> Needs {
        Needs::CompleteRows
    }

    fn supports(&self, solver: &dyn Solver<T>) -> bool {
        solver.name() == Solver::<T>::name(&Multiplicative)
    }

    fn summarize(&self, _threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        (0..k).map(|j| fixed.iter().skip(j).step_by(k).map(|value| value.to_f64()).sum()).collect()
    }

    fn prepare<'a>(&self, step: &'a HalfStep<'a, T>) -> Box<dyn TileStep<T> + 'a> {
        Box::new(Update { step })
    }

    fn entry_losses(&self, threads: &Threads, block: &Block<T>, x: &[T], fixed: &[T], k: usize) -> Vec<f64> {
        let product = Product::new(threads, block, Columns::All, fixed, k);
        let of_row = |row: usize| {
            let mut loss = 0.0;
            let entries = product.entries(row).expect("a block by row");
            entries.for_each(|entry, y| {
                let entry = entry.to_f64();
                if entry > 0.0 {
                    loss += entry * (entry / dot(&x[row * k..][..k], y)).ln() - entry;
                }
            });
            loss
        };
        (0..block.rows()).map(of_row).collect()
    }

    fn model_losses(&self, _threads: &Threads, x: &[T], summary: &[f64], k: usize) -> Vec<f64> {
        x.chunks_exact(k).map(|x| x.iter().zip(summary).map(|(x, sum)| x.to_f64() * sum).sum()).collect()
    }

    fn relative_error(&self, constants: Constants, entries: f64, model: f64) -> f64 {
        Objective::<T>::relative(self, entries + model, constants.baseline)
    }

    fn relative(&self, loss: f64, baseline: f64) -> f64 {
        loss / baseline
    }

    fn baseline(&self) -> Baseline {
        Baseline::BestConstant
    }
}

struct Update<'a, T> {
    step: &'a HalfStep<'a, T>,
}

impl<T: Real> TileStep<T> for Update<'_, T> {
    fn move_tile(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64 {
        let k = self.step.k;
        for (place, row) in rows.enumerate() {
            let x: Vec<T> = (0..k).map(|j| tile.values.values[j * TILE + place]).collect();
            let mut numerators = vec![0.0; k];
            tile.product.entries(row).expect("a block by row").for_each(|entry, y| {
                let ratio = entry.to_f64() / dot(&x, y);
                if entry > T::ZERO {
                    numerators.iter_mut().zip(y).for_each(|(sum, y)| *sum += ratio * y.to_f64());
                }
            });
            for (j, numerator) in numerators.into_iter().enumerate() {
                let denominator = self.step.summary[j] + self.step.terms.l1;
                tile.values.values[j * TILE + place] *= T::from_f64(numerator / denominator);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense, Matrix, Order, Values};
    use crate::objective::Loss;
    use crate::run::{Algorithm, Factors, Machine, Progress, Settings, StartFrom, factorize};

    const ROWS: usize = 37;
    const COLS: usize = 23;
    const K: usize = 3;

    fn counts() -> Vec<f64> {
        (0..ROWS * COLS).map(|place| ((place * 7919) % 13).saturating_sub(6) as f64).collect()
    }

    fn dense(m: &[f64]) -> Matrix<f64> {
        Matrix::Dense(Dense::new(ROWS, COLS, Order::RowMajor, Values::Real(m.to_vec().into())))
    }

    fn sparse_counts(m: &[f64]) -> Csr<f64> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in m.chunks_exact(COLS) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                columns.push(col as u32);
                values.push(value);
            }
            offsets.push(values.len());
        }
        Csr::new(ROWS, COLS, offsets, columns, values)
    }

    fn start() -> Factors<f64> {
        let numbers = |length: usize, by: usize| {
            (0..length * K).map(|place| 0.2 + ((place * by) % 11) as f64 / 7.0).collect()
        };
        Factors { rows: ROWS, cols: COLS, k: K, u: numbers(ROWS, 3), v: numbers(COLS, 5) }
    }

    fn loss(m: &[f64], model: impl Fn(usize, usize) -> f64) -> f64 {
        let term = |place: usize| {
            let (m, x) = (m[place], model(place / COLS, place % COLS));
            if m > 0.0 { m * (m / x).ln() - m + x } else { x }
        };
        (0..ROWS * COLS).map(term).sum()
    }

    /// The definition, one number at a time.
    fn naive(m: &[f64], iterations: usize) -> (Factors<f64>, f64) {
        let mut f = start();
        let model = |f: &Factors<f64>, i: usize, j: usize| dot(&f.u[i * K..][..K], &f.v[j * K..][..K]);
        for _ in 0..iterations {
            let old = f.clone();
            for (i, l) in (0..ROWS).flat_map(|i| (0..K).map(move |l| (i, l))) {
                let up: f64 = (0..COLS).map(|j| m[i * COLS + j] / model(&old, i, j) * old.v[j * K + l]).sum();
                f.u[i * K + l] *= up / (0..COLS).map(|j| old.v[j * K + l]).sum::<f64>();
            }
            let old = f.clone();
            for (j, l) in (0..COLS).flat_map(|j| (0..K).map(move |l| (j, l))) {
                let up: f64 = (0..ROWS).map(|i| m[i * COLS + j] / model(&old, i, j) * old.u[i * K + l]).sum();
                f.v[j * K + l] *= up / (0..ROWS).map(|i| old.u[i * K + l]).sum::<f64>();
            }
        }
        let mean = m.iter().sum::<f64>() / m.len() as f64;
        let relative = loss(m, |i, j| model(&f, i, j)) / loss(m, |_, _| mean);
        (f, relative)
    }

    #[test]
    fn a_run_with_another_objective_is_that_of_the_definition() {
        let m = counts();
        let (expected, error) = naive(&m, 6);
        for sparse in [false, true] {
            for workers in [1, 3] {
                let matrix = if sparse { Matrix::Sparse(sparse_counts(&m)) } else { dense(&m) };
                let settings = Settings {
                    algorithm: Algorithm::Mu,
                    loss: Loss::Kl,
                    iterations: 6,
                    tolerance: 0.0,
                    ..Settings::new(K)
                };
                let (start, machine) = (start(), Machine::new(workers, 1));
                let from = Some(StartFrom::Factors(&start));
                let done = factorize(matrix, machine, &settings, from, &mut |_: &Progress| false).unwrap();
                assert!((done.report.relative_error - error).abs() < 1e-12, "{sparse} {workers}");
                for (i, j) in (0..ROWS).flat_map(|i| (0..COLS).map(move |j| (i, j))) {
                    let at = |f: &Factors<f64>| dot(&f.u[i * K..][..K], &f.v[j * K..][..K]);
                    let (got, want) = (at(&done.factors), at(&expected));
                    assert!((got - want).abs() < 1e-10 * want, "{sparse} {workers}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn methods_that_cannot_lower_an_objective_refuse_it() {
        for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Bpp, Algorithm::Dsanls] {
            let settings = Settings { algorithm, loss: Loss::Kl, ..Settings::new(K) };
            let monitor = &mut |_: &Progress| false;
            let error =
                factorize(dense(&counts()), Machine::new(1, 1), &settings, None, monitor).unwrap_err();
            assert!(error.to_string().contains("kl"), "{error}");
        }
    }
}
