//! The result: U and V, in an order and scale for people.

use serde::{Deserialize, Serialize};

use super::scale::{self, Normalize};
use super::start::bad_entry;
use crate::Real;
use crate::comm::Alone;
use crate::error::{Error, Result};
use crate::io::ImageSide;
use crate::kernels::{Columns, TILE, gram_in_f64, multiply};
use crate::matrix::Matrix;
use crate::objective::losses::{crosses, quadratic_forms, residuals};
use crate::partition::Block;
use crate::solver::Penalty;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Rows of M and U.
    #[default]
    Rows,
    /// Columns of M, rows of V.
    Columns,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Rows, Side::Columns];
}

impl From<ImageSide> for Side {
    fn from(images: ImageSide) -> Self {
        match images {
            ImageSide::Rows => Side::Rows,
            ImageSide::Columns => Side::Columns,
        }
    }
}

impl<T: Real> Factors<T> {
    /// Whether these factors fit an m x n matrix and k components, finite and nonnegative.
    pub fn check(&self, m: usize, n: usize, k: usize) -> Result<()> {
        if (self.rows, self.cols, self.k) != (m, n, k) {
            return Err(Error::parameter(
                "factors",
                format!(
                    "they belong to a {} x {} matrix with {} components, but this run has {m} x {n} with {k}; use \
                     factors of this matrix",
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

    /// ‖U_j‖ ‖V_j‖, the energy of each component.
    pub fn energies(&self) -> Vec<f64> {
        let norms = Self::norms(&self.u, self.k).into_iter().zip(Self::norms(&self.v, self.k));
        norms.map(|(u, v)| u * v).collect()
    }

    /// Sorts the components by energy, largest first.
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

    /// Gives every component the scale that `how` names; U Vᵀ stays.
    pub fn normalize(&mut self, how: Normalize, threads: &Threads) -> Result<()> {
        scale::normalize(&Alone, threads, how, &mut self.u, &mut self.v, self.k)
    }

    /// The nonnegative W that best fits new rows (or columns) of M with the other factor fixed, exactly, including
    /// penalties: one row of W for each of them. `start` is an initial guess of W. A row of the guess that fits
    /// better than the solution is kept: rounding errors of products in `f32` are large if components are nearly
    /// dependent. Bounds are not enforced.
    pub fn transform(
        &self,
        matrix: Matrix<T>,
        side: Side,
        terms: Penalty,
        start: Option<&[T]>,
        threads: &Threads,
    ) -> Result<Vec<T>> {
        let block = Block::of(matrix, side == Side::Columns);
        self.check_new(&block, side, start, threads)?;
        let fixed = match side {
            Side::Rows => &self.v,
            Side::Columns => &self.u,
        };
        let mut fitted = fit(&block, fixed, self.k, terms, start, threads)?;
        if fitted.iter().any(|value| !value.to_f64().is_finite()) {
            let problem = "the fit overflows; rescale the components, or compute in f64";
            return Err(Error::parameter("factors", problem));
        }
        if let Some(start) = start {
            let losses = |w: &[T]| row_losses(threads, &block, w, fixed, terms, self.k);
            let of_rows = losses(&fitted);
            let rows = fitted.chunks_exact_mut(self.k).zip(start.chunks_exact(self.k));
            for ((row, guess), (of_row, of_guess)) in rows.zip(of_rows.iter().zip(losses(start))) {
                if of_guess < *of_row {
                    row.copy_from_slice(guess);
                }
            }
        }
        Ok(fitted)
    }

    /// Refuses new rows (or columns) that do not belong to these factors or cannot be fitted, and a guess of another size.
    pub(super) fn check_new(
        &self,
        block: &Block<T>,
        side: Side,
        start: Option<&[T]>,
        threads: &Threads,
    ) -> Result<()> {
        let (expected, what, of) = match side {
            Side::Rows => (self.cols, "columns", "row"),
            Side::Columns => (self.rows, "rows", "column"),
        };
        if block.cols() != expected {
            let problem = format!(
                "it has {} {what}, but the factors belong to {expected}; use data with the same {what}",
                block.cols()
            );
            return Err(Error::parameter("file", problem));
        }
        if let Some(start) = start.filter(|start| start.len() != block.rows() * self.k) {
            let problem = format!(
                "it has {} numbers instead of {} x {}; leave it out",
                start.len(),
                block.rows(),
                self.k
            );
            return Err(Error::parameter("start", problem));
        }
        block.row_sums(threads).first_bad_row().map_or(Ok(()), |row| Err(bad_entry(of, row)))
    }
}

/// The nonnegative W that minimizes the penalized ½ ‖A − W Yᵀ‖² for a block A and the factor Y, from a guess of W.
fn fit<T: Real>(
    block: &Block<T>,
    fixed: &[T],
    k: usize,
    terms: Penalty,
    start: Option<&[T]>,
    threads: &Threads,
) -> Result<Vec<T>> {
    // Before products are formed, which could overflow or underflow in f32.
    let scales = scale::column_scales(&Alone, fixed, k)?;
    let even: Vec<T> = scaled(fixed, &scales).map(T::from_f64).collect();
    let mut gram = gram_in_f64(threads, &even, k);
    let diagonal = gram.iter_mut().step_by(k + 1);
    diagonal.zip(&scales).for_each(|(entry, scale)| *entry += terms.l2 * scale * scale);
    let products = multiply(threads, block, Columns::All, &even, k);
    let guesses = start.map(|start| start.chunks(TILE * k).collect::<Vec<_>>());
    let fitted = threads.map(
        products.chunks(TILE * k).enumerate().collect(),
        || (),
        |(), (tile, rows): (usize, &[T])| {
            let wide = |guess: &[T]| guess.iter().map(|value| value.to_f64()).collect::<Vec<f64>>();
            let guess = guesses.as_ref().map(|guesses| wide(guesses[tile]));
            let products = rows.iter().zip(scales.iter().cycle());
            let products: Vec<f64> =
                products.map(|(value, scale)| value.to_f64() - terms.l1 * scale).collect();
            let fitted = nnls(&gram, &products, guess.as_deref(), k, threads.cancel());
            scaled(&fitted, &scales).map(T::from_f64).collect::<Vec<T>>()
        },
    );
    Ok(fitted.concat())
}

/// ‖a − Y w‖² / 2 and the penalty for every row a of a block and w of W, up to what does not depend on W.
fn row_losses<T: Real>(
    threads: &Threads,
    block: &Block<T>,
    w: &[T],
    fixed: &[T],
    terms: Penalty,
    k: usize,
) -> Vec<f64> {
    let mut losses = match block {
        Block::Dense(dense) => residuals(threads, dense, w, fixed, k),
        _ => {
            let models = quadratic_forms(threads, w, &gram_in_f64(threads, fixed, k), k);
            let crosses = crosses(threads, block, w, fixed, k);
            models.iter().zip(crosses).map(|(model, cross)| model - 2.0 * cross).collect()
        }
    };
    let penalty = |value: f64| terms.l1 * value + 0.5 * terms.l2 * value * value;
    for (loss, row) in losses.iter_mut().zip(w.chunks_exact(k)) {
        *loss = 0.5 * *loss + row.iter().map(|value| penalty(value.to_f64())).sum::<f64>();
    }
    losses
}

/// A factor, stored by row, with each column multiplied by its scale.
fn scaled<T: Real>(factor: &[T], scales: &[f64]) -> impl Iterator<Item = f64> {
    factor.iter().zip(scales.iter().cycle()).map(|(value, scale)| value.to_f64() * scale)
}
