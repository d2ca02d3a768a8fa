//! Sets rows of M to zero in both blocks of a shard.

use std::sync::Arc;

use super::{Block, DenseBlock, Shard};
use crate::Real;
use crate::matrix::Values;

impl<T: Real> Shard<T> {
    /// Sets rows of M to zero. Storage that both blocks share stays shared; storage with other readers is
    /// copied first.
    pub fn zero_rows(&mut self, zeroed: &[bool]) {
        let is_shared = match (&self.by_rows, &self.by_cols) {
            (Block::Dense(rows), Block::Dense(cols)) => Arc::ptr_eq(&rows.values, &cols.values),
            _ => false,
        };
        if let (true, Block::Dense(cols)) = (is_shared, &mut self.by_cols) {
            // Otherwise each block would make its own copy.
            cols.values = Arc::new(Values::Bytes(Vec::new().into()));
        }
        self.by_rows.zero_lines(zeroed, true);
        match (&self.by_rows, &mut self.by_cols) {
            (Block::Dense(rows), Block::Dense(cols)) if is_shared => cols.values = rows.values.clone(),
            (_, by_cols) => by_cols.zero_lines(zeroed, false),
        }
    }
}

impl<T: Real> Block<T> {
    /// Sets rows or columns to zero.
    fn zero_lines(&mut self, zeroed: &[bool], are_rows: bool) {
        match self {
            Block::Dense(block) => block.zero_lines(zeroed, are_rows),
            Block::ByRow(csr) => Arc::make_mut(csr).zero_lines(zeroed, are_rows),
            Block::ByColumn(transpose) => Arc::make_mut(transpose).zero_lines(zeroed, !are_rows),
            Block::Observed(_) => unreachable!("a party's matrix has no weights"),
        }
    }

    /// Calls `visit(position in rows, column, value)` for the stored entries of some rows, in ascending order of `rows`.
    pub fn visit_rows(&self, rows: &[usize], mut visit: impl FnMut(usize, usize, f64)) {
        match self {
            Block::Dense(block) => {
                for (position, row) in rows.iter().enumerate() {
                    for col in 0..block.cols {
                        let value = block.values.get(row * block.row_stride + col * block.col_stride);
                        visit(position, col, value.to_f64());
                    }
                }
            }
            Block::ByRow(csr) => {
                for (position, &row) in rows.iter().enumerate() {
                    let (cols, values) = csr.row(row);
                    cols.iter().zip(values).for_each(|(&col, &value)| {
                        visit(position, col as usize, value.to_f64());
                    });
                }
            }
            Block::ByColumn(transpose) => {
                for col in 0..transpose.rows() {
                    let (stored, values) = transpose.row(col);
                    for (position, &row) in rows.iter().enumerate() {
                        if let Ok(place) = stored.binary_search(&(row as u32)) {
                            visit(position, col, values[place].to_f64());
                        }
                    }
                }
            }
            Block::Observed(_) => unreachable!("a party's matrix has no weights"),
        }
    }
}

impl<T: Real> DenseBlock<T> {
    fn zero_lines(&mut self, zeroed: &[bool], are_rows: bool) {
        let &mut DenseBlock { rows, cols, row_stride, col_stride, .. } = self;
        let (along, across, length) = match are_rows {
            true => (row_stride, col_stride, cols),
            false => (col_stride, row_stride, rows),
        };
        let places = || {
            let lines = zeroed.iter().enumerate().filter(|(_, zeroed)| **zeroed);
            lines.flat_map(move |(line, _)| (0..length).map(move |step| line * along + step * across))
        };
        match Arc::make_mut(&mut self.values) {
            Values::Bytes(bytes) => {
                let bytes = bytes.to_mut();
                places().for_each(|place| bytes[place] = 0);
            }
            Values::Real(reals) => {
                let reals = reals.to_mut();
                places().for_each(|place| reals[place] = T::ZERO);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::grid::Grid;
    use crate::matrix::{Csr, Dense, Matrix, Order, Values};
    use crate::partition::{Access, Block, shards};

    fn entries(block: &Block<f64>) -> Vec<Vec<f64>> {
        let rows: Vec<usize> = (0..block.rows()).collect();
        let mut entries = vec![vec![0.0; block.cols()]; rows.len()];
        block.visit_rows(&rows, |row, col, value| entries[row][col] = value);
        entries
    }

    /// Compares with the entries one by one, for every kind of storage.
    #[test]
    fn rows_are_zero_in_both_blocks() {
        let value = |row: usize, col: usize| ((row * 5 + col * 3) % 7) as f64;
        let all: Vec<f64> = (0..12).map(|place| value(place / 3, place % 3)).collect();
        let bytes: Vec<u8> = all.iter().map(|&value| value as u8).collect();
        let by_column: Vec<f64> = (0..12).map(|place| value(place % 4, place / 4)).collect();
        let indices: Vec<u32> = (0..12).map(|place| place % 3).collect();
        let sparse = Csr::new(4, 3, vec![0, 3, 6, 9, 12], indices, all.clone());
        let matrices = [
            Matrix::Dense(Dense::new(4, 3, Order::RowMajor, Values::Real(all.into()))),
            Matrix::Dense(Dense::new(4, 3, Order::RowMajor, Values::Bytes(bytes.into()))),
            Matrix::Dense(Dense::new(4, 3, Order::ColMajor, Values::Real(by_column.into()))),
            Matrix::Sparse(sparse),
        ];
        let zeroed = [false, true, false, true];
        for matrix in matrices {
            for access in [Access::Whole, Access::Sampled] {
                let mut shard = shards(matrix.clone(), Grid::ONE, access).remove(0);
                shard.zero_rows(&zeroed);
                let (rows, cols) = (entries(&shard.by_rows), entries(&shard.by_cols));
                for row in 0..4 {
                    for col in 0..3 {
                        let expected = if zeroed[row] { 0.0 } else { value(row, col) };
                        assert_eq!((rows[row][col], cols[col][row]), (expected, expected), "{access:?}");
                    }
                }
            }
        }
    }
}
