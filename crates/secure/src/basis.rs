//! An orthonormal basis that grows.

use faer::{MatMut, MatRef};
use partwise::kernels::add_product;

/// Orthonormal columns, stored consecutively.
pub(crate) struct Basis {
    length: usize,
    columns: Vec<f64>,
}

impl Basis {
    /// An empty basis in this many dimensions.
    pub fn new(length: usize) -> Self {
        Basis { length, columns: Vec::new() }
    }

    /// How many columns there are.
    pub fn rank(&self) -> usize {
        self.columns.len() / self.length
    }

    /// The columns, by row.
    pub fn by_row(&self) -> Vec<f64> {
        let (n, rank) = (self.length, self.rank());
        let mut rows = vec![0.0; n * rank];
        for (place, column) in self.columns.chunks_exact(n).enumerate() {
            column.iter().enumerate().for_each(|(row, value)| rows[row * rank + place] = *value);
        }
        rows
    }

    /// Takes orthonormal columns in, as [`Basis::fresh`] makes them.
    pub fn extend(&mut self, fresh: Vec<f64>) {
        self.columns.extend(fresh);
    }

    /// Orthonormal columns that together with the basis also span these columns, up to `tolerance` of a column's norm.
    pub fn fresh(&self, mut columns: Vec<f64>, tolerance: f64) -> Vec<f64> {
        let (n, known) = (self.length, self.rank());
        let size = columns.len() / n;
        let norms: Vec<f64> = columns.chunks_exact(n).map(|column| dot(column, column).sqrt()).collect();
        // Twice is enough.
        for _ in 0..2 {
            let mut shadow = vec![0.0; known * size];
            let basis = MatRef::from_column_major_slice(&self.columns, n, known);
            let target = MatMut::from_column_major_slice_mut(&mut shadow, known, size);
            let old = MatRef::from_column_major_slice(&columns, n, size);
            add_product(target, 1.0, basis.transpose(), old);
            let shadow = MatRef::from_column_major_slice(&shadow, known, size);
            let target = MatMut::from_column_major_slice_mut(&mut columns, n, size);
            add_product(target, -1.0, basis, shadow);
        }
        let mut fresh: Vec<f64> = Vec::new();
        for (column, norm) in columns.chunks_exact_mut(n).zip(norms) {
            for _ in 0..2 {
                for other in fresh.chunks_exact(n) {
                    let along = dot(other, column);
                    column.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
                }
            }
            let length = dot(column, column).sqrt();
            if length > tolerance * norm {
                fresh.extend(column.iter().map(|value| value / length));
            }
        }
        fresh
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
