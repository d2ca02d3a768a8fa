//! Missing entries and weights that a file's options specify, including masks and weights in separate files.

use std::path::Path;

use super::source::{FileSource, MissingEntries};
use crate::Real;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::io;
use crate::matrix::{Matrix, Missing, Observed, Weights};

/// The known entries of a matrix according to a file's options; `None` if every entry is known with weight 1.
pub fn observe<T: Real>(
    matrix: &Matrix<T>,
    file: &FileSource,
    memory: u64,
    cancel: &Cancel,
) -> Result<Option<Observed<T>>> {
    let read = |path: &Path| -> Result<Matrix<T>> {
        let matrix = io::read_unchecked::<T>(path, &io::ReadOptions { memory, ..Default::default() })?.matrix;
        Ok(if file.transpose { matrix.into_transpose() } else { matrix })
    };
    let missing = match &file.missing {
        None => None,
        Some(MissingEntries::Nan) => Some(Missing::Nan),
        Some(MissingEntries::Unstored) => Some(Missing::Unstored),
        Some(MissingEntries::Zero) => Some(Missing::Zero),
        Some(MissingEntries::Mask(path)) => Some(Missing::Mask(read(path)?)),
    };
    let weights = file.weights.as_deref().map(|path| Ok(weights_for(matrix, read(path)?))).transpose()?;
    Observed::new(matrix, missing.as_ref(), weights.as_ref(), cancel).map_err(|error| match error {
        // The error belongs to the mask or weights file.
        Error::Parameter { name, problem } if name == "matrix" => {
            Error::format(&file.path, "entries", problem)
        }
        error => error,
    })
}

/// A column holds weights of rows and a row weights of columns; if the length is unambiguous, the orientation
/// is ignored.
pub fn weights_for<T: Real>(matrix: &Matrix<T>, weights: Matrix<T>) -> Weights<T> {
    let (shape, (m, n)) = (weights.shape(), (matrix.rows(), matrix.cols()));
    if (shape.rows, shape.cols) == (m, n) {
        return Weights::Entries(weights);
    }
    let mut numbers = vec![T::ZERO; shape.rows * shape.cols];
    weights.for_each_stored(|row, col, value| numbers[row * shape.cols + col] = T::from_f64(value));
    match (shape.rows, shape.cols) {
        (length, 1) if length == m => Weights::Rows(numbers),
        (1, length) if length == n => Weights::Columns(numbers),
        (length, 1) | (1, length) if length == n => Weights::Columns(numbers),
        (length, 1) | (1, length) if length == m => Weights::Rows(numbers),
        _ => Weights::Entries(weights),
    }
}
