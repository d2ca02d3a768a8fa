//! M / (X Yᵀ) at the entries of M: what a multiplicative step of Y sums over the rows of X, so that it needs no complete rows
//! of Mᵀ at once.

use std::mem::take;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::Real;
use crate::kernels::{Columns, EntryPanel, EntryRow, Product, RowEntries, Scratch, TILE};
use crate::matrix::{Csr, Dense, Matrix, Order};
use crate::partition::Block;
use crate::threads::Threads;

/// The entries of a block by row, each divided by the model, which counts as `floor` at least.
pub fn ratios<T: Real>(
    threads: &Threads,
    block: &Block<T>,
    (x, y): (&[T], &[T]),
    floor: T,
    k: usize,
) -> Matrix<T> {
    let (rows, cols) = (block.rows(), block.cols());
    let offsets = match block {
        Block::ByRow(csr) => csr.offsets().to_vec(),
        _ => (0..=rows).map(|row| row * cols).collect(),
    };
    let product = Product::new(threads, block, Columns::All, y, k);
    let all = matches!(block, Block::Dense(_)).then(|| EntryPanel::of_all(y, k));
    let mut values = vec![T::ZERO; offsets[rows]];
    let (mut rest, mut tiles) = (&mut values[..], Vec::new());
    for first in (0..rows).step_by(TILE) {
        let last = rows.min(first + TILE);
        tiles.push((first..last, part(&mut rest, offsets[last] - offsets[first])));
    }
    threads.map(tiles, Scratch::new, |scratch, (rows, mut values): (Range<usize>, &mut [T])| {
        for row in rows {
            threads.cancel().check();
            let entries = product.entries(row).expect("a block by row");
            let panel = match &all {
                Some(all) => {
                    entries.values_into(&mut scratch.row.entries);
                    all
                }
                None => {
                    gather(&entries, k, scratch);
                    &scratch.panel
                }
            };
            let (x, target) = (&x[row * k..][..k], part(&mut values, offsets[row + 1] - offsets[row]));
            pulp::Arch::new().dispatch(Divide { panel, row: &mut scratch.row, x, floor, target });
        }
    });
    match block {
        Block::ByRow(csr) => Matrix::Sparse(Csr::new(rows, cols, offsets, csr.indices().to_vec(), values)),
        _ => {
            Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, crate::matrix::Values::Real(values.into())))
        }
    }
}

/// Splits off the beginning.
fn part<'a, T>(rest: &mut &'a mut [T], length: usize) -> &'a mut [T] {
    let (part, others) = take(rest).split_at_mut(length);
    *rest = others;
    part
}

/// Gathers every stored entry of a row, zeros included.
fn gather<T: Real>(entries: &RowEntries<'_, T>, k: usize, scratch: &mut Scratch<T>) {
    let Scratch { panel, row, .. } = scratch;
    row.entries.clear();
    panel.begin(entries.count(), k);
    entries.for_each(|value, of_column| {
        panel.set(row.entries.len(), of_column);
        row.entries.push(value);
    });
}

/// The ratios of one row.
struct Divide<'a, T> {
    panel: &'a EntryPanel<T>,
    row: &'a mut EntryRow<T>,
    x: &'a [T],
    floor: T,
    target: &'a mut [T],
}

impl<T: Real> WithSimd for Divide<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Divide { panel, row, x, floor, target } = self;
        row.predict(panel, x, floor);
        row.ratios_into(target);
    }
}
