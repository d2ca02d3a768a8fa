//! The subsampled randomized Hadamard transform: random signs, the Hadamard matrix, d of its columns.

use std::ops::Range;

use rand::Rng;

use super::{Distribution, Operator, Sketch};
use crate::Real;
use crate::kernels::Columns;
use crate::random::stream;
use crate::threads::Threads;

/// S = 1/√d D H P: D random signs, H the n' x n' Hadamard matrix of entries ±1 (n' the next power of two, the rows
/// beyond n cut off), P d of its columns without replacement. With H/√n' orthogonal this is √(n'/d) times them.
pub struct Srht {
    negative: Vec<bool>,
    columns: Vec<usize>,
    padded: usize,
}

impl Sketch for Srht {
    /// Draws the signs, then the columns.
    fn draw(distribution: &Distribution, iteration: usize) -> Self {
        let &Distribution { length, size, seed, purpose, .. } = distribution;
        let mut signs = stream(seed, purpose, iteration, 0);
        let mut columns = stream(seed, purpose, iteration, 1);
        let padded = length.next_power_of_two();
        Srht {
            negative: (0..length).map(|_| signs.next_u32() & 1 == 1).collect(),
            columns: rand::seq::index::sample(&mut columns, padded, size).into_vec(),
            padded,
        }
    }
}

impl Srht {
    fn scale(&self) -> f64 {
        1.0 / (self.columns.len() as f64).sqrt()
    }
}

/// X ← H X for n' rows of k, by the fast transform: n' log n' additions of rows.
fn hadamard<T: Real>(rows: &mut [T], k: usize) {
    let mut half = k;
    while half < rows.len() {
        for pair in rows.chunks_exact_mut(2 * half) {
            let (upper, lower) = pair.split_at_mut(half);
            for (a, b) in upper.iter_mut().zip(lower) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

impl<T: Real> Operator<T> for Srht {
    fn project(&self, _: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let scale = T::from_f64(self.scale());
        let mut transform = vec![T::ZERO; self.padded * k];
        for (row, values) in rows.zip(factor.chunks_exact(k)) {
            let sign = if self.negative[row] { -scale } else { scale };
            transform[row * k..][..k]
                .iter_mut()
                .zip(values)
                .for_each(|(target, &value)| *target = sign * value);
        }
        hadamard(&mut transform, k);
        self.columns.iter().flat_map(|&column| transform[column * k..][..k].iter().copied()).collect()
    }

    fn lift(&self, _: &Threads, b: &[T], k: usize) -> (Columns<'_>, Vec<T>) {
        let scale = T::from_f64(self.scale());
        let mut transform = vec![T::ZERO; self.padded * k];
        for (&column, values) in self.columns.iter().zip(b.chunks_exact(k)) {
            transform[column * k..][..k].copy_from_slice(values);
        }
        hadamard(&mut transform, k);
        transform.truncate(self.negative.len() * k);
        for (row, &negative) in transform.chunks_exact_mut(k).zip(&self.negative) {
            let sign = if negative { -scale } else { scale };
            row.iter_mut().for_each(|value| *value = sign * *value);
        }
        (Columns::All, transform)
    }
}
