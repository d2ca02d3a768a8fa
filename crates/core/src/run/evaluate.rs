//! The relative error ‖M − U Vᵀ‖_F / ‖M‖_F, and which components are dead.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::method::Rank;
use super::start::{Constants, FactorRows};
use crate::Real;
use crate::comm::{Numbers, Reduction, sum_exactly};
use crate::error::Result;
use crate::grid::Factor;
use crate::kernels::{Columns, Product, Scratch, TILE, Tile, gram_in_f64};
use crate::partition::{Block, DenseBlock};
use crate::threads::Threads;

/// Below this error ‖M‖² − 2⟨M V, U⟩ + ⟨UᵀU, VᵀV⟩ has lost too many of `f32`'s digits (at 1e-2 four of seven are
/// left), and the residual itself is summed.
pub const CANCELS_BELOW: f64 = 1e-2;

/// What an evaluation finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The relative error.
    pub error: f64,
    /// Components of which V's column is zero. (Where U's is, V's stays and the next step may fill U's again.)
    pub dead: Vec<usize>,
}

/// ‖M‖² − 2⟨M V, U⟩ + ⟨UᵀU, VᵀV⟩ as a relative error; NaN stays NaN.
pub fn relative_error(norm: f64, cross: f64, model: f64) -> f64 {
    let squared = (norm - 2.0 * cross + model) / norm;
    if squared <= 0.0 { 0.0 } else { squared.sqrt() }
}

/// Evaluates the factors. Every sum is either local to a row or independent of the order, so that all numbers of
/// ranks and threads give the same bits.
pub fn evaluate<T: Real>(
    rank: &Rank<'_, T>,
    constants: Constants,
    state: &FactorRows<T>,
) -> Result<Evaluation> {
    let &Rank { shard, links, threads, k } = rank;
    let v = links.gather(shard.place, Factor::U, &state.v, k)?;
    let u = links.rows_of_block(shard.place, Factor::U, &state.u, k)?;
    let mut gram_v =
        gram_in_f64(threads, if links.is_complete(shard.place, Factor::U) { &v } else { &state.v }, k);
    if !links.is_complete(shard.place, Factor::U) {
        links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut gram_v))?;
    }
    let model = quadratic_forms(threads, &state.u, &gram_v, k);
    let cross = crosses(threads, &shard.by_rows, &u, &v, k);
    let [cross, model] = sum_exactly(links.all, [&cross, &model])?;
    let mut error = relative_error(constants.norm, cross, model);
    if let (Block::Dense(block), true) = (&shard.by_rows, error < CANCELS_BELOW) {
        let [residual] = sum_exactly(links.all, [&residuals(threads, block, &u, &v, k)])?;
        error = (residual / constants.norm).sqrt();
    }
    Ok(Evaluation { error, dead: dead(&gram_v, k) })
}

/// Components of which V's column is zero, from VᵀV.
pub fn dead(gram_v: &[f64], k: usize) -> Vec<usize> {
    (0..k).filter(|j| gram_v[j * (k + 1)] == 0.0).collect()
}

/// ⟨(M V)_i, U_i⟩ for every row i of a block; of a sparse one in `f64`.
pub fn crosses<T: Real>(threads: &Threads, block: &Block<T>, u: &[T], v: &[T], k: usize) -> Vec<f64> {
    let dot = |row: usize, col: usize| -> f64 {
        u[row * k..][..k].iter().zip(&v[col * k..]).map(|(u, v)| u.to_f64() * v.to_f64()).sum()
    };
    match block {
        Block::Dense(_) => dense_cross(threads, block, u, v, k),
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
