//! Writes a matrix in the format of a file name.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

#[cfg(feature = "io")]
use flate2::{Compression, write::GzEncoder};

use super::format::Writes;
use super::memory::Budget;
use super::source::split_gz;
use super::{FileFormat, Input, endings};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};
use crate::wording::Wording;

impl FileFormat {
    /// The format in which a file of this name is written.
    pub fn to_write(path: &Path) -> Result<FileFormat> {
        let writes = |format: FileFormat| format.info().writes != Writes::Nothing;
        match FileFormat::of(path) {
            Ok(format) if writes(format) => Ok(format),
            _ => {
                let problem =
                    format!("Partwise writes {}, each also with .gz; choose one of them", endings(writes));
                Err(Error::format(path, "name", problem))
            }
        }
    }
}

/// Checks that a matrix can be written under this name, and returns notes on what will be lost or unexpected.
pub fn check_write<T: Real>(path: &Path, input: &Input<T>, memory: u64) -> Result<Vec<Wording>> {
    let format = FileFormat::to_write(path)?;
    let (rows, cols) = (input.matrix.rows(), input.matrix.cols());
    let budget = Budget { path, available: memory };
    if format.info().writes == Writes::Dense && matches!(input.matrix, Matrix::Sparse(_)) {
        // It could be written row by row, but not read again here.
        budget.check_dense(rows as u64, cols as u64, input.precision.bytes())?;
    }
    format.check_write(path, &input.matrix)?;
    Ok(format.write_note(input).into_iter().collect())
}

/// How to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The type of the numbers in binary formats; by default the file's own: bytes stay bytes if the format
    /// supports them, and f32 stays f32.
    pub precision: Option<Precision>,
    /// Whether an `.npz` stores its arrays uncompressed, so that they can be streamed.
    pub uncompressed: bool,
}

impl WriteOptions {
    /// The type of the numbers of a matrix in a binary format.
    pub(super) fn precision_of<T>(&self, input: &Input<T>) -> Precision {
        self.precision.unwrap_or(input.precision)
    }
}

/// Writes a matrix in the format and compression of `path`. Text has as many digits as needed to read the same `T`
/// back.
pub fn write<T: Real>(
    writer: impl Write,
    path: &Path,
    input: &Input<T>,
    options: WriteOptions,
) -> io::Result<()> {
    let format = FileFormat::to_write(path).map_err(io::Error::other)?;
    #[cfg(feature = "io")]
    if split_gz(path).1 {
        let mut encoder = GzEncoder::new(writer, Compression::default());
        format.write(&mut encoder, input, options)?;
        return encoder.finish()?.flush();
    }
    let mut writer = writer;
    format.write(&mut writer, input, options)
}

/// Passes on the given rows, with their zeros, one by one.
pub(super) fn each_row<T: Real>(
    matrix: &Matrix<T>,
    rows: Range<usize>,
    mut take: impl FnMut(&[T]) -> io::Result<()>,
) -> io::Result<()> {
    match matrix {
        Matrix::Dense(dense) => each_line(dense, Order::RowMajor, rows, take),
        Matrix::Sparse(csr) => {
            let mut line = vec![T::ZERO; csr.cols()];
            for row in rows {
                let (cols, values) = csr.row(row);
                cols.iter().zip(values).for_each(|(&col, &value)| line[col as usize] = value);
                take(&line)?;
                cols.iter().for_each(|&col| line[col as usize] = T::ZERO);
            }
            Ok(())
        }
    }
}

/// Passes on the given rows in row-major order, or columns in column-major order, whatever the matrix's own order.
pub(super) fn each_line<T: Real>(
    dense: &Dense<T>,
    order: Order,
    lines: Range<usize>,
    mut take: impl FnMut(&[T]) -> io::Result<()>,
) -> io::Result<()> {
    let length = dense.minors();
    if dense.order() == order {
        let mut line = Vec::new();
        for major in lines {
            let range = major * length..(major + 1) * length;
            match dense.values() {
                Values::Real(reals) => take(&reals[range])?,
                Values::Bytes(bytes) => {
                    line.clear();
                    line.extend(bytes[range].iter().map(|&byte| T::from_f64(byte.into())));
                    take(&line)?;
                }
            }
        }
        return Ok(());
    }
    // Several lines at a time, so that each fetched cache line serves all of them.
    const BLOCK: usize = 64;
    let majors = dense.majors();
    let mut block = vec![T::ZERO; majors * BLOCK.min(lines.len())];
    for begin in lines.clone().step_by(BLOCK) {
        let wanted = begin..lines.end.min(begin + BLOCK);
        for major in 0..majors {
            for (place, minor) in wanted.clone().enumerate() {
                block[place * majors + major] = dense.values().get(major * length + minor);
            }
        }
        block.chunks_exact(majors).take(wanted.len()).try_for_each(&mut take)?;
    }
    Ok(())
}

/// Writes numbers, little endian.
pub(super) fn put<T: Real>(writer: &mut dyn Write, reals: &[T], precision: Precision) -> io::Result<()> {
    let mut bytes = Vec::new();
    for chunk in reals.chunks(1 << 13) {
        bytes.clear();
        match precision {
            Precision::F32 => {
                bytes.extend(chunk.iter().flat_map(|value| (value.to_f64() as f32).to_le_bytes()));
            }
            Precision::F64 => bytes.extend(chunk.iter().flat_map(|value| value.to_f64().to_le_bytes())),
        }
        writer.write_all(&bytes)?;
    }
    Ok(())
}

/// Display never uses an exponent and would spell out hundreds of zeros.
pub(super) fn write_shortest<T: Real>(number: &mut Vec<u8>, value: T) -> io::Result<()> {
    let wide = value.to_f64();
    if wide == 0.0 || (1e-5..1e16).contains(&wide.abs()) {
        return write!(number, "{value}");
    }
    match T::PRECISION {
        Precision::F32 => write!(number, "{:e}", wide as f32),
        Precision::F64 => write!(number, "{wide:e}"),
    }
}
