//! Random rows (or columns) of M, complete on every rank.

use std::ops::Range;

use crate::Real;
use crate::comm::Reduction;
use crate::error::Result;
use crate::grid::Factor;
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::partition::{Block, DenseBlock};

use super::links::numbers;
use super::method::Rank;

/// The given rows of M for U, columns for V, ascending, as the rows of a matrix. All ranks must request the same
/// ones.
pub fn rows_of<T: Real>(rank: &Rank<'_, T>, factor: Factor, wanted: &[usize]) -> Result<Matrix<T>> {
    let (rows, cols) = rank.shard.place.block(factor);
    let (rows, cols, all_cols) = match factor {
        Factor::U => (rows, cols, rank.shard.cols),
        Factor::V => (cols, rows, rank.shard.rows),
    };
    let begin = wanted.partition_point(|&row| row < rows.start);
    let end = wanted.partition_point(|&row| row < rows.end);
    let local: Vec<usize> = wanted[begin..end].iter().map(|row| row - rows.start).collect();
    let alone = rank.links.all.size() == 1;
    let part = match rank.shard.block(factor) {
        Block::Dense(block) => Matrix::Dense(dense_rows(block, &local)),
        Block::ByRow(csr) => Matrix::Sparse(sparse_rows(csr, &local)),
        Block::ByColumn(transpose) => Matrix::Sparse(sparse_rows(&transpose.transpose(), &local)),
        Block::Observed(_) => unreachable!("auto begins on samples of plain matrices alone"),
    };
    if alone {
        return Ok(part);
    }
    let sample = Sample { begin, rows: wanted.len(), own_cols: cols, cols: all_cols };
    match part {
        Matrix::Dense(dense) => sample.join_dense(rank, &dense).map(Matrix::Dense),
        Matrix::Sparse(csr) => sample.join_sparse(rank, &csr).map(Matrix::Sparse),
    }
}

/// Where a process's part of a sample belongs.
struct Sample {
    /// Its first row.
    begin: usize,
    /// Rows of the whole sample.
    rows: usize,
    /// The columns of its part.
    own_cols: Range<usize>,
    /// Columns of the whole sample.
    cols: usize,
}

impl Sample {
    fn join_dense<T: Real>(&self, rank: &Rank<'_, T>, part: &Dense<T>) -> Result<Dense<T>> {
        let mut whole = vec![T::ZERO; self.rows * self.cols];
        for row in 0..part.rows() {
            let target = &mut whole[(self.begin + row) * self.cols..][self.own_cols.clone()];
            target.iter_mut().enumerate().for_each(|(col, value)| *value = part.get(row, col));
        }
        rank.links.all.all_reduce(Reduction::Sum, numbers(&mut whole))?;
        Ok(Dense::new(self.rows, self.cols, Order::RowMajor, Values::Real(whole.into())))
    }

    fn join_sparse<T: Real>(&self, rank: &Rank<'_, T>, part: &Csr<T>) -> Result<Csr<T>> {
        let mut bytes = Vec::new();
        for row in 0..part.rows() {
            let (columns, values) = part.row(row);
            for (col, value) in columns.iter().zip(values) {
                bytes.extend(((self.begin + row) as u32).to_ne_bytes());
                bytes.extend((self.own_cols.start as u32 + col).to_ne_bytes());
                bytes.extend(value.to_f64().to_ne_bytes());
            }
        }
        let all = rank.links.all.all_gather(&bytes)?.concat();
        let entry = |&bytes: &[u8; 16]| {
            let [row, col, ..]: [u32; 4] = bytemuck::cast(bytes);
            let [_, value]: [f64; 2] = bytemuck::cast(bytes);
            (row, col, value)
        };
        let mut entries: Vec<(u32, u32, f64)> = all.as_chunks::<16>().0.iter().map(entry).collect();
        entries.sort_unstable_by_key(|&(row, col, _)| (row, col));
        let before = |row| entries.partition_point(|entry| (entry.0 as usize) < row);
        let offsets: Vec<usize> = (0..=self.rows).map(before).collect();
        let indices: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
        let values: Vec<T> = entries.iter().map(|entry| T::from_f64(entry.2)).collect();
        Ok(Csr::new(self.rows, self.cols, offsets, indices, values))
    }
}

fn dense_rows<T: Real>(block: &DenseBlock<T>, rows: &[usize]) -> Dense<T> {
    fn gather<E: Copy>(values: &[E], rows: &[usize], cols: usize, strides: (usize, usize)) -> Vec<E> {
        let mut copy = Vec::with_capacity(rows.len() * cols);
        for &row in rows {
            match strides {
                (stride, 1) => copy.extend_from_slice(&values[row * stride..][..cols]),
                (_, stride) => copy.extend((0..cols).map(|col| values[row * strides.0 + col * stride])),
            }
        }
        copy
    }
    let strides = (block.row_stride, block.col_stride);
    let values = match &*block.values {
        Values::Bytes(bytes) => Values::Bytes(gather(bytes, rows, block.cols, strides).into()),
        Values::Real(reals) => Values::Real(gather(reals, rows, block.cols, strides).into()),
    };
    Dense::new(rows.len(), block.cols, Order::RowMajor, values)
}

fn sparse_rows<T: Real>(csr: &Csr<T>, rows: &[usize]) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        let (columns, entries) = csr.row(row);
        indices.extend_from_slice(columns);
        values.extend_from_slice(entries);
        offsets.push(indices.len());
    }
    Csr::new(rows.len(), csr.cols(), offsets, indices, values)
}
