//! Products of a dense block: whole tiles in place where they can be, gathered and converted where not.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Simd, WithSimd};

use super::{Columns, Scratch};
use crate::Real;
use crate::kernels::{LANES, TILE, Tile};
use crate::matrix::Values;
use crate::partition::DenseBlock;

/// Columns of one dense product: 64 rows of 512 `f32` are 128 KiB and stay in the second-level cache. The cut
/// does not depend on the partition, so neither do the rounding errors.
const DEPTH: usize = 512;

/// Rows `rows` of block[:, columns] · weights, into `tile`.
pub fn tile<T: Real>(
    block: &DenseBlock<T>,
    columns: Columns<'_>,
    (weights, k): (&[T], usize),
    rows: Range<usize>,
    scratch: &mut Scratch<T>,
    tile: &mut Tile<T>,
) {
    let count = weights.len() / k;
    let padded = rows.len().next_multiple_of(LANES);
    if let Columns::Hashed(places) = columns {
        add_up(block, places, &rows, count, scratch);
    }
    if count == 0 {
        tile.values.fill(T::ZERO);
    }
    for first in (0..count).step_by(DEPTH) {
        let depth = first..count.min(first + DEPTH);
        let depth_weights =
            MatRef::from_row_major_slice(&weights[depth.start * k..depth.end * k], depth.len(), k);
        let part = match (&*block.values, columns) {
            (Values::Real(reals), Columns::All) if rows.len() == padded => view(block, reals, &rows, &depth),
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
        let target =
            MatMut::from_column_major_slice_with_stride_mut(&mut tile.values[..TILE * k], padded, k, TILE);
        let accumulate = if first == 0 { Accum::Replace } else { Accum::Add };
        matmul(target, accumulate, part, depth_weights, T::ONE, Par::Seq);
    }
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
