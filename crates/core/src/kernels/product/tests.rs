//! Every storage against the naive product, and the independence of rows from the partition.

use super::*;
use crate::grid::Grid;
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::partition::{Access, shards};
use crate::random::{Purpose, stream, uniform};
use proptest::prelude::*;
use rand::Rng;

/// The same random matrix (a third of it zero) in every storage.
fn matrices<T: Real>(rows: usize, cols: usize, seed: u64) -> (Vec<u8>, Vec<Matrix<T>>) {
    let mut rng = stream(seed, Purpose::StartU, 0, 0);
    let entries: Vec<u8> =
        (0..rows * cols).map(|_| (rng.next_u32() % 384).saturating_sub(128) as u8).collect();
    let turned: Vec<u8> = (0..rows * cols).map(|i| entries[i % rows * cols + i / rows]).collect();
    let reals = |bytes: &[u8]| bytes.iter().map(|&byte| T::from_f64(byte as f64)).collect::<Vec<T>>();
    let mut offsets = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for row in entries.chunks(cols) {
        for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0) {
            indices.push(col as u32);
            values.push(T::from_f64(value as f64));
        }
        offsets.push(values.len());
    }
    let dense = |order, values| Matrix::Dense(Dense::new(rows, cols, order, values));
    let all = vec![
        dense(Order::RowMajor, Values::Bytes(entries.clone().into())),
        dense(Order::ColMajor, Values::Bytes(turned.clone().into())),
        dense(Order::RowMajor, Values::Real(reals(&entries).into())),
        dense(Order::ColMajor, Values::Real(reals(&turned).into())),
        Matrix::Sparse(Csr::new(rows, cols, offsets, indices, values)),
    ];
    (entries, all)
}

fn draw<T: Real>(count: usize, seed: u64) -> Vec<T> {
    let mut rng = stream(seed, Purpose::StartV, 0, 0);
    (0..count).map(|_| T::from_f64(uniform(&mut rng))).collect()
}

proptest! {
    #[test]
    fn every_storage_gives_the_naive_product(
        rows in 1usize..150, cols in 1usize..40, k in 1usize..9, seed: u64, sampled: bool, threads in 1usize..4,
    ) {
        let threads = Threads::new(threads).unwrap();
        let (entries, all) = matrices::<f64>(rows, cols, seed);
        let picked: Vec<usize> = (0..cols).filter(|col| (seed >> (col % 60)) & 1 == 1).collect();
        let columns = if sampled { Columns::Some(&picked) } else { Columns::All };
        let used: Vec<usize> = if sampled { picked.clone() } else { (0..cols).collect() };
        let weights = draw::<f64>(used.len() * k, seed);
        for matrix in all {
            for access in [Access::Whole, Access::Sampled] {
                let shard = shards(matrix.clone(), Grid::ONE, access).remove(0);
                let got = multiply(&threads, &shard.by_rows, columns, &weights, k);
                for row in 0..rows {
                    for j in 0..k {
                        let want: f64 = used.iter().enumerate()
                            .map(|(place, col)| entries[row * cols + col] as f64 * weights[place * k + j]).sum();
                        prop_assert!((got[row * k + j] - want).abs() <= 1e-9 * (1.0 + want));
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn columns_added_up_in_groups_give_the_naive_product(
        rows in 1usize..150, cols in 1usize..40, k in 1usize..9, groups in 1usize..7, seed: u64,
    ) {
        let threads = Threads::new(2).unwrap();
        let (entries, all) = matrices::<f64>(rows, cols, seed);
        let mut rng = stream(seed, Purpose::Redraw, 0, 0);
        let mut sign = || if rng.next_u32() & 1 == 1 { -1 } else { 1 };
        let places: Vec<i32> = (0..cols).map(|col| sign() * ((col * 7 + seed as usize % 5) % groups + 1) as i32).collect();
        let weights = draw::<f64>(groups * k, seed);
        for matrix in all {
            for access in [Access::Whole, Access::Sampled] {
                let shard = shards(matrix.clone(), Grid::ONE, access).remove(0);
                let got = multiply(&threads, &shard.by_rows, Columns::Hashed(&places), &weights, k);
                for row in 0..rows {
                    for j in 0..k {
                        let want: f64 = places.iter().enumerate().map(|(col, place)| {
                            let weight = weights[(place.unsigned_abs() as usize - 1) * k + j];
                            entries[row * cols + col] as f64 * weight * place.signum() as f64
                        }).sum();
                        prop_assert!((got[row * k + j] - want).abs() <= 1e-8);
                    }
                }
            }
        }
    }
}

/// The bits of DSANLS/S rest on this: a row of a product does not depend on neighbouring rows.
#[test]
fn a_row_does_not_depend_on_the_partition() {
    fn check<T: Real>(rows: usize, cols: usize, k: usize) {
        let weights = draw::<T>(cols * k, 3);
        let every_third: Vec<usize> = (0..cols).step_by(3).collect();
        let few_weights = &weights[..every_third.len() * k];
        for matrix in matrices::<T>(rows, cols, 5).1 {
            for (columns, weights) in
                [(Columns::All, &weights[..]), (Columns::Some(&every_third), few_weights)]
            {
                let product = |size: usize, threads: usize| -> Vec<T> {
                    let threads = Threads::new(threads).unwrap();
                    shards(matrix.clone(), Grid::tall(size), Access::Sampled)
                        .iter()
                        .flat_map(|shard| multiply(&threads, &shard.by_rows, columns, weights, k))
                        .collect()
                };
                let whole = product(1, 1);
                for (size, threads) in [(1, 2), (2, 1), (3, 2), (5, 1), (rows, 1), (rows + 3, 1)] {
                    assert!(product(size, threads) == whole, "{rows} x {cols}, k = {k}, {size} ranks");
                }
            }
        }
    }
    for rows in [1, 2, 3, 7, 33, 130] {
        for cols in [1, 5, 100, 600, 1100] {
            for k in [1, 2, 3, 8, 20, 33] {
                check::<f32>(rows, cols, k);
                check::<f64>(rows, cols, k);
            }
        }
    }
}

/// Streamed matrices rest on this: sums over consecutive blocks equal the product with all of them.
#[test]
fn sums_over_blocks_have_the_bits_of_the_product() {
    fn check<T: Real>(rows: usize, cols: usize, k: usize) {
        let weights = draw::<T>(cols * k, 3);
        for matrix in matrices::<T>(rows, cols, 5).1 {
            let sparse = matches!(matrix, Matrix::Sparse(_));
            let one = Threads::new(1).unwrap();
            let whole = shards(matrix.clone(), Grid::ONE, Access::Whole).remove(0);
            let want = multiply(&one, &whole.by_rows, Columns::All, &weights, k);
            // The lines are columns of M, split like the rows of its transpose.
            for (blocks, threads) in [(1, 2), (2, 1), (3, 2), (cols, 1)] {
                let threads = Threads::new(threads).unwrap();
                let mut sums = vec![T::ZERO; rows * k];
                let width = cols.div_ceil(blocks);
                let width = if sparse { width } else { width.next_multiple_of(DEPTH) };
                for begin in (0..cols).step_by(width) {
                    let lines = begin..cols.min(begin + width);
                    let (_, turned) = Block::both_ways(lines_of(&matrix, lines.clone()));
                    multiply_add(&threads, &turned, &weights[lines.start * k..lines.end * k], k, &mut sums);
                }
                assert!(sums == want, "{rows} x {cols}, k = {k}, {blocks} blocks, sparse: {sparse}");
            }
        }
    }
    for (rows, cols) in [(1, 1), (7, 130), (70, 300), (130, 64)] {
        for k in [1, 3, 20, 33] {
            check::<f32>(rows, cols, k);
            check::<f64>(rows, cols, k);
        }
    }
}

/// Some columns as the rows of a matrix by row.
fn lines_of<T: Real>(matrix: &Matrix<T>, lines: Range<usize>) -> Matrix<T> {
    match matrix {
        Matrix::Sparse(csr) => Matrix::Sparse(csr.transpose().row_block(lines)),
        Matrix::Dense(dense) => {
            let places = lines.clone().flat_map(|col| (0..dense.rows()).map(move |row| (row, col)));
            let values = match dense.values() {
                Values::Real(_) => Values::Real(places.map(|(row, col)| dense.get(row, col)).collect()),
                Values::Bytes(_) => {
                    Values::Bytes(places.map(|(row, col)| dense.get(row, col).to_f64() as u8).collect())
                }
            };
            Matrix::Dense(Dense::new(lines.len(), dense.rows(), Order::RowMajor, values))
        }
    }
}
