//! Matrices in memory: dense (bytes or reals, by row or by column) and compressed sparse rows.

mod buffer;
mod dense;
mod holdout;
mod observed;
mod select;
mod sparse;
mod stack;
mod summary;

pub use buffer::Buffer;
pub use dense::{Dense, Order, Values};
pub use holdout::{HeldOut, Holdout};
pub use observed::{Missing, Observed, ObservedRow, Unlisted, Weights};
pub use sparse::Csr;
pub(crate) use summary::Tally;
pub use summary::{Dominant, Dominants, Summary};

use std::ops::Range;

use crate::wording::Wording;
use crate::{Precision, Real};

/// The sides of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
}

/// An input matrix M; dense or sparse is decided at run time from the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix<T> {
    /// Every entry stored.
    Dense(Dense<T>),
    /// A sparse matrix, which stores only nonzero entries.
    Sparse(Csr<T>),
}

impl<T: Real> Matrix<T> {
    /// The numbers of rows and columns.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows(), cols: self.cols() }
    }

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

    /// The largest entry.
    pub fn largest(&self) -> f64 {
        let largest = |entries: &[T]| entries.iter().fold(0.0, |max: f64, entry| max.max(entry.to_f64()));
        match self {
            Matrix::Dense(dense) => match dense.values() {
                Values::Bytes(bytes) => bytes.iter().copied().max().unwrap_or(0).into(),
                Values::Real(reals) => largest(reals),
            },
            Matrix::Sparse(csr) => largest(csr.values()),
        }
    }

    /// The first row that contains a 0.
    pub fn first_row_with_zero(&self) -> Option<usize> {
        let mut positive = vec![0; self.rows()];
        self.for_each_stored(|row, _, value| positive[row] += usize::from(value > 0.0));
        positive.into_iter().position(|count| count < self.cols())
    }

    /// The squared norms of all rows and of all columns.
    pub fn squared_norms(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut rows, mut cols) = (vec![0.0; self.rows()], vec![0.0; self.cols()]);
        self.for_each_stored(|row, col, value| {
            rows[row] += value * value;
            cols[col] += value * value;
        });
        (rows, cols)
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

/// The reason why products with a matrix with this largest entry would underflow or overflow, which would not show
/// as an error.
pub fn range_problem<T: Real>(largest: f64) -> Option<Wording> {
    if largest == 0.0 {
        return Some("every entry is 0, so there is nothing to factorize; check the file".into());
    }
    // Products have up to twice the exponents of entries, times the number of terms.
    let (range, cure) = match T::PRECISION {
        Precision::F32 => {
            (1e-15..=1e15, Wording::new("use ").choice("precision", "f64").text(", or rescale the matrix"))
        }
        Precision::F64 => (1e-100..=1e100, "rescale the matrix".into()),
    };
    (!range.contains(&largest)).then(|| {
        let problem = format!(
            "the largest is {largest:.2e}, but the arithmetic needs one from {:e} to {:e}; ",
            range.start(),
            range.end()
        );
        Wording::new(problem).then(cure)
    })
}
