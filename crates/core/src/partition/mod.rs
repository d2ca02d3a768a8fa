//! The blocks of M that a rank keeps (Sec. 3.1), and their storage.

mod block;
mod dense;
mod sums;
#[cfg(test)]
mod tests;
mod zero;

use std::ops::Range;
use std::sync::Arc;

use crate::Real;
use crate::cancel::Cancel;
use crate::grid::{Factor, Grid, Placement};
use crate::matrix::{HeldOut, Matrix, Observed, Shape};
pub use block::Block;
pub use dense::DenseBlock;
pub use sums::RowSums;

/// How a method reads its blocks, which determines their storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whole products: rows of the block in sequence, and one copy of a dense M serves both sides.
    Whole,
    /// Sampled columns of the block, each contiguous.
    Sampled,
    /// Complete rows and, in addition, complete columns of M, each line by line.
    Lines,
}

impl Access {
    /// Whether a process has complete rows and complete columns of M, rather than one block of a grid.
    pub fn has_lines(self) -> bool {
        matches!(self, Access::Sampled | Access::Lines)
    }
}

/// The part of M that one rank holds.
#[derive(Clone, Debug)]
pub struct Shard<T> {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries of the whole of M.
    pub stored: usize,
    /// The rank's place in the grid.
    pub place: Placement,
    /// I_r, the rows of U that the rank owns.
    pub own_rows: Range<usize>,
    /// J_r, the rows of V that the rank owns.
    pub own_cols: Range<usize>,
    /// The block that updates U: M_{I_r:}, or the rank's block of the grid.
    pub by_rows: Block<T>,
    /// The block that updates V: (M_{:J_r})ᵀ, or the transpose of the rank's block of the grid.
    pub by_cols: Block<T>,
    /// Held-out entries of the own rows.
    pub held: Vec<HeldOut>,
}

impl<T: Real> Shard<T> {
    /// The sizes of the whole of M.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows, cols: self.cols }
    }

    /// Builds the blocks from the rank's part of M: one block of the grid, or with sampled access whole rows and
    /// whole columns. (With one rank these are the same.)
    pub fn new(place: Placement, stored: usize, part: Matrix<T>, columns: Option<Matrix<T>>) -> Self {
        Shard::new_until(place, stored, part, columns, &Cancel::default())
    }

    fn new_until(
        place: Placement,
        stored: usize,
        part: Matrix<T>,
        columns: Option<Matrix<T>>,
        cancel: &Cancel,
    ) -> Self {
        let (by_rows, by_cols) = match columns {
            Some(columns) if place.access == Access::Lines => {
                let by_cols = match columns {
                    Matrix::Sparse(columns) => Block::ByRow(Arc::new(columns.transpose_until(cancel))),
                    dense => Block::of(dense, true),
                };
                (Block::of(part, false), by_cols)
            }
            // Compressed rows of the columns are the transposed block by column, already.
            Some(Matrix::Sparse(columns)) => (by_column(part, cancel), Block::ByColumn(Arc::new(columns))),
            Some(dense) => (by_column(part, cancel), by_column(dense.into_transpose(), cancel)),
            None => stored_both_ways(part, place.access, cancel),
        };
        Shard {
            rows: place.rows,
            cols: place.cols,
            stored,
            place,
            own_rows: place.own(Factor::U),
            own_cols: place.own(Factor::V),
            by_rows,
            by_cols,
            held: Vec::new(),
        }
    }

    /// The block that updates a factor.
    pub fn block(&self, factor: Factor) -> &Block<T> {
        match factor {
            Factor::U => &self.by_rows,
            Factor::V => &self.by_cols,
        }
    }
}

/// A block of which columns are sampled.
fn by_column<T: Real>(part: Matrix<T>, cancel: &Cancel) -> Block<T> {
    match part {
        Matrix::Dense(dense) => {
            let block = DenseBlock::of(dense);
            Block::Dense(block.by_column(0..block.rows, cancel))
        }
        Matrix::Sparse(csr) => Block::ByColumn(Arc::new(csr.transpose_until(cancel))),
    }
}

/// A block that both sides use: a dense one is stored once, unless columns must be contiguous for both.
fn stored_both_ways<T: Real>(part: Matrix<T>, access: Access, cancel: &Cancel) -> (Block<T>, Block<T>) {
    match (part, access) {
        (Matrix::Dense(dense), access) => {
            let by_rows = DenseBlock::of(dense);
            let by_cols = by_rows.transposed();
            match access {
                Access::Whole | Access::Lines => (Block::Dense(by_rows), Block::Dense(by_cols)),
                Access::Sampled => {
                    let whole = |block: DenseBlock<T>| Block::Dense(block.by_column(0..block.rows, cancel));
                    (whole(by_rows), whole(by_cols))
                }
            }
        }
        (Matrix::Sparse(csr), access) => {
            let (csr, transpose) = csr.both_ways(cancel);
            match access {
                Access::Whole | Access::Lines => (Block::ByRow(csr), Block::ByRow(transpose)),
                Access::Sampled => (Block::ByColumn(transpose), Block::ByColumn(csr)),
            }
        }
    }
}

/// Distributes weighted entries to processes: complete rows and complete columns.
pub fn observed_shards<T: Real>(observed: &Observed<T>, processes: usize, cancel: &Cancel) -> Vec<Shard<T>> {
    (0..processes).map(|rank| observed_shard(observed, processes, rank, cancel)).collect()
}

/// One process's part of weighted entries.
pub fn observed_shard<T: Real>(
    observed: &Observed<T>,
    processes: usize,
    rank: usize,
    cancel: &Cancel,
) -> Shard<T> {
    let (rows, cols, stored) = (observed.rows(), observed.cols(), observed.values().stored());
    let place = Placement { rows, cols, grid: Grid::tall(processes), rank, access: Access::Lines };
    let part = |factor| {
        let (rows, cols) = place.block(factor);
        observed.part(rows, cols)
    };
    let own_rows = place.own(Factor::U);
    let held = observed.held().iter().filter(|held| own_rows.contains(&held.row)).copied().collect();
    Shard {
        rows,
        cols,
        stored,
        place,
        own_rows,
        own_cols: place.own(Factor::V),
        by_rows: Block::Observed(Arc::new(part(Factor::U))),
        by_cols: Block::Observed(Arc::new(part(Factor::V).transpose_until(cancel))),
        held,
    }
}

/// Distributes M to the ranks of a grid. A single rank gets M itself, without a copy for an exact method on a dense
/// M.
pub fn shards<T: Real>(matrix: Matrix<T>, grid: Grid, access: Access) -> Vec<Shard<T>> {
    shards_until(matrix, grid, access, &Cancel::default())
}

/// Does the work of [`shards`], unless it is cancelled ([`Cancel::scope`]), because a large matrix takes a while.
pub fn shards_until<T: Real>(
    matrix: Matrix<T>,
    grid: Grid,
    access: Access,
    cancel: &Cancel,
) -> Vec<Shard<T>> {
    let (rows, cols, stored) = (matrix.rows(), matrix.cols(), matrix.stored());
    let place = |rank| Placement { rows, cols, grid, rank, access };
    if grid.size() == 1 {
        return vec![Shard::new_until(place(0), stored, matrix, None, cancel)];
    }
    let shard = |rank| {
        cancel.check();
        let place = place(rank);
        let part = |factor| {
            let (rows, cols) = place.block(factor);
            matrix.part(rows, cols)
        };
        let columns = access.has_lines().then(|| part(Factor::V));
        Shard::new_until(place, stored, part(Factor::U), columns, cancel)
    };
    (0..grid.size()).map(shard).collect()
}
