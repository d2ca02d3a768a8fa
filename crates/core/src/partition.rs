//! The blocks of M that a rank keeps (Sec. 3.1), and how they are stored.

use std::ops::Range;
use std::sync::Arc;

use crate::Real;
use crate::cancel::Cancel;
use crate::grid::{Factor, Grid, Placement};
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::threads::Threads;

/// How a method reads its blocks, which decides how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whole products: rows of the block one after the other, and one copy of a dense M serves both sides.
    Whole,
    /// Sampled columns of the block, each contiguous.
    Sampled,
}

/// A dense block, as a view with strides of storage that it may share with the block of the other side.
#[derive(Clone, Debug)]
pub struct DenseBlock<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distance in storage between an entry and the one below it.
    pub row_stride: usize,
    /// Distance in storage between an entry and the one to its right.
    pub col_stride: usize,
    /// The storage; entry (i, j) is at `i * row_stride + j * col_stride`.
    pub values: Arc<Values<T>>,
}

/// One side's part of M, with the rows that the side's factor block belongs to as its rows: M_{I_r:} for U,
/// (M_{:J_r})ᵀ for V.
#[derive(Clone, Debug)]
pub enum Block<T> {
    /// Dense.
    Dense(DenseBlock<T>),
    /// Sparse, by row.
    ByRow(Arc<Csr<T>>),
    /// Sparse, by column: the matrix inside is the block's transpose.
    ByColumn(Arc<Csr<T>>),
}

impl<T: Real> Block<T> {
    /// The whole of M, or of Mᵀ, without a copy.
    pub fn of(matrix: Matrix<T>, transposed: bool) -> Self {
        match (matrix, transposed) {
            (Matrix::Dense(dense), false) => Block::Dense(DenseBlock::of(dense)),
            (Matrix::Dense(dense), true) => Block::Dense(DenseBlock::of(dense.into_transpose())),
            (Matrix::Sparse(csr), false) => Block::ByRow(Arc::new(csr)),
            (Matrix::Sparse(csr), true) => Block::ByColumn(Arc::new(csr)),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Block::Dense(dense) => dense.rows,
            Block::ByRow(csr) => csr.rows(),
            Block::ByColumn(transpose) => transpose.cols(),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Block::Dense(dense) => dense.cols,
            Block::ByRow(csr) => csr.cols(),
            Block::ByColumn(transpose) => transpose.rows(),
        }
    }

    /// A matrix as its own block and, transposed, as that of the other side, without a copy.
    pub fn both_ways(matrix: Matrix<T>) -> (Self, Self) {
        match matrix {
            Matrix::Dense(dense) => {
                let block = DenseBlock::of(dense);
                let turned = block.transposed();
                (Block::Dense(block), Block::Dense(turned))
            }
            Matrix::Sparse(csr) => {
                let csr = Arc::new(csr);
                (Block::ByRow(csr.clone()), Block::ByColumn(csr))
            }
        }
    }

    /// Undoes [`Block::both_ways`] of a matrix by row, for its memory; nothing if somebody else still has it.
    pub fn into_matrix(self, turned: Self) -> Option<Matrix<T>> {
        drop(turned);
        match self {
            Block::Dense(DenseBlock { rows, cols, values, .. }) => {
                let values = Arc::into_inner(values)?;
                Some(Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, values)))
            }
            Block::ByRow(csr) => Arc::into_inner(csr).map(Matrix::Sparse),
            Block::ByColumn(_) => None,
        }
    }

    /// Sums and sums of squares of the rows, in one pass; a row's terms are added in the order of its columns,
    /// however the block is stored. A row with an entry that no factorization can take (negative, infinite, NaN) has
    /// sums that are not finite.
    pub fn row_sums(&self, threads: &Threads) -> RowSums {
        const PARTS: usize = 64;
        let mut sums = RowSums::new(self.rows());
        match self {
            Block::Dense(_) | Block::ByRow(_) => {
                let length = self.rows().div_ceil(PARTS).max(1);
                let slices = sums.sums.chunks_mut(length).zip(sums.squares.chunks_mut(length));
                let parts = slices.enumerate().map(|(part, sums)| (part * length, sums)).collect();
                threads.map(parts, || (), |(), (first, (sums, squares))| self.add_some(first, sums, squares));
            }
            Block::ByColumn(_) => self.add_row_sums(&mut sums),
        }
        sums
    }

    /// Which rows have an entry that is not zero.
    pub fn used_rows(&self) -> Vec<bool> {
        let mut used = vec![false; self.rows()];
        match self {
            Block::Dense(dense) => match &*dense.values {
                Values::Bytes(bytes) => dense.mark_used(bytes, &mut used),
                Values::Real(reals) => dense.mark_used(reals, &mut used),
            },
            Block::ByRow(csr) => {
                let any = |row| csr.row(row).1.iter().any(|&value| value != T::ZERO);
                used.iter_mut().enumerate().for_each(|(row, used)| *used = any(row));
            }
            Block::ByColumn(transpose) => {
                for col in 0..transpose.rows() {
                    let (rows, values) = transpose.row(col);
                    rows.iter().zip(values).for_each(|(&row, &value)| used[row as usize] |= value != T::ZERO);
                }
            }
        }
        used
    }

    /// Goes on with the sums of the same rows over the columns before these.
    pub fn add_row_sums(&self, sums: &mut RowSums) {
        self.add_some(0, &mut sums.sums, &mut sums.squares);
    }

    /// The same for some rows, from `first` on; of a block by column all must be asked for.
    fn add_some(&self, first: usize, sums: &mut [f64], squares: &mut [f64]) {
        let rows = sums.len();
        let mut add = |row: usize, value: T| {
            let value = nonnegative(value);
            sums[row] += value;
            squares[row] += value * value;
        };
        match self {
            Block::Dense(dense) => match &*dense.values {
                Values::Bytes(bytes) if dense.row_stride != 1 => dense.add_bytes(bytes, first, sums, squares),
                Values::Bytes(bytes) => dense.add_rows(bytes, |byte| byte as f64, first, sums, squares),
                Values::Real(reals) => dense.add_rows(reals, nonnegative, first, sums, squares),
            },
            Block::ByRow(csr) => {
                for row in 0..rows {
                    csr.row(first + row).1.iter().for_each(|&value| add(row, value));
                }
            }
            Block::ByColumn(transpose) => {
                for col in 0..transpose.rows() {
                    let (rows, values) = transpose.row(col);
                    rows.iter().zip(values).for_each(|(&row, &value)| add(row as usize, value));
                }
            }
        }
    }
}

/// An entry in `f64`; NaN if it is negative.
fn nonnegative<T: Real>(value: T) -> f64 {
    if value >= T::ZERO { value.to_f64() } else { f64::NAN }
}

/// What a pass over a block tells of its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSums {
    /// Σ_j M_ij.
    pub sums: Vec<f64>,
    /// Σ_j M_ij².
    pub squares: Vec<f64>,
}

impl RowSums {
    /// Sums of nothing, of so many rows.
    pub fn new(rows: usize) -> Self {
        RowSums { sums: vec![0.0; rows], squares: vec![0.0; rows] }
    }

    /// The first row with an entry that no factorization can take.
    pub fn first_bad_row(&self) -> Option<usize> {
        self.sums.iter().position(|sum| !sum.is_finite())
    }
}

/// All that one rank holds of M.
#[derive(Clone, Debug)]
pub struct Shard<T> {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries of the whole of M.
    pub stored: usize,
    /// Where the rank stands.
    pub place: Placement,
    /// I_r, the rows of U that the rank owns.
    pub own_rows: Range<usize>,
    /// J_r, the rows of V that the rank owns.
    pub own_cols: Range<usize>,
    /// The block that moves U: M_{I_r:}, or the rank's block of the grid.
    pub by_rows: Block<T>,
    /// The block that moves V: (M_{:J_r})ᵀ, or the transpose of the rank's block of the grid.
    pub by_cols: Block<T>,
}

impl<T: Real> Shard<T> {
    /// From the rank's part of M: one block of the grid, or with sampled access whole rows, and whole columns beside
    /// them. (With one rank these are the same.)
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
        }
    }

    /// The block that moves a factor.
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
                Access::Whole => (Block::Dense(by_rows), Block::Dense(by_cols)),
                Access::Sampled => {
                    let whole = |block: DenseBlock<T>| Block::Dense(block.by_column(0..block.rows, cancel));
                    (whole(by_rows), whole(by_cols))
                }
            }
        }
        (Matrix::Sparse(csr), access) => {
            let (csr, transpose) = csr.both_ways(cancel);
            match access {
                Access::Whole => (Block::ByRow(csr), Block::ByRow(transpose)),
                Access::Sampled => (Block::ByColumn(transpose), Block::ByColumn(csr)),
            }
        }
    }
}

/// Deals M out to the ranks of a grid. One rank gets M itself, without a copy for an exact method on a dense M.
pub fn shards<T: Real>(matrix: Matrix<T>, grid: Grid, access: Access) -> Vec<Shard<T>> {
    shards_until(matrix, grid, access, &Cancel::default())
}

/// What [`shards`] returns, unless it is cancelled ([`Cancel::scope`]): of a large matrix it takes a while.
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
        let columns = (access == Access::Sampled).then(|| part(Factor::V));
        Shard::new_until(place, stored, part(Factor::U), columns, cancel)
    };
    (0..grid.size()).map(shard).collect()
}

impl<T: Real> DenseBlock<T> {
    fn of(dense: Dense<T>) -> Self {
        let (rows, cols) = (dense.rows(), dense.cols());
        let (row_stride, col_stride) = match dense.order() {
            Order::RowMajor => (cols, 1),
            Order::ColMajor => (1, rows),
        };
        DenseBlock { rows, cols, row_stride, col_stride, values: Arc::new(dense.into_values()) }
    }

    fn transposed(&self) -> Self {
        DenseBlock {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            values: self.values.clone(),
        }
    }

    /// The given rows, with every column contiguous: shared if they are so already, copied otherwise.
    fn by_column(&self, range: Range<usize>, cancel: &Cancel) -> Self {
        if self.row_stride == 1 && range == (0..self.rows) {
            return self.clone();
        }
        let values = match &*self.values {
            Values::Bytes(bytes) => Values::Bytes(self.copy_by_column(bytes, range.clone(), cancel).into()),
            Values::Real(reals) => Values::Real(self.copy_by_column(reals, range.clone(), cancel).into()),
        };
        let rows = range.len();
        DenseBlock { rows, cols: self.cols, row_stride: 1, col_stride: rows, values: Arc::new(values) }
    }

    fn add_rows<E: Copy>(
        &self,
        values: &[E],
        exact: impl Fn(E) -> f64,
        first: usize,
        sums: &mut [f64],
        squares: &mut [f64],
    ) {
        /// Rows added up side by side: one alone would wait for each of its sums.
        const ABREAST: usize = 8;
        if self.row_stride == 1 {
            for col in 0..self.cols {
                let column = &values[col * self.col_stride + first..][..sums.len()];
                for ((sum, square), &value) in sums.iter_mut().zip(&mut *squares).zip(column) {
                    let value = exact(value);
                    *sum += value;
                    *square += value * value;
                }
            }
            return;
        }
        let targets = sums.chunks_mut(ABREAST).zip(squares.chunks_mut(ABREAST));
        for (group, (sums, squares)) in targets.enumerate() {
            // A last group of fewer rows has its last one several times.
            let row = |row: usize| first + group * ABREAST + row.min(sums.len() - 1);
            let rows: [&[E]; ABREAST] =
                std::array::from_fn(|index| &values[row(index) * self.row_stride..][..self.cols]);
            let mut totals = [(0.0, 0.0); ABREAST];
            totals
                .iter_mut()
                .zip(sums.iter().zip(&*squares))
                .for_each(|(total, (&sum, &square))| *total = (sum, square));
            for col in 0..self.cols {
                for (total, row) in totals.iter_mut().zip(rows) {
                    let value = exact(row[col]);
                    *total = (total.0 + value, total.1 + value * value);
                }
            }
            for (total, (sum, square)) in totals.iter().zip(sums.iter_mut().zip(squares)) {
                (*sum, *square) = *total;
            }
        }
    }

    /// Bytes by row: whole numbers, exact in any order.
    fn add_bytes(&self, bytes: &[u8], first: usize, sums: &mut [f64], squares: &mut [f64]) {
        /// The squares of so many bytes fit into 32 bits.
        const FITS: usize = 1 << 16;
        for (row, (sum, square)) in sums.iter_mut().zip(squares).enumerate() {
            for entries in bytes[(first + row) * self.row_stride..][..self.cols].chunks(FITS) {
                *sum += entries.iter().map(|&byte| u32::from(byte)).sum::<u32>() as f64;
                *square += entries.iter().map(|&byte| u32::from(byte).pow(2)).sum::<u32>() as f64;
            }
        }
    }

    fn mark_used<E: Copy + Default + PartialEq>(&self, values: &[E], used: &mut [bool]) {
        if self.row_stride == 1 {
            for col in 0..self.cols {
                let column = &values[col * self.col_stride..][..self.rows];
                used.iter_mut().zip(column).for_each(|(used, &value)| *used |= value != E::default());
            }
        } else {
            for (row, used) in used.iter_mut().enumerate() {
                *used =
                    values[row * self.row_stride..][..self.cols].iter().any(|&value| value != E::default());
            }
        }
    }

    /// In square patches, so that both the lines read and the lines written stay in cache.
    fn copy_by_column<E: Copy + Default>(
        &self,
        values: &[E],
        range: Range<usize>,
        cancel: &Cancel,
    ) -> Vec<E> {
        const PATCH: usize = 64;
        let rows = range.len();
        let mut copy = vec![E::default(); rows * self.cols];
        for first_row in (0..rows).step_by(PATCH) {
            for first_col in (0..self.cols).step_by(PATCH) {
                cancel.check();
                for col in first_col..self.cols.min(first_col + PATCH) {
                    for row in first_row..rows.min(first_row + PATCH) {
                        copy[col * rows + row] =
                            values[(range.start + row) * self.row_stride + col * self.col_stride];
                    }
                }
            }
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;

    /// Python deals a matrix out before the first iteration, and Ctrl-C takes effect there too.
    #[test]
    fn dealing_out_can_be_cancelled() {
        let csr = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0f64, 2.0, 3.0]);
        let dense = Dense::new(2, 3, Order::RowMajor, Values::Real(vec![1.0; 6].into()));
        let cancel = Cancel::default();
        cancel.cancel();
        for (matrix, access) in [
            (Matrix::Sparse(csr.clone()), Access::Whole),
            (Matrix::Sparse(csr.clone()), Access::Sampled),
            (Matrix::Dense(dense), Access::Sampled),
        ] {
            let dealt = cancel.scope(|| Ok(shards_until(matrix, Grid::ONE, access, &cancel)));
            assert!(matches!(dealt, Err(Error::Interrupted)), "{access:?}");
        }
        let turned = cancel.scope(|| Ok(Csr::from_transpose(csr, &cancel)));
        assert!(matches!(turned, Err(Error::Interrupted)));
    }

    fn entry(block: &Block<f64>, row: usize, col: usize) -> f64 {
        let find = |csr: &Csr<f64>, row: usize, col: usize| {
            let (cols, values) = csr.row(row);
            cols.binary_search(&(col as u32)).map_or(0.0, |place| values[place])
        };
        match block {
            Block::Dense(dense) => dense.values.get(row * dense.row_stride + col * dense.col_stride),
            Block::ByRow(csr) => find(csr, row, col),
            Block::ByColumn(transpose) => find(transpose, col, row),
        }
    }

    proptest! {
        #[test]
        fn a_shard_holds_its_rows_and_columns_and_no_others(
            rows in 1usize..9, cols in 1usize..9, size in 1usize..6, bytes: bool, by_column: bool,
            sparse: bool, sampled: bool, grid_cols in 1usize..4,
        ) {
            let at = |row: usize, col: usize| ((row * cols + col) % 7) as u8;
            let threads = Threads::new(2).unwrap();
            let order = if by_column { Order::ColMajor } else { Order::RowMajor };
            let values: Vec<u8> = match order {
                Order::RowMajor => (0..rows * cols).map(|i| at(i / cols, i % cols)).collect(),
                Order::ColMajor => (0..rows * cols).map(|i| at(i % rows, i / rows)).collect(),
            };
            let matrix = if sparse {
                let offsets = (0..=rows).map(|row| row * cols).collect();
                let indices: Vec<u32> = (0..rows * cols).map(|i| (i % cols) as u32).collect();
                let entries: Vec<f64> = (0..rows * cols).map(|i| at(i / cols, i % cols) as f64).collect();
                let csr = Csr::new(rows, cols, offsets, indices, entries);
                Matrix::Sparse(if by_column { Csr::from_transpose(csr.transpose(), &Cancel::default()) } else { csr })
            } else if bytes {
                Matrix::Dense(Dense::new(rows, cols, order, Values::Bytes(values.into())))
            } else {
                let reals = values.iter().map(|&value| value as f64).collect();
                Matrix::Dense(Dense::new(rows, cols, order, Values::Real(reals)))
            };
            let access = if sampled { Access::Sampled } else { Access::Whole };
            let grid = if sampled || size % grid_cols > 0 {
                Grid::tall(size)
            } else {
                Grid { rows: size / grid_cols, cols: grid_cols }
            };
            for shard in shards(matrix, grid, access) {
                let (block_rows, block_cols) = shard.place.block(Factor::U);
                prop_assert_eq!((shard.by_rows.rows(), shard.by_rows.cols()), (block_rows.len(), block_cols.len()));
                for row in block_rows.clone() {
                    for col in block_cols.clone() {
                        let (i, j) = (row - block_rows.start, col - block_cols.start);
                        prop_assert_eq!(entry(&shard.by_rows, i, j), at(row, col) as f64);
                    }
                }
                let (turned_cols, turned_rows) = shard.place.block(Factor::V);
                prop_assert_eq!((shard.by_cols.rows(), shard.by_cols.cols()), (turned_rows.len(), turned_cols.len()));
                for row in turned_cols.clone() {
                    for col in turned_rows.clone() {
                        let (i, j) = (col - turned_rows.start, row - turned_cols.start);
                        prop_assert_eq!(entry(&shard.by_cols, i, j), at(row, col) as f64);
                    }
                }
                let RowSums { sums, squares } = shard.by_rows.row_sums(&threads);
                for ((row, sum), square) in block_rows.zip(sums).zip(squares) {
                    prop_assert_eq!(sum, block_cols.clone().map(|col| at(row, col) as f64).sum::<f64>());
                    prop_assert_eq!(square, block_cols.clone().map(|col| (at(row, col) as f64).powi(2)).sum::<f64>());
                }
                let used: Vec<bool> = turned_rows.map(|col| turned_cols.clone().any(|row| at(row, col) > 0)).collect();
                prop_assert_eq!(shard.by_cols.used_rows(), used);
                if let (Access::Sampled, Block::Dense(block)) = (access, &shard.by_rows) {
                    prop_assert_eq!(block.row_stride, 1);
                }
            }
        }
    }
}
