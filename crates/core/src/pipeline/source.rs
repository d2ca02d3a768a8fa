//! The sources of matrices.

use std::path::PathBuf;

use super::part::RankReader;
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::Comm;
use crate::error::Result;
use crate::io::{self, ReadOptions};
use crate::matrix::{Matrix, Observed, Shape};

/// The source of a matrix.
pub enum Source<'a, T> {
    /// A file, which is read as a whole, or streamed if it does not fit in memory.
    File(FileSource),
    /// A matrix in memory.
    Matrix(Matrix<T>),
    /// Weighted entries.
    Observed(Observed<T>),
    /// A matrix of another owner, under the name that errors give it.
    Shared(&'a (dyn SharedMatrix<T> + Sync), &'static str),
    /// One rank's part of a shared file.
    Part {
        /// The ranks.
        comm: &'a dyn Comm,
        /// Reads the part.
        reader: &'a dyn RankReader<T>,
        /// The file, with label files if it names any.
        file: FileSource,
    },
}

/// A matrix that its owner lends repeatedly, without a copy.
pub trait SharedMatrix<T: Real> {
    /// M, for a method that reads it both ways; transposing a large matrix takes a while and can be cancelled.
    fn matrix(&self, cancel: &Cancel) -> Matrix<T>;

    /// M as it is stored, and whether that is Mᵀ.
    fn stored(&self) -> (Matrix<T>, bool);
}

impl<T: Real> SharedMatrix<T> for Matrix<T> {
    fn matrix(&self, _cancel: &Cancel) -> Matrix<T> {
        self.clone()
    }

    fn stored(&self) -> (Matrix<T>, bool) {
        (self.clone(), false)
    }
}

impl<T: Real, S: SharedMatrix<T> + ?Sized> SharedMatrix<T> for &S {
    fn matrix(&self, cancel: &Cancel) -> Matrix<T> {
        (**self).matrix(cancel)
    }

    fn stored(&self) -> (Matrix<T>, bool) {
        (**self).stored()
    }
}

/// A file, and how to read it.
#[derive(Clone, Debug)]
pub struct FileSource {
    /// The file.
    pub path: PathBuf,
    /// How to read it; the memory limit is that of the request.
    pub options: ReadOptions,
    /// Whether M is the transpose of the file's matrix.
    pub transpose: bool,
    /// A text file with the names of the file's rows.
    pub row_labels: Option<PathBuf>,
    /// A text file with the names of the file's columns.
    pub col_labels: Option<PathBuf>,
    /// Which entries are missing.
    pub missing: Option<MissingEntries>,
    /// A file with the weights of entries: a matrix of the same size, a column with a weight for each row, or
    /// a row with a weight for each column.
    pub weights: Option<PathBuf>,
}

/// Which entries of a file are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingEntries {
    /// Entries that are NaN.
    Nan,
    /// Entries that a sparse matrix does not store.
    Unstored,
    /// Entries that are 0, stored or not.
    Zero,
    /// Entries at which the matrix in this file is not 0.
    Mask(PathBuf),
}

impl std::fmt::Display for MissingEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MissingEntries::Nan => f.write_str("nan"),
            MissingEntries::Unstored => f.write_str("unstored"),
            MissingEntries::Zero => f.write_str("zero"),
            MissingEntries::Mask(path) => path.display().fmt(f),
        }
    }
}

impl From<&str> for MissingEntries {
    fn from(text: &str) -> Self {
        match text {
            "nan" => MissingEntries::Nan,
            "unstored" => MissingEntries::Unstored,
            "zero" => MissingEntries::Zero,
            file => MissingEntries::Mask(file.into()),
        }
    }
}

impl MissingEntries {
    /// Whether the matrix may contain NaN.
    pub fn allow_nan(&self) -> bool {
        matches!(self, MissingEntries::Nan | MissingEntries::Mask(_))
    }
}

/// Names of the rows and of the columns of M.
pub type Labels = (Option<Vec<String>>, Option<Vec<String>>);

impl FileSource {
    /// The field that makes entries missing, held out or weighted.
    pub(super) fn what_hides(&self) -> &'static str {
        match (&self.weights, &self.missing) {
            (Some(_), _) => "weights",
            (None, Some(_)) => "missing",
            (None, None) => "holdout",
        }
    }

    /// A file without missing or weighted entries, with default options.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileSource {
            path: path.into(),
            options: ReadOptions::default(),
            transpose: false,
            row_labels: None,
            col_labels: None,
            missing: None,
            weights: None,
        }
    }

    /// The names in the label files, for an m x n matrix.
    pub fn labels(&self, shape: Shape) -> Result<Labels> {
        let Shape { rows, cols } = shape;
        let (rows, cols) = if self.transpose { (cols, rows) } else { (rows, cols) };
        let of = |file: &Option<PathBuf>, count| {
            file.as_ref().map(|file| io::labels::read(file, count)).transpose()
        };
        let (rows, cols) = (of(&self.row_labels, rows)?, of(&self.col_labels, cols)?);
        Ok(if self.transpose { (cols, rows) } else { (rows, cols) })
    }
}
