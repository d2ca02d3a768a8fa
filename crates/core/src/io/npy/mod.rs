//! NumPy's `.npy`: read and written in either order.
//!
//! The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

mod element;
mod header;

use std::io::{self, Write};
use std::path::Path;

use super::memory::Budget;
use super::part::{self, Column, Parts, Wanted};
use super::source::Source;
use super::stream::{ArrayAt, Body, Layout};
use super::write::{each_line, each_row, put};
use super::{FileFormat, Input, check, sniff};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};
pub(super) use element::Element;
use header::Header;

/// NumPy's own headers stay below 64 KiB; versions 2 and 3 could claim 4 GiB.
const LONGEST_HEADER: u32 = 1 << 20;

/// An array whose header has been read and whose data come next.
pub(super) struct Array<'a> {
    source: Source<'a>,
    header: Header,
    /// Bytes before the data.
    begin: u64,
}

impl<'a> Array<'a> {
    /// Reads the header.
    pub fn open(mut source: Source<'a>) -> Result<Self> {
        let mut start = [0u8; 8];
        let filled = source.fill(&mut start)?;
        if filled < 8 || !start.starts_with(b"\x93NUMPY") {
            let looks = sniff::looks_like(&start[..filled]);
            let problem = format!(
                "no NumPy signature but {looks}; save the array with numpy.save, or correct the name"
            );
            return Err(source.error("content", problem));
        }
        let short = |source: &Source| source.error("header", "the file ends here; make or fetch it again");
        let mut length = [0u8; 4];
        let width = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                let problem =
                    format!("format version {version} is unknown; save the array again with numpy.save");
                return Err(source.error("header", problem));
            }
        };
        if source.fill(&mut length[..width])? < width {
            return Err(short(&source));
        }
        let length = u32::from_le_bytes(length);
        if length > LONGEST_HEADER {
            let problem =
                format!("a header of {length} bytes is absurd; save the array again with numpy.save");
            return Err(source.error("header", problem));
        }
        let mut text = vec![0; length as usize];
        if source.fill(&mut text)? < text.len() {
            return Err(short(&source));
        }
        let header = header::parse(&text).map_err(|problem| source.error("header", problem))?;
        let begin = (start.len() + width + text.len()) as u64;
        Ok(Array { source, header, begin })
    }

    /// The size of each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    /// Rows and columns of a matrix.
    pub fn shape_2d(&self) -> Result<(usize, usize)> {
        match *self.shape() {
            [rows, cols] => match (usize::try_from(rows), usize::try_from(cols)) {
                (Ok(rows), Ok(cols)) => Ok((rows, cols)),
                _ => Err(self.error(format!("{rows} x {cols} is absurd; save the array again"))),
            },
            ref shape => Err(self.error(format!(
                "the array has {}, not 2; reshape it to a matrix of rows and columns",
                dimensions(shape)
            ))),
        }
    }

    /// The length of a vector.
    pub fn shape_1d(&self) -> Result<u64> {
        match *self.shape() {
            [length] => Ok(length),
            ref shape => Err(self.error(format!("{}, where 1 belongs; save it again", dimensions(shape)))),
        }
    }

    /// The element type.
    pub fn element(&self) -> Result<Element> {
        Element::parse(&self.header.descr).map_err(|problem| self.error(problem))
    }

    /// The format in words.
    fn format(&self, element: Element) -> String {
        let order = if self.header.fortran { "Fortran" } else { "C" };
        format!("NumPy array, {}, {order} order", element.name())
    }

    /// The numbers alone, to be read a few at a time.
    pub fn column(self) -> Result<Column<'a>> {
        let element = self.element()?;
        self.count(element)?;
        Ok(Column { element, source: self.source })
    }

    /// An error at the header.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        self.source.error("header", problem)
    }

    /// An error within the data.
    pub fn data_error(&self, problem: impl Into<String>) -> Error {
        self.source.error("data", problem)
    }

    /// All numbers, in storage order.
    pub fn reals<T: Real>(&mut self, budget: Budget) -> Result<Vec<T>> {
        let element = self.element()?;
        let mut reals = budget.vec("the array", self.count(element)?)?;
        self.each_chunk(element, |bytes| {
            element.reals(bytes, &mut reals);
            Ok(())
        })?;
        Ok(reals)
    }

    /// The element type, which must be one that can count.
    pub fn check_integers(&self) -> Result<Element> {
        let element = self.element()?;
        if element.is_integer() {
            return Ok(element);
        }
        Err(self.error(format!("{} numbers, where integers belong; save it again", element.name())))
    }

    /// All integers, in storage order, each passed through `convert`, which gets its place in the data too.
    pub fn integers<I>(
        &mut self,
        budget: Budget,
        mut convert: impl FnMut(usize, i64) -> std::result::Result<I, String>,
    ) -> Result<Vec<I>> {
        let element = self.check_integers()?;
        let mut integers = budget.vec("the array", self.count(element)?)?;
        let mut scratch = Vec::new();
        self.each_chunk(element, |bytes| {
            scratch.clear();
            element.integers(bytes, &mut scratch);
            for &integer in &scratch {
                integers.push(convert(integers.len(), integer)?);
            }
            Ok(())
        })?;
        Ok(integers)
    }

    /// A string without dimensions, as SciPy stores a format's name.
    pub fn text(&mut self) -> Result<String> {
        let (kind, length) = match self.header.descr.as_bytes() {
            [b'|', kind @ b'S', length @ ..] => (*kind, length),
            [b'<' | b'>' | b'=', kind @ b'U', length @ ..] => (*kind, length),
            _ => {
                return Err(
                    self.error("not a name but other data; save the matrix with scipy.sparse.save_npz")
                );
            }
        };
        let length = std::str::from_utf8(length).ok().and_then(|length| length.parse::<usize>().ok());
        let length = length.filter(|&length| length <= 64 && self.shape().is_empty());
        let length = length.ok_or_else(|| self.error("not a single short name; save the matrix again"))?;
        let mut bytes = vec![0u8; if kind == b'U' { 4 * length } else { length }];
        if self.source.fill(&mut bytes)? < bytes.len() {
            return Err(self.truncated());
        }
        self.end()?;
        // ASCII in UTF-32 of either byte order is its bytes among zeros.
        Ok(bytes.into_iter().filter(|&byte| byte != 0).map(char::from).collect())
    }

    /// Bytes as they are.
    fn bytes(&mut self, element: Element, budget: Budget) -> Result<Vec<u8>> {
        let mut all = budget.vec("the array", self.count(element)?)?;
        self.each_chunk(element, |bytes| {
            element.bytes(bytes, &mut all);
            Ok(())
        })?;
        Ok(all)
    }

    /// The number of elements, once the file can hold as many.
    fn count(&self, element: Element) -> Result<usize> {
        let count = self.shape().iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        let bytes = count.and_then(|count| count.checked_mul(element.width()));
        match (count.and_then(|count| usize::try_from(count).ok()), bytes) {
            (Some(count), Some(bytes)) if bytes <= self.source.at_most => Ok(count),
            _ => Err(self.truncated()),
        }
    }

    /// Where the data are, in a file in which the array begins at `first`, and nothing follows them.
    pub fn part(&self, first: u64) -> Result<ArrayAt> {
        let element = self.element()?;
        let bytes = self.count(element)? as u64 * element.width();
        match self.source.at_most.checked_sub(self.begin + bytes) {
            None => Err(self.truncated()),
            Some(0) => Ok(ArrayAt { element, offset: first + self.begin }),
            Some(_) => Err(self.surplus()),
        }
    }

    /// Hands the data over piece by piece and makes sure that nothing follows them; `take` may refuse with a
    /// sentence.
    fn each_chunk(
        &mut self,
        element: Element,
        take: impl FnMut(&[u8]) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let length = self.count(element)?.saturating_mul(element.width() as usize);
        if !self.source.chunks(length, take)? {
            return Err(self.truncated());
        }
        self.end()
    }

    /// Nothing may follow; asking also makes a decompressor verify its checksum.
    fn end(&mut self) -> Result<()> {
        if !self.source.peek()?.is_empty() {
            return Err(self.surplus());
        }
        Ok(())
    }

    fn surplus(&self) -> Error {
        let problem =
            format!("more bytes than the {} that the header promises; save the array again", self.size());
        self.data_error(problem)
    }

    fn truncated(&self) -> Error {
        let problem = format!(
            "fewer bytes than the {} that the header promises; make or fetch the file again",
            self.size()
        );
        self.data_error(problem)
    }

    fn size(&self) -> String {
        let sizes: Vec<_> = self.shape().iter().map(u64::to_string).collect();
        match (sizes.len(), Element::parse(&self.header.descr)) {
            (0, _) => "one value".to_string(),
            (_, Ok(element)) => format!("{} of {}", sizes.join(" x "), element.name()),
            (_, Err(_)) => sizes.join(" x "),
        }
    }
}

fn dimensions(shape: &[u64]) -> String {
    let sizes: Vec<_> = shape.iter().take(8).map(u64::to_string).collect();
    match shape.len() {
        0 => "no dimension".to_string(),
        1 => format!("1 dimension (of {})", sizes[0]),
        count => format!("{count} dimensions ({})", sizes.join(" x ")),
    }
}

/// Reads a matrix, in the order and for bytes in the width that the file has.
pub(super) fn read<T: Real>(source: Source, budget: Budget) -> Result<Input<T>> {
    let mut array = Array::open(source)?;
    let (rows, cols) = array.shape_2d()?;
    let element = array.element()?;
    let order = if array.header.fortran { Order::ColMajor } else { Order::RowMajor };
    array.count(element)?;
    let is_byte = element.is_byte();
    budget.check_dense(rows as u64, cols as u64, if is_byte { 1 } else { T::PRECISION.bytes() })?;
    let values = if is_byte {
        Values::Bytes(array.bytes(element, budget)?.into())
    } else {
        Values::Real(array.reals(budget)?.into())
    };
    let format = array.format(element);
    let matrix = Matrix::Dense(Dense::new(rows, cols, order, values));
    Ok(Input::unlabelled(matrix, format, element.precision()))
}

/// How a matrix is laid out in a file in which the array begins at `first`.
pub(super) fn layout(source: Source, first: u64) -> Result<Layout> {
    let array = Array::open(source)?;
    let (rows, cols) = array.shape_2d()?;
    let part = array.part(first)?;
    let order = if array.header.fortran { Order::ColMajor } else { Order::RowMajor };
    let format = array.format(part.element);
    Ok(Layout { rows, cols, order, body: Body::Dense(part), format })
}

/// Reads the wanted parts of a matrix.
pub(super) fn read_parts<T: Real>(source: Source, budget: Budget, wanted: Wanted<'_>) -> Result<Parts<T>> {
    let mut array = Array::open(source)?;
    let (rows, cols) = array.shape_2d()?;
    let element = array.element()?;
    array.count(element)?;
    let order = if array.header.fortran { Order::ColMajor } else { Order::RowMajor };
    let regions = wanted(rows, cols)?;
    let parts = part::dense(&mut array.source, budget, (element, order), (rows, cols), &regions)?;
    let parts = parts.ok_or_else(|| array.truncated())?;
    array.end()?;
    Ok(Parts { rows, cols, parts, format: array.format(element), precision: element.precision() })
}

/// Reads a factor: a matrix of finite nonnegative numbers, as rows, columns and the entries row by row.
pub fn read_array<T: Real>(path: &Path, memory: u64) -> Result<(usize, usize, Vec<T>)> {
    let budget = Budget { path, available: memory };
    let matrix = check::entries(path, read_factor::<T>(budget)?, || read_factor(budget))?;
    check::size(path, &matrix)?;
    let Matrix::Dense(dense) = matrix else { unreachable!("a NumPy array is dense") };
    let (rows, cols) = (dense.rows(), dense.cols());
    if let (Order::RowMajor, Values::Real(_)) = (dense.order(), dense.values()) {
        let Values::Real(reals) = dense.into_values() else { unreachable!("matched above") };
        return Ok((rows, cols, reals.into_vec()));
    }
    let mut reals = budget.vec("the array", rows * cols)?;
    reals.extend(
        (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))).map(|(row, col)| dense.get(row, col)),
    );
    Ok((rows, cols, reals))
}

fn read_factor<T: Real>(budget: Budget) -> Result<Matrix<T>> {
    let mut source = Source::open(budget.path)?;
    sniff::expect(FileFormat::Npy, &mut source)?;
    Ok(read(source, budget)?.matrix)
}

/// Writes a matrix, given row by row, as version 1.0 in C order.
pub fn write<T: Real>(mut writer: impl Write, rows: usize, cols: usize, values: &[T]) -> io::Result<()> {
    if rows.checked_mul(cols) != Some(values.len()) {
        let problem = format!("{} values for a matrix of {rows} x {cols}", values.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    write_header(&mut writer, descr(T::PRECISION), Order::RowMajor, &format!("({rows}, {cols})"))?;
    put(&mut writer, values, T::PRECISION)
}

/// Writes a matrix in its own order, a sparse one in C order with its zeros; bytes as such if `keep_bytes`.
pub(super) fn write_matrix<T: Real>(
    writer: &mut dyn Write,
    matrix: &Matrix<T>,
    precision: Precision,
    keep_bytes: bool,
) -> io::Result<()> {
    let shape = format!("({}, {})", matrix.rows(), matrix.cols());
    match matrix {
        Matrix::Dense(dense) => match dense.values() {
            Values::Bytes(bytes) if keep_bytes => {
                write_header(writer, "|u1", dense.order(), &shape)?;
                writer.write_all(bytes)
            }
            _ => {
                write_header(writer, descr(precision), dense.order(), &shape)?;
                each_line(dense, dense.order(), 0..dense.majors(), |line| put(writer, line, precision))
            }
        },
        Matrix::Sparse(csr) => {
            write_header(writer, descr(precision), Order::RowMajor, &shape)?;
            each_row(matrix, 0..csr.rows(), |row| put(writer, row, precision))
        }
    }
}

/// NumPy's name of a real type as [`put`] writes it.
pub(super) fn descr(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "<f4",
        Precision::F64 => "<f8",
    }
}

/// Writes what stands before the data, in version 1.0.
pub(super) fn write_header(writer: &mut dyn Write, descr: &str, order: Order, shape: &str) -> io::Result<()> {
    let fortran = if order == Order::ColMajor { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    // Signature, version and length take 10 bytes; the data begin at a multiple of 64, for memory maps.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
    header.push('\n');
    writer.write_all(b"\x93NUMPY\x01\x00")?;
    writer.write_all(&(length as u16).to_le_bytes())?;
    writer.write_all(header.as_bytes())
}
