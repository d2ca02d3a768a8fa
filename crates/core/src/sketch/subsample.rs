//! The subsampling sketch: columns of sqrt(n/d) I, drawn without replacement.

use std::ops::Range;

use super::{Distribution, Operator, Sketch};
use crate::Real;
use crate::kernels::Columns;
use crate::random::stream;
use crate::threads::Threads;

/// S = sqrt(n/d) [e_j for j in `columns`]. Without the scale E[S Sᵀ] would be (d/n) I.
pub struct Subsample {
    columns: Vec<usize>,
    scale: f64,
}

impl Sketch for Subsample {
    const PICKS_COLUMNS: bool = true;

    fn draw(distribution: &Distribution, iteration: usize) -> Self {
        let &Distribution { length, size, .. } = distribution;
        Subsample { columns: choose(distribution, iteration), scale: (length as f64 / size as f64).sqrt() }
    }

    /// A part of M is read.
    fn work(distribution: &Distribution, stored: usize) -> f64 {
        stored as f64 * distribution.size as f64 / distribution.length as f64
    }
}

/// Which of `0..length`, ascending, so that M is read in order and sums are taken in order.
pub fn choose(distribution: &Distribution, iteration: usize) -> Vec<usize> {
    let &Distribution { length, size, seed, purpose, .. } = distribution;
    let mut rng = stream(seed, purpose, iteration, 0);
    let mut chosen = rand::seq::index::sample(&mut rng, length, size).into_vec();
    chosen.sort_unstable();
    chosen
}

impl<T: Real> Operator<T> for Subsample {
    fn project(&self, _: &Threads, rows: Range<usize>, factor: &[T], k: usize) -> Vec<T> {
        let scale = T::from_f64(self.scale);
        let mut projected = vec![T::ZERO; self.columns.len() * k];
        let begin = self.columns.partition_point(|&column| column < rows.start);
        let end = self.columns.partition_point(|&column| column < rows.end);
        for place in begin..end {
            let row = self.columns[place] - rows.start;
            let values = factor[row * k..][..k].iter().map(|&value| scale * value);
            projected[place * k..][..k].iter_mut().zip(values).for_each(|(target, value)| *target = value);
        }
        projected
    }

    fn lift(&self, _: &Threads, b: &[T], _k: usize) -> (Columns<'_>, Vec<T>) {
        let scale = T::from_f64(self.scale);
        (Columns::Some(&self.columns), b.iter().map(|&value| scale * value).collect())
    }
}
