//! The count sketch (Clarkson and Woodruff 2013): every row of S has one entry, 1 or -1, in a random column.

use std::ops::Range;

use rand::Rng;

use super::{Distribution, Operator, Sketch};
use crate::Real;
use crate::kernels::Columns;
use crate::random::stream;
use crate::threads::Threads;

/// For each row of S its column, from 1, with the entry's sign: M S adds and subtracts columns of M.
pub struct Count {
    places: Vec<i32>,
    size: usize,
}

impl Sketch for Count {
    /// One number per row; E[S Sᵀ] = I without scaling.
    fn draw(distribution: &Distribution, iteration: usize) -> Self {
        let &Distribution { length, size, seed, purpose, .. } = distribution;
        let mut rng = stream(seed, purpose, iteration, 0);
        let places = (0..length)
            .map(|_| {
                let word = rng.next_u64();
                // The upper bits choose the column, evenly up to 2^-32, the lowest bit the sign.
                let place = (((word >> 32) * size as u64) >> 32) as i32 + 1;
                if word & 1 == 0 { place } else { -place }
            })
            .collect();
        Count { places, size }
    }
}

impl<T: Real> Operator<T> for Count {
    fn project(&self, _: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let mut projected = vec![T::ZERO; self.size * k];
        for (&place, values) in self.places[rows].iter().zip(factor.chunks_exact(k)) {
            let target = projected[(place.unsigned_abs() as usize - 1) * k..][..k].iter_mut().zip(values);
            if place > 0 {
                target.for_each(|(sum, &value)| *sum += value);
            } else {
                target.for_each(|(sum, &value)| *sum -= value);
            }
        }
        projected
    }

    fn lift(&self, _: &Threads, b: &[T], _k: usize) -> (Columns<'_>, Vec<T>) {
        (Columns::Hashed(&self.places), b.to_vec())
    }
}
