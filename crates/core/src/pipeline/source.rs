//! The sources of matrices.

use std::path::PathBuf;

use super::part::RankReader;
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::Comm;
use crate::error::Result;
use crate::io::{self, ReadOptions};
use crate::matrix::{Matrix, Shape};

/// The source of a matrix.
pub enum Source<'a, T> {
    /// A file, which is read as a whole, or streamed if it does not fit in memory.
    File(FileSource),
    /// A matrix in memory.
    Matrix(Matrix<T>),
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
}

/// Names of the rows and of the columns of M.
pub type Labels = (Option<Vec<String>>, Option<Vec<String>>);

impl FileSource {
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
