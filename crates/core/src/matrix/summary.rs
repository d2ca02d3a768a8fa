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
}

impl Summary {
    /// Reads the matrix once.
    pub fn of<T: Real>(matrix: &Matrix<T>) -> Summary {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (mut row_used, mut col_used) = (vec![false; rows], vec![false; cols]);
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
        }
    }
}
