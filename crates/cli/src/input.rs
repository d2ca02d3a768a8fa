//! Reading a matrix as the arguments ask, and hashing its file.

use std::io::Read;
use std::path::Path;

use partwise::error::{Error, Result, human_bytes};
use partwise::io::{self, Input, ReadOptions};
use partwise::matrix::{Matrix, Values};
use partwise::{Precision, Real};
use sha2::{Digest, Sha256};

use crate::args::{LabelArgs, ReadArgs};
use crate::machine;

/// Reads a matrix; `--transpose` and the label files are applied.
pub fn read<T: Real>(path: &Path, args: &ReadArgs, labels: Option<&LabelArgs>) -> Result<Input<T>> {
    read_turned(path, args, args.transpose, labels)
}

/// Reads a matrix, turned if `transpose` says so.
pub fn read_turned<T: Real>(
    path: &Path,
    args: &ReadArgs,
    transpose: bool,
    labels: Option<&LabelArgs>,
) -> Result<Input<T>> {
    let options =
        ReadOptions { memory: machine::available_memory(), header: args.header, row_names: args.row_names };
    let mut input = io::read::<T>(path, &options)?;
    if let Some(file) = labels.and_then(|labels| labels.row_labels.as_ref()) {
        input.row_labels = Some(io::labels::read(file, input.matrix.rows())?);
    }
    if let Some(file) = labels.and_then(|labels| labels.col_labels.as_ref()) {
        input.col_labels = Some(io::labels::read(file, input.matrix.cols())?);
    }
    if transpose {
        std::mem::swap(&mut input.row_labels, &mut input.col_labels);
        input.matrix = input.matrix.into_transpose();
    }
    Ok(input)
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
    let largest = entries.iter().fold(0.0, |largest: f64, entry| largest.max(entry.to_f64()));
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
            cure: "lower --rank, use --precision f32, or take a machine with more memory",
        });
    }
    Ok(())
}

/// The SHA-256 of a file, as `sha256sum` prints it.
pub fn sha256(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(Error::io(path))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `12.3 MiB`, for the reader of a report.
pub fn size(bytes: u64) -> String {
    human_bytes(bytes)
}
