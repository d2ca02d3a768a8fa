//! The Gaussian sketch: independent entries of mean 0 and variance 1/d.

use std::ops::Range;

use super::{Distribution, Operator};
use crate::Real;
use crate::kernels::{Columns, normals};
use crate::random::stream;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Rows of S that are made at a time.
const BLOCK: usize = 64;

/// S, of which a block of rows exists at a time; row j has its own stream, so that any rank makes any row.
pub struct Gaussian {
    distribution: Distribution,
    iteration: usize,
}

impl Gaussian {
    /// Nothing is drawn yet.
    pub fn draw(distribution: &Distribution, iteration: usize) -> Self {
        Gaussian { distribution: *distribution, iteration }
    }

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

fn blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(BLOCK).map(move |first| first..rows.end.min(first + BLOCK))
}

impl<T: Real> Operator<T> for Gaussian {
    fn project(&self, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let d = self.distribution.size;
        let mut projected = vec![T::ZERO; d * k];
        let (mut words, mut block) = (Vec::new(), Vec::<T>::new());
        for part in blocks(rows.clone()) {
            self.rows(part.clone(), &mut words, &mut block);
            let values = &factor[(part.start - rows.start) * k..(part.end - rows.start) * k];
            // By row these are the transposes by column: (Vᵀ S)(k x d) += (k x rows)(rows x d).
            let target = MatMut::from_column_major_slice_mut(&mut projected, k, d);
            let factor = MatRef::from_column_major_slice(values, k, part.len());
            let sketch = MatRef::from_row_major_slice(&block, part.len(), d);
            matmul(target, Accum::Add, factor, sketch, T::ONE, Par::Seq);
        }
        projected
    }

    fn lift(&self, b: &[T], k: usize) -> (Columns<'_>, Vec<T>) {
        let Distribution { length, size, .. } = self.distribution;
        let mut weights = vec![T::ZERO; length * k];
        let (mut words, mut block) = (Vec::new(), Vec::<T>::new());
        for (part, target) in blocks(0..length).zip(weights.chunks_mut(BLOCK * k)) {
            self.rows(part.clone(), &mut words, &mut block);
            let target = MatMut::from_column_major_slice_mut(target, k, part.len());
            let b = MatRef::from_column_major_slice(b, k, size);
            let sketch = MatRef::from_column_major_slice(&block, size, part.len());
            matmul(target, Accum::Replace, b, sketch, T::ONE, Par::Seq);
        }
        (Columns::All, weights)
    }
}
