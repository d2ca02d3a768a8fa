//! A block of M, or some of its columns, times a thin matrix.

mod dense;
mod sparse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::{EntryPanel, EntryRow, TILE, Tile};
use crate::Real;
use crate::matrix::{Csr, Observed, ObservedRow, Unlisted};
use crate::partition::{Block, DenseBlock};
use crate::real::precompiled;
use crate::threads::Threads;
pub use dense::DEPTH;
use sparse::{GatherRows, Slot, scatter, slots};

/// The selection of a block's columns.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// All columns.
    All,
    /// These, ascending.
    Some(&'a [usize]),
    /// All, summed in groups: column j, with the sign of `slots[j]`, in group |`slots[j]`| − 1.
    Hashed(&'a [i32]),
}

impl Columns<'_> {
    /// The weights of all `length` columns of a block, by column; unselected columns have zeros. `weights` has a
    /// row of k numbers for each selected column or group.
    pub fn spread<T: Real>(&self, weights: &[T], length: usize, k: usize) -> Vec<T> {
        let mut all = vec![T::ZERO; length * k];
        let mut set = |column: usize, place: usize, negative: bool| {
            let values = weights[place * k..][..k].iter().map(|&value| if negative { -value } else { value });
            all[column * k..][..k].iter_mut().zip(values).for_each(|(target, value)| *target = value);
        };
        match self {
            Columns::All => return weights.to_vec(),
            Columns::Some(columns) => {
                columns.iter().enumerate().for_each(|(place, &column)| set(column, place, false));
            }
            Columns::Hashed(slots) => slots.iter().enumerate().for_each(|(column, &slot)| {
                set(column, slot.unsigned_abs() as usize - 1, slot < 0);
            }),
        }
        all
    }

    /// The column of the block that is number `index` of these.
    #[inline(always)]
    fn at(&self, index: usize) -> usize {
        match self {
            Columns::Some(columns) => columns[index],
            Columns::All | Columns::Hashed(_) => index,
        }
    }

    /// Checks the number of rows of weights.
    fn fit(&self, rows: usize, all: usize) -> bool {
        match self {
            Columns::All => rows == all,
            Columns::Some(columns) => rows == columns.len(),
            Columns::Hashed(slots) => {
                slots.len() == all
                    && slots.iter().all(|&place| place != 0 && place.unsigned_abs() as usize <= rows)
            }
        }
    }
}

/// The right-hand side of a product: a row of k numbers for each selected column or group.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    values: &'a [T],
    k: usize,
}

impl<T> Weights<'_, T> {
    /// Number of rows.
    fn rows(&self) -> usize {
        self.values.len() / self.k
    }
}

/// block[:, columns] · weights, with k columns, computed tile by tile.
pub struct Product<'a, T: Real> {
    weights: &'a [T],
    k: usize,
    source: Origin<'a, T>,
}

enum Origin<'a, T: Real> {
    Dense(&'a DenseBlock<T>, Columns<'a>),
    /// Row by row; if only some columns are selected, `slots` has each column's row of the weights.
    ByRow(&'a Csr<T>, Option<Vec<Slot>>),
    /// Row by row, of entries with weights.
    Observed(&'a Observed<T>),
    /// Computed already, stored by row.
    Ready(Cow<'a, [T]>),
}

/// The entries of one row of a block; of a sparse one those that are stored.
pub struct RowEntries<'a, T> {
    line: Line<'a, T>,
    weights: &'a [T],
    k: usize,
}

enum Line<'a, T> {
    Dense(&'a DenseBlock<T>, usize),
    Sparse(&'a [u32], &'a [T]),
    Observed(ObservedRow<'a, T>),
}

impl<T: Real> RowEntries<'_, T> {
    /// Whether every entry is stored.
    pub fn is_dense(&self) -> bool {
        matches!(self.line, Line::Dense(..))
    }

    /// The number of entries.
    pub fn count(&self) -> usize {
        match self.line {
            Line::Dense(block, _) => block.cols,
            Line::Sparse(columns, _) => columns.len(),
            Line::Observed(row) => row.cols.len(),
        }
    }

    /// The number of entries above 0.
    pub fn count_positive(&self) -> usize {
        let mut count = 0;
        self.for_each(|value, _| count += usize::from(value > T::ZERO));
        count
    }

    /// Whether all entries have weight 1, and entries that are not stored are 0.
    pub fn is_plain(&self) -> bool {
        !matches!(self.line, Line::Observed(_))
    }

    /// How unlisted entries are interpreted.
    pub fn unlisted(&self) -> Unlisted {
        match self.line {
            Line::Observed(row) => row.unlisted,
            Line::Dense(..) | Line::Sparse(..) => Unlisted::Zero,
        }
    }

    /// Whether most entries are known, all of weight 1.
    pub fn lacks_few(&self) -> bool {
        let columns = self.weights.len() / self.k;
        match self.line {
            Line::Observed(ObservedRow { cols, weights: None, unlisted: Unlisted::Unknown, .. }) => {
                2 * cols.len() > columns
            }
            _ => false,
        }
    }

    /// Calls a function for the row of weights of each column without an entry.
    pub fn for_each_unlisted(&self, mut take: impl FnMut(&[T])) {
        let Line::Observed(ObservedRow { cols, .. }) = self.line else { return };
        let mut listed = cols.iter().peekable();
        for (col, weights) in self.weights.chunks_exact(self.k).enumerate() {
            if listed.next_if(|&&listed| listed as usize == col).is_none() {
                take(weights);
            }
        }
    }

    /// Calls a function for each entry with its weight and its column's row of weights.
    pub fn for_each_weighted(&self, mut take: impl FnMut(T, T, &[T])) {
        let Line::Observed(ObservedRow { cols, values, weights, .. }) = self.line else {
            return self.for_each(|value, of_column| take(value, T::ONE, of_column));
        };
        for (place, (&col, &value)) in cols.iter().zip(values).enumerate() {
            let weight = weights.map_or(T::ONE, |weights| weights[place]);
            take(value, weight, &self.weights[col as usize * self.k..][..self.k]);
        }
    }

    /// Copies the entries.
    pub fn values_into(&self, target: &mut Vec<T>) {
        target.clear();
        self.for_each(|value, _| target.push(value));
    }

    /// Copies the entries above 0 times their weights, and gathers the rows of weights of their columns.
    pub fn gather_positive(&self, panel: &mut EntryPanel<T>, target: &mut Vec<T>) {
        target.clear();
        panel.begin(self.count_positive(), self.k);
        self.for_each_weighted(|value, weight, of_column| {
            if value > T::ZERO {
                panel.set(target.len(), of_column);
                target.push(weight * value);
            }
        });
    }

    /// Calls a function for each entry with its column's row of weights.
    pub fn for_each(&self, mut take: impl FnMut(T, &[T])) {
        let weights = |col: usize| &self.weights[col * self.k..][..self.k];
        match self.line {
            Line::Dense(block, row) => (0..block.cols).for_each(|col| {
                take(block.values.get(row * block.row_stride + col * block.col_stride), weights(col))
            }),
            Line::Sparse(columns, values) => {
                columns.iter().zip(values).for_each(|(&col, &value)| take(value, weights(col as usize)));
            }
            Line::Observed(ObservedRow { cols, values, .. }) => {
                cols.iter().zip(values).for_each(|(&col, &value)| take(value, weights(col as usize)));
            }
        }
    }
}

/// Memory that a thread reuses from tile to tile.
pub struct Scratch<T> {
    gathered: Vec<T>,
    groups: Vec<T>,
    rows: Vec<T>,
    /// The rows of weights of a row's entries.
    pub panel: EntryPanel<T>,
    /// A row's entries.
    pub row: EntryRow<T>,
}

impl<T: Real> Scratch<T> {
    /// Empty; grows on first use.
    pub fn new() -> Self {
        Scratch {
            gathered: Vec::new(),
            groups: Vec::new(),
            rows: Vec::new(),
            panel: EntryPanel::default(),
            row: EntryRow::default(),
        }
    }
}

impl<T: Real> Default for Scratch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T: Real> Product<'a, T> {
    /// `weights` has a row of k numbers for each of the columns, or groups of them. A block kept by column is multiplied here,
    /// all at once; the others when a tile is asked for.
    pub fn new(
        threads: &Threads,
        block: &'a Block<T>,
        columns: Columns<'a>,
        weights: &'a [T],
        k: usize,
    ) -> Self {
        assert!(columns.fit(weights.len() / k, block.cols()), "a row of weights for each column");
        let source = match block {
            Block::Dense(dense) => Origin::Dense(dense, columns),
            Block::ByRow(csr) => Origin::ByRow(csr, slots(columns, csr.cols())),
            Block::Observed(observed) => Origin::Observed(observed),
            Block::ByColumn(transpose) => {
                let mut product = vec![T::ZERO; transpose.cols() * k];
                scatter(threads, transpose, columns, Weights { values: weights, k }, &mut product);
                Origin::Ready(product.into())
            }
        };
        Product { weights, k, source }
    }

    /// An existing product, stored by row.
    pub fn ready(product: impl Into<Cow<'a, [T]>>, k: usize) -> Self {
        Product { weights: &[], k, source: Origin::Ready(product.into()) }
    }

    /// Whether it was computed before.
    pub fn is_ready(&self) -> bool {
        matches!(self.source, Origin::Ready(_))
    }

    /// The rows of weights.
    pub fn weights(&self) -> &'a [T] {
        self.weights
    }

    /// The entries of a row of the block with their rows of weights, if all columns are selected and the product
    /// was not computed before.
    pub fn entries(&self, row: usize) -> Option<RowEntries<'_, T>> {
        let Product { weights, k, .. } = *self;
        match &self.source {
            Origin::Dense(block, Columns::All) => {
                Some(RowEntries { line: Line::Dense(block, row), weights, k })
            }
            Origin::ByRow(csr, None) => {
                let (columns, values) = csr.row(row);
                Some(RowEntries { line: Line::Sparse(columns, values), weights, k })
            }
            Origin::Observed(observed) => {
                Some(RowEntries { line: Line::Observed(observed.row(row)), weights, k })
            }
            _ => None,
        }
    }

    /// Rows `rows` (at most [`TILE`]) of the product, into `tile`.
    pub fn tile(&self, rows: Range<usize>, scratch: &mut Scratch<T>, tile: &mut Tile<T>) {
        match &self.source {
            Origin::Dense(block, columns) => {
                let weights = Weights { values: self.weights, k: self.k };
                dense::tile(block, *columns, weights, rows, scratch, tile)
            }
            Origin::ByRow(csr, slots) => self.gather(csr, slots.as_deref(), rows, scratch, tile),
            Origin::Observed(observed) => self.gather(observed.values(), None, rows, scratch, tile),
            Origin::Ready(product) => tile.load(&product[rows.start * self.k..rows.end * self.k], self.k),
        }
    }

    fn gather(
        &self,
        csr: &Csr<T>,
        slots: Option<&[Slot]>,
        rows: Range<usize>,
        scratch: &mut Scratch<T>,
        tile: &mut Tile<T>,
    ) {
        scratch.rows.resize(rows.len() * self.k, T::ZERO);
        let (weights, k, target) = (self.weights, self.k, &mut scratch.rows[..]);
        pulp::Arch::new().dispatch(GatherRows { csr, rows, slots, weights, k, target });
        tile.load(&scratch.rows, self.k);
    }
}

precompiled! {
    /// The whole of block[:, columns] · weights, stored by row.
    pub fn multiply<T>(
        threads: &Threads,
        block: &Block<T>,
        columns: Columns<'_>,
        weights: &[T],
        k: usize,
    ) -> Vec<T> = multiply_tiles;
}

fn multiply_tiles<T: Real>(
    threads: &Threads,
    block: &Block<T>,
    columns: Columns<'_>,
    weights: &[T],
    k: usize,
) -> Vec<T> {
    let product = Product::new(threads, block, columns, weights, k);
    let mut result = vec![T::ZERO; block.rows() * k];
    threads.map(
        result.chunks_mut(TILE * k).enumerate().collect(),
        || (Scratch::new(), Tile::new(k)),
        |(scratch, tile), (index, rows): (usize, &mut [T])| {
            let first = index * TILE;
            product.tile(first..first + rows.len() / k, scratch, tile);
            tile.store(rows, k);
        },
    );
    result
}

/// Adds block · weights to `sums`, stored by row. Over consecutive blocks of M whose widths are multiples of
/// [`DEPTH`] (except the last), the sums have the bits of the product with all of M; over blocks kept by column,
/// for any widths.
pub fn multiply_add<T: Real>(threads: &Threads, block: &Block<T>, weights: &[T], k: usize, sums: &mut [T]) {
    assert!(weights.len() == block.cols() * k && sums.len() == block.rows() * k, "sizes that fit the block");
    if let Block::ByColumn(transpose) = block {
        return scatter(threads, transpose, Columns::All, Weights { values: weights, k }, sums);
    }
    threads.map(
        sums.chunks_mut(TILE * k).enumerate().collect(),
        || (Scratch::new(), Tile::new(k)),
        |(scratch, tile), (index, sums): (usize, &mut [T])| {
            let rows = index * TILE..index * TILE + sums.len() / k;
            match block {
                Block::Dense(dense) => {
                    tile.load(sums, k);
                    let weights = Weights { values: weights, k };
                    dense::add_to_tile(dense, Columns::All, weights, rows, scratch, tile);
                    tile.store(sums, k);
                }
                Block::ByRow(csr) => {
                    scratch.rows.resize(sums.len(), T::ZERO);
                    let target = &mut scratch.rows[..sums.len()];
                    pulp::Arch::new().dispatch(GatherRows { csr, rows, slots: None, weights, k, target });
                    sums.iter_mut().zip(&scratch.rows).for_each(|(sum, &term)| *sum += term);
                }
                Block::ByColumn(_) | Block::Observed(_) => {
                    unreachable!("scattered above, or never in blocks")
                }
            }
        },
    );
}
