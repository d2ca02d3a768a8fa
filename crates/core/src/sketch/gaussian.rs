//! The Gaussian sketch: independent entries of mean 0 and variance 1/d.

use std::ops::Range;

use super::{Distribution, Operator, Sketch};
use crate::Real;
use crate::kernels::{Columns, normals};
use crate::random::stream;
use crate::threads::Threads;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Rows of S that are generated at a time.
const BLOCK: usize = 64;

/// S, of which one block of rows exists at a time; row j has its own stream, so that every rank can generate every
/// row.
pub struct Gaussian {
    distribution: Distribution,
    iteration: usize,
}

impl Sketch for Gaussian {
    /// Nothing is drawn yet.
    fn draw(distribution: &Distribution, iteration: usize) -> Self {
        Gaussian { distribution: *distribution, iteration }
    }

    /// S is generated twice.
    fn work(distribution: &Distribution, stored: usize) -> f64 {
        stored as f64 + 2.0 * (distribution.length * distribution.size) as f64
    }
}

impl Gaussian {
    /// Rows of S, each of d entries, by row.
    fn rows<T: Real>(&self, rows: Range<usize>, words: &mut Vec<u8>, block: &mut Vec<T>) {
        let Distribution { size, seed, purpose, .. } = self.distribution;
        let scale = 1.0 / (size as f64).sqrt();
        block.clear();
        block.resize(rows.len() * size, T::ZERO);
        for (row, entries) in rows.zip(block.chunks_exact_mut(size)) {
            normals(&mut stream(seed, purpose, self.iteration, row), scale as f32, words, entries);
        }
    }
}

impl<T: Real> Operator<T> for Gaussian {
    fn project(&self, threads: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let d = self.distribution.size;
        // Partial sums over pieces that depend on the number of rows alone, so that threads do not change them.
        let piece = rows.len().div_ceil(8).next_multiple_of(BLOCK).max(BLOCK);
        let partial = threads.map(
            factor.chunks(piece * k).enumerate().collect(),
            || (Vec::new(), Vec::<T>::new()),
            |(words, block), (index, piece_rows): (usize, &[T])| {
                let mut projected = vec![T::ZERO; d * k];
                let mut first = rows.start + index * piece;
                for values in piece_rows.chunks(BLOCK * k) {
                    let count = values.len() / k;
                    self.rows(first..first + count, words, block);
                    first += count;
                    // By row these are the transposes by column: (Vᵀ S)(k x d) += (k x rows)(rows x d).
                    let target = MatMut::from_column_major_slice_mut(&mut projected, k, d);
                    let factor = MatRef::from_column_major_slice(values, k, count);
                    let sketch = MatRef::from_row_major_slice(block, count, d);
                    matmul(target, Accum::Add, factor, sketch, T::ONE, Par::Seq);
                }
                projected
            },
        );
        let mut projected = vec![T::ZERO; d * k];
        for partial in partial {
            projected.iter_mut().zip(partial).for_each(|(sum, term)| *sum += term);
        }
        projected
    }

    fn lift(&self, threads: &Threads, b: &[T], k: usize) -> (Columns<'_>, Vec<T>) {
        let Distribution { length, size, .. } = self.distribution;
        let mut weights = vec![T::ZERO; length * k];
        threads.map(
            weights.chunks_mut(BLOCK * k).enumerate().collect(),
            || (Vec::new(), Vec::<T>::new()),
            |(words, block), (index, target): (usize, &mut [T])| {
                let count = target.len() / k;
                self.rows(index * BLOCK..index * BLOCK + count, words, block);
                let target = MatMut::from_column_major_slice_mut(target, k, count);
                let b = MatRef::from_column_major_slice(b, k, size);
                let sketch = MatRef::from_column_major_slice(block, size, count);
                matmul(target, Accum::Replace, b, sketch, T::ONE, Par::Seq);
            },
        );
        (Columns::All, weights)
    }
}
