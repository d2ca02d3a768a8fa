//! Products of a sparse block: rows gathered, or columns scattered.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Columns, Weights};
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::owned;
use crate::matrix::Csr;
use crate::threads::Threads;

/// A column's row of weights, and whether they count negatively.
pub type Slot = (u32, bool);

/// No row of weights belongs to this column.
const ABSENT: u32 = u32::MAX;

/// Each column's row of weights, if not its own index.
pub fn slots(columns: Columns<'_>, all: usize) -> Option<Vec<Slot>> {
    match columns {
        Columns::All => None,
        Columns::Some(columns) => {
            let mut slots = vec![(ABSENT, false); all];
            for (place, &column) in columns.iter().enumerate() {
                slots[column] = (place as u32, false);
            }
            Some(slots)
        }
        Columns::Hashed(slots) => {
            Some(slots.iter().map(|&place| (place.unsigned_abs() - 1, place < 0)).collect())
        }
    }
}

/// Some sparse rows times the weights, stored by row.
pub struct GatherRows<'a, T> {
    /// The block.
    pub csr: &'a Csr<T>,
    /// Which of its rows.
    pub rows: Range<usize>,
    /// From [`slots`].
    pub slots: Option<&'a [Slot]>,
    /// k numbers for each place.
    pub weights: &'a [T],
    /// k.
    pub k: usize,
    /// k numbers for each row.
    pub target: &'a mut [T],
}

impl<T: Real> WithSimd for GatherRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let GatherRows { csr, rows, slots, weights, k, target } = self;
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        for (row, target) in rows.zip(target.chunks_exact_mut(k)) {
            let (cols, values) = csr.row(row);
            let terms = RowTerms { cols, values, slots, weights, k };
            if k < lanes {
                target.fill(T::ZERO);
                terms.for_each(|value, weights| add_scaled(target, value, weights));
                continue;
            }
            // Sums in registers, up to 8 at a time.
            let mut first = 0;
            while first < k {
                match (k - first).div_ceil(lanes) {
                    1 => terms.sum::<S, 1>(simd, lanes, first, target),
                    2 => terms.sum::<S, 2>(simd, lanes, first, target),
                    3 => terms.sum::<S, 3>(simd, lanes, first, target),
                    4 => terms.sum::<S, 4>(simd, lanes, first, target),
                    5 => terms.sum::<S, 5>(simd, lanes, first, target),
                    6 => terms.sum::<S, 6>(simd, lanes, first, target),
                    7 => terms.sum::<S, 7>(simd, lanes, first, target),
                    _ => terms.sum::<S, 8>(simd, lanes, first, target),
                }
                first += 8 * lanes;
            }
        }
    }
}

/// One sparse row, and the weights of its columns.
struct RowTerms<'a, T> {
    cols: &'a [u32],
    values: &'a [T],
    slots: Option<&'a [Slot]>,
    weights: &'a [T],
    k: usize,
}

impl<T: Real> RowTerms<'_, T> {
    #[inline(always)]
    fn for_each(&self, mut term: impl FnMut(T, &[T])) {
        for (&col, &value) in self.cols.iter().zip(self.values) {
            let (place, negative) = self.slots.map_or((col, false), |slots| slots[col as usize]);
            if place != ABSENT {
                let value = if negative { -value } else { value };
                term(value, &self.weights[place as usize * self.k..][..self.k]);
            }
        }
    }

    /// `N` registers of the sum, starting with number `first`. The last ones may overlap the previous ones and
    /// repeat their work.
    #[inline(always)]
    fn sum<S: Simd, const N: usize>(&self, simd: S, lanes: usize, first: usize, target: &mut [T]) {
        let begin = |register: usize| (first + register * lanes).min(self.k - lanes);
        let mut sums = [T::splat(simd, T::ZERO); N];
        for (&col, &value) in self.cols.iter().zip(self.values) {
            let (place, negative) = match self.slots {
                Some(slots) => slots[col as usize],
                None => (col, false),
            };
            if place == ABSENT {
                continue;
            }
            let value = T::splat(simd, if negative { -value } else { value });
            let weights = &self.weights[place as usize * self.k..][..self.k];
            for register in 0..N {
                let numbers = T::vectors::<S>(&weights[begin(register)..][..lanes])[0];
                sums[register] = T::add_product(simd, value, numbers, sums[register]);
            }
        }
        for register in 0..N {
            T::vectors_mut::<S>(&mut target[begin(register)..][..lanes])[0] = sums[register];
        }
    }
}

#[inline(always)]
fn add_scaled<T: Real>(sum: &mut [T], value: T, weights: &[T]) {
    for (sum, &weight) in sum.iter_mut().zip(weights) {
        *sum = value.mul_add(weight, *sum);
    }
}

/// Adds the product of a block kept by column. Each thread owns some rows and finds them in every column; a row's
/// terms are added in the order of the columns, for any number of threads.
pub fn scatter<T: Real>(
    threads: &Threads,
    transpose: &Csr<T>,
    columns: Columns<'_>,
    weights: Weights<'_, T>,
    sums: &mut [T],
) {
    let Weights { values: weights, k } = weights;
    let rows = transpose.cols();
    let mut pieces = Vec::new();
    let mut rest = sums;
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
            let cancel = threads.cancel();
            pulp::Arch::new().dispatch(Scatter { transpose, columns, weights, k, rows, sums, cancel });
        },
    );
}

/// Adds the terms of some rows, which `sums` holds, column by column.
struct Scatter<'a, T> {
    transpose: &'a Csr<T>,
    columns: Columns<'a>,
    weights: &'a [T],
    k: usize,
    rows: Range<usize>,
    sums: &'a mut [T],
    cancel: &'a Cancel,
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
            // A thread's rows are one piece of work.
            self.cancel.check();
            let (column, place, negative) = match self.columns {
                Columns::All => (index, index, false),
                Columns::Some(columns) => (columns[index], index, false),
                Columns::Hashed(slots) => (index, slots[index].unsigned_abs() as usize - 1, slots[index] < 0),
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
