//! Reading and writing matrices. One file a format; [`FileFormat`] and [`read`] are the registry.
//!
//! A file is untrusted: whatever its bytes, a reader returns a matrix or an error, never panics, and allocates
//! nothing large before the sizes that the file claims are held against its length and the memory.

use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::real::{Precision, Real};
use memory::Budget;
use source::Source;

pub use assumption::Assumption;
pub use images::{ImageShape, ImageSide};
pub(crate) use part::read_parts_here;
pub use part::{Choose, Parts, Region, read_parts};
pub use write::{WriteOptions, check_write, write};

mod assumption;
mod binary;
mod check;
mod h5ad;
pub mod images;
pub mod labels;
mod lzf;
mod memory;
mod mtx;
pub mod npy;
mod npz;
mod part;
mod sniff;
mod source;
pub mod stream;
mod table;
mod triplets;
pub mod tsv;
mod write;

#[cfg(test)]
mod tests;

/// A matrix as it came from a file, with what the file says of its rows and columns.
#[derive(Clone, Debug)]
pub struct Input<T> {
    /// The matrix; [`read`] has checked that it is finite, nonnegative, not empty and not all zero.
    pub matrix: Matrix<T>,
    /// Names of the rows, if the file has them.
    pub row_labels: Option<Vec<String>>,
    /// Names of the columns, if the file has them.
    pub col_labels: Option<Vec<String>>,
    /// The file's format in words, such as `NumPy array, uint8, C order, gzip`.
    pub format: String,
    /// The narrower of the two real types that holds every number of the file's type.
    pub precision: Precision,
    /// What each column, or row, looks like, if the input is images.
    pub image: Option<ImageShape>,
    /// What was taken for granted of a text table that could mean something else.
    pub assumptions: Vec<Assumption>,
}

impl<T: Real> Input<T> {
    /// A matrix without labels.
    pub fn unlabelled(matrix: Matrix<T>, format: String, precision: Precision) -> Self {
        Input {
            matrix,
            row_labels: None,
            col_labels: None,
            format,
            precision,
            image: None,
            assumptions: Vec::new(),
        }
    }

    /// The transpose, labels and images included.
    pub fn into_transpose(self) -> Self {
        Input {
            matrix: self.matrix.into_transpose(),
            row_labels: self.col_labels,
            col_labels: self.row_labels,
            image: self.image.map(|shape| ImageShape { images: shape.images.other(), ..shape }),
            ..self
        }
    }
}

/// Whether a text table has a header line, or row names: told by the user, or found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Bytes that the matrix may take, what reading it needs beside it included; checked before anything of
    /// that size is allocated.
    pub memory: u64,
    /// Whether a text table begins with column names.
    pub header: Presence,
    /// Whether the first column of a text table holds row names.
    pub row_names: Presence,
    /// Whether images become columns or rows.
    pub images: ImageSide,
}

/// The formats that [`read`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// NumPy array, `.npy`.
    Npy,
    /// SciPy sparse matrix, or a single NumPy array, `.npz`.
    Npz,
    /// Matrix Market, `.mtx`.
    MatrixMarket,
    /// Comma-separated table, `.csv`.
    Csv,
    /// Tab-separated table, `.tsv`.
    Tsv,
    /// The binary format of the paper's own program, `.bin`.
    Bin,
    /// AnnData in HDF5, `.h5ad`.
    H5ad,
    /// JPEG and PNG images, a folder or `.zip`.
    Images,
}

impl FileFormat {
    /// The format that a file's name promises, `.gz` aside. A folder, whatever its name, is one of images.
    pub fn of(path: &Path) -> Result<FileFormat> {
        if path.is_dir() {
            return Ok(FileFormat::Images);
        }
        let (stem, _) = source::split_gz(path);
        match stem.rsplit_once('.').map(|(_, extension)| extension) {
            Some("npy") => Ok(FileFormat::Npy),
            Some("npz") => Ok(FileFormat::Npz),
            Some("mtx") => Ok(FileFormat::MatrixMarket),
            Some("csv") => Ok(FileFormat::Csv),
            Some("tsv") => Ok(FileFormat::Tsv),
            Some("bin") => Ok(FileFormat::Bin),
            Some("h5ad") => Ok(FileFormat::H5ad),
            Some("zip") => Ok(FileFormat::Images),
            _ => Err(Error::format(
                path,
                "name",
                "unknown ending; Partwise reads .npy, .npz, .mtx, .csv, .tsv, .bin and .h5ad, each also with .gz, and images in \
                 a folder or a .zip",
            )),
        }
    }

    /// The format's name, with its article.
    fn words(self) -> &'static str {
        match self {
            FileFormat::Npy => "a NumPy array",
            FileFormat::Npz => "an .npz archive",
            FileFormat::MatrixMarket => "a Matrix Market file",
            FileFormat::Csv => "a comma-separated table",
            FileFormat::Tsv => "a tab-separated table",
            FileFormat::Bin => "a DSANLS binary",
            FileFormat::H5ad => "an HDF5 file",
            FileFormat::Images => "a zip archive of images",
        }
    }
}

/// Reads a matrix; format and compression follow from the file's name.
pub fn read<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    T::read(path, options)
}

pub(crate) fn read_here<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    let mut input = read_unchecked::<T>(path, options)?;
    let reread = || Ok(read_unchecked::<f64>(path, options)?.matrix);
    input.matrix = check::entries(path, input.matrix, reread)?;
    check::size(path, &input.matrix)?;
    check::substance(path, &input.matrix, reread)?;
    Ok(input)
}

/// A matrix that may have entries that no factorization takes: negative, infinite or NaN.
#[allow(clippy::large_enum_variant)]
pub enum Unchecked {
    /// In memory.
    Whole(Input<f64>),
    /// In its file, because the memory does not hold it.
    Streamed(stream::Stream),
}

/// Reads a matrix to look at its entries, whatever they are.
pub fn read_to_inspect(path: &Path, options: &ReadOptions, transpose: bool) -> Result<Unchecked> {
    let input = match read_unchecked::<f64>(path, options) {
        Err(error @ Error::Memory { .. }) => {
            let stream = stream::Stream::open(path, transpose, options.memory)?;
            return stream.map(Unchecked::Streamed).ok_or(error);
        }
        read => read?,
    };
    check::size(path, &input.matrix)?;
    check::substance(path, &input.matrix, || Ok(input.matrix.clone()))?;
    Ok(Unchecked::Whole(if transpose { input.into_transpose() } else { input }))
}

fn read_unchecked<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    let budget = Budget { path, available: options.memory };
    if path.is_dir() {
        return images::read_folder(budget, options.images);
    }
    let mut source = Source::open(path)?;
    let kind = FileFormat::of(path)?;
    sniff::expect(kind, &mut source)?;
    let mut input = match kind {
        FileFormat::Npy => npy::read(source, budget),
        FileFormat::Npz => npz::read(path, budget),
        FileFormat::MatrixMarket => mtx::read(source, budget),
        FileFormat::Csv => table::read(source, budget, b',', options),
        FileFormat::Tsv => table::read(source, budget, b'\t', options),
        FileFormat::Bin => binary::read(source, budget),
        FileFormat::H5ad => h5ad::read(budget),
        FileFormat::Images => images::read_zip(budget, options.images),
    }?;
    if source::split_gz(path).1 {
        input.format.push_str(", gzip");
    }
    Ok(input)
}

/// The bytes of a file, decompressed if its name ends in `.gz`.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    Ok(source::open_reader(path)?.0)
}
