//! Compressed sparse rows: sorted, without duplicates, 64-bit offsets, 32-bit column numbers.

use std::ops::Range;
use std::sync::Arc;

use super::Buffer;
use crate::Real;
use crate::cancel::Cancel;

/// The number of entries that a transposition moves between two checks for cancellation.
const PIECE: usize = 1 << 16;

/// A sparse matrix by rows. Within a row the columns ascend without duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    rows: usize,
    cols: usize,
    offsets: Vec<usize>,
    indices: Buffer<u32>,
    values: Buffer<T>,
    /// The transpose, if this matrix was made from it.
    origin: Option<Arc<Csr<T>>>,
}

impl<T: Real> Csr<T> {
    /// The largest number of columns (and, since it is transposed, of rows) that a sparse matrix may have.
    pub const MAX_DIMENSION: usize = u32::MAX as usize;

    /// A matrix from canonical parts.
    ///
    /// # Panics
    /// If the lengths disagree. That columns ascend and stay below `cols` is the caller's promise,
    /// checked in debug builds.
    pub fn new(
        rows: usize,
        cols: usize,
        offsets: Vec<usize>,
        indices: impl Into<Buffer<u32>>,
        values: impl Into<Buffer<T>>,
    ) -> Self {
        let (indices, values) = (indices.into(), values.into());
        assert_eq!(offsets.len(), rows + 1, "one offset a row and the end");
        assert_eq!(offsets[rows], indices.len(), "the last offset is the number of entries");
        assert_eq!(values.len(), indices.len(), "one column number an entry");
        assert!(cols <= Self::MAX_DIMENSION && rows <= Self::MAX_DIMENSION, "sizes fit 32 bits");
        debug_assert!((0..rows).all(|row| {
            let columns = &indices[offsets[row]..offsets[row + 1]];
            columns.windows(2).all(|pair| pair[0] < pair[1])
                && columns.last().is_none_or(|&last| (last as usize) < cols)
        }));
        Csr { rows, cols, offsets, indices, values, origin: None }
    }

    /// Builds a matrix from untrusted parts; `None` if they are not in canonical form.
    pub fn checked(
        rows: usize,
        cols: usize,
        offsets: Vec<usize>,
        indices: impl Into<Buffer<u32>>,
        values: impl Into<Buffer<T>>,
    ) -> Option<Self> {
        let (indices, values) = (indices.into(), values.into());
        let ends = (offsets.first(), offsets.last()) == (Some(&0), Some(&indices.len()));
        let sizes = offsets.len().checked_sub(1) == Some(rows) && values.len() == indices.len();
        let range = rows.max(cols) <= Self::MAX_DIMENSION;
        let row_is_fine = |pair: &[usize]| {
            indices.get(pair[0]..pair[1]).is_some_and(|row| {
                let ascend = row.windows(2).all(|pair| pair[0] < pair[1]);
                ascend && row.last().is_none_or(|&last| (last as usize) < cols)
            })
        };
        let fine = ends && sizes && range && offsets.windows(2).all(row_is_fine);
        fine.then(|| Csr { rows, cols, offsets, indices, values, origin: None })
    }

    /// A matrix with a known transpose, which is kept for [`Csr::both_ways`].
    pub fn from_transpose(transpose: Csr<T>, cancel: &Cancel) -> Self {
        let mut matrix = transpose.transpose_until(cancel);
        matrix.origin = Some(Arc::new(transpose));
        matrix
    }

    /// The matrix and its transpose, which most methods need both.
    pub fn both_ways(mut self, cancel: &Cancel) -> (Arc<Self>, Arc<Self>) {
        let transpose = self.origin.take().unwrap_or_else(|| Arc::new(self.transpose_until(cancel)));
        (Arc::new(self), transpose)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Stored entries.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// The start of each row, and the end of the last.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Column numbers of all entries, row by row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values of all entries, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Sets the entries of rows or columns to zero; they stay stored.
    pub(crate) fn zero_lines(&mut self, zeroed: &[bool], are_rows: bool) {
        self.origin = None;
        let values = self.values.to_mut();
        for row in 0..self.rows {
            for place in self.offsets[row]..self.offsets[row + 1] {
                if zeroed[if are_rows { row } else { self.indices[place] as usize }] {
                    values[place] = T::ZERO;
                }
            }
        }
    }

    /// Columns and values of one row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Returns the offsets, column numbers and values.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<T>) {
        (self.offsets, self.indices.into_vec(), self.values.into_vec())
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        Self::bytes_for(self.rows, self.stored())
    }

    /// Bytes that a matrix of this size takes.
    pub fn bytes_for(rows: usize, stored: usize) -> u64 {
        (rows as u64 + 1) * 8 + stored as u64 * (4 + T::PRECISION.bytes())
    }

    /// The transpose.
    pub fn transpose(&self) -> Self {
        self.transpose_until(&Cancel::default())
    }

    /// The transpose, by one counting pass and one placing pass, unless it is cancelled ([`Cancel::scope`]).
    pub fn transpose_until(&self, cancel: &Cancel) -> Self {
        let mut offsets = vec![0usize; self.cols + 1];
        for piece in self.indices.chunks(PIECE) {
            cancel.check();
            piece.iter().for_each(|&col| offsets[col as usize + 1] += 1);
        }
        for col in 0..self.cols {
            offsets[col + 1] += offsets[col];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0u32; self.stored()];
        let mut values = vec![T::ZERO; self.stored()];
        for row in 0..self.rows {
            let (cols, entries) = self.row(row);
            for (cols, entries) in cols.chunks(PIECE).zip(entries.chunks(PIECE)) {
                // A check costs little compared with scattered writes.
                cancel.check();
                for (&col, &value) in cols.iter().zip(entries) {
                    let place = &mut next[col as usize];
                    indices[*place] = row as u32;
                    values[*place] = value;
                    *place += 1;
                }
            }
        }
        Csr::new(self.cols, self.rows, offsets, indices, values)
    }

    /// The block of the given rows, copied.
    pub fn row_block(&self, range: Range<usize>) -> Self {
        let begin = self.offsets[range.start];
        let end = self.offsets[range.end];
        let offsets = self.offsets[range.start..=range.end].iter().map(|offset| offset - begin).collect();
        let (indices, values) = (self.indices[begin..end].to_vec(), self.values[begin..end].to_vec());
        Csr::new(range.len(), self.cols, offsets, indices, values)
    }

    /// The entries in the given rows and columns, copied.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        if cols == (0..self.cols) {
            return self.row_block(rows);
        }
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows.clone() {
            let (of_row, entries) = self.row(row);
            let place = |bound: usize| of_row.partition_point(|&col| (col as usize) < bound);
            let wanted = place(cols.start)..place(cols.end);
            indices.extend(of_row[wanted.clone()].iter().map(|&col| col - cols.start as u32));
            values.extend_from_slice(&entries[wanted]);
            offsets.push(indices.len());
        }
        Csr::new(rows.len(), cols.len(), offsets, indices, values)
    }
}
