//! Matrices from files.

use std::path::{Path, PathBuf};

use partwise_core::io::{self, ImageSide, Input, Presence, ReadOptions};
use partwise_core::matrix::{Matrix as CoreMatrix, Values};
use partwise_core::pipeline::{FileSource, MissingEntries};
use partwise_core::{Precision, machine};

use crate::error::Result;
use crate::matrix::{Matrix, Stored};
use crate::options::Missing;

/// Reads a matrix; the file name determines format and compression.
///
/// `.npy`, `.mtx` and `.bin` (the paper's format) are always supported; `.npz`, `.csv`, `.tsv` and `.gz` need
/// the feature `io`, `.h5ad` needs `h5ad`, and folders and `.zip` archives of images need `images`. Entries
/// keep their type. [`Reader`] has options.
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).ok();
/// let m = partwise::read("data/digits.npy")?;
/// assert_eq!((m.rows(), m.cols()), (1797, 64));
///
/// let error = partwise::read("digits.xlsx").unwrap_err();
/// assert!(error.to_string().starts_with("digits.xlsx"));
/// # Ok::<(), partwise::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<Matrix<'static>> {
    Reader::new(path).read()
}

/// A file, and how to read it.
///
/// [`Nmf::fit`](crate::Nmf::fit) accepts a reader in place of a matrix. It then reads entries in the type of
/// the arithmetic; if they exceed the memory limit, they stay in the file, which is read block by block.
///
/// ```
/// use partwise::{Nmf, Reader};
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).ok();
///
/// let file = Reader::new("data/digits.npy").transpose(true);
/// let model = Nmf::new(4).iterations(5).fit(&file)?;
/// assert_eq!((model.u().rows(), model.v().rows()), (64, 1797));
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    source: FileSource,
}

impl Reader {
    /// Creates a reader of this file with default options.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Reader { source: FileSource::new(path.as_ref()) }
    }

    /// Sets whether to transpose the file's matrix.
    pub fn transpose(mut self, transpose: bool) -> Self {
        self.source.transpose = transpose;
        self
    }

    /// Sets whether a text table begins with column names. The default detects them.
    pub fn header(mut self, header: Presence) -> Self {
        self.source.options.header = header;
        self
    }

    /// Sets whether the first column of a text table contains row names. The default detects them.
    pub fn row_names(mut self, row_names: Presence) -> Self {
        self.source.options.row_names = row_names;
        self
    }

    /// Sets whether images become columns, which is the default, or rows.
    pub fn images(mut self, side: ImageSide) -> Self {
        self.source.options.images = side;
        self
    }

    /// Sets a text file with names of the file's rows, one per line.
    pub fn row_labels(mut self, path: impl Into<PathBuf>) -> Self {
        self.source.row_labels = Some(path.into());
        self
    }

    /// Sets a text file with names of the file's columns, one per line.
    pub fn col_labels(mut self, path: impl Into<PathBuf>) -> Self {
        self.source.col_labels = Some(path.into());
        self
    }

    /// Which entries are unknown; none unless it is said.
    ///
    /// ```
    /// use partwise::options::Missing;
    /// use partwise::{Nmf, Reader};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("table.csv");
    ///
    /// std::fs::write(&path, "a,b,c\n5,3,NA\n4,,1\n1,1,5\n").unwrap();
    /// let model = Nmf::new(1).fit(&Reader::new(&path).missing(Missing::Nan))?;
    /// assert!(model.predict(0, 2) > 0.0); // what is not known
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.source.missing = Some(missing.entries());
        self
    }

    /// A matrix file of the same size: where it is not 0, entries are unknown. Takes the place of [`Reader::missing`].
    pub fn mask(mut self, path: impl Into<PathBuf>) -> Self {
        self.source.missing = Some(MissingEntries::Mask(path.into()));
        self
    }

    /// How much entries count: a matrix file of the same size, or with a number for each row (as a column) or for each column (as
    /// a row). An entry of weight 2 counts as if it were there twice.
    pub fn weights(mut self, path: impl Into<PathBuf>) -> Self {
        self.source.weights = Some(path.into());
        self
    }

    /// Reads all of it into memory. Unknown entries are NaN where the file has no number; weights are not read.
    pub fn read(&self) -> Result<Matrix<'static>> {
        let FileSource { path, options, transpose, missing, .. } = &self.source;
        let missing_as_nan = missing.as_ref().is_some_and(MissingEntries::allow_nan);
        let options = ReadOptions { memory: machine::available_memory(), missing_as_nan, ..*options };
        let mut input = io::read::<f64>(path, &options)?;
        if *transpose {
            input = input.into_transpose();
        }
        let (row_labels, col_labels) = self.source.labels(input.matrix.shape())?;
        let Input { matrix, row_labels: own_rows, col_labels: own_cols, precision, image, .. } = input;
        let narrow = precision == Precision::F32 || is_bytes(&matrix);
        let stored =
            if narrow { Stored::F32(crate::matrix::converted(&matrix)) } else { Stored::F64(matrix) };
        let mut matrix = Matrix::new(stored, false).into_owned();
        matrix.row_labels = row_labels.or(own_rows);
        matrix.col_labels = col_labels.or(own_cols);
        matrix.image = image;
        Ok(matrix)
    }

    pub(crate) fn source(&self) -> &FileSource {
        &self.source
    }
}

fn is_bytes(matrix: &CoreMatrix<f64>) -> bool {
    matches!(matrix, CoreMatrix::Dense(dense) if matches!(dense.values(), Values::Bytes(_)))
}
