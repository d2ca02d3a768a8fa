//! Parts of a matrix, for ranks of which none ever holds the whole: a rank reads the file once and keeps what lies
//! in its regions; of uncompressed files it reads little else.

use std::ops::Range;
use std::path::Path;

use super::format::Opened;
use super::memory::Budget;
use super::npy::Element;
use super::source::{Source, split_gz};
use super::triplets::{Triplets, index_below};
use super::{FileFormat, ReadOptions, check, sniff};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real, precompiled};

/// Rows and columns of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// From row to row.
    pub rows: Range<usize>,
    /// From column to column.
    pub cols: Range<usize>,
}

/// What was kept of a matrix.
#[derive(Clone, Debug)]
pub struct Parts<T> {
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Columns of the whole matrix.
    pub cols: usize,
    /// A matrix for each region.
    pub parts: Vec<Matrix<T>>,
    /// The file's format in words.
    pub format: String,
    /// The narrower of the two real types that holds every number of the file's type.
    pub precision: Precision,
}

/// Which regions to keep of a matrix of so many rows and columns.
pub type Choose<'a> = &'a dyn Fn(usize, usize) -> Result<Vec<Region>>;

precompiled! {
    /// Reads the regions of a matrix that `choose` selects. Each kept entry is checked as in [`super::read`];
    /// whether any entry is above 0 is checked by the caller, over all parts.
    pub fn read_parts<T>(path: &Path, options: &ReadOptions, choose: Choose<'_>) -> Result<Parts<T>> = read_regions;
}

fn read_regions<T: Real>(path: &Path, options: &ReadOptions, choose: Choose<'_>) -> Result<Parts<T>> {
    let budget = Budget { path, available: options.memory };
    let format = FileFormat::of(path)?;
    if !format.info().in_parts {
        return Err(not_in_parts(path));
    }
    let mut regions = Vec::new();
    let mut checked = |rows: usize, cols: usize| {
        check::shape(path, rows, cols)?;
        regions = choose(rows, cols)?;
        Ok(regions.clone())
    };
    let mut source = Source::open(path)?;
    sniff::expect(format, &mut source)?;
    let mut parts = format.read_parts(Opened { source, budget }, &mut checked)?;
    for (part, region) in parts.parts.iter().zip(&regions) {
        check::part(path, part, region)?;
    }
    if split_gz(path).1 {
        parts.format.push_str(", gzip");
    }
    Ok(parts)
}

/// The error for a format that is read as a whole or not at all.
pub(super) fn not_in_parts(path: &Path) -> Error {
    let problem = "this format cannot be read in parts; convert it to .npy (dense) or .npz (sparse) with `partwise convert` first";
    Error::format(path, "format", problem)
}

/// Checks the shape, and says what to keep.
pub(super) type Wanted<'a> = &'a mut dyn FnMut(usize, usize) -> Result<Vec<Region>>;

/// A dense matrix in a file.
#[derive(Clone, Copy)]
pub(super) struct DenseArray {
    pub rows: usize,
    pub cols: usize,
    pub order: Order,
    pub element: Element,
}

/// The regions of a dense matrix whose numbers come next.
pub(super) fn dense<T: Real>(
    source: &mut Source,
    budget: Budget,
    array: DenseArray,
    regions: &[Region],
) -> Result<Option<Vec<Matrix<T>>>> {
    let DenseArray { rows, cols, order, element } = array;
    let (majors, minors) = if order == Order::RowMajor { (rows, cols) } else { (cols, rows) };
    let width = element.width() as usize;
    let lines = |region: &Region| match order {
        Order::RowMajor => (region.rows.clone(), region.cols.clone()),
        Order::ColMajor => (region.cols.clone(), region.rows.clone()),
    };
    let mut kept = Vec::new();
    for region in regions {
        let count = region.rows.len() * region.cols.len();
        kept.push(if element.is_byte() {
            Values::Bytes(budget.vec("a rank's part", count)?.into())
        } else {
            Values::Real(budget.vec("a rank's part", count)?.into())
        });
    }
    let mut line = Vec::new();
    let mut pending = 0u64;
    for major in 0..majors {
        let wanted = || regions.iter().map(lines).filter(|(majors, _)| majors.contains(&major));
        let begin = wanted().map(|(_, minors)| minors.start).min().unwrap_or(minors);
        let end = wanted().map(|(_, minors)| minors.end).max().unwrap_or(minors);
        pending += (begin * width) as u64;
        if begin < end {
            source.skip(std::mem::take(&mut pending))?;
            line.resize((end - begin) * width, 0);
            if source.fill(&mut line)? < line.len() {
                return Ok(None);
            }
            for (values, region) in kept.iter_mut().zip(regions) {
                let (majors, minors) = lines(region);
                if majors.contains(&major) && !minors.is_empty() {
                    let bytes = &line[(minors.start - begin) * width..(minors.end - begin) * width];
                    match values {
                        Values::Bytes(all) => element.bytes(bytes, all.to_mut()),
                        Values::Real(all) => element.reals(bytes, all.to_mut()),
                    }
                }
            }
        }
        pending += ((minors - end.max(begin)) * width) as u64;
    }
    source.skip(pending)?;
    let matrix = |(values, region): (Values<T>, &Region)| {
        Matrix::Dense(Dense::new(region.rows.len(), region.cols.len(), order, values))
    };
    Ok(Some(kept.into_iter().zip(regions).map(matrix).collect()))
}

/// Entries of a sparse matrix as they come, those of the regions kept.
pub(super) struct Keep<'a, T> {
    budget: Budget<'a>,
    regions: Vec<Region>,
    kept: Vec<Triplets<T>>,
}

impl<'a, T: Real> Keep<'a, T> {
    pub fn new(budget: Budget<'a>, regions: Vec<Region>) -> Self {
        let kept = regions.iter().map(|_| Triplets { rows: vec![], cols: vec![], values: vec![] }).collect();
        Keep { budget, regions, kept }
    }

    pub fn push(&mut self, row: u32, col: u32, value: T) -> Result<()> {
        for (region, kept) in self.regions.iter().zip(&mut self.kept) {
            if region.rows.contains(&(row as usize)) && region.cols.contains(&(col as usize)) {
                if kept.values.len() == kept.values.capacity() {
                    // Doubling, and the memory for sorting.
                    let entry = 2 * (8 + T::PRECISION.bytes());
                    self.budget.check("a rank's part", 2 * entry * kept.values.len() as u64)?;
                }
                kept.push(row - region.rows.start as u32, col - region.cols.start as u32, value);
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Vec<Matrix<T>>> {
        let Keep { budget, regions, kept } = self;
        let matrix = |(triplets, region): (Triplets<T>, &Region)| {
            Ok(Matrix::Sparse(triplets.into_csr(budget, region.rows.len(), region.cols.len())?))
        };
        kept.into_iter().zip(&regions).map(matrix).collect()
    }
}

/// Numbers of a file, one after the other.
pub(super) struct Column<'a> {
    pub source: Source<'a>,
    pub element: Element,
}

impl Column<'_> {
    fn skip(&mut self, count: usize) -> Result<()> {
        self.source.skip(count as u64 * self.element.width())
    }

    fn bytes(&mut self, count: usize, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.resize(count * self.element.width() as usize, 0);
        if self.source.fill(buffer)? < buffer.len() {
            return Err(self.source.error("data", "the file is truncated; create or download it again"));
        }
        Ok(())
    }

    fn integers(&mut self, count: usize, buffer: &mut Vec<u8>, out: &mut Vec<i64>) -> Result<()> {
        self.bytes(count, buffer)?;
        out.clear();
        self.element.integers(buffer, out);
        Ok(())
    }

    fn reals<T: Real>(&mut self, count: usize, buffer: &mut Vec<u8>, out: &mut Vec<T>) -> Result<()> {
        self.bytes(count, buffer)?;
        out.clear();
        self.element.reals(buffer, out);
        Ok(())
    }

    /// Verifies a decompressor's checksum at the end of the data.
    fn end(&mut self) -> Result<()> {
        self.source.peek().map(|_| ())
    }
}

/// Entries read at a time.
const CHUNK: usize = 1 << 16;

/// Entries with a row and a column number each.
pub(super) fn coordinates<T: Real>(
    keep: &mut Keep<'_, T>,
    [mut rows, mut cols, mut values]: [Column<'_>; 3],
    stored: usize,
    shape: [u64; 2],
) -> Result<()> {
    let (mut buffer, mut of_rows, mut of_cols, mut of_values) = (vec![], vec![], vec![], vec![]);
    for begin in (0..stored).step_by(CHUNK) {
        let count = CHUNK.min(stored - begin);
        rows.integers(count, &mut buffer, &mut of_rows)?;
        cols.integers(count, &mut buffer, &mut of_cols)?;
        values.reals(count, &mut buffer, &mut of_values)?;
        for (place, ((&row, &col), &value)) in of_rows.iter().zip(&of_cols).zip(&of_values).enumerate() {
            let within = |index, size, source: &Source| {
                index_below(begin + place, index, size).map_err(|problem| source.error("data", problem))
            };
            keep.push(within(row, shape[0], &rows.source)?, within(col, shape[1], &cols.source)?, value)?;
        }
    }
    [&mut rows, &mut cols, &mut values].into_iter().try_for_each(Column::end)
}

/// Compressed rows or columns in a file.
pub(super) struct CompressedVectors<'a> {
    /// Rows if by row, else columns.
    pub order: Order,
    /// Where each vector begins, and the end.
    pub offsets: &'a [usize],
    /// Entries have numbers below this.
    pub minors: u64,
}

/// Entries of compressed vectors. Vectors that no region has are left out.
pub(super) fn compressed<T: Real>(
    keep: &mut Keep<'_, T>,
    vectors: CompressedVectors<'_>,
    [mut indices, mut values]: [Column<'_>; 2],
) -> Result<()> {
    let CompressedVectors { order, offsets, minors } = vectors;
    let (mut buffer, mut of_indices, mut of_values) = (vec![], vec![], vec![]);
    let lines: Vec<Range<usize>> = keep
        .regions
        .iter()
        .map(|region| if order == Order::RowMajor { region.rows.clone() } else { region.cols.clone() })
        .collect();
    let majors = offsets.len() - 1;
    let mut left_out = 0;
    for major in 0..majors {
        let (begin, end) = (offsets[major], offsets[major + 1]);
        if !lines.iter().any(|range| range.contains(&major)) {
            left_out += end - begin;
            continue;
        }
        indices.skip(left_out)?;
        values.skip(std::mem::take(&mut left_out))?;
        for first in (begin..end).step_by(CHUNK) {
            let count = CHUNK.min(end - first);
            indices.integers(count, &mut buffer, &mut of_indices)?;
            values.reals(count, &mut buffer, &mut of_values)?;
            for (place, (&index, &value)) in of_indices.iter().zip(&of_values).enumerate() {
                let minor = index_below(first + place, index, minors)
                    .map_err(|problem| indices.source.error("data", problem))?;
                match order {
                    Order::RowMajor => keep.push(major as u32, minor, value)?,
                    Order::ColMajor => keep.push(minor, major as u32, value)?,
                }
            }
        }
    }
    indices.skip(left_out)?;
    values.skip(left_out)?;
    [&mut indices, &mut values].into_iter().try_for_each(Column::end)
}
