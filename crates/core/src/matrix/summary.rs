//! A summary of a matrix, for `partwise inspect`.

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
    /// Smallest finite entry, zeros that are not stored included.
    pub min: f64,
    /// Largest finite entry.
    pub max: f64,
    /// Mean over all finite entries.
    pub mean: f64,
    /// Entries that are NaN.
    pub nan: usize,
    /// Infinite entries, of either sign.
    pub infinite: usize,
    /// Finite entries below 0.
    pub negative: usize,
    /// Row and column, from 0, of the first entry that is NaN, infinite or negative, in storage order.
    pub first_unusable: Option<[usize; 2]>,
    /// Rows without a nonzero.
    pub empty_rows: usize,
    /// Columns without a nonzero.
    pub empty_cols: usize,
    /// The row with nearly all of ‖M‖², if there is one.
    pub dominant_row: Option<Dominant>,
    /// The column with nearly all of ‖M‖², if there is one.
    pub dominant_col: Option<Dominant>,
}

/// A row or column with nearly all of ‖M‖², so that the others have little influence on the factorization.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dominant {
    /// Its index, from 0.
    pub index: usize,
    /// Its share of ‖M‖².
    pub share: f64,
}

impl Dominant {
    /// Above this share of ‖M‖², a row or column dominates.
    const SHARE: f64 = 0.9;
    /// The same of few rows or columns, of which one often has a large share.
    const SHARE_OF_FEW: f64 = 0.99;
    /// Fewer rows or columns are few.
    const FEW: usize = 10;
    /// With fewer rows or columns, one that dominates is no surprise.
    const FEWEST: usize = 5;

    /// The row (or column) that dominates, if one does, given the squared norms of all of them.
    pub fn among(squares: &[f64]) -> Option<Self> {
        let (index, largest) = squares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        let share = largest / squares.iter().sum::<f64>();
        let dominates = match squares.len() {
            count if count < Self::FEWEST => false,
            count if count < Self::FEW => share > Self::SHARE_OF_FEW,
            _ => share > Self::SHARE,
        };
        dominates.then_some(Dominant { index, share })
    }
}

/// The row and the column that dominate a matrix, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dominants {
    /// The dominant row.
    pub row: Option<Dominant>,
    /// The dominant column.
    pub col: Option<Dominant>,
}

impl Dominants {
    /// Finds them from the squared norms of all rows and columns.
    pub fn among(rows: &[f64], cols: &[f64]) -> Self {
        Dominants { row: Dominant::among(rows), col: Dominant::among(cols) }
    }
}

impl Summary {
    /// Reads the matrix once.
    pub fn of<T: Real>(matrix: &Matrix<T>) -> Summary {
        let mut tally = Tally::new(matrix.rows(), matrix.cols());
        matrix.for_each_stored(|row, col, value| tally.add(row, col, value));
        tally.finish()
    }
}

/// The summary of the entries seen so far.
pub(crate) struct Tally {
    summary: Summary,
    row_used: Vec<bool>,
    col_used: Vec<bool>,
    row_squares: Vec<f64>,
    col_squares: Vec<f64>,
    sum: f64,
}

impl Tally {
    pub fn new(rows: usize, cols: usize) -> Self {
        let summary = Summary {
            rows,
            cols,
            nonzeros: 0,
            density: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            nan: 0,
            infinite: 0,
            negative: 0,
            first_unusable: None,
            empty_rows: 0,
            empty_cols: 0,
            dominant_row: None,
            dominant_col: None,
        };
        let (row_used, col_used) = (vec![false; rows], vec![false; cols]);
        let (row_squares, col_squares) = (vec![0.0; rows], vec![0.0; cols]);
        Tally { summary, row_used, col_used, row_squares, col_squares, sum: 0.0 }
    }

    /// Counts a stored entry.
    pub fn add(&mut self, row: usize, col: usize, value: f64) {
        let summary = &mut self.summary;
        if value != 0.0 {
            summary.nonzeros += 1;
            self.row_used[row] = true;
            self.col_used[col] = true;
        }
        if value.is_finite() {
            self.sum += value;
            summary.min = summary.min.min(value);
            summary.max = summary.max.max(value);
            self.row_squares[row] += value * value;
            self.col_squares[col] += value * value;
        }
        let unusable = match value {
            _ if value.is_nan() => &mut summary.nan,
            _ if value.is_infinite() => &mut summary.infinite,
            _ if value < 0.0 => &mut summary.negative,
            _ => return,
        };
        *unusable += 1;
        summary.first_unusable.get_or_insert([row, col]);
    }

    /// The summary, when all stored entries have been counted.
    pub fn finish(self) -> Summary {
        let Tally { summary: Summary { rows, cols, nonzeros, mut min, mut max, .. }, .. } = self;
        let entries = rows as f64 * cols as f64;
        let unusable = (self.summary.nan + self.summary.infinite) as f64;
        if (nonzeros as f64) < entries {
            (min, max) = (min.min(0.0), max.max(0.0));
        }
        let empty = |used: &[bool]| used.iter().filter(|&&used| !used).count();
        Summary {
            density: nonzeros as f64 / entries,
            min,
            max,
            mean: self.sum / (entries - unusable),
            empty_rows: empty(&self.row_used),
            empty_cols: empty(&self.col_used),
            dominant_row: Dominant::among(&self.row_squares),
            dominant_col: Dominant::among(&self.col_squares),
            ..self.summary
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
    fn unusable_entries_are_counted_and_left_out_of_the_range() {
        let bad = [f64::NAN, -1.5, f64::INFINITY, f64::NAN, f64::NEG_INFINITY, 2.0, 0.0, 3.5];
        let dense = |values: &[f64], rows| {
            let values = Values::Real(values.to_vec().into());
            Summary::of(&Matrix::Dense(Dense::new(rows, values.len() / rows, Order::ColMajor, values)))
        };
        let summary = dense(&bad, 2);
        assert_eq!((summary.nan, summary.infinite, summary.negative), (2, 2, 1));
        assert_eq!(summary.first_unusable, Some([0, 0]));
        assert_eq!((summary.min, summary.max, summary.mean, summary.nonzeros), (-1.5, 3.5, 1.0, 7));
        let summary = dense(&bad[5..], 1);
        assert_eq!((summary.nan, summary.infinite, summary.negative), (0, 0, 0));
        assert_eq!((summary.first_unusable, summary.min), (None, 0.0));
        // A column dominates, whatever else is in it.
        let values: Vec<f64> = (0..20).map(|place| [1.0, 50.0][usize::from(place / 2 == 3)]).collect();
        let values = [&values[..], &[f64::NAN, f64::INFINITY]].concat();
        assert_eq!(dense(&values, 2).dominant_col.map(|found| found.index), Some(3));
    }

    #[test]
    fn a_row_or_column_dominates_above_nine_tenths_of_the_squared_norm() {
        let weighted = |weight: f64, hit: bool| if hit { weight } else { 1.0 };
        // Shares of 0.9007 and 0.8911.
        assert_eq!(dominant(20, 12, |_, col| weighted(9.99, col == 7)), [None, Some(7)]);
        assert_eq!(dominant(20, 12, |_, col| weighted(9.49, col == 7)), [None, None]);
        assert_eq!(dominant(12, 20, |row, _| weighted(9.99, row == 0)), [Some(0), None]);
        // Of few columns, one is often the largest by far: shares of 0.9987 and 0.9796.
        assert_eq!(dominant(20, 9, |_, col| weighted(80.0, col == 3)), [None, Some(3)]);
        assert_eq!(dominant(20, 9, |_, col| weighted(19.6, col == 3)), [None, None]);
        assert_eq!(Dominant::among(&[1.0; 10].map(|one| one * 0.0)), None);
        let among_few =
            |count: usize| Dominant::among(&[&[999.0][..], &vec![1.0 / count as f64; count - 1]].concat());
        assert_eq!((among_few(5).map(|found| found.index), among_few(4)), (Some(0), None));
        assert_eq!(Dominant::among(&[&[98.0][..], &[0.25; 8]].concat()), None);
        assert_eq!(
            Dominant::among(&[&[97.75][..], &[0.25; 9]].concat()),
            Some(Dominant { index: 0, share: 0.9775 })
        );
    }
}
