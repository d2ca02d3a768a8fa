//! Matrices in memory: dense (bytes or reals, by row or by column) and compressed sparse rows.

mod dense;
mod sparse;
mod stack;
mod summary;

pub use dense::{Dense, Order, Values};
pub use sparse::Csr;
pub use summary::Summary;

use std::ops::Range;

/// An input matrix M; dense or sparse is decided at run time from the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix<T> {
    /// Every entry stored.
    Dense(Dense<T>),
    /// Only nonzero entries stored.
    Sparse(Csr<T>),
}

impl<T: crate::Real> Matrix<T> {
    /// Number of rows, m.
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Dense(dense) => dense.rows(),
            Matrix::Sparse(csr) => csr.rows(),
        }
    }

    /// Number of columns, n.
    pub fn cols(&self) -> usize {
        match self {
            Matrix::Dense(dense) => dense.cols(),
            Matrix::Sparse(csr) => csr.cols(),
        }
    }

    /// Stored entries: m n for a dense matrix.
    pub fn stored(&self) -> usize {
        match self {
            Matrix::Dense(dense) => dense.rows() * dense.cols(),
            Matrix::Sparse(csr) => csr.stored(),
        }
    }

    /// Bytes that the matrix takes in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Matrix::Dense(dense) => dense.bytes(),
            Matrix::Sparse(csr) => csr.bytes(),
        }
    }

    /// Mᵀ; free for a dense matrix.
    pub fn into_transpose(self) -> Self {
        match self {
            Matrix::Dense(dense) => Matrix::Dense(dense.into_transpose()),
            Matrix::Sparse(csr) => Matrix::Sparse(csr.transpose()),
        }
    }

    /// The entries in the given rows and columns, copied.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        match self {
            Matrix::Dense(dense) => Matrix::Dense(dense.part(rows, cols)),
            Matrix::Sparse(csr) => Matrix::Sparse(csr.part(rows, cols)),
        }
    }

    /// Calls `visit(row, column, value)` for every stored entry, in storage order.
    pub fn for_each_stored(&self, mut visit: impl FnMut(usize, usize, f64)) {
        match self {
            Matrix::Dense(dense) => {
                for major in 0..dense.majors() {
                    for minor in 0..dense.minors() {
                        let (row, col) = match dense.order() {
                            Order::RowMajor => (major, minor),
                            Order::ColMajor => (minor, major),
                        };
                        visit(row, col, dense.get(row, col).to_f64());
                    }
                }
            }
            Matrix::Sparse(csr) => {
                for row in 0..csr.rows() {
                    let (cols, values) = csr.row(row);
                    for (&col, &value) in cols.iter().zip(values) {
                        visit(row, col as usize, value.to_f64());
                    }
                }
            }
        }
    }
}
