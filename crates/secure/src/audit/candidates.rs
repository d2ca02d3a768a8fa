//! Records that may have been in a party's data, and their scores.

use partwise::Real;
use partwise::kernels::{Columns, Product, gram, multiply};
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::partition::Block;
use partwise::sketch::Operator;
use partwise::solver::{CoordinateDescent, MovingRows, Penalty, Problem, update};
use partwise::threads::Threads;

use super::adversary::SeenMatrix;
use super::span::Folding;
use super::statistics::Scores;
use crate::split::rows;

/// Sweeps of nonnegative least squares on k columns.
const SWEEPS: usize = 50;

/// Some of a party's records, then some held-out ones.
pub struct Candidates {
    matrix: Matrix<f64>,
    block: Block<f64>,
    norms: Vec<f64>,
    /// The number of records of each person, members first.
    people: Vec<usize>,
    /// The number of people who are members.
    members: usize,
    /// The records as columns of a dense matrix, for sketches of features.
    turned: Vec<f64>,
}

impl Candidates {
    /// The people whose records are given rows of a matrix.
    pub fn new<T: Real>(matrix: &Matrix<T>, members: &[Vec<usize>], others: &[Vec<usize>]) -> Self {
        let people = members.iter().chain(others).map(Vec::len).collect();
        Self::of(widen(&rows(matrix, &[members, others].concat().concat())), people, members.len())
    }

    /// Groups candidates by person; the first `members` people are members.
    fn of(matrix: Matrix<f64>, people: Vec<usize>, members: usize) -> Self {
        let mut squares = vec![0.0; matrix.rows()];
        matrix.for_each_stored(|record, _, value| squares[record] += value * value);
        Candidates {
            norms: squares.into_iter().map(f64::sqrt).collect(),
            people,
            members,
            block: Block::of(matrix.clone(), false),
            matrix,
            turned: Vec::new(),
        }
    }

    /// The candidates with folded features.
    pub fn folded(&self, folding: &Folding) -> Candidates {
        let (count, size) = (self.matrix.rows(), folding.size);
        let mut values = vec![0.0; count * size];
        self.matrix.for_each_stored(|record, feature, value| {
            let (place, sign) = folding.place(feature);
            values[record * size + place] += sign * value;
        });
        let values = Values::Real(values.into());
        let matrix = Matrix::Dense(Dense::new(count, size, Order::RowMajor, values));
        Self::of(matrix, self.people.clone(), self.members)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Keeps them as columns too.
    pub fn turn(&mut self) {
        let count = self.matrix.rows();
        self.turned = vec![0.0; count * self.matrix.cols()];
        let turned = &mut self.turned;
        self.matrix.for_each_stored(|record, feature, value| turned[feature * count + record] = value);
    }

    /// The scores of people: the mean over the records of each.
    pub fn scores(&self, all: Vec<f64>) -> Scores {
        let mut rest = &all[..];
        let mean = |&count: &usize| {
            let (own, others) = rest.split_at(count);
            rest = others;
            own.iter().sum::<f64>() / count as f64
        };
        let people: Vec<f64> = self.people.iter().map(mean).collect();
        let (members, others) = people.split_at(self.members);
        Scores { members: members.to_vec(), others: others.to_vec() }
    }

    /// X Y for the records X, a row each, and Y of `columns` columns, by row.
    fn products(&self, threads: &Threads, y: &[f64], columns: usize) -> Vec<f64> {
        multiply(threads, &self.block, Columns::All, y, columns)
    }

    /// Raises `best` to the highest cosine between each record and the columns of `seen`.
    pub fn match_columns(&self, threads: &Threads, seen: &[f64], columns: usize, best: &mut [f64]) {
        let products = self.products(threads, seen, columns);
        raise(best, &products, &self.norms, &norms_of_columns(seen, columns));
    }

    /// The candidates for `seen` with sketched features: their records are sketched in the same way.
    pub fn match_sketch(
        &self,
        threads: &Threads,
        operator: &dyn Operator<f64>,
        seen: &SeenMatrix,
        best: &mut [f64],
    ) {
        let (columns, seen) = (seen.columns, &seen.values[..]);
        let count = self.len();
        let sketched = operator.project(threads, 0..self.turned.len() / count, &self.turned, count);
        let mut products = vec![0.0; count * columns];
        for (records, row) in sketched.chunks_exact(count).zip(seen.chunks_exact(columns)) {
            for (record, value) in records.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let target = &mut products[record * columns..][..columns];
                target.iter_mut().zip(row).for_each(|(sum, seen)| *sum += value * seen);
            }
        }
        raise(best, &products, &norms_of_columns(&sketched, count), &norms_of_columns(seen, columns));
    }

    /// Minus the distance of each record, as a share of its norm, to the span of `rank` orthonormal columns, by row.
    pub fn nearness_to_span(&self, threads: &Threads, basis: &[f64], rank: usize) -> Vec<f64> {
        let products = if rank == 0 { Vec::new() } else { self.products(threads, basis, rank) };
        let within = |record: usize| -> f64 {
            products[record * rank..][..rank].iter().map(|value| value * value).sum()
        };
        let near = |(record, norm): (usize, &f64)| match *norm {
            0.0 => 0.0,
            // Below rounding all are in it.
            norm => -(1.0 - within(record) / (norm * norm)).max(1e-12).sqrt(),
        };
        self.norms.iter().enumerate().map(near).collect()
    }

    /// The weights of each record's best nonnegative combination of the columns of U.
    pub fn weights(&self, threads: &Threads, u: &[f64], k: usize) -> Weights {
        let products = self.products(threads, u, k);
        let gram = gram(threads, u, k);
        let mut v = vec![0.0; self.len() * k];
        let solver = CoordinateDescent { mu: 0.0, sweeps: SWEEPS };
        let problem = Problem { solver: &solver, gram: &gram, terms: Penalty::NONE };
        update(threads, &problem, &Product::ready(products.clone(), k), MovingRows::plain(&mut v), k);
        Weights { products, gram, v }
    }

    /// The norms of the records.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// Minus the error, as a share of its norm, of each record's best nonnegative combination of the columns of U.
    pub fn fit(&self, threads: &Threads, u: &[f64], k: usize) -> Vec<f64> {
        let Weights { products, gram, v } = self.weights(threads, u, k);
        let error = |(record, norm): (usize, &f64)| {
            let (v, product) = (&v[record * k..][..k], &products[record * k..][..k]);
            let cross: f64 = v.iter().zip(product).map(|(v, p)| v * p).sum();
            let model: f64 = (0..k * k).map(|place| v[place / k] * v[place % k] * gram[place]).sum();
            let squared = norm * norm - 2.0 * cross + model;
            if *norm == 0.0 { 0.0 } else { -squared.max(0.0).sqrt() / norm }
        };
        self.norms.iter().enumerate().map(error).collect()
    }
}

/// The records expressed in terms of U: X ≈ V Uᵀ.
pub struct Weights {
    /// X U, one row per record.
    pub products: Vec<f64>,
    /// Uᵀ U.
    pub gram: Vec<f64>,
    /// V, one row per record.
    pub v: Vec<f64>,
}

/// Raises to the highest cosine, given products and norms.
fn raise(best: &mut [f64], products: &[f64], records: &[f64], columns: &[f64]) {
    for ((best, products), norm) in best.iter_mut().zip(products.chunks_exact(columns.len())).zip(records) {
        for (product, column) in products.iter().zip(columns) {
            let cosine = product / (norm * column);
            // Skips records and columns that are zero.
            if cosine > *best && cosine.is_finite() {
                *best = cosine;
            }
        }
    }
}

pub(super) fn norms_of_columns(matrix: &[f64], columns: usize) -> Vec<f64> {
    let mut squares = vec![0.0; columns];
    for row in matrix.chunks_exact(columns) {
        squares.iter_mut().zip(row).for_each(|(sum, value)| *sum += value * value);
    }
    squares.into_iter().map(f64::sqrt).collect()
}

/// Converts a matrix to f64.
fn widen<T: Real>(matrix: &Matrix<T>) -> Matrix<f64> {
    match matrix {
        Matrix::Dense(dense) => {
            let mut values = vec![0.0; dense.rows() * dense.cols()];
            matrix.for_each_stored(|row, col, value| values[row * dense.cols() + col] = value);
            let values = Values::Real(values.into());
            Matrix::Dense(Dense::new(dense.rows(), dense.cols(), Order::RowMajor, values))
        }
        Matrix::Sparse(csr) => {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..csr.rows() {
                let (cols, entries) = csr.row(row);
                indices.extend_from_slice(cols);
                values.extend(entries.iter().map(|value| value.to_f64()));
                offsets.push(indices.len());
            }
            Matrix::Sparse(Csr::new(csr.rows(), csr.cols(), offsets, indices, values))
        }
    }
}
