//! The result: U and V, in an order and scale that people can read.

use serde::{Deserialize, Serialize};

use crate::Real;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::kernels::{Columns, TILE, gram, multiply};
use crate::matrix::Matrix;
use crate::partition::{Access, shards};
use crate::solver::pivoting::nnls;
use crate::threads::Threads;

/// U (m x k) and V (n x k), by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors<T> {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Number of components.
    pub k: usize,
    /// U.
    pub u: Vec<T>,
    /// V.
    pub v: Vec<T>,
}

/// Which factor's rows are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Rows of M and U.
    Rows,
    /// Columns of M, rows of V.
    Columns,
}

impl<T: Real> Factors<T> {
    /// Whether these factors fit an m x n matrix and k components, finite and nonnegative.
    pub fn check(&self, m: usize, n: usize, k: usize) -> Result<()> {
        if (self.rows, self.cols, self.k) != (m, n, k) {
            return Err(Error::parameter(
                "factors",
                format!(
                    "they are of a {} x {} matrix with {} components, but {m} x {n} with {k} is asked for; use those of this matrix",
                    self.rows, self.cols, self.k
                ),
            ));
        }
        for (name, factor) in [("U", &self.u), ("V", &self.v)] {
            if let Some(place) =
                factor.iter().position(|value| !(*value >= T::ZERO && value.to_f64().is_finite()))
            {
                return Err(Error::parameter(
                    "factors",
                    format!(
                        "{name} has the entry {} at row {}, column {} (counted from 1); all must be finite and at least 0",
                        factor[place],
                        place / k + 1,
                        place % k + 1
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The Euclidean norm of each column of a factor.
    fn norms(factor: &[T], k: usize) -> Vec<f64> {
        let mut squares = vec![0.0; k];
        for row in factor.chunks_exact(k) {
            squares.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64().powi(2));
        }
        squares.into_iter().map(f64::sqrt).collect()
    }

    /// ‖U_j‖ ‖V_j‖, how much of M each component carries.
    pub fn energies(&self) -> Vec<f64> {
        let norms = Self::norms(&self.u, self.k).into_iter().zip(Self::norms(&self.v, self.k));
        norms.map(|(u, v)| u * v).collect()
    }

    /// Puts the strongest component first.
    pub fn order_by_energy(&mut self) {
        let energies = self.energies();
        let mut order: Vec<usize> = (0..self.k).collect();
        order.sort_by(|&a, &b| energies[b].total_cmp(&energies[a]).then(a.cmp(&b)));
        for factor in [&mut self.u, &mut self.v] {
            for row in factor.chunks_exact_mut(self.k) {
                let old = row.to_vec();
                row.iter_mut().zip(&order).for_each(|(value, &from)| *value = old[from]);
            }
        }
    }

    /// Gives every column of U the Euclidean norm 1 and moves its scale into V; U Vᵀ stays.
    pub fn normalize(&mut self) {
        let norms = Self::norms(&self.u, self.k);
        for (factor, up) in [(&mut self.u, false), (&mut self.v, true)] {
            for row in factor.chunks_exact_mut(self.k) {
                for (value, &norm) in row.iter_mut().zip(&norms).filter(|(_, norm)| **norm > 0.0) {
                    let scaled = if up { value.to_f64() * norm } else { value.to_f64() / norm };
                    *value = T::from_f64(scaled);
                }
            }
        }
    }

    /// The nonnegative W that fits new rows (or columns) of M best with the other factor fixed, exactly: a row of
    /// W for each of them, by row.
    pub fn transform(&self, matrix: Matrix<T>, side: Side, threads: usize) -> Result<Vec<T>> {
        let threads = Threads::new(threads)?;
        let (matrix, fixed, expected, what) = match side {
            Side::Rows => (matrix, &self.v, self.cols, "columns"),
            Side::Columns => (matrix.into_transpose(), &self.u, self.rows, "rows"),
        };
        if matrix.cols() != expected {
            return Err(Error::parameter(
                "FILE",
                format!(
                    "it has {} {what} but the factors were made from {expected}; give data with the same {what}",
                    matrix.cols()
                ),
            ));
        }
        let exact: Vec<f64> = fixed.iter().map(|value| value.to_f64()).collect();
        let gram = gram(&threads, &exact, self.k);
        let shard = shards(matrix, Grid::ONE, Access::Whole).remove(0);
        let products = multiply(&threads, &shard.by_rows, Columns::All, fixed, self.k);
        let fitted = threads.map(
            products.chunks(TILE * self.k).collect(),
            || (),
            |(), rows: &[T]| {
                let rows: Vec<f64> = rows.iter().map(|value| value.to_f64()).collect();
                nnls(&gram, &rows, None, self.k).into_iter().map(T::from_f64).collect::<Vec<T>>()
            },
        );
        Ok(fitted.concat())
    }
}
