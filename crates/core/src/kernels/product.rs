//! A block of M, or some of its columns, times a thin matrix.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Simd, WithSimd};

use super::{LANES, TILE, Tile};
use crate::Real;
use crate::comm::owned;
use crate::matrix::{Csr, Values};
use crate::partition::{Block, DenseBlock};
use crate::threads::Threads;

/// Columns of one dense product: 64 rows of 512 `f32` are 128 KiB and stay in the second-level cache. The cut
/// does not depend on the partition, so neither do the rounding errors.
const DEPTH: usize = 512;

/// Which columns of a block take part.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// All.
    All,
    /// These, ascending.
    Some(&'a [usize]),
    /// All, added up in groups: column j, with the sign of `places[j]`, in the group |`places[j]`| − 1.
    Hashed(&'a [i32]),
}

/// Where the weights of a column are: the row, and whether they count negative.
type Place = (u32, bool);

impl Columns<'_> {
    /// Whether there are as many rows of weights as these columns need.
    fn fit(&self, rows: usize, all: usize) -> bool {
        match self {
            Columns::All => rows == all,
            Columns::Some(columns) => rows == columns.len(),
            Columns::Hashed(places) => {
                places.len() == all
                    && places.iter().all(|&place| place != 0 && place.unsigned_abs() as usize <= rows)
            }
        }
    }
}

/// block[:, columns] · weights, with k columns, to be had tile by tile.
pub struct Product<'a, T> {
    weights: &'a [T],
    k: usize,
    source: Source<'a, T>,
}

enum Source<'a, T> {
    Dense(&'a DenseBlock<T>, Columns<'a>),
    /// Row by row; where only some columns take part, `places` says which row of the weights a column has.
    ByRow(&'a Csr<T>, Option<Vec<Place>>),
    /// Computed already, stored by row.
    Ready(Vec<T>),
}

/// Memory that a thread reuses from tile to tile.
pub struct Scratch<T> {
    gathered: Vec<T>,
    groups: Vec<T>,
    rows: Vec<T>,
}

impl<T: Real> Scratch<T> {
    /// Empty; grows on first use.
    pub fn new() -> Self {
        Scratch { gathered: Vec::new(), groups: Vec::new(), rows: Vec::new() }
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
            Block::Dense(dense) => Source::Dense(dense, columns),
            Block::ByRow(csr) => Source::ByRow(csr, places(columns, csr.cols())),
            Block::ByColumn(transpose) => Source::Ready(scatter(threads, transpose, columns, weights, k)),
        };
        Product { weights, k, source }
    }

    /// Rows `rows` (at most [`TILE`]) of the product, into `tile`.
    pub fn tile(&self, rows: Range<usize>, scratch: &mut Scratch<T>, tile: &mut Tile<T>) {
        match &self.source {
            Source::Dense(block, columns) => self.dense_tile(block, *columns, rows, scratch, tile),
            Source::ByRow(csr, places) => {
                scratch.rows.clear();
                scratch.rows.resize(rows.len() * self.k, T::ZERO);
                for (row, sum) in rows.zip(scratch.rows.chunks_exact_mut(self.k)) {
                    let (row, places) = (csr.row(row), places.as_deref());
                    pulp::Arch::new().dispatch(GatherRow { row, places, weights: self.weights, sum });
                }
                tile.load(&scratch.rows, self.k);
            }
            Source::Ready(product) => tile.load(&product[rows.start * self.k..rows.end * self.k], self.k),
        }
    }

    fn dense_tile(
        &self,
        block: &DenseBlock<T>,
        columns: Columns<'_>,
        rows: Range<usize>,
        scratch: &mut Scratch<T>,
        tile: &mut Tile<T>,
    ) {
        let (k, count) = (self.k, self.weights.len() / self.k);
        let padded = rows.len().next_multiple_of(LANES);
        if let Columns::Hashed(places) = columns {
            add_up(block, places, &rows, count, scratch);
        }
        if count == 0 {
            tile.values.fill(T::ZERO);
        }
        for first in (0..count).step_by(DEPTH) {
            let depth = first..count.min(first + DEPTH);
            let weights =
                MatRef::from_row_major_slice(&self.weights[depth.start * k..depth.end * k], depth.len(), k);
            let part = match (&*block.values, columns) {
                (Values::Real(reals), Columns::All) if rows.len() == padded => {
                    view(block, reals, &rows, &depth)
                }
                (_, Columns::Hashed(_)) => MatRef::from_column_major_slice_with_stride(
                    &scratch.groups[depth.start * TILE..depth.end * TILE],
                    padded,
                    depth.len(),
                    TILE,
                ),
                _ => {
                    scratch.gathered.resize(TILE * DEPTH, T::ZERO);
                    gather(block, columns, &rows, &depth, &mut scratch.gathered);
                    gathered_view(block, &scratch.gathered, padded, depth.len())
                }
            };
            let target = MatMut::from_column_major_slice_with_stride_mut(
                &mut tile.values[..TILE * k],
                padded,
                k,
                TILE,
            );
            let accumulate = if first == 0 { Accum::Replace } else { Accum::Add };
            matmul(target, accumulate, part, weights, T::ONE, Par::Seq);
        }
    }
}

/// The whole of block[:, columns] · weights, stored by row.
pub fn multiply<T: Real>(
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

/// A part of a dense block, in place.
fn view<'v, T: Real>(
    block: &DenseBlock<T>,
    reals: &'v [T],
    rows: &Range<usize>,
    cols: &Range<usize>,
) -> MatRef<'v, T> {
    let first = rows.start * block.row_stride + cols.start * block.col_stride;
    let last = (rows.end - 1) * block.row_stride + (cols.end - 1) * block.col_stride;
    let part = &reals[first..=last];
    if block.row_stride == 1 {
        MatRef::from_column_major_slice_with_stride(part, rows.len(), cols.len(), block.col_stride)
    } else {
        MatRef::from_row_major_slice_with_stride(part, rows.len(), cols.len(), block.row_stride)
    }
}

fn gathered_view<'v, T: Real>(
    block: &DenseBlock<T>,
    gathered: &'v [T],
    rows: usize,
    cols: usize,
) -> MatRef<'v, T> {
    if block.row_stride == 1 {
        MatRef::from_column_major_slice_with_stride(gathered, rows, cols, TILE)
    } else {
        MatRef::from_row_major_slice_with_stride(gathered, rows, cols, DEPTH)
    }
}

/// Copies a part of a dense block, converted, in the order that the block itself has; missing rows are zero.
fn gather<T: Real>(
    block: &DenseBlock<T>,
    columns: Columns<'_>,
    rows: &Range<usize>,
    depth: &Range<usize>,
    gathered: &mut [T],
) {
    let column = |index: usize| match columns {
        Columns::Some(columns) => columns[index],
        Columns::All | Columns::Hashed(_) => index,
    };
    if block.row_stride == 1 {
        for (index, target) in depth.clone().zip(gathered.chunks_exact_mut(TILE)) {
            let first = rows.start + column(index) * block.col_stride;
            convert(&block.values, first, &mut target[..rows.len()]);
            target[rows.len()..].fill(T::ZERO);
        }
    } else {
        for (row, target) in gathered.chunks_exact_mut(DEPTH).enumerate() {
            let target = &mut target[..depth.len()];
            if row >= rows.len() {
                target.fill(T::ZERO);
                continue;
            }
            let first = (rows.start + row) * block.row_stride;
            if let Columns::All = columns {
                convert(&block.values, first + depth.start, target);
            } else {
                for (index, number) in depth.clone().zip(target) {
                    *number = block.values.get(first + column(index));
                }
            }
        }
    }
}

fn convert<T: Real>(values: &Values<T>, first: usize, target: &mut [T]) {
    match values {
        Values::Real(reals) => target.copy_from_slice(&reals[first..first + target.len()]),
        Values::Bytes(bytes) => {
            let bytes = &bytes[first..first + target.len()];
            pulp::Arch::new().dispatch(Widen { bytes, target });
        }
    }
}

struct Widen<'a, T> {
    bytes: &'a [u8],
    target: &'a mut [T],
}

impl<T: Real> WithSimd for Widen<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (number, &byte) in self.target.iter_mut().zip(self.bytes) {
            *number = T::from_f64(byte as f64);
        }
    }
}

/// No row of weights belongs to this column.
const ABSENT: u32 = u32::MAX;

fn places(columns: Columns<'_>, all: usize) -> Option<Vec<Place>> {
    match columns {
        Columns::All => None,
        Columns::Some(columns) => {
            let mut places = vec![(ABSENT, false); all];
            for (place, &column) in columns.iter().enumerate() {
                places[column] = (place as u32, false);
            }
            Some(places)
        }
        Columns::Hashed(places) => {
            Some(places.iter().map(|&place| (place.unsigned_abs() - 1, place < 0)).collect())
        }
    }
}

/// The columns of some rows of a dense block, added up in groups; missing rows are zero.
fn add_up<T: Real>(
    block: &DenseBlock<T>,
    places: &[i32],
    rows: &Range<usize>,
    groups: usize,
    scratch: &mut Scratch<T>,
) {
    scratch.groups.clear();
    scratch.groups.resize(groups * TILE, T::ZERO);
    scratch.rows.resize(TILE, T::ZERO);
    let column = &mut scratch.rows[..rows.len()];
    for (col, &place) in places.iter().enumerate() {
        let first = rows.start * block.row_stride + col * block.col_stride;
        if block.row_stride == 1 {
            convert(&block.values, first, column);
        } else {
            let entries = (0..).map(|row| block.values.get(first + row * block.row_stride));
            column.iter_mut().zip(entries).for_each(|(number, entry)| *number = entry);
        }
        let group =
            scratch.groups[(place.unsigned_abs() as usize - 1) * TILE..][..TILE].iter_mut().zip(&*column);
        if place > 0 {
            group.for_each(|(sum, &number)| *sum += number);
        } else {
            group.for_each(|(sum, &number)| *sum -= number);
        }
    }
}

/// Adds one sparse row times the weights to `sum`.
struct GatherRow<'a, T> {
    row: (&'a [u32], &'a [T]),
    places: Option<&'a [Place]>,
    weights: &'a [T],
    sum: &'a mut [T],
}

impl<T: Real> WithSimd for GatherRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let k = self.sum.len();
        for (&col, &value) in self.row.0.iter().zip(self.row.1) {
            let (place, negative) = self.places.map_or((col, false), |places| places[col as usize]);
            if place != ABSENT {
                let value = if negative { -value } else { value };
                add_scaled(self.sum, value, &self.weights[place as usize * k..][..k]);
            }
        }
    }
}

#[inline(always)]
fn add_scaled<T: Real>(sum: &mut [T], value: T, weights: &[T]) {
    for (sum, &weight) in sum.iter_mut().zip(weights) {
        *sum = value.mul_add(weight, *sum);
    }
}

/// The product of a block kept by column. Each thread owns some rows and finds them in every column; a row's
/// terms are added in the order of the columns, whatever the number of threads.
fn scatter<T: Real>(
    threads: &Threads,
    transpose: &Csr<T>,
    columns: Columns<'_>,
    weights: &[T],
    k: usize,
) -> Vec<T> {
    let rows = transpose.cols();
    let mut product = vec![T::ZERO; rows * k];
    let mut pieces = Vec::new();
    let mut rest = &mut product[..];
    for thread in 0..threads.count() {
        let range = owned(rows, thread, threads.count());
        let (piece, tail) = rest.split_at_mut(range.len() * k);
        rest = tail;
        pieces.push((range, piece));
    }
    threads.map(
        pieces,
        || (),
        |(), (rows, sums): (Range<usize>, &mut [T])| {
            pulp::Arch::new().dispatch(Scatter { transpose, columns, weights, k, rows, sums });
        },
    );
    product
}

/// Adds the terms of some rows, which `sums` holds, column by column.
struct Scatter<'a, T> {
    transpose: &'a Csr<T>,
    columns: Columns<'a>,
    weights: &'a [T],
    k: usize,
    rows: Range<usize>,
    sums: &'a mut [T],
}

impl<T: Real> WithSimd for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let k = self.k;
        let count = match self.columns {
            Columns::Some(columns) => columns.len(),
            Columns::All | Columns::Hashed(_) => self.transpose.rows(),
        };
        for index in 0..count {
            let (column, place, negative) = match self.columns {
                Columns::All => (index, index, false),
                Columns::Some(columns) => (columns[index], index, false),
                Columns::Hashed(places) => {
                    (index, places[index].unsigned_abs() as usize - 1, places[index] < 0)
                }
            };
            let weights = &self.weights[place * k..][..k];
            let (members, values) = self.transpose.row(column);
            let begin = members.partition_point(|&row| (row as usize) < self.rows.start);
            let end = begin + members[begin..].partition_point(|&row| (row as usize) < self.rows.end);
            for (&row, &value) in members[begin..end].iter().zip(&values[begin..end]) {
                let value = if negative { -value } else { value };
                let place = (row as usize - self.rows.start) * k;
                add_scaled(&mut self.sums[place..place + k], value, weights);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Matrix, Order};
    use crate::partition::{Access, shards};
    use crate::random::{Purpose, stream, uniform};
    use proptest::prelude::*;
    use rand::Rng;

    /// The same random matrix (a third of it zero) in every storage.
    fn matrices<T: Real>(rows: usize, cols: usize, seed: u64) -> (Vec<u8>, Vec<Matrix<T>>) {
        let mut rng = stream(seed, Purpose::StartU, 0, 0);
        let entries: Vec<u8> =
            (0..rows * cols).map(|_| (rng.next_u32() % 384).saturating_sub(128) as u8).collect();
        let turned: Vec<u8> = (0..rows * cols).map(|i| entries[i % rows * cols + i / rows]).collect();
        let reals = |bytes: &[u8]| bytes.iter().map(|&byte| T::from_f64(byte as f64)).collect::<Vec<T>>();
        let mut offsets = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in entries.chunks(cols) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0) {
                indices.push(col as u32);
                values.push(T::from_f64(value as f64));
            }
            offsets.push(values.len());
        }
        let dense = |order, values| Matrix::Dense(Dense::new(rows, cols, order, values));
        let all = vec![
            dense(Order::RowMajor, Values::Bytes(entries.clone())),
            dense(Order::ColMajor, Values::Bytes(turned.clone())),
            dense(Order::RowMajor, Values::Real(reals(&entries))),
            dense(Order::ColMajor, Values::Real(reals(&turned))),
            Matrix::Sparse(Csr::new(rows, cols, offsets, indices, values)),
        ];
        (entries, all)
    }

    fn draw<T: Real>(count: usize, seed: u64) -> Vec<T> {
        let mut rng = stream(seed, Purpose::StartV, 0, 0);
        (0..count).map(|_| T::from_f64(uniform(&mut rng))).collect()
    }

    proptest! {
        #[test]
        fn every_storage_gives_the_naive_product(
            rows in 1usize..150, cols in 1usize..40, k in 1usize..9, seed: u64, sampled: bool, threads in 1usize..4,
        ) {
            let threads = Threads::new(threads).unwrap();
            let (entries, all) = matrices::<f64>(rows, cols, seed);
            let picked: Vec<usize> = (0..cols).filter(|col| (seed >> (col % 60)) & 1 == 1).collect();
            let columns = if sampled { Columns::Some(&picked) } else { Columns::All };
            let used: Vec<usize> = if sampled { picked.clone() } else { (0..cols).collect() };
            let weights = draw::<f64>(used.len() * k, seed);
            for matrix in all {
                for access in [Access::Whole, Access::Sampled] {
                    let shard = shards(matrix.clone(), 1, access).remove(0);
                    let got = multiply(&threads, &shard.by_rows, columns, &weights, k);
                    for row in 0..rows {
                        for j in 0..k {
                            let want: f64 = used.iter().enumerate()
                                .map(|(place, col)| entries[row * cols + col] as f64 * weights[place * k + j]).sum();
                            prop_assert!((got[row * k + j] - want).abs() <= 1e-9 * (1.0 + want));
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn columns_added_up_in_groups_give_the_naive_product(
            rows in 1usize..150, cols in 1usize..40, k in 1usize..9, groups in 1usize..7, seed: u64,
        ) {
            let threads = Threads::new(2).unwrap();
            let (entries, all) = matrices::<f64>(rows, cols, seed);
            let mut rng = stream(seed, Purpose::Redraw, 0, 0);
            let mut sign = || if rng.next_u32() & 1 == 1 { -1 } else { 1 };
            let places: Vec<i32> = (0..cols).map(|col| sign() * ((col * 7 + seed as usize % 5) % groups + 1) as i32).collect();
            let weights = draw::<f64>(groups * k, seed);
            for matrix in all {
                for access in [Access::Whole, Access::Sampled] {
                    let shard = shards(matrix.clone(), 1, access).remove(0);
                    let got = multiply(&threads, &shard.by_rows, Columns::Hashed(&places), &weights, k);
                    for row in 0..rows {
                        for j in 0..k {
                            let want: f64 = places.iter().enumerate().map(|(col, place)| {
                                let weight = weights[(place.unsigned_abs() as usize - 1) * k + j];
                                entries[row * cols + col] as f64 * weight * place.signum() as f64
                            }).sum();
                            prop_assert!((got[row * k + j] - want).abs() <= 1e-8);
                        }
                    }
                }
            }
        }
    }

    /// What DSANLS/S's bits rest on: a row of a product is the same whichever rows stand beside it.
    #[test]
    fn a_row_does_not_depend_on_the_partition() {
        fn check<T: Real>(rows: usize, cols: usize, k: usize) {
            let weights = draw::<T>(cols * k, 3);
            let every_third: Vec<usize> = (0..cols).step_by(3).collect();
            let few_weights = &weights[..every_third.len() * k];
            for matrix in matrices::<T>(rows, cols, 5).1 {
                for (columns, weights) in
                    [(Columns::All, &weights[..]), (Columns::Some(&every_third), few_weights)]
                {
                    let product = |size: usize, threads: usize| -> Vec<T> {
                        let threads = Threads::new(threads).unwrap();
                        shards(matrix.clone(), size, Access::Sampled)
                            .iter()
                            .flat_map(|shard| multiply(&threads, &shard.by_rows, columns, weights, k))
                            .collect()
                    };
                    let whole = product(1, 1);
                    for (size, threads) in [(1, 2), (2, 1), (3, 2), (5, 1), (rows, 1), (rows + 3, 1)] {
                        assert!(product(size, threads) == whole, "{rows} x {cols}, k = {k}, {size} ranks");
                    }
                }
            }
        }
        for rows in [1, 2, 3, 7, 33, 130] {
            for cols in [1, 5, 100, 600, 1100] {
                for k in [1, 2, 3, 8, 20, 33] {
                    check::<f32>(rows, cols, k);
                    check::<f64>(rows, cols, k);
                }
            }
        }
    }
}
