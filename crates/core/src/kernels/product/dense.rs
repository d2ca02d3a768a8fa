//! Products of a dense block: whole tiles in place if possible, otherwise gathered and converted.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Columns, Scratch, Weights};
use crate::Real;
use crate::kernels::panel::{Panel, Panels, combine, each_panel};
use crate::kernels::transpose::{Lines, transpose};
use crate::kernels::{TILE, Tile};
use crate::matrix::Values;
use crate::partition::DenseBlock;

/// Columns of M that are summed in registers before they join the tile: 64 rows of them stay in the first-level cache
/// while the panels pass, and long sums lose less. The cut does not depend on the partition, so neither do the
/// rounding errors.
pub const DEPTH: usize = 64;

/// Rows `rows` of block[:, columns] · weights, into `tile`.
pub fn tile<T: Real>(
    block: &DenseBlock<T>,
    columns: Columns<'_>,
    weights: Weights<'_, T>,
    rows: Range<usize>,
    scratch: &mut Scratch<T>,
    tile: &mut Tile<T>,
) {
    tile.values.fill(T::ZERO);
    add_to_tile(block, columns, weights, rows, scratch, tile);
}

/// Adds rows `rows` of block[:, columns] · weights to what `tile` holds.
pub fn add_to_tile<T: Real>(
    block: &DenseBlock<T>,
    columns: Columns<'_>,
    weights: Weights<'_, T>,
    rows: Range<usize>,
    scratch: &mut Scratch<T>,
    tile: &mut Tile<T>,
) {
    let (count, k) = (weights.rows(), weights.k);
    if let Columns::Hashed(places) = columns {
        add_up(block, places, &rows, count, scratch);
    }
    for first in (0..count).step_by(DEPTH) {
        let depth = first..count.min(first + DEPTH);
        let depth_end = depth.end;
        let weights = &weights.values[depth.start * k..depth.end * k];
        let mut starts = [0; DEPTH];
        let starts = &mut starts[..depth.len()];
        let values: &[T] = match (&*block.values, columns) {
            (_, Columns::Hashed(_)) => {
                starts.iter_mut().zip(depth).for_each(|(start, index)| *start = index * TILE);
                &scratch.groups
            }
            // In place.
            (Values::Real(reals), _) if rows.len() == TILE && block.row_stride == 1 => {
                for (start, index) in starts.iter_mut().zip(depth) {
                    *start = rows.start + columns.at(index) * block.col_stride;
                }
                reals
            }
            _ => {
                starts.iter_mut().enumerate().for_each(|(index, start)| *start = index * TILE);
                gather(block, columns, &rows, &depth, scratch);
                &scratch.gathered
            }
        };
        // Prefetches the next part; the hardware does not predict such strides.
        if depth_end < count {
            prefetch(block, columns, rows.clone(), depth_end..count.min(depth_end + DEPTH));
        } else {
            prefetch(block, columns, rows.end..block.rows.min(rows.end + TILE), 0..count.min(DEPTH));
        }
        pulp::Arch::new().dispatch(AddColumns { values, starts, weights, k, tile: &mut tile.values });
    }
}

/// tile += the columns that begin at `starts`, times the weights.
struct AddColumns<'a, T> {
    values: &'a [T],
    starts: &'a [usize],
    weights: &'a [T],
    k: usize,
    tile: &'a mut [T],
}

impl<T: Real> WithSimd for AddColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        each_panel::<T, S>(simd, self.k, &mut self);
    }
}

impl<T: Real> Panels for AddColumns<'_, T> {
    #[inline(always)]
    fn panel<S: Simd, const R: usize, const P: usize>(&mut self, simd: S, panel: Panel) {
        let Panel { registers, strip, first } = panel;
        let columns =
            self.starts.iter().map(|&start| &T::vectors::<S>(&self.values[start..start + TILE])[strip..]);
        let weights = self.weights.chunks_exact(self.k).map(|weights| &weights[first..]);
        let sums = combine::<T, S, R, P>(simd, weights.zip(columns));
        let tile = T::vectors_mut::<S>(self.tile);
        for (col, sums) in sums.iter().enumerate() {
            let target = &mut tile[(first + col) * registers + strip..][..R];
            for part in 0..R {
                target[part] = T::sum(simd, target[part], sums[part]);
            }
        }
    }
}

/// Prefetches the given rows and columns.
fn prefetch<T: Real>(block: &DenseBlock<T>, columns: Columns<'_>, rows: Range<usize>, depth: Range<usize>) {
    if matches!(columns, Columns::Hashed(_)) || rows.is_empty() {
        return;
    }
    if block.row_stride == 1 {
        for index in depth {
            let first = rows.start + columns.at(index) * block.col_stride;
            touch(&block.values, first..first + rows.len());
        }
    } else if let Columns::All = columns {
        for row in rows {
            let first = row * block.row_stride;
            touch(&block.values, first + depth.start..first + depth.end);
        }
    }
}

fn touch<T: Real>(values: &Values<T>, range: Range<usize>) {
    match values {
        Values::Bytes(bytes) => touch_lines(&bytes[range]),
        Values::Real(reals) => touch_lines(&reals[range]),
    }
}

#[inline(always)]
fn touch_lines<E>(numbers: &[E]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        const LINE: usize = 64;
        let last = numbers.len().saturating_sub(1);
        for index in (0..numbers.len()).step_by(LINE / size_of::<E>()).chain([last]) {
            // SAFETY: a prefetch reads nothing and cannot fault.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(numbers.as_ptr().wrapping_add(index).cast()) };
        }
    }
}

/// Copies some columns of a tile's rows, converted, each contiguous; missing rows are zero.
fn gather<T: Real>(
    block: &DenseBlock<T>,
    columns: Columns<'_>,
    rows: &Range<usize>,
    depth: &Range<usize>,
    scratch: &mut Scratch<T>,
) {
    scratch.gathered.resize(TILE * DEPTH, T::ZERO);
    if block.row_stride == 1 {
        for (index, target) in depth.clone().zip(scratch.gathered.chunks_exact_mut(TILE)) {
            let first = rows.start + columns.at(index) * block.col_stride;
            convert(&block.values, first, &mut target[..rows.len()]);
            target[rows.len()..].fill(T::ZERO);
        }
        return;
    }
    let to = Lines { numbers: &mut scratch.gathered[..], stride: TILE };
    if let (Values::Real(reals), Columns::All) = (&*block.values, columns) {
        to.numbers[..depth.len() * TILE].fill(T::ZERO);
        let numbers = &reals[rows.start * block.row_stride + depth.start..];
        return transpose(Lines { numbers, stride: block.row_stride }, to, rows.len(), depth.len());
    }
    scratch.rows.resize(TILE * DEPTH, T::ZERO);
    scratch.rows[rows.len() * DEPTH..].fill(T::ZERO);
    for (row, target) in rows.clone().zip(scratch.rows.chunks_exact_mut(DEPTH)) {
        let (first, target) = (row * block.row_stride, &mut target[..depth.len()]);
        if let Columns::All = columns {
            convert(&block.values, first + depth.start, target);
        } else {
            for (index, number) in depth.clone().zip(target) {
                *number = block.values.get(first + columns.at(index));
            }
        }
    }
    transpose(Lines { numbers: &scratch.rows[..], stride: DEPTH }, to, TILE, depth.len());
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
