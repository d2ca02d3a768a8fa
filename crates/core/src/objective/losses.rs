//! The parts of a least-squares loss, row by row.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::Real;
use crate::kernels::{Columns, Product, Scratch, TILE, Tile};
use crate::partition::{Block, DenseBlock};
use crate::threads::Threads;

/// ⟨(M V)_i, U_i⟩ for every row i of a block; of a sparse one in `f64`.
pub fn crosses<T: Real>(threads: &Threads, block: &Block<T>, u: &[T], v: &[T], k: usize) -> Vec<f64> {
    let dot = |row: usize, col: usize| -> f64 {
        u[row * k..][..k].iter().zip(&v[col * k..]).map(|(u, v)| u.to_f64() * v.to_f64()).sum()
    };
    match block {
        Block::Dense(_) | Block::Observed(_) => dense_cross(threads, block, u, v, k),
        Block::ByRow(csr) => {
            let of_row = |image: &mut Vec<f64>, row: usize| -> f64 {
                image.fill(0.0);
                let (cols, values) = csr.row(row);
                for (&col, value) in cols.iter().zip(values) {
                    let (value, of_col) = (value.to_f64(), &v[col as usize * k..][..k]);
                    image.iter_mut().zip(of_col).for_each(|(sum, v)| *sum += value * v.to_f64());
                }
                image.iter().zip(&u[row * k..]).map(|(image, u)| image * u.to_f64()).sum()
            };
            let tiles: Vec<usize> = (0..csr.rows()).step_by(TILE).collect();
            let of_tile = |image: &mut Vec<f64>, first: usize| -> Vec<f64> {
                (first..csr.rows().min(first + TILE)).map(|row| of_row(image, row)).collect()
            };
            threads.map(tiles, || vec![0.0; k], of_tile).concat()
        }
        Block::ByColumn(transpose) => {
            let mut crosses = vec![0.0; transpose.cols()];
            for col in 0..transpose.rows() {
                threads.cancel().check();
                let (rows, values) = transpose.row(col);
                for (&row, value) in rows.iter().zip(values) {
                    crosses[row as usize] += value.to_f64() * dot(row as usize, col);
                }
            }
            crosses
        }
    }
}

/// u G uᵀ for every row u: what ⟨UᵀU, VᵀV⟩ is the sum of.
pub fn quadratic_forms<T: Real>(threads: &Threads, u: &[T], gram: &[f64], k: usize) -> Vec<f64> {
    let gram = MatRef::from_column_major_slice(gram, k, k);
    let tiles = threads.map(
        u.chunks(TILE * k).collect(),
        || (Tile::<f64>::new(k), Tile::<f64>::new(k)),
        |(values, image), rows: &[T]| {
            values.values.fill(0.0);
            let exact: Vec<f64> = rows.iter().map(|value| value.to_f64()).collect();
            values.load(&exact, k);
            let target = MatMut::from_column_major_slice_mut(&mut image.values, TILE, k);
            let tile = MatRef::from_column_major_slice(&values.values, TILE, k);
            matmul(target, Accum::Replace, tile, gram, 1.0, Par::Seq);
            row_dots(values, image, rows.len() / k, k)
        },
    );
    tiles.concat()
}

/// ⟨(M V)_i, U_i⟩ for every row i of a dense block.
fn dense_cross<T: Real>(threads: &Threads, block: &Block<T>, u: &[T], v: &[T], k: usize) -> Vec<f64> {
    let product = Product::new(threads, block, Columns::All, v, k);
    let tiles = threads.map(
        u.chunks(TILE * k).enumerate().collect(),
        || (Scratch::new(), Tile::new(k), Tile::new(k)),
        |(scratch, products, values), (index, rows): (usize, &[T])| {
            let count = rows.len() / k;
            product.tile(index * TILE..index * TILE + count, scratch, products);
            values.load(rows, k);
            row_dots(products, values, count, k)
        },
    );
    tiles.concat()
}

fn row_dots<T: Real>(a: &Tile<T>, b: &Tile<T>, rows: usize, k: usize) -> Vec<f64> {
    let mut dots = vec![0.0; rows];
    for col in 0..k {
        for (row, dot) in dots.iter_mut().enumerate() {
            *dot += a.column(col)[row].to_f64() * b.column(col)[row].to_f64();
        }
    }
    dots
}

/// Σ_j (M − U Vᵀ)_ij² for every row i of a dense block.
pub fn residuals<T: Real>(threads: &Threads, block: &DenseBlock<T>, u: &[T], v: &[T], k: usize) -> Vec<f64> {
    const WIDTH: usize = 256;
    let tiles = threads.map(
        u.chunks(TILE * k).enumerate().collect(),
        || (Tile::new(k), vec![T::ZERO; TILE * WIDTH]),
        |(values, model), (index, rows): (usize, &[T])| {
            values.values.fill(T::ZERO);
            values.load(rows, k);
            let mut sums = vec![0.0; rows.len() / k];
            for (part, v) in v.chunks(WIDTH * k).enumerate() {
                let width = v.len() / k;
                let target = MatMut::from_column_major_slice_mut(&mut model[..TILE * width], TILE, width);
                let tile = MatRef::from_column_major_slice(&values.values, TILE, k);
                let v = MatRef::from_column_major_slice(v, k, width);
                matmul(target, Accum::Replace, tile, v, T::ONE, Par::Seq);
                for col in 0..width {
                    let first = index * TILE * block.row_stride + (part * WIDTH + col) * block.col_stride;
                    for (row, sum) in sums.iter_mut().enumerate() {
                        let entry = block.values.get(first + row * block.row_stride).to_f64();
                        *sum += (entry - model[col * TILE + row].to_f64()).powi(2);
                    }
                }
            }
            sums
        },
    );
    tiles.concat()
}
