//! Reading and writing matrices. A format is one file and one line in [`FileFormat`]'s list.
//!
//! Files are untrusted: whatever its bytes, a reader returns a matrix or an error, never panics, and allocates
//! nothing large before the sizes that the file claims are compared with its length and the memory.
//!
//! Formats that need additional crates are Cargo features: `io` for `.npz`, text tables and gzip, `images`
//! for JPEG and PNG, and `h5ad` for AnnData. If a build cannot read a file, the error names the feature.

// Helpers of readers that are disabled would be unused.
#![cfg_attr(not(all(feature = "images", feature = "h5ad")), allow(dead_code, unused_imports))]

use std::io::{self, BufRead};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::real::{Precision, Real, precompiled};
use format::{Format, FormatInfo, Opened, formats};
use memory::Budget;
use part::Wanted;
use source::Source;

pub use assumption::Assumption;
pub use part::{Choose, Parts, Region, read_parts};
pub use picture::{ImageShape, ImageSide};
pub use write::{WriteOptions, check_write, write};

mod assumption;
mod binary;
mod check;
mod format;
#[cfg(feature = "h5ad")]
mod h5ad;
#[cfg(feature = "images")]
pub mod images;
pub mod labels;
#[cfg(feature = "h5ad")]
mod lzf;
mod memory;
mod mtx;
pub mod npy;
#[cfg(feature = "io")]
mod npz;
mod part;
mod picture;
mod sniff;
mod source;
pub mod stream;
#[cfg(feature = "io")]
mod table;
mod triplets;
#[cfg(feature = "io")]
pub mod tsv;
mod write;

#[cfg(all(test, feature = "images", feature = "h5ad"))]
mod tests;

#[cfg(all(test, not(feature = "io")))]
mod left_out_tests {
    use super::*;

    #[test]
    fn unsupported_files_are_refused_with_the_missing_feature() {
        let folder = tempfile::tempdir().unwrap();
        let options = ReadOptions { memory: 1 << 20, ..ReadOptions::default() };
        for (name, bytes, feature) in [
            ("M.npz", &b"PK\x03\x04"[..], "io"),
            ("M.csv", b"1,2\n", "io"),
            ("M.mtx.gz", b"\x1f\x8b", "io"),
            ("M.h5ad", b"\x89HDF\r\n", "h5ad"),
            ("M.zip", b"PK\x03\x04", "images"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let message = read::<f64>(&path, &options).unwrap_err().to_string();
            assert!(message.contains(&format!("feature `{feature}`")), "{message}");
        }
        let message = read::<f64>(folder.path(), &options).unwrap_err().to_string();
        assert!(message.contains("feature `images`"), "{message}");
    }
}

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
    /// The image size of a column or row, if the input consists of images.
    pub image: Option<ImageShape>,
    /// The assumptions made for an ambiguous text table.
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
    /// Present.
    Yes,
    /// Absent.
    No,
}

impl Presence {
    /// All three.
    pub const ALL: [Presence; 3] = [Presence::Auto, Presence::Yes, Presence::No];
}

/// How to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// The memory limit in bytes for the matrix, including what reading it needs; checked before anything of that
    /// size is allocated.
    pub memory: u64,
    /// Whether a text table begins with column names.
    pub header: Presence,
    /// Whether the first column of a text table holds row names.
    pub row_names: Presence,
    /// Whether images become columns or rows.
    pub images: ImageSide,
    /// Whether entries that are not a number are missing values, which the matrix then has as NaN. In a text
    /// table, `NA` and empty cells are missing values too.
    pub missing_as_nan: bool,
}

// The registry: one line a format.
formats! {
    /// NumPy array, `.npy`.
    Npy in npy;
    /// SciPy sparse matrix, or a single NumPy array, `.npz`.
    #[cfg(feature = "io")] Npz in npz;
    /// Matrix Market, `.mtx`.
    MatrixMarket in mtx;
    /// Comma-separated table, `.csv`.
    #[cfg(feature = "io")] Csv in table;
    /// Tab-separated table, `.tsv`.
    #[cfg(feature = "io")] Tsv in table;
    /// The binary format of the paper's own program, `.bin`.
    Bin in binary;
    /// AnnData in HDF5, `.h5ad`.
    #[cfg(feature = "h5ad")] H5ad in h5ad;
    /// JPEG and PNG images, a folder or `.zip`.
    #[cfg(feature = "images")] Images in images;
}

impl FileFormat {
    /// The format that a file's name promises, `.gz` aside. A folder, whatever its name, is one of images.
    pub fn of(path: &Path) -> Result<FileFormat> {
        #[cfg(feature = "images")]
        if path.is_dir() {
            return Ok(FileFormat::Images);
        }
        let (stem, compressed) = source::split_gz(path);
        let ending = stem.rsplit_once('.').map_or("", |(_, ending)| ending);
        let format = FileFormat::ALL.into_iter().find(|format| format.info().endings.contains(&ending));
        if let Some((what, feature)) = left_out(path.is_dir(), ending, compressed) {
            let problem = format!("this build does not read {what}; build it with the feature `{feature}`");
            return Err(Error::format(path, "name", problem));
        }
        format.ok_or_else(|| {
            let files = endings(|format| format.info().endings != ["zip"]);
            let problem = format!(
                "unknown file type; Partwise reads {files}, each also with .gz, and images in a folder or .zip"
            );
            Error::format(path, "name", problem)
        })
    }
}

/// The file types that a build cannot read, each with its feature.
fn left_out(folder: bool, ending: &str, compressed: bool) -> Option<(&'static str, &'static str)> {
    let (what, feature, there) = match ending {
        _ if folder => ("images", "images", cfg!(feature = "images")),
        "zip" => ("images", "images", cfg!(feature = "images")),
        "h5ad" => ("AnnData", "h5ad", cfg!(feature = "h5ad")),
        "npz" => (".npz", "io", cfg!(feature = "io")),
        "csv" | "tsv" => ("text tables", "io", cfg!(feature = "io")),
        _ if compressed => ("gzip", "io", cfg!(feature = "io")),
        _ => return None,
    };
    (!there).then_some((what, feature))
}

/// The endings of some formats, as a list in words.
fn endings(chosen: impl Fn(FileFormat) -> bool) -> String {
    let formats = FileFormat::ALL.into_iter().filter(|&format| chosen(format));
    let endings: Vec<String> =
        formats.flat_map(|format| format.info().endings).map(|ending| format!(".{ending}")).collect();
    match endings.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

precompiled! {
    /// Reads a matrix; format and compression follow from the file's name.
    pub fn read<T>(path: &Path, options: &ReadOptions) -> Result<Input<T>> = read_checked;
}

fn read_checked<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    let mut input = read_unchecked::<T>(path, options)?;
    if options.missing_as_nan {
        check::size(path, &input.matrix)?;
        check::known_entries(path, &input.matrix)?;
        return Ok(input);
    }
    let reread = || Ok(read_unchecked::<f64>(path, options)?.matrix);
    input.matrix = check::entries(path, input.matrix, reread)?;
    check::size(path, &input.matrix)?;
    check::substance(path, &input.matrix, reread)?;
    Ok(input)
}

/// A matrix that may have entries that no factorization takes: negative, infinite or NaN.
#[allow(clippy::large_enum_variant)]
pub enum Unchecked {
    /// A matrix in memory.
    Whole(Input<f64>),
    /// A matrix that stays in its file, because it exceeds the memory.
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

/// Reads a matrix without restrictions on its entries.
pub fn read_unchecked<T: Real>(path: &Path, options: &ReadOptions) -> Result<Input<T>> {
    let budget = Budget { path, available: options.memory };
    #[cfg(feature = "images")]
    if path.is_dir() {
        return images::read_folder(budget, options.images);
    }
    #[cfg(not(feature = "images"))]
    if path.is_dir() {
        FileFormat::of(path)?;
    }
    let mut source = Source::open(path)?;
    let format = FileFormat::of(path)?;
    sniff::expect(format, &mut source)?;
    let mut input = format.read(Opened { source, budget }, options)?;
    if source::split_gz(path).1 {
        input.format.push_str(", gzip");
    }
    Ok(input)
}

/// The bytes of a file, decompressed if its name ends in `.gz`.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    Ok(source::open_reader(path)?.0)
}
