//! The binary format of the paper's own program, `.bin`, little endian. One byte, 0 or 1, says dense or sparse.
//! Dense: rows and columns as i32, then the entries row by row. Sparse: rows, columns and entries as i32, then for
//! each row and the end its offset, for each entry its column number, all i32, and the values. Whether numbers are
//! f32 or f64 follows from the length alone.

use std::io::{self, Write};
use std::path::Path;

use super::format::{Format, FormatInfo, Opened, Writes};
use super::memory::Budget;
use super::npy::Element;
use super::part::{self, Column, CompressedVectors, DenseArray, Keep, Parts, Wanted};
use super::source::{Source, split_gz};
use super::stream::{ArrayAt, Body, Layout};
use super::triplets::{Offsets, canonical, index_below};
use super::write::{each_row, put};
use super::{Input, ReadOptions, WriteOptions};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};

/// The format of the paper's program.
pub(super) struct Bin;

impl Format for Bin {
    const INFO: FormatInfo = FormatInfo {
        name: "a DSANLS binary",
        endings: &["bin"],
        signature: None,
        in_parts: true,
        writes: Writes::Sparse,
    };

    fn read<T: Real>(file: Opened<'_>, _options: &ReadOptions) -> Result<Input<T>> {
        read(file.source, file.budget)
    }

    fn read_parts<T: Real>(file: Opened<'_>, wanted: Wanted<'_>) -> Result<Parts<T>> {
        read_parts(file.source, file.budget, wanted)
    }

    fn layout(file: Opened<'_>) -> Result<Option<Layout>> {
        layout(file.source, file.budget).map(Some)
    }

    fn check_write<T: Real>(path: &Path, matrix: &Matrix<T>) -> Result<()> {
        let (rows, cols, stored) = (matrix.rows(), matrix.cols(), matrix.stored());
        let entries = if matches!(matrix, Matrix::Sparse(_)) { stored } else { 0 };
        if rows.max(cols).max(entries) as u64 <= LARGEST {
            return Ok(());
        }
        let problem = format!(
            "{rows} x {cols} with {stored} entries exceeds the 32-bit sizes of this format; choose .npz or .mtx"
        );
        Err(Error::format(path, "name", problem))
    }

    fn write<T: Real>(writer: &mut dyn Write, input: &Input<T>, options: WriteOptions) -> io::Result<()> {
        write(writer, &input.matrix, options.precision_of(input))
    }
}

/// The largest size or number of entries that the format can say.
const LARGEST: u64 = i32::MAX as u64;

/// What stands before the numbers.
struct BinHeader {
    sparse: bool,
    rows: u64,
    cols: u64,
    stored: u64,
    element: Element,
    precision: Precision,
}

impl BinHeader {
    fn read(source: &mut Source, budget: Budget) -> Result<Self> {
        let mut first = [0u8];
        source.fill(&mut first)?;
        let sparse = match first[0] {
            0 => false,
            1 => true,
            byte => {
                let problem = format!(
                    "the first byte is {byte} instead of 0 (dense) or 1 (sparse); correct the file or its name"
                );
                return Err(source.error("header", problem));
            }
        };
        let [rows, cols] = [size(source, "rows")?, size(source, "columns")?];
        let stored = if sparse { size(source, "entries")? } else { rows * cols };
        let before = if sparse { 13 + 4 * (rows + 1) + 4 * stored } else { 9 };
        let precision = precision(source, budget, before, stored)?;
        let descr = match precision {
            Precision::F32 => "<f4",
            Precision::F64 => "<f8",
        };
        let element = Element::parse(descr).map_err(|problem| source.error("header", problem))?;
        Ok(BinHeader { sparse, rows, cols, stored, element, precision })
    }

    /// The format in words.
    fn format(&self) -> String {
        let layout = if self.sparse { "sparse" } else { "dense" };
        format!("DSANLS binary, {layout}, {}", self.element.name())
    }
}

/// Reads a matrix.
fn read<T: Real>(mut source: Source, budget: Budget) -> Result<Input<T>> {
    let header = BinHeader::read(&mut source, budget)?;
    let BinHeader { sparse, rows, cols, stored, element, precision } = header;
    let matrix = if sparse {
        budget.check_sparse::<T>(rows, cols, stored, 0)?;
        Matrix::Sparse(compressed(
            &mut source,
            budget,
            [rows as usize, cols as usize, stored as usize],
            element,
        )?)
    } else {
        budget.check_dense(rows, cols, T::PRECISION.bytes())?;
        let values = reals(&mut source, budget, stored as usize, element)?;
        Matrix::Dense(Dense::new(rows as usize, cols as usize, Order::RowMajor, Values::Real(values.into())))
    };
    // Asking for more makes a decompressor verify its checksum.
    source.peek()?;
    Ok(Input::unlabelled(matrix, header.format(), precision))
}

/// How a matrix is laid out in a file that is not compressed.
fn layout(mut source: Source, budget: Budget) -> Result<Layout> {
    let header = BinHeader::read(&mut source, budget)?;
    let (rows, cols, stored) = (header.rows as usize, header.cols as usize, header.stored as usize);
    let body = if header.sparse {
        let indices = 13 + 4 * (header.rows + 1);
        Body::Sparse {
            offsets: offsets(&mut source, budget, rows, stored)?,
            indices: ArrayAt { element: Element::I32, offset: indices },
            values: ArrayAt { element: header.element, offset: indices + 4 * header.stored },
        }
    } else {
        Body::Dense(ArrayAt { element: header.element, offset: 9 })
    };
    Ok(Layout { rows, cols, order: Order::RowMajor, body, format: header.format() })
}

/// Reads the wanted parts of a matrix; column numbers and values side by side, through a file opened for each.
fn read_parts<T: Real>(mut source: Source, budget: Budget, wanted: Wanted<'_>) -> Result<Parts<T>> {
    let header = BinHeader::read(&mut source, budget)?;
    let (rows, cols, stored) = (header.rows as usize, header.cols as usize, header.stored as usize);
    let regions = wanted(rows, cols)?;
    let parts = if header.sparse {
        budget.check_sparse::<T>(header.rows, header.cols, 0, 0)?;
        let offsets = offsets(&mut source, budget, rows, stored)?;
        let mut values = Source::open(budget.path)?;
        values.skip(13 + 4 * (header.rows + 1) + 4 * header.stored)?;
        let values = Column { source: values, element: header.element };
        let integer = Element::parse("<i4").map_err(|problem| source.error("header", problem))?;
        let indices = Column { source, element: integer };
        let mut keep = Keep::new(budget, regions);
        let vectors = CompressedVectors { order: Order::RowMajor, offsets: &offsets, minors: header.cols };
        part::compressed(&mut keep, vectors, [indices, values])?;
        keep.finish()?
    } else {
        let array = DenseArray { rows, cols, order: Order::RowMajor, element: header.element };
        let parts = part::dense(&mut source, budget, array, &regions)?;
        source.peek()?;
        parts.ok_or_else(|| cut_off(&source))?
    };
    Ok(Parts { rows, cols, parts, format: header.format(), precision: header.precision })
}

/// A size, of 31 bits: products of two of them fit 64.
fn size(source: &mut Source, what: &str) -> Result<u64> {
    let mut bytes = [0u8; 4];
    if source.fill(&mut bytes)? < 4 {
        return Err(source.error("header", "the file is truncated; create or download it again"));
    }
    let size = i32::from_le_bytes(bytes);
    u64::try_from(size).map_err(|_| {
        source.error("header", format!("{size} {what} are impossible; create or download the file again"))
    })
}

/// The type of the values, from the number of bytes that the file has.
fn precision(source: &mut Source, budget: Budget, before: u64, stored: u64) -> Result<Precision> {
    let expected = [4u64, 8].map(|width| stored.saturating_mul(width).saturating_add(before));
    let length =
        if split_gz(budget.path).1 { count(budget, expected[1].saturating_add(1))? } else { source.at_most };
    if length == expected[0] {
        return Ok(Precision::F32);
    }
    if length == expected[1] {
        return Ok(Precision::F64);
    }
    let more = if length > expected[1] && length < source.at_most { "more than " } else { "" };
    let problem = format!(
        "{more}{length} bytes, but the sizes require {} with float32 or {} with float64; create or download the file \
         again",
        expected[0], expected[1]
    );
    Err(source.error("length", problem))
}

/// The number of bytes in a compressed file, counted no further than `limit`.
fn count(budget: Budget, limit: u64) -> Result<u64> {
    let mut source = Source::open(budget.path)?;
    let mut buffer = vec![0u8; 1 << 16];
    let mut length = 0;
    while length < limit {
        match source.fill(&mut buffer)? {
            0 => break,
            filled => length += filled as u64,
        }
    }
    Ok(length.min(limit))
}

fn reals<T: Real>(source: &mut Source, budget: Budget, count: usize, element: Element) -> Result<Vec<T>> {
    let mut reals = budget.vec("the values", count)?;
    source.chunks(count.saturating_mul(element.width() as usize), |bytes| {
        element.reals(bytes, &mut reals);
        Ok(())
    })?;
    whole(source, reals, count)
}

fn integers<I>(
    source: &mut Source,
    budget: Budget,
    count: usize,
    mut convert: impl FnMut(usize, i64) -> std::result::Result<I, String>,
) -> Result<Vec<I>> {
    let mut integers = budget.vec("the offsets and column numbers", count)?;
    source.chunks(count.saturating_mul(4), |bytes| {
        for &item in bytes.as_chunks().0 {
            integers.push(convert(integers.len(), i32::from_le_bytes(item).into())?);
        }
        Ok(())
    })?;
    whole(source, integers, count)
}

/// The file may have become shorter since its length was taken.
fn whole<I>(source: &Source, items: Vec<I>, count: usize) -> Result<Vec<I>> {
    if items.len() == count {
        return Ok(items);
    }
    Err(cut_off(source))
}

fn cut_off(source: &Source) -> Error {
    source.error("data", "the file is truncated; create or download it again")
}

/// Where each row begins, and the end.
fn offsets(source: &mut Source, budget: Budget, rows: usize, stored: usize) -> Result<Vec<usize>> {
    let mut rising = Offsets::to(stored);
    let offsets = integers(source, budget, rows + 1, |_, offset| rising.next(offset))?;
    if offsets[rows] == stored {
        return Ok(offsets);
    }
    let problem =
        format!("the last offset is {}, but there are {stored} entries; write the file again", offsets[rows]);
    Err(source.error("data", problem))
}

fn compressed<T: Real>(
    source: &mut Source,
    budget: Budget,
    [rows, cols, stored]: [usize; 3],
    element: Element,
) -> Result<Csr<T>> {
    let offsets = offsets(source, budget, rows, stored)?;
    let indices = integers(source, budget, stored, |place, index| index_below(place, index, cols as u64))?;
    let values = reals(source, budget, stored, element)?;
    canonical(budget, rows, cols, offsets, indices, values)
}

/// Writes a matrix, whose sizes and entries are at most [`LARGEST`].
fn write<T: Real>(writer: &mut dyn Write, matrix: &Matrix<T>, precision: Precision) -> io::Result<()> {
    let sizes = [matrix.rows(), matrix.cols()];
    match matrix {
        Matrix::Dense(_) => {
            writer.write_all(&[0])?;
            integers_out(writer, sizes)?;
            each_row(matrix, 0..matrix.rows(), |row| put(writer, row, precision))
        }
        Matrix::Sparse(csr) => {
            writer.write_all(&[1])?;
            integers_out(writer, sizes.into_iter().chain([csr.stored()]))?;
            integers_out(writer, csr.offsets().iter().copied())?;
            integers_out(writer, csr.indices().iter().map(|&index| index as usize))?;
            put(writer, csr.values(), precision)
        }
    }
}

fn integers_out(writer: &mut dyn Write, integers: impl IntoIterator<Item = usize>) -> io::Result<()> {
    for integer in integers {
        let integer = i32::try_from(integer)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a size beyond 31 bits"))?;
        writer.write_all(&integer.to_le_bytes())?;
    }
    Ok(())
}
