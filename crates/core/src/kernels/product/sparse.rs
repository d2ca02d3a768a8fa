//! Products of a sparse block: rows gathered, or columns scattered.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::Columns;
use crate::Real;
use crate::comm::owned;
use crate::matrix::Csr;
use crate::threads::Threads;

/// Where the weights of a column are: the row, and whether they count negative.
pub type Place = (u32, bool);

/// No row of weights belongs to this column.
const ABSENT: u32 = u32::MAX;

/// Where each column's weights are, if not in its own place.
pub fn places(columns: Columns<'_>, all: usize) -> Option<Vec<Place>> {
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

/// Adds one sparse row times the weights to `sum`.
pub struct GatherRow<'a, T> {
    /// Columns and values.
    pub row: (&'a [u32], &'a [T]),
    /// From [`places`].
    pub places: Option<&'a [Place]>,
    /// k numbers for each place.
    pub weights: &'a [T],
    /// k sums.
    pub sum: &'a mut [T],
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
pub fn scatter<T: Real>(
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
