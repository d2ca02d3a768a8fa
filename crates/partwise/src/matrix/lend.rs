//! Matrices as the core reads them: in the type that is computed in.

use partwise_core::Real;
use partwise_core::cancel::Cancel;
use partwise_core::matrix::{Buffer, Csr, Dense, Matrix as CoreMatrix, Values};
use partwise_core::pipeline::SharedMatrix;

use super::{Float, Matrix, either};

/// A matrix in the type that is computed in, as it is stored.
pub(crate) struct Lent<T> {
    matrix: CoreMatrix<T>,
    transposed: bool,
}

impl Matrix<'_> {
    /// The matrix for computing in `T`: itself if its entries are of this type or bytes, else converted.
    pub(crate) fn lend<T: Float>(&self) -> Lent<T> {
        let matrix = match T::of(&self.stored) {
            Some(matrix) => matrix.clone(),
            None => either!(&self.stored, matrix => converted(matrix)),
        };
        Lent { matrix, transposed: self.transposed }
    }
}

impl<T: Real> Lent<T> {
    /// Mᵀ, for a method that reads it both ways.
    #[cfg(feature = "federation")]
    pub fn turned(&self, cancel: &Cancel) -> CoreMatrix<T> {
        match (&self.matrix, self.transposed) {
            (CoreMatrix::Sparse(csr), false) => CoreMatrix::Sparse(csr.transpose_until(cancel)),
            (CoreMatrix::Sparse(csr), true) => CoreMatrix::Sparse(csr.clone()),
            (dense, _) => dense.clone().into_transpose(),
        }
    }

    /// Whether every entry is a finite number of at least 0; else the first row and column of one that is not.
    pub fn bad_entry(&self) -> Option<(usize, usize, f64)> {
        let mut bad = None;
        self.matrix.for_each_stored(|row, col, value| {
            if bad.is_none() && !(value >= 0.0 && value.is_finite()) {
                bad = Some(if self.transposed { (col, row, value) } else { (row, col, value) });
            }
        });
        bad
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

/// The same numbers in another type; bytes stay where they are.
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
