//! A matrix that stays in its file and is read again and again, block by block, because the memory cannot hold it.
//!
//! The file is a row of *lines*: rows in C order and compressed rows, columns otherwise. A block is some lines that
//! follow each other, in memory as a matrix of which they are the rows.

mod blocks;

use std::any::Any;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::Opened;
use super::memory::Budget;
use super::npy::Element;
use super::source::{Source, split_gz};
use super::{FileFormat, check, sniff};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Order, Summary, Tally};
use crate::real::{Precision, Real};
use crate::wording::Wording;

/// An array of numbers within a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrayAt {
    pub element: Element,
    /// Where it begins.
    pub offset: u64,
}

/// Where a file has what.
#[derive(Debug)]
pub(super) enum Body {
    /// All entries, line by line.
    Dense(ArrayAt),
    /// For each line the place of its first entry, and the end; for each entry its place in the line, and its value.
    Sparse { offsets: Vec<usize>, indices: ArrayAt, values: ArrayAt },
}

/// A file's matrix, as a format describes it.
#[derive(Debug)]
pub(super) struct Layout {
    pub rows: usize,
    pub cols: usize,
    /// Whether lines are rows or columns.
    pub order: Order,
    pub body: Body,
    pub format: String,
}

/// A matrix in its file.
#[derive(Debug)]
pub struct Stream {
    path: PathBuf,
    file: File,
    layout: Layout,
    transposed: bool,
    bytes_read: AtomicU64,
    /// Blocks of the last pass, for the memory of the next one's: each pass reads in a thread of its own, and what such
    /// threads free the allocator keeps for them.
    spare: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Stream {
    /// Opens a file whose matrix can be streamed; `None` if its format or compression does not allow it. What must
    /// be kept of a sparse one is compared with `memory`.
    pub fn open(path: &Path, transpose: bool, memory: u64) -> Result<Option<Stream>> {
        if path.is_dir() || split_gz(path).1 {
            return Ok(None);
        }
        let budget = Budget { path, available: memory };
        let mut source = Source::open(path)?;
        let format = FileFormat::of(path)?;
        sniff::expect(format, &mut source)?;
        let layout = format.layout(Opened { source, budget }).map_err(|error| match error {
            Error::Memory { what, needed, available, .. } => {
                let cure = Wording::new("raise ").field("memory");
                Error::Memory { what, needed, available, cure }
            }
            error => error,
        })?;
        let Some(layout) = layout else { return Ok(None) };
        check::shape(path, layout.rows, layout.cols)?;
        let file = File::open(path).map_err(Error::io(path))?;
        let (path, bytes_read) = (path.to_path_buf(), AtomicU64::new(0));
        let spare = Mutex::default();
        Ok(Some(Stream { path, file, layout, transposed: transpose, bytes_read, spare }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format in words.
    pub fn format(&self) -> &str {
        &self.layout.format
    }

    /// m, after transposing.
    pub fn rows(&self) -> usize {
        if self.transposed { self.layout.cols } else { self.layout.rows }
    }

    /// n, after transposing.
    pub fn cols(&self) -> usize {
        if self.transposed { self.layout.rows } else { self.layout.cols }
    }

    /// Whether lines are columns of M, after transposing.
    pub fn by_columns(&self) -> bool {
        (self.layout.order == Order::ColMajor) != self.transposed
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        if self.by_columns() { self.cols() } else { self.rows() }
    }

    /// Length of a line.
    pub fn line_length(&self) -> usize {
        if self.by_columns() { self.rows() } else { self.cols() }
    }

    /// Whether only nonzero entries are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self.layout.body, Body::Sparse { .. })
    }

    /// Whether entries stay bytes in memory.
    pub fn is_bytes(&self) -> bool {
        matches!(self.layout.body, Body::Dense(part) if part.element.is_byte())
    }

    /// Stored entries.
    pub fn stored(&self) -> usize {
        match &self.layout.body {
            Body::Dense(_) => self.lines() * self.line_length(),
            Body::Sparse { offsets, .. } => offsets.last().copied().unwrap_or(0),
        }
    }

    /// Bytes that are kept while the file is open.
    pub fn bytes_kept(&self) -> u64 {
        match &self.layout.body {
            Body::Dense(_) => 0,
            Body::Sparse { offsets, .. } => size_of_val(&offsets[..]) as u64,
        }
    }

    /// Bytes that lines take in memory, in precision `T`.
    pub fn bytes_of<T: Real>(&self, lines: Range<usize>) -> u64 {
        match &self.layout.body {
            Body::Dense(_) => {
                let width = if self.is_bytes() { 1 } else { T::PRECISION.bytes() };
                (lines.len() as u64).saturating_mul(self.line_length() as u64).saturating_mul(width)
            }
            Body::Sparse { offsets, .. } => {
                let stored = (offsets[lines.end] - offsets[lines.start]) as u64;
                lines.len() as u64 * 8 + stored * (4 + T::PRECISION.bytes())
            }
        }
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Refuses a block, whose first line is `first`, with an entry that no factorization can take.
    pub fn check<T: Real>(&self, first: usize, block: &Matrix<T>) -> Result<()> {
        let Some(mut bad) = check::bad_entry(block) else { return Ok(()) };
        let (line, place) = (first + bad.row, bad.column);
        // A value infinite in f32 may be finite in the file.
        let exact = if T::PRECISION == Precision::F32 && bad.value.is_infinite() {
            self.read(line..line + 1, None).ok().map(|wide| check::entry::<f64>(&wide, 0, place))
        } else {
            Some(bad.value)
        };
        // Positions are those in the file, as when it is read as a whole.
        (bad.row, bad.column) =
            if self.layout.order == Order::ColMajor { (place, line) } else { (line, place) };
        Err(check::entry_error(&self.path, &bad, exact))
    }

    /// Counts and range of the entries, whatever they are, of which so many bytes are in memory at a time, or one line.
    pub fn summary(&self, memory: u64) -> Result<Summary> {
        // Two blocks exist at a time.
        let room = memory / 3;
        let (mut blocks, mut begin) = (Vec::new(), 0);
        for end in 1..=self.lines() {
            if end == self.lines() || self.bytes_of::<f64>(begin..end + 1) > room {
                blocks.push(begin..end);
                begin = end;
            }
        }
        let mut tally = Tally::new(self.rows(), self.cols());
        self.pass::<f64>(&blocks, |lines, block| {
            block.for_each_stored(|line, place, value| {
                let line = lines.start + line;
                let (row, col) = if self.by_columns() { (place, line) } else { (line, place) };
                tally.add(row, col, value);
            });
            Ok(Some(block))
        })?;
        let summary = tally.finish();
        if summary.nonzeros == 0 {
            return Err(check::nothing(&self.path, false));
        }
        Ok(summary)
    }

    /// The error for a matrix of which a pass has found no nonzero.
    pub fn nothing<T: Real>(&self, blocks: &[Range<usize>]) -> Error {
        let beyond = T::PRECISION == Precision::F32
            && blocks.iter().any(|lines| {
                self.read::<f64>(lines.clone(), None).is_ok_and(|wide| check::has_nonzero(&wide))
            });
        check::nothing(&self.path, beyond)
    }
}
