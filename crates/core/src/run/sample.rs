//! Some rows (or columns) of M, drawn at random, whole on every rank.

use crate::Real;
use crate::comm::Reduction;
use crate::error::Result;
use crate::grid::Factor;
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::partition::{Block, DenseBlock};

use super::links::numbers;
use super::method::Rank;

/// The given rows of M for U, columns for V, ascending, as the rows of a matrix of their own. Every rank must ask for
/// the same.
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
    };
    if alone {
        return Ok(part);
    }
    match part {
        Matrix::Dense(dense) => {
            let mut whole = vec![T::ZERO; wanted.len() * all_cols];
            for row in 0..dense.rows() {
                let target = &mut whole[(begin + row) * all_cols..][cols.clone()];
                target.iter_mut().enumerate().for_each(|(col, value)| *value = dense.get(row, col));
            }
            rank.links.all.all_reduce(Reduction::Sum, numbers(&mut whole))?;
            Ok(Matrix::Dense(Dense::new(wanted.len(), all_cols, Order::RowMajor, Values::Real(whole.into()))))
        }
        Matrix::Sparse(csr) => {
            let mut entries: Vec<(u32, u32, f64)> = Vec::new();
            for row in 0..csr.rows() {
                let (columns, values) = csr.row(row);
                let place = (begin + row) as u32;
                let columns = columns.iter().map(|&col| cols.start as u32 + col);
                entries.extend(columns.zip(values).map(|(col, value)| (place, col, value.to_f64())));
            }
            let bytes: Vec<u8> = entries
                .iter()
                .flat_map(|&(row, col, value)| {
                    let mut bytes = [0u8; 16];
                    bytes[..4].copy_from_slice(&row.to_ne_bytes());
                    bytes[4..8].copy_from_slice(&col.to_ne_bytes());
                    bytes[8..].copy_from_slice(&value.to_ne_bytes());
                    bytes
                })
                .collect();
            let mut entries: Vec<(u32, u32, f64)> = rank
                .links
                .all
                .all_gather(&bytes)?
                .concat()
                .as_chunks::<16>()
                .0
                .iter()
                .map(|&bytes| {
                    let [row, col, ..]: [u32; 4] = bytemuck::cast(bytes);
                    let [_, value]: [f64; 2] = bytemuck::cast(bytes);
                    (row, col, value)
                })
                .collect();
            entries.sort_unstable_by_key(|&(row, col, _)| (row, col));
            let offsets =
                (0..=wanted.len()).map(|row| entries.partition_point(|entry| (entry.0 as usize) < row));
            let offsets: Vec<usize> = offsets.collect();
            let indices: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
            let values: Vec<T> = entries.iter().map(|entry| T::from_f64(entry.2)).collect();
            Ok(Matrix::Sparse(Csr::new(wanted.len(), all_cols, offsets, indices, values)))
        }
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
