//! Reading and writing matrices. One file a format; [`Kind::of`] and [`read`] are the registry.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::real::Real;

pub mod npy;

/// A matrix as it came from a file, with what the file says of its rows and columns.
#[derive(Clone, Debug)]
pub struct Input<T> {
    /// The matrix, checked: finite, nonnegative, not empty, not all zero.
    pub matrix: Matrix<T>,
    /// Names of the rows, if the file has them.
    pub row_labels: Option<Vec<String>>,
    /// Names of the columns, if the file has them.
    pub col_labels: Option<Vec<String>>,
    /// The file's format in words, such as `NumPy array, uint8, C order, gzip`.
    pub format: String,
}

/// Whether a text table has a header line, or row names: told by the user, or found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Look at the file.
    #[default]
    Auto,
    /// It is there.
    Yes,
    /// It is not there.
    No,
}

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Bytes that the matrix may take; checked before anything of that size is allocated.
    pub memory: u64,
    /// Whether a text table begins with column names.
    pub header: Presence,
    /// Whether the first column of a text table holds row names.
    pub row_names: Presence,
}

/// Reads a matrix; format and compression follow from the file's name.
pub fn read<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    todo!()
}
