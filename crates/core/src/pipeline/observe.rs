//! What is known of a file's entries: masks and weights from files of their own.

use std::path::Path;

use super::source::{FileSource, MissingEntries};
use crate::Real;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::io;
use crate::matrix::{Matrix, Missing, Observed, Weights};

/// The entries of a matrix with what a file's options say of them; nothing if every entry is known and counts once.
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
        // Its own file is at fault.
        Error::Parameter { name, problem } if name == "matrix" => {
            Error::format(&file.path, "entries", problem)
        }
        error => error,
    })
}

/// A column is for rows and a row for columns, whichever way it stands if its length leaves no doubt.
fn weights_for<T: Real>(matrix: &Matrix<T>, weights: Matrix<T>) -> Weights<T> {
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
