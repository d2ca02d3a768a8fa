//! The arithmetic, tile by tile: products of a block of M with a thin matrix, coordinate descent, Gram matrices.
//!
//! Factors are stored by row, k numbers each. Kernels work on a [`Tile`] of [`TILE`] rows turned around, so that
//! SIMD lanes run across rows and a tile stays in cache for all k columns.

mod gram;
mod normals;
mod product;
mod sweep;

pub use gram::gram;
pub use normals::normals;
pub use product::{Columns, Product, Scratch, multiply};
pub use sweep::{clamp, sweep};

use crate::Real;

/// Rows of a tile. Every dense product has at most this many rows, rounded up to [`LANES`] with zeros, so that
/// its arithmetic does not depend on where a rank's rows begin or end.
pub const TILE: usize = 64;

/// Row counts of dense products are multiples of this. With one row faer takes another path, with other
/// rounding; from two rows on its results for a row do not depend on the others (a test holds it to that).
pub const LANES: usize = 16;

/// [`TILE`] rows of a thin matrix, column by column: entry (i, j) is at `j * TILE + i`.
#[derive(Clone, Debug)]
pub struct Tile<T> {
    /// The numbers; rows beyond those in use are zero or meaningless, never read back.
    pub values: Vec<T>,
}

impl<T: Real> Tile<T> {
    /// A tile of zeros with `width` columns.
    pub fn new(width: usize) -> Self {
        Tile { values: vec![T::ZERO; TILE * width] }
    }

    /// Column `col`.
    pub fn column(&self, col: usize) -> &[T; TILE] {
        self.values.as_chunks::<TILE>().0.get(col).unwrap_or_else(|| unreachable!("a column of the tile"))
    }

    /// Loads rows stored by row.
    pub fn load(&mut self, rows: &[T], width: usize) {
        for (row, numbers) in rows.chunks_exact(width).enumerate() {
            for (col, &number) in numbers.iter().enumerate() {
                self.values[col * TILE + row] = number;
            }
        }
    }

    /// Stores into rows kept by row.
    pub fn store(&self, rows: &mut [T], width: usize) {
        for (row, numbers) in rows.chunks_exact_mut(width).enumerate() {
            for (col, number) in numbers.iter_mut().enumerate() {
                *number = self.values[col * TILE + row];
            }
        }
    }
}
