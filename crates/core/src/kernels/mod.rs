//! The arithmetic, tile by tile: products of a block of M with a thin matrix, coordinate descent, Gram matrices.
//!
//! Factors are stored by row, k numbers each. Kernels work on a [`Tile`] of [`TILE`] rows turned around, so that
//! SIMD lanes run across rows and a tile stays in cache for all k columns.

mod dense;
mod gram;
mod line;
mod normals;
mod panel;
mod product;
mod sweep;
mod transpose;

pub use dense::{add_product, eigen};
pub use gram::{gram, gram_in_f64};
pub use line::{EntryPanel, EntryRow, EntryTerms};
pub use normals::normals;
pub use product::{Columns, DEPTH, Product, RowEntries, Scratch, multiply, multiply_add};
pub use sweep::{clamp, sweep};
use transpose::{Lines, transpose};

use crate::Real;

/// Rows of a tile. A row's arithmetic does not depend on neighbouring rows, nor on where a rank's rows start.
pub const TILE: usize = 64;

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
        let to = Lines { numbers: &mut self.values[..], stride: TILE };
        transpose(Lines { numbers: rows, stride: width }, to, rows.len() / width, width);
    }

    /// Stores into rows kept by row.
    pub fn store(&self, rows: &mut [T], width: usize) {
        let count = rows.len() / width;
        let to = Lines { numbers: rows, stride: width };
        transpose(Lines { numbers: &self.values[..], stride: TILE }, to, width, count);
    }
}
