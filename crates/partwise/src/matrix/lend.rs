//! Matrices as the core reads them: in the type of the arithmetic.

use partwise_core::Real;
use partwise_core::cancel::Cancel;
use partwise_core::matrix::{Buffer, Csr, Dense, Matrix as CoreMatrix, Values};
use partwise_core::pipeline::SharedMatrix;

use super::{Float, Matrix, either};
use crate::error::{Error, Result};

/// A matrix in the type of the arithmetic, in its original storage.
pub(crate) struct Lent<T> {
    matrix: CoreMatrix<T>,
    transposed: bool,
}

impl Matrix<'_> {
    /// Returns the matrix for arithmetic in `T`: unchanged if its entries have this type or are bytes,
    /// otherwise converted.
    pub(crate) fn lend<T: Float>(&self) -> Lent<T> {
        let matrix = match T::of(&self.stored) {
            Some(matrix) => matrix.clone(),
            None => either!(&self.stored, matrix => converted(matrix)),
        };
        Lent { matrix, transposed: self.transposed }
    }
}

impl<T: Real> Lent<T> {
    /// Mᵀ, for methods that read M both ways.
    #[cfg(feature = "federation")]
    pub fn turned(&self, cancel: &Cancel) -> CoreMatrix<T> {
        match (&self.matrix, self.transposed) {
            (CoreMatrix::Sparse(csr), false) => CoreMatrix::Sparse(csr.transpose_until(cancel)),
            (CoreMatrix::Sparse(csr), true) => CoreMatrix::Sparse(csr.clone()),
            (dense, _) => dense.clone().into_transpose(),
        }
    }

    /// Rejects a matrix with a negative or non-finite entry; `given` is the matrix before conversion.
    pub fn check(&self, given: &Matrix<'_>) -> Result<()> {
        let mut bad = None;
        self.matrix.for_each_stored(|row, col, value| {
            if bad.is_none() && !(value >= 0.0 && value.is_finite()) {
                bad = Some(if self.transposed { (col, row) } else { (row, col) });
            }
        });
        let Some((row, col)) = bad else { return Ok(()) };
        let value = given.get(row, col);
        // The given entry is finite, but exceeds the range of the type of the arithmetic.
        let cure = match value.is_finite() && value >= 0.0 {
            true => "which is beyond f32; compute in f64",
            false => "but a finite number of at least 0 is needed",
        };
        let problem = format!("row {row}, column {col} (counted from 0) is {value}, {cure}");
        Err(Error::of_parameter("matrix", problem))
    }
}

impl<T: Real> SharedMatrix<T> for Lent<T> {
    fn matrix(&self, cancel: &Cancel) -> CoreMatrix<T> {
        match (&self.matrix, self.transposed) {
            (CoreMatrix::Sparse(csr), true) => CoreMatrix::Sparse(Csr::from_transpose(csr.clone(), cancel)),
            (matrix, _) => matrix.clone(),
        }
    }

    fn stored(&self) -> (CoreMatrix<T>, bool) {
        (self.matrix.clone(), self.transposed)
    }
}

/// Converts the numbers to another type; bytes stay in place.
pub(crate) fn converted<S: Real, T: Real>(matrix: &CoreMatrix<S>) -> CoreMatrix<T> {
    let convert = |values: &[S]| -> Buffer<T> {
        Buffer::shared(values.iter().map(|value| T::from_f64(value.to_f64())).collect())
    };
    match matrix {
        CoreMatrix::Dense(dense) => {
            let values = match dense.values() {
                Values::Bytes(bytes) => Values::Bytes(bytes.clone()),
                Values::Real(reals) => Values::Real(convert(reals)),
            };
            CoreMatrix::Dense(Dense::new(dense.rows(), dense.cols(), dense.order(), values))
        }
        CoreMatrix::Sparse(csr) => {
            let (offsets, indices) = (csr.offsets().to_vec(), Buffer::shared(csr.indices().to_vec()));
            CoreMatrix::Sparse(Csr::new(csr.rows(), csr.cols(), offsets, indices, convert(csr.values())))
        }
    }
}
