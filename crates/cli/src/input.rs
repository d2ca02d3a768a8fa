//! Reading a matrix as the arguments ask, and hashing its file.

use std::io::Read;
use std::path::{Path, PathBuf};

use partwise::error::{Error, Result, human_bytes};
use partwise::io::{self, ImageSide, Input, ReadOptions};
use partwise::matrix::{Matrix, Values};
use partwise::{Precision, Real};
use sha2::{Digest, Sha256};

use crate::args::{LabelArgs, ReadArgs};
use crate::machine;

/// Reads a matrix; `--transpose` and the label files are applied.
pub fn read<T: Real>(path: &Path, args: &ReadArgs, labels: Option<&LabelArgs>) -> Result<Input<T>> {
    read_turned(path, args, (args.transpose, None), labels)
}

/// Reads a matrix for factors that are there: turned if `transpose` says so, images on the side that was recorded.
pub fn read_turned<T: Real>(
    path: &Path,
    args: &ReadArgs,
    (transpose, recorded): (bool, Option<ImageSide>),
    labels: Option<&LabelArgs>,
) -> Result<Input<T>> {
    read_within(path, args, (transpose, recorded), labels, machine::available_memory())
}

/// The same, within so much memory.
pub fn read_within<T: Real>(
    path: &Path,
    args: &ReadArgs,
    (transpose, recorded): (bool, Option<ImageSide>),
    labels: Option<&LabelArgs>,
    memory: u64,
) -> Result<Input<T>> {
    let options = ReadOptions {
        memory,
        header: args.header,
        row_names: args.row_names,
        images: args.images.or(recorded).unwrap_or_default(),
    };
    let mut input = io::read::<T>(path, &options)?;
    if let Some(labels) = labels {
        let [rows, cols] = label_files(labels, [input.matrix.rows(), input.matrix.cols()])?;
        input.row_labels = rows.or(input.row_labels);
        input.col_labels = cols.or(input.col_labels);
    }
    if transpose {
        input = input.into_transpose();
    }
    Ok(input)
}

/// The label files for a file's rows and columns.
pub fn label_files(labels: &LabelArgs, [rows, cols]: [usize; 2]) -> Result<[Option<Vec<String>>; 2]> {
    let read =
        |file: &Option<PathBuf>, count| file.as_ref().map(|file| io::labels::read(file, count)).transpose();
    Ok([read(&labels.row_labels, rows)?, read(&labels.col_labels, cols)?])
}

/// Refuses a matrix whose products would leave the range of the arithmetic, which no error shows: they become 0.
pub fn check_range<T: Real>(path: &Path, matrix: &Matrix<T>) -> Result<()> {
    let entries: &[T] = match matrix {
        Matrix::Dense(dense) => match dense.values() {
            Values::Bytes(_) => return Ok(()),
            Values::Real(reals) => reals,
        },
        Matrix::Sparse(csr) => csr.values(),
    };
    check_largest::<T>(path, entries.iter().fold(0.0, |largest: f64, entry| largest.max(entry.to_f64())))
}

/// The same, from the largest entry.
pub fn check_largest<T: Real>(path: &Path, largest: f64) -> Result<()> {
    // Products have up to twice the exponents of entries, times the number of terms.
    let (range, cure) = match T::PRECISION {
        Precision::F32 => (1e-15..=1e15, "use --precision f64, or rescale the matrix"),
        Precision::F64 => (1e-100..=1e100, "rescale the matrix"),
    };
    if range.contains(&largest) {
        return Ok(());
    }
    let problem = format!(
        "the largest is {largest:.2e}, where the arithmetic needs one from {:e} to {:e}; {cure}",
        range.start(),
        range.end()
    );
    Err(Error::format(path, "entries", problem))
}

/// Refuses work that does not fit the memory that is left, before it starts.
pub fn check_memory(what: &str, needed: u64) -> Result<()> {
    let available = machine::available_memory();
    if needed > available {
        return Err(Error::Memory {
            what: what.into(),
            needed,
            available,
            cure: "lower --rank, use --precision f32, give --memory, or take a machine with more memory",
        });
    }
    Ok(())
}

/// The SHA-256 of a file, as `sha256sum` prints it; of a folder of images, that of what `sha256sum` prints for
/// them there, in the order in which they are read.
pub fn sha256(path: &Path) -> Result<String> {
    if !path.is_dir() {
        return sha256_of_file(path);
    }
    let mut listing = Vec::new();
    for file in io::images::files(path)? {
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        listing.extend_from_slice(sha256_of_file(&file)?.as_bytes());
        listing.extend_from_slice(&[b"  ", name, b"\n"].concat());
    }
    Ok(hex(Sha256::digest(&listing).as_slice()))
}

/// The size of a file, or of the images of a folder together.
pub fn bytes(path: &Path) -> Option<u64> {
    let length = |path: &Path| Some(std::fs::metadata(path).ok()?.len());
    if !path.is_dir() {
        return length(path);
    }
    io::images::files(path).ok()?.iter().map(|file| length(file)).sum()
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256_of_file(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(Error::io(path))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hex(hash.finalize().as_slice()))
}

/// `12.3 MiB`, for the reader of a report.
pub fn size(bytes: u64) -> String {
    human_bytes(bytes)
}
