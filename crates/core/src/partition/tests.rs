use super::*;
use crate::error::Error;
use crate::matrix::{Csr, Dense, Order, Values};
use crate::threads::Threads;
use proptest::prelude::*;

/// Python deals a matrix out before the first iteration, and Ctrl-C takes effect there too.
#[test]
fn dealing_out_can_be_cancelled() {
    let csr = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0f64, 2.0, 3.0]);
    let dense = Dense::new(2, 3, Order::RowMajor, Values::Real(vec![1.0; 6].into()));
    let cancel = Cancel::default();
    cancel.cancel();
    for (matrix, access) in [
        (Matrix::Sparse(csr.clone()), Access::Whole),
        (Matrix::Sparse(csr.clone()), Access::Sampled),
        (Matrix::Dense(dense), Access::Sampled),
    ] {
        let dealt = cancel.scope(|| Ok(shards_until(matrix, Grid::ONE, access, &cancel)));
        assert!(matches!(dealt, Err(Error::Interrupted)), "{access:?}");
    }
    let turned = cancel.scope(|| Ok(Csr::from_transpose(csr, &cancel)));
    assert!(matches!(turned, Err(Error::Interrupted)));
}

fn entry(block: &Block<f64>, row: usize, col: usize) -> f64 {
    let find = |csr: &Csr<f64>, row: usize, col: usize| {
        let (cols, values) = csr.row(row);
        cols.binary_search(&(col as u32)).map_or(0.0, |place| values[place])
    };
    match block {
        Block::Dense(dense) => dense.values.get(row * dense.row_stride + col * dense.col_stride),
        Block::ByRow(csr) => find(csr, row, col),
        Block::ByColumn(transpose) => find(transpose, col, row),
        Block::Observed(observed) => find(observed.values(), row, col),
    }
}

proptest! {
    #[test]
    fn a_shard_holds_its_rows_and_columns_and_no_others(
        rows in 1usize..9, cols in 1usize..9, size in 1usize..6, bytes: bool, by_column: bool,
        sparse: bool, sampled: bool, grid_cols in 1usize..4,
    ) {
        let at = |row: usize, col: usize| ((row * cols + col) % 7) as u8;
        let threads = Threads::new(2).unwrap();
        let order = if by_column { Order::ColMajor } else { Order::RowMajor };
        let values: Vec<u8> = match order {
            Order::RowMajor => (0..rows * cols).map(|i| at(i / cols, i % cols)).collect(),
            Order::ColMajor => (0..rows * cols).map(|i| at(i % rows, i / rows)).collect(),
        };
        let matrix = if sparse {
            let offsets = (0..=rows).map(|row| row * cols).collect();
            let indices: Vec<u32> = (0..rows * cols).map(|i| (i % cols) as u32).collect();
            let entries: Vec<f64> = (0..rows * cols).map(|i| at(i / cols, i % cols) as f64).collect();
            let csr = Csr::new(rows, cols, offsets, indices, entries);
            Matrix::Sparse(if by_column { Csr::from_transpose(csr.transpose(), &Cancel::default()) } else { csr })
        } else if bytes {
            Matrix::Dense(Dense::new(rows, cols, order, Values::Bytes(values.into())))
        } else {
            let reals = values.iter().map(|&value| value as f64).collect();
            Matrix::Dense(Dense::new(rows, cols, order, Values::Real(reals)))
        };
        let access = if sampled { Access::Sampled } else { Access::Whole };
        let grid = if sampled || size % grid_cols > 0 {
            Grid::tall(size)
        } else {
            Grid { rows: size / grid_cols, cols: grid_cols }
        };
        for shard in shards(matrix, grid, access) {
            let (block_rows, block_cols) = shard.place.block(Factor::U);
            prop_assert_eq!((shard.by_rows.rows(), shard.by_rows.cols()), (block_rows.len(), block_cols.len()));
            for row in block_rows.clone() {
                for col in block_cols.clone() {
                    let (i, j) = (row - block_rows.start, col - block_cols.start);
                    prop_assert_eq!(entry(&shard.by_rows, i, j), at(row, col) as f64);
                }
            }
            let (turned_cols, turned_rows) = shard.place.block(Factor::V);
            prop_assert_eq!((shard.by_cols.rows(), shard.by_cols.cols()), (turned_rows.len(), turned_cols.len()));
            for row in turned_cols.clone() {
                for col in turned_rows.clone() {
                    let (i, j) = (col - turned_rows.start, row - turned_cols.start);
                    prop_assert_eq!(entry(&shard.by_cols, i, j), at(row, col) as f64);
                }
            }
            let RowSums { sums, squares } = shard.by_rows.row_sums(&threads);
            for ((row, sum), square) in block_rows.zip(sums).zip(squares) {
                prop_assert_eq!(sum, block_cols.clone().map(|col| at(row, col) as f64).sum::<f64>());
                prop_assert_eq!(square, block_cols.clone().map(|col| (at(row, col) as f64).powi(2)).sum::<f64>());
            }
            let used: Vec<bool> = turned_rows.map(|col| turned_cols.clone().any(|row| at(row, col) > 0)).collect();
            prop_assert_eq!(shard.by_cols.used_rows(), used);
            if let (Access::Sampled, Block::Dense(block)) = (access, &shard.by_rows) {
                prop_assert_eq!(block.row_stride, 1);
            }
        }
    }
}
