//! Sums and sums of squares of a block's rows, in one pass.

use super::{Block, DenseBlock};
use crate::Real;
use crate::matrix::Values;
use crate::threads::Threads;

/// The statistics of a block's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSums {
    /// Σ_j M_ij.
    pub sums: Vec<f64>,
    /// Σ_j M_ij².
    pub squares: Vec<f64>,
}

impl RowSums {
    /// Zero sums for this many rows.
    pub fn new(rows: usize) -> Self {
        RowSums { sums: vec![0.0; rows], squares: vec![0.0; rows] }
    }

    /// The first row with an entry that cannot be factorized.
    pub fn first_bad_row(&self) -> Option<usize> {
        self.sums.iter().position(|sum| !sum.is_finite())
    }
}

impl<T: Real> Block<T> {
    /// Sums and sums of squares of the rows, in one pass; a row's terms are added in the order of its columns,
    /// however the block is stored. A row with an entry that cannot be factorized (negative, infinite, NaN) has
    /// sums that are not finite.
    pub fn row_sums(&self, threads: &Threads) -> RowSums {
        const PARTS: usize = 64;
        let mut sums = RowSums::new(self.rows());
        match self {
            Block::Dense(_) | Block::ByRow(_) | Block::Observed(_) => {
                let length = self.rows().div_ceil(PARTS).max(1);
                let slices = sums.sums.chunks_mut(length).zip(sums.squares.chunks_mut(length));
                let parts = slices.enumerate().map(|(part, sums)| (part * length, sums)).collect();
                threads.map(parts, || (), |(), (first, (sums, squares))| self.add_some(first, sums, squares));
            }
            Block::ByColumn(_) => self.add_row_sums(&mut sums),
        }
        sums
    }

    /// Continues with the same rows over the preceding columns.
    pub fn add_row_sums(&self, sums: &mut RowSums) {
        self.add_some(0, &mut sums.sums, &mut sums.squares);
    }

    /// The sums for some rows, starting with `first`; of a block by column all must be requested.
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
            Block::Observed(observed) => {
                for row in 0..rows {
                    let of_row = observed.row(first + row);
                    for (place, &value) in of_row.values.iter().enumerate() {
                        let weight = of_row.weights.map_or(1.0, |weights| weights[place].to_f64());
                        let value = nonnegative(value);
                        sums[row] += weight * value;
                        squares[row] += weight * value * value;
                    }
                }
            }
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

impl<T: Real> DenseBlock<T> {
    fn add_rows<E: Copy>(
        &self,
        values: &[E],
        exact: impl Fn(E) -> f64,
        first: usize,
        sums: &mut [f64],
        squares: &mut [f64],
    ) {
        /// Several rows are summed at the same time, because a single one would wait for each addition.
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
            // The last group, if it has fewer rows, repeats its last row.
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
        /// The sum of this many squared bytes fits into 32 bits.
        const FITS: usize = 1 << 16;
        for (row, (sum, square)) in sums.iter_mut().zip(squares).enumerate() {
            for entries in bytes[(first + row) * self.row_stride..][..self.cols].chunks(FITS) {
                *sum += entries.iter().map(|&byte| u32::from(byte)).sum::<u32>() as f64;
                *square += entries.iter().map(|&byte| u32::from(byte).pow(2)).sum::<u32>() as f64;
            }
        }
    }
}

/// An entry in `f64`; NaN if it is negative.
fn nonnegative<T: Real>(value: T) -> f64 {
    if value >= T::ZERO { value.to_f64() } else { f64::NAN }
}
