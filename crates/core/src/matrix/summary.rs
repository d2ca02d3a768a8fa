//! What `partwise inspect` tells of a matrix.

use serde::Serialize;

use super::Matrix;
use crate::Real;

/// Counts and range of a matrix's entries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Entries other than 0.
    pub nonzeros: usize,
    /// Share of entries other than 0.
    pub density: f64,
    /// Smallest entry, zeros that are not stored included.
    pub min: f64,
    /// Largest entry.
    pub max: f64,
    /// Mean over all entries.
    pub mean: f64,
    /// Rows without a nonzero.
    pub empty_rows: usize,
    /// Columns without a nonzero.
    pub empty_cols: usize,
    /// The row that holds nearly all of ‖M‖², if one does.
    pub dominant_row: Option<Dominant>,
    /// The column that holds nearly all of ‖M‖², if one does.
    pub dominant_col: Option<Dominant>,
}

/// A row or column that holds nearly all of ‖M‖², so that the others hardly count in the factorization.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dominant {
    /// Its place, from 0.
    pub index: usize,
    /// Its share of ‖M‖².
    pub share: f64,
}

impl Dominant {
    /// Above this share of ‖M‖², a row or column dominates.
    const SHARE: f64 = 0.9;
    /// With fewer rows or columns, one that dominates is no surprise.
    const FEWEST: usize = 10;

    /// The row (or column) that dominates, if one does, given the squared norms of all of them.
    pub fn among(squares: &[f64]) -> Option<Self> {
        let (index, largest) = squares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        let share = largest / squares.iter().sum::<f64>();
        (squares.len() >= Self::FEWEST && share > Self::SHARE).then_some(Dominant { index, share })
    }
}

impl Summary {
    /// Reads the matrix once.
    pub fn of<T: Real>(matrix: &Matrix<T>) -> Summary {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (mut row_used, mut col_used) = (vec![false; rows], vec![false; cols]);
        let (row_squares, col_squares) = matrix.squared_norms();
        let (mut nonzeros, mut min, mut max, mut sum) = (0usize, f64::INFINITY, 0f64, 0f64);
        matrix.for_each_stored(|row, col, value| {
            if value != 0.0 {
                nonzeros += 1;
                row_used[row] = true;
                col_used[col] = true;
            }
            min = min.min(value);
            max = max.max(value);
            sum += value;
        });
        let entries = rows as f64 * cols as f64;
        if (nonzeros as f64) < entries {
            min = 0.0;
        }
        let empty = |used: &[bool]| used.iter().filter(|&&used| !used).count();
        Summary {
            rows,
            cols,
            nonzeros,
            density: nonzeros as f64 / entries,
            min,
            max,
            mean: sum / entries,
            empty_rows: empty(&row_used),
            empty_cols: empty(&col_used),
            dominant_row: Dominant::among(&row_squares),
            dominant_col: Dominant::among(&col_squares),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Order, Values};

    /// The dominant row and column of a matrix of these entries.
    fn dominant(rows: usize, cols: usize, value: impl Fn(usize, usize) -> f64) -> [Option<usize>; 2] {
        let values = (0..rows * cols).map(|place| value(place / cols, place % cols)).collect::<Vec<_>>();
        let dense = Dense::new(rows, cols, Order::RowMajor, Values::Real(values.into()));
        let Summary { dominant_row, dominant_col, .. } = Summary::of(&Matrix::Dense(dense));
        [dominant_row, dominant_col].map(|found| found.map(|found| found.index))
    }

    #[test]
    fn a_row_or_column_dominates_above_nine_tenths_of_the_squared_norm() {
        let weighted = |weight: f64, hit: bool| if hit { weight } else { 1.0 };
        // Shares of 0.9007 and 0.8911.
        assert_eq!(dominant(20, 12, |_, col| weighted(9.99, col == 7)), [None, Some(7)]);
        assert_eq!(dominant(20, 12, |_, col| weighted(9.49, col == 7)), [None, None]);
        assert_eq!(dominant(12, 20, |row, _| weighted(9.99, row == 0)), [Some(0), None]);
        // Of few columns, one is often the largest by far.
        assert_eq!(dominant(20, 9, |_, col| weighted(100.0, col == 3)), [None, None]);
        assert_eq!(Dominant::among(&[1.0; 10].map(|one| one * 0.0)), None);
        assert_eq!(Dominant::among(&[&[98.0][..], &[0.25; 8]].concat()), None);
        assert_eq!(
            Dominant::among(&[&[97.75][..], &[0.25; 9]].concat()),
            Some(Dominant { index: 0, share: 0.9775 })
        );
    }
}
