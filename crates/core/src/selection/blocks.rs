//! Bi-cross-validation (Owen and Perry 2009): a block of rows and columns is held out and the rest is
//! factorized. The held-out rows and columns are then fitted to the factors, and their product is compared
//! with the block.

use rand::seq::SliceRandom;

use crate::Real;
use crate::cancel::Cancel;
use crate::comm::Alone;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::matrix::{Matrix, Shape};
use crate::partition::{Shard, shards_until};
use crate::random::{Purpose, stream};
use crate::run::{Factors, Machine, RunSettings, Side, Task, on_comm, residual_of};
use crate::threads::Threads;

/// The number of held-out blocks. Together they cover each row and each column once.
pub const FOLDS: usize = 5;

/// One held-out block and its surroundings.
pub struct HeldOut<T> {
    /// The retained rows and columns.
    training: Shard<T>,
    /// Held-out rows in the retained columns.
    rows: Matrix<T>,
    /// Held-out columns in the retained rows.
    cols: Matrix<T>,
    /// Held-out rows in held-out columns.
    corner: Matrix<T>,
}

/// Distributes `count` rows or columns over the folds.
fn folds(count: usize, seed: u64, side: Side) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut stream(seed, Purpose::Folds, side as usize, 0));
    let mut folds = vec![Vec::new(); FOLDS];
    order.into_iter().enumerate().for_each(|(place, line)| folds[place % FOLDS].push(line));
    folds.iter_mut().for_each(|fold| fold.sort_unstable());
    folds
}

/// Rejects a matrix with too few rows or columns for the folds.
pub fn check_shape(shape: Shape) -> Result<()> {
    let Shape { rows, cols } = shape;
    if rows < FOLDS || cols < FOLDS {
        let problem = format!(
            "cross-validation holds out a fifth of the rows and of the columns, but the matrix is {rows} x {cols}; give one \
             with at least {FOLDS} of each"
        );
        return Err(Error::parameter("matrix", problem));
    }
    Ok(())
}

impl<T: Real> HeldOut<T> {
    /// The block of one fold. Rows and columns are distributed by the seed alone.
    pub fn new(matrix: &Matrix<T>, fold: usize, seed: u64, settings: &RunSettings, cancel: &Cancel) -> Self {
        let held_rows = folds(matrix.rows(), seed, Side::Rows).swap_remove(fold);
        let held_cols = folds(matrix.cols(), seed, Side::Columns).swap_remove(fold);
        let others = |held: &[usize], count: usize| -> Vec<usize> {
            (0..count).filter(|line| held.binary_search(line).is_err()).collect()
        };
        let (kept_rows, kept_cols) = (others(&held_rows, matrix.rows()), others(&held_cols, matrix.cols()));
        let training = matrix.select(&kept_rows, &kept_cols);
        HeldOut {
            training: shards_until(training, Grid::ONE, settings.access(), cancel).remove(0),
            rows: matrix.select(&held_rows, &kept_cols),
            cols: matrix.select(&kept_rows, &held_cols),
            corner: matrix.select(&held_rows, &held_cols),
        }
    }

    /// The loss of a fit on the held-out block, divided by that of the zero model; `None` if the block is zero.
    pub fn loss(&self, settings: &RunSettings, cancel: &Cancel) -> Result<Option<f64>> {
        let (rows, cols) = (self.training.rows, self.training.cols);
        let settings = (**settings).clone().checked()?.for_matrix(rows, cols)?;
        let threads = Threads::new(1)?.with_cancel(cancel);
        let machine = Machine { cancel: cancel.clone(), ..Machine::new(1, 1) };
        let monitor = &mut |_: &crate::run::Progress| false;
        let task = Task { settings: &settings, from: None, monitor };
        let factors = on_comm(&Alone, &self.training, &machine, task)?.factors;
        self.loss_of(&factors, &settings, &threads)
    }

    /// The held-out loss for given factors of the retained rows and columns.
    fn loss_of(
        &self,
        factors: &Factors<T>,
        settings: &RunSettings,
        threads: &Threads,
    ) -> Result<Option<f64>> {
        let (for_u, for_v) = settings.terms(factors.rows, factors.cols, f64::INFINITY);
        let loss = settings.loss;
        let u = factors.transform_by(loss, self.rows.clone(), Side::Rows, for_u, None, threads)?;
        let v = factors.transform_by(loss, self.cols.clone(), Side::Columns, for_v, None, threads)?;
        let Shape { rows, cols } = self.corner.shape();
        let predicted = Factors { rows, cols, k: factors.k, u, v };
        let residual = residual_of(self.corner.clone(), &predicted, loss, threads)?;
        let relative = loss.share_of_baseline(residual.relative_error);
        Ok((residual.norm > 0.0).then_some(relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense, Order, Values};
    use crate::random::uniform;
    use crate::run::{Algorithm, Settings};

    const ROWS: usize = 23;
    const COLS: usize = 17;
    const K: usize = 3;

    fn entries() -> Vec<f64> {
        let mut rng = stream(3, Purpose::Fill, 0, 0);
        let entries = (0..ROWS * COLS).map(|_| uniform(&mut rng));
        entries.map(|entry| if entry < 0.4 { 0.0 } else { entry }).collect()
    }

    /// min ‖a − Y w‖² over w ≥ 0, by many sweeps over the coordinates.
    fn naive_nnls(a: &[f64], y: &[Vec<f64>]) -> Vec<f64> {
        let mut w = vec![0.0; K];
        for _ in 0..20_000 {
            for j in 0..K {
                let (mut gradient, mut curvature) = (0.0, 0.0);
                for (a, y) in a.iter().zip(y) {
                    let model: f64 = y.iter().zip(&w).map(|(y, w)| y * w).sum();
                    gradient += y[j] * (a - model);
                    curvature += y[j] * y[j];
                }
                w[j] = f64::max(0.0, w[j] + gradient / curvature);
            }
        }
        w
    }

    #[test]
    fn the_held_out_loss_equals_a_naive_implementation() {
        let entries = entries();
        let matrix =
            Matrix::Dense(Dense::new(ROWS, COLS, Order::RowMajor, Values::Real(entries.clone().into())));
        let settings = Settings::new(K).checked().unwrap().for_matrix(ROWS, COLS).unwrap();
        let held = HeldOut::new(&matrix, 2, 7, &settings, &Cancel::default());
        let (out_rows, out_cols) =
            (folds(ROWS, 7, Side::Rows).remove(2), folds(COLS, 7, Side::Columns).remove(2));
        let kept = |out: &[usize], count| -> Vec<usize> { (0..count).filter(|i| !out.contains(i)).collect() };
        let (in_rows, in_cols) = (kept(&out_rows, ROWS), kept(&out_cols, COLS));
        let mut rng = stream(9, Purpose::Fill, 0, 0);
        let mut factor = |count: usize| -> Vec<f64> { (0..count * K).map(|_| uniform(&mut rng)).collect() };
        let (u, v) = (factor(in_rows.len()), factor(in_cols.len()));
        let lines = |factor: &[f64]| -> Vec<Vec<f64>> { factor.chunks(K).map(<[f64]>::to_vec).collect() };
        let (mut loss, mut norm) = (0.0, 0.0);
        for &row in &out_rows {
            let a: Vec<f64> = in_cols.iter().map(|col| entries[row * COLS + col]).collect();
            let w = naive_nnls(&a, &lines(&v));
            for &col in &out_cols {
                let a: Vec<f64> = in_rows.iter().map(|row| entries[row * COLS + col]).collect();
                let h = naive_nnls(&a, &lines(&u));
                let model: f64 = w.iter().zip(&h).map(|(w, h)| w * h).sum();
                loss += (entries[row * COLS + col] - model).powi(2);
                norm += entries[row * COLS + col].powi(2);
            }
        }
        let factors = Factors { rows: in_rows.len(), cols: in_cols.len(), k: K, u, v };
        let found = held.loss_of(&factors, &settings, &Threads::new(1).unwrap()).unwrap().unwrap();
        assert!((found - loss / norm).abs() < 1e-9, "{found} {}", loss / norm);
    }

    #[test]
    fn dense_and_sparse_matrices_hold_out_the_same() {
        let entries = entries();
        let dense =
            Matrix::Dense(Dense::new(ROWS, COLS, Order::RowMajor, Values::Real(entries.clone().into())));
        let stored: Vec<usize> = (0..entries.len()).filter(|&place| entries[place] > 0.0).collect();
        let offsets = (0..=ROWS).map(|row| stored.partition_point(|&place| place < row * COLS)).collect();
        let indices: Vec<u32> = stored.iter().map(|place| (place % COLS) as u32).collect();
        let values: Vec<f64> = stored.iter().map(|&place| entries[place]).collect();
        let sparse = Matrix::Sparse(Csr::new(ROWS, COLS, offsets, indices, values));
        // The same number of iterations for both, whose errors differ by rounding.
        let settings =
            Settings { algorithm: Algorithm::Hals, iterations: 20, tolerance: 0.0, ..Settings::new(K) };
        let settings = settings.checked().unwrap().for_matrix(ROWS, COLS).unwrap();
        let cancel = Cancel::default();
        let loss = |matrix: &Matrix<f64>| {
            HeldOut::new(matrix, 0, 7, &settings, &cancel).loss(&settings, &cancel).unwrap().unwrap()
        };
        assert!((loss(&dense) / loss(&sparse) - 1.0).abs() < 1e-6, "{} {}", loss(&dense), loss(&sparse));
    }

    #[test]
    fn folds_cover_every_line_once() {
        let folds = folds(23, 1, Side::Rows);
        let mut all = folds.concat();
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<_>>());
        assert!(folds.iter().all(|fold| fold.len() >= 4));
    }
}
