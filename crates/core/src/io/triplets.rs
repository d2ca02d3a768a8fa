//! Converts entries in any order, perhaps with duplicates, to canonical compressed rows.

use super::memory::Budget;
use crate::error::Result;
use crate::matrix::Csr;
use crate::real::Real;

/// Entries in order of arrival, each within the matrix's sizes.
pub(super) struct Triplets<T> {
    pub rows: Vec<u32>,
    pub cols: Vec<u32>,
    pub values: Vec<T>,
}

impl<T: Real> Triplets<T> {
    /// Room for `count` entries.
    pub fn with_room(budget: Budget, count: usize) -> Result<Self> {
        Ok(Triplets {
            rows: budget.vec("the row numbers", count)?,
            cols: budget.vec("the column numbers", count)?,
            values: budget.vec("the values", count)?,
        })
    }

    /// Adds an entry.
    pub fn push(&mut self, row: u32, col: u32, value: T) {
        self.rows.push(row);
        self.cols.push(col);
        self.values.push(value);
    }

    /// The matrix: a counting sort by row that keeps the order of equals, then each row by itself.
    pub fn into_csr(self, budget: Budget, rows: usize, cols: usize) -> Result<Csr<T>> {
        let mut offsets = budget.vec("the row offsets", rows + 1)?;
        offsets.resize(rows + 1, 0usize);
        for &row in &self.rows {
            offsets[row as usize + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let count = self.values.len();
        let mut indices = budget.vec("the column numbers", count)?;
        indices.resize(count, 0u32);
        let mut values = budget.vec("the values", count)?;
        values.resize(count, T::ZERO);
        // Each offset serves as its row's next free position and ends up where the next row starts.
        for ((&row, &col), &value) in self.rows.iter().zip(&self.cols).zip(&self.values) {
            let place = &mut offsets[row as usize];
            indices[*place] = col;
            values[*place] = value;
            *place += 1;
        }
        drop(self);
        offsets.copy_within(0..rows, 1);
        offsets[0] = 0;
        canonical(budget, rows, cols, offsets, indices, values)
    }
}

/// Offsets of compressed rows, checked one by one: they rise from 0.
pub(super) struct Offsets {
    place: usize,
    last: i64,
    end: usize,
}

impl Offsets {
    /// Offsets up to `end`.
    pub fn to(end: usize) -> Self {
        Offsets { place: 0, last: 0, end }
    }

    /// The next one; an error is a sentence.
    pub fn next(&mut self, offset: i64) -> std::result::Result<usize, String> {
        let Offsets { place, last, end } = *self;
        let fits = offset >= last && (place > 0 || offset == 0);
        *self = Offsets { place: place + 1, last: offset, end };
        usize::try_from(offset).ok().filter(|&offset| fits && offset <= end).ok_or_else(|| {
            format!("entry {place} is {offset}, where offsets rise from 0 to {end}; save the matrix again")
        })
    }
}

/// A row or column number below `size`, at position `place`; an error is a sentence.
pub(super) fn index_below(place: usize, index: i64, size: u64) -> std::result::Result<u32, String> {
    match u32::try_from(index) {
        Ok(small) if u64::from(small) < size => Ok(small),
        _ => Err(format!("entry {place} is {index}, outside 0 to below {size}; save the matrix again")),
    }
}

/// Compressed rows with columns in any order, sorted, with duplicates summed in f64 in the order of arrival.
pub(super) fn canonical<T: Real>(
    budget: Budget,
    rows: usize,
    cols: usize,
    mut offsets: Vec<usize>,
    mut indices: Vec<u32>,
    mut values: Vec<T>,
) -> Result<Csr<T>> {
    let ascending =
        |row: usize| indices[offsets[row]..offsets[row + 1]].is_sorted_by(|left, right| left < right);
    let Some(first) = (0..rows).find(|&row| !ascending(row)) else {
        return Ok(Csr::new(rows, cols, offsets, indices, values));
    };
    let longest = (first..rows).map(|row| offsets[row + 1] - offsets[row]).max().unwrap_or(0);
    let mut scratch: Vec<(u32, T)> = budget.vec("the longest row", longest)?;
    let mut write = offsets[first];
    let mut begin = offsets[first];
    for row in first..rows {
        let end = offsets[row + 1];
        scratch.clear();
        scratch.extend(indices[begin..end].iter().copied().zip(values[begin..end].iter().copied()));
        scratch.sort_by_key(|&(col, _)| col);
        for same in scratch.chunk_by(|left, right| left.0 == right.0) {
            indices[write] = same[0].0;
            values[write] = match same {
                [(_, value)] => *value,
                _ => T::from_f64(same.iter().map(|(_, value)| value.to_f64()).sum()),
            };
            write += 1;
        }
        begin = end;
        offsets[row + 1] = write;
    }
    indices.truncate(write);
    values.truncate(write);
    if write < indices.capacity() {
        indices.shrink_to_fit();
        values.shrink_to_fit();
    }
    Ok(Csr::new(rows, cols, offsets, indices, values))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_a_sorted_map(entries in prop::collection::vec((0u32..7, 0u32..5, 0u32..100), 0..60)) {
            let budget = Budget { path: Path::new("x"), available: 1 << 20 };
            let mut triplets = Triplets::<f64>::with_room(budget, entries.len()).unwrap();
            let mut map = BTreeMap::new();
            for &(row, col, value) in &entries {
                triplets.push(row, col, value as f64);
                *map.entry((row, col)).or_insert(0.0) += value as f64;
            }
            let csr = triplets.into_csr(budget, 7, 5).unwrap();
            let mut found = Vec::new();
            for row in 0..7 {
                let (cols, values) = csr.row(row);
                found.extend(cols.iter().zip(values).map(|(&col, &value)| ((row as u32, col), value)));
            }
            prop_assert_eq!(found, map.into_iter().collect::<Vec<_>>());
        }
    }
}
