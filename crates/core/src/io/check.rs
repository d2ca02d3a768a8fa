//! Requirements of every input, whatever its format: not empty, finite, nonnegative, not all zero.

use std::path::Path;

use super::Region;
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};
use crate::wording::Wording;

/// An entry that cannot be factorized.
pub(super) struct BadEntry {
    pub row: usize,
    pub column: usize,
    pub value: f64,
}

/// The first unacceptable entry in storage order.
pub(super) fn bad_entry<T: Real>(matrix: &Matrix<T>) -> Option<BadEntry> {
    let good = |value: &T| *value >= T::ZERO && value.to_f64() < f64::INFINITY;
    match matrix {
        Matrix::Dense(dense) => {
            let Values::Real(reals) = dense.values() else { return None };
            let index = reals.iter().position(|value| !good(value))?;
            let (row, column) = place(dense, index);
            Some(BadEntry { row, column, value: reals[index].to_f64() })
        }
        Matrix::Sparse(csr) => {
            let index = csr.values().iter().position(|value| !good(value))?;
            let row = csr.offsets().partition_point(|&offset| offset <= index) - 1;
            Some(BadEntry { row, column: csr.indices()[index] as usize, value: csr.values()[index].to_f64() })
        }
    }
}

/// Row and column of the entry at `index` in storage.
fn place<T: Real>(dense: &Dense<T>, index: usize) -> (usize, usize) {
    let (major, minor) = (index / dense.minors(), index % dense.minors());
    match dense.order() {
        Order::RowMajor => (major, minor),
        Order::ColMajor => (minor, major),
    }
}

/// One entry, stored or not.
pub(super) fn entry<T: Real>(matrix: &Matrix<T>, row: usize, column: usize) -> f64 {
    match matrix {
        Matrix::Dense(dense) => dense.get(row, column).to_f64(),
        Matrix::Sparse(csr) => {
            let (columns, values) = csr.row(row);
            columns.binary_search(&(column as u32)).map_or(0.0, |index| values[index].to_f64())
        }
    }
}

/// The error for an entry that was read as `bad` and is `exact` in the file, if known.
pub(super) fn entry_error(path: &Path, bad: &BadEntry, exact: Option<f64>) -> Error {
    let value = exact.unwrap_or(bad.value);
    let cure: Wording = if value.is_nan() {
        missing_value()
    } else if value < 0.0 {
        "a nonnegative factorization needs entries of at least 0; shift, clip or remove it".into()
    } else if value.is_finite() || exact.is_none() {
        beyond("it exceeds the range of f32; use ")
    } else {
        "replace or remove infinite values".into()
    };
    // Scientific notation if there are too many digits to count.
    let value =
        if value.is_finite() && value.abs() >= 1e16 { format!("{value:e}") } else { value.to_string() };
    Error::Entry { path: path.to_path_buf(), row: bad.row, column: bad.column, value, cure }
}

/// The advice for what may be a missing value.
pub(super) fn missing_value() -> Wording {
    Wording::new("if it is a missing value, use ").choice("missing", "nan").text("; otherwise replace it")
}

/// The advice for numbers beyond the range of f32.
fn beyond(what: &'static str) -> Wording {
    Wording::new(what).choice("precision", "f64").text(", or rescale the matrix")
}

/// Refuses entries that are not finite and nonnegative. A value that is infinite in f32 may be finite in the file,
/// which `reread` checks.
pub(super) fn entries<T: Real>(
    path: &Path,
    matrix: Matrix<T>,
    reread: impl FnOnce() -> Result<Matrix<f64>>,
) -> Result<Matrix<T>> {
    let Some(bad) = bad_entry(&matrix) else { return Ok(matrix) };
    // Two copies at once might not fit.
    drop(matrix);
    let exact = if T::PRECISION == Precision::F32 && bad.value.is_infinite() {
        reread().ok().map(|wide| entry(&wide, bad.row, bad.column))
    } else {
        Some(bad.value)
    };
    Err(entry_error(path, &bad, exact))
}

/// Refuses entries that are negative or infinite.
pub(super) fn known_entries<T: Real>(path: &Path, matrix: &Matrix<T>) -> Result<()> {
    let mut bad = None;
    matrix.for_each_stored(|row, column, value| {
        if value < 0.0 || value == f64::INFINITY {
            bad.get_or_insert(BadEntry { row, column, value });
        }
    });
    bad.map_or(Ok(()), |bad| Err(entry_error(path, &bad, None)))
}

/// Refuses entries of a part of a matrix that are not finite and nonnegative; positions are those in the whole.
pub(super) fn part<T: Real>(path: &Path, part: &Matrix<T>, region: &Region) -> Result<()> {
    let Some(bad) = bad_entry(part) else { return Ok(()) };
    let exact = (T::PRECISION == Precision::F64 || !bad.value.is_infinite()).then_some(bad.value);
    let bad = BadEntry {
        row: region.rows.start + bad.row,
        column: region.cols.start + bad.column,
        value: bad.value,
    };
    Err(entry_error(path, &bad, exact))
}

/// Refuses a matrix without rows or without columns.
pub(super) fn size<T: Real>(path: &Path, matrix: &Matrix<T>) -> Result<()> {
    shape(path, matrix.rows(), matrix.cols())
}

/// Refuses a matrix without rows or without columns, known by its sizes.
pub(super) fn shape(path: &Path, rows: usize, cols: usize) -> Result<()> {
    if rows > 0 && cols > 0 {
        return Ok(());
    }
    let problem = format!("the matrix is empty ({rows} x {cols}); give one with rows and columns");
    Err(Error::format(path, "shape", problem))
}

/// Refuses a matrix without a nonzero. A value that is 0 in f32 may be above 0 in the file, which `reread` checks.
pub(super) fn substance<T: Real>(
    path: &Path,
    matrix: &Matrix<T>,
    reread: impl FnOnce() -> Result<Matrix<f64>>,
) -> Result<()> {
    if has_nonzero(matrix) {
        return Ok(());
    }
    Err(nothing(path, T::PRECISION == Precision::F32 && reread().is_ok_and(|wide| has_nonzero(&wide))))
}

/// The error for a matrix without a nonzero, at least within the range of f32.
pub(super) fn nothing(path: &Path, beyond_range: bool) -> Error {
    let problem = if beyond_range {
        beyond("every entry is below the range of f32; use ")
    } else {
        "every entry is 0, so there is nothing to factorize; check the file".into()
    };
    Error::format(path, "entries", problem)
}

pub(super) fn has_nonzero<T: Real>(matrix: &Matrix<T>) -> bool {
    let any = |reals: &[T]| reals.iter().any(|&value| value != T::ZERO);
    match matrix {
        Matrix::Dense(dense) => match dense.values() {
            Values::Bytes(bytes) => bytes.iter().any(|&byte| byte != 0),
            Values::Real(reals) => any(reals),
        },
        Matrix::Sparse(csr) => any(csr.values()),
    }
}
