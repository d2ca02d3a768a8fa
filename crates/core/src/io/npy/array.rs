//! An array in a file: its header, and its numbers as they come.

use super::header::{self, Header};
use super::{Element, sniff};
use crate::error::{Error, Result};
use crate::io::memory::Budget;
use crate::io::part::{self, Column, DenseArray, Region};
use crate::io::source::Source;
use crate::io::stream::ArrayAt;
use crate::matrix::{Matrix, Order};
use crate::real::Real;
use crate::wording::Wording;

/// NumPy's own headers stay below 64 KiB; versions 2 and 3 could claim 4 GiB.
const LONGEST_HEADER: u32 = 1 << 20;

/// An array whose header has been read and whose data come next.
pub(in crate::io) struct Array<'a> {
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
                "{looks} instead of a NumPy signature; save the array with numpy.save, or correct the name"
            );
            return Err(source.error("content", problem));
        }
        let short =
            |source: &Source| source.error("header", "the file is truncated; create or download it again");
        let mut length = [0u8; 4];
        let width = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                let problem =
                    format!("unknown format version {version}; save the array again with numpy.save");
                return Err(source.error("header", problem));
            }
        };
        if source.fill(&mut length[..width])? < width {
            return Err(short(&source));
        }
        let length = u32::from_le_bytes(length);
        if length > LONGEST_HEADER {
            let problem =
                format!("a header of {length} bytes is impossible; save the array again with numpy.save");
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
                _ => Err(self.error(format!("{rows} x {cols} is impossible; save the array again"))),
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
            ref shape => Err(self.error(format!("{} instead of 1; save it again", dimensions(shape)))),
        }
    }

    /// The order of the numbers.
    pub fn order(&self) -> Order {
        if self.header.fortran { Order::ColMajor } else { Order::RowMajor }
    }

    /// A matrix, once the file can hold its numbers.
    pub fn matrix(&self) -> Result<DenseArray> {
        let (rows, cols) = self.shape_2d()?;
        let element = self.element()?;
        self.count(element)?;
        Ok(DenseArray { rows, cols, order: self.order(), element })
    }

    /// Regions of a matrix, and nothing may follow it.
    pub fn regions<T: Real>(
        &mut self,
        budget: Budget,
        matrix: DenseArray,
        regions: &[Region],
    ) -> Result<Vec<Matrix<T>>> {
        let parts = part::dense(&mut self.source, budget, matrix, regions)?;
        let parts = parts.ok_or_else(|| self.truncated())?;
        self.end()?;
        Ok(parts)
    }

    /// The element type.
    pub fn element(&self) -> Result<Element> {
        Element::parse(&self.header.descr).map_err(|problem| self.error(problem))
    }

    /// The format in words.
    pub fn format(&self, element: Element) -> String {
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
    pub fn error(&self, problem: impl Into<Wording>) -> Error {
        self.source.error("header", problem)
    }

    /// An error within the data.
    pub fn data_error(&self, problem: impl Into<Wording>) -> Error {
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
        Err(self.error(format!("{} numbers instead of integers; save it again", element.name())))
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
    pub fn bytes(&mut self, element: Element, budget: Budget) -> Result<Vec<u8>> {
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

    /// The position of the data, in a file in which the array starts at `first`, and nothing follows them.
    pub fn part(&self, first: u64) -> Result<ArrayAt> {
        let element = self.element()?;
        let bytes = self.count(element)? as u64 * element.width();
        match self.source.at_most.checked_sub(self.begin + bytes) {
            None => Err(self.truncated()),
            Some(0) => Ok(ArrayAt { element, offset: first + self.begin }),
            Some(_) => Err(self.surplus()),
        }
    }

    /// Passes the data on piece by piece and makes sure that nothing follows them; `take` may refuse with a
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

    /// Nothing may follow; reading on also makes a decompressor verify its checksum.
    fn end(&mut self) -> Result<()> {
        if !self.source.peek()?.is_empty() {
            return Err(self.surplus());
        }
        Ok(())
    }

    fn surplus(&self) -> Error {
        let problem =
            format!("more bytes than the {} that the header announces; save the array again", self.size());
        self.data_error(problem)
    }

    fn truncated(&self) -> Error {
        let problem = format!(
            "fewer bytes than the {} that the header announces; create or download the file again",
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
