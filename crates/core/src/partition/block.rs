//! One side's part of M, and its storage formats.

use std::sync::Arc;

use super::DenseBlock;
use crate::Real;
use crate::matrix::{Csr, Dense, Matrix, Observed, Order, Unlisted, Values};

/// One side's part of M, with the rows that the side's factor block belongs to as its rows: M_{I_r:} for U,
/// (M_{:J_r})ᵀ for V.
#[derive(Clone, Debug)]
pub enum Block<T> {
    /// Dense.
    Dense(DenseBlock<T>),
    /// Sparse, by row.
    ByRow(Arc<Csr<T>>),
    /// Sparse, by column: the matrix inside is the block's transpose.
    ByColumn(Arc<Csr<T>>),
    /// Entries with weights, by row.
    Observed(Arc<Observed<T>>),
}

impl<T: Real> Block<T> {
    /// The whole of M, or of Mᵀ, without a copy.
    pub fn of(matrix: Matrix<T>, transposed: bool) -> Self {
        match (matrix, transposed) {
            (Matrix::Dense(dense), false) => Block::Dense(DenseBlock::of(dense)),
            (Matrix::Dense(dense), true) => Block::Dense(DenseBlock::of(dense.into_transpose())),
            (Matrix::Sparse(csr), false) => Block::ByRow(Arc::new(csr)),
            (Matrix::Sparse(csr), true) => Block::ByColumn(Arc::new(csr)),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Block::Dense(dense) => dense.rows,
            Block::ByRow(csr) => csr.rows(),
            Block::ByColumn(transpose) => transpose.cols(),
            Block::Observed(observed) => observed.rows(),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Block::Dense(dense) => dense.cols,
            Block::ByRow(csr) => csr.cols(),
            Block::ByColumn(transpose) => transpose.rows(),
            Block::Observed(observed) => observed.cols(),
        }
    }

    /// How unlisted entries are interpreted, if entries have weights.
    pub fn unlisted(&self) -> Option<Unlisted> {
        if let Block::Observed(observed) = self { Some(observed.unlisted()) } else { None }
    }

    /// The sum of the weights of each row, if entries have weights.
    pub fn row_weights(&self) -> Option<Vec<f64>> {
        let Block::Observed(observed) = self else { return None };
        Some((0..observed.rows()).map(|row| observed.row_weight(row)).collect())
    }

    /// A matrix as its own block and, transposed, as that of the other side, without a copy.
    pub fn both_ways(matrix: Matrix<T>) -> (Self, Self) {
        match matrix {
            Matrix::Dense(dense) => {
                let block = DenseBlock::of(dense);
                let turned = block.transposed();
                (Block::Dense(block), Block::Dense(turned))
            }
            Matrix::Sparse(csr) => {
                let csr = Arc::new(csr);
                (Block::ByRow(csr.clone()), Block::ByColumn(csr))
            }
        }
    }

    /// Undoes [`Block::both_ways`] of a matrix by row, to reuse its memory; `None` if it is still shared.
    pub fn into_matrix(self, turned: Self) -> Option<Matrix<T>> {
        drop(turned);
        match self {
            Block::Dense(DenseBlock { rows, cols, values, .. }) => {
                let values = Arc::into_inner(values)?;
                Some(Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, values)))
            }
            Block::ByRow(csr) => Arc::into_inner(csr).map(Matrix::Sparse),
            Block::ByColumn(_) | Block::Observed(_) => None,
        }
    }

    /// The first row that contains a 0.
    pub fn first_row_with_zero(&self) -> Option<usize> {
        let positive = |row: usize| match self {
            Block::Dense(dense) => {
                let first = row * dense.row_stride;
                (0..dense.cols).all(|col| dense.values.get(first + col * dense.col_stride) > T::ZERO)
            }
            Block::ByRow(csr) => {
                let values = csr.row(row).1;
                values.len() == csr.cols() && values.iter().all(|&value| value > T::ZERO)
            }
            Block::Observed(observed) => {
                let row = observed.row(row);
                // Unknown entries are stored as 0.
                let weight = |place: usize| row.weights.map_or(T::ONE, |weights| weights[place]);
                let zero = |(place, value): (usize, &T)| *value <= T::ZERO && weight(place) > T::ZERO;
                !row.values.iter().enumerate().any(zero)
                    && (row.unlisted == Unlisted::Unknown || row.cols.len() == observed.cols())
            }
            Block::ByColumn(_) => true,
        };
        (0..self.rows()).find(|&row| !positive(row))
    }

    /// Which rows have an entry that is not zero.
    pub fn used_rows(&self) -> Vec<bool> {
        let mut used = vec![false; self.rows()];
        match self {
            Block::Dense(dense) => match &*dense.values {
                Values::Bytes(bytes) => dense.mark_used(bytes, &mut used),
                Values::Real(reals) => dense.mark_used(reals, &mut used),
            },
            Block::Observed(observed) => {
                let any = |row| observed.row(row).values.iter().any(|&value| value != T::ZERO);
                used.iter_mut().enumerate().for_each(|(row, used)| *used = any(row));
            }
            Block::ByRow(csr) => {
                let any = |row| csr.row(row).1.iter().any(|&value| value != T::ZERO);
                used.iter_mut().enumerate().for_each(|(row, used)| *used = any(row));
            }
            Block::ByColumn(transpose) => {
                for col in 0..transpose.rows() {
                    let (rows, values) = transpose.row(col);
                    rows.iter().zip(values).for_each(|(&row, &value)| used[row as usize] |= value != T::ZERO);
                }
            }
        }
        used
    }
}
