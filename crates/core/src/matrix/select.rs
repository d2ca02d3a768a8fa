//! Rows and columns of a matrix in any order.

use super::{Csr, Dense, Matrix, Order, Values};
use crate::Real;

impl<T: Real> Matrix<T> {
    /// Copies the entries in the given rows and columns, which must be distinct, in the given order.
    pub fn select(&self, rows: &[usize], cols: &[usize]) -> Self {
        match self {
            Matrix::Dense(dense) => Matrix::Dense(select_dense(dense, rows, cols)),
            Matrix::Sparse(csr) => Matrix::Sparse(select_sparse(csr, rows, cols)),
        }
    }
}

fn select_dense<T: Real>(dense: &Dense<T>, rows: &[usize], cols: &[usize]) -> Dense<T> {
    let (majors, minors) = match dense.order() {
        Order::RowMajor => (rows, cols),
        Order::ColMajor => (cols, rows),
    };
    let length = dense.minors();
    let places = majors.iter().flat_map(|major| minors.iter().map(move |minor| major * length + minor));
    let values = match dense.values() {
        Values::Bytes(bytes) => Values::Bytes(places.map(|place| bytes[place]).collect()),
        Values::Real(reals) => Values::Real(places.map(|place| reals[place]).collect()),
    };
    Dense::new(rows.len(), cols.len(), dense.order(), values)
}

fn select_sparse<T: Real>(csr: &Csr<T>, rows: &[usize], cols: &[usize]) -> Csr<T> {
    let mut place = vec![u32::MAX; csr.cols()];
    cols.iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        let (old, entries) = csr.row(row);
        let mut kept: Vec<(u32, T)> = old
            .iter()
            .zip(entries)
            .map(|(&col, &value)| (place[col as usize], value))
            .filter(|&(col, _)| col != u32::MAX)
            .collect();
        kept.sort_unstable_by_key(|&(col, _)| col);
        indices.extend(kept.iter().map(|&(col, _)| col));
        values.extend(kept.iter().map(|&(_, value)| value));
        offsets.push(indices.len());
    }
    Csr::new(rows.len(), cols.len(), offsets, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: [f64; 12] = [1.0, 0.0, 3.0, 4.0, 0.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 12.0];

    fn check(matrix: &Matrix<f64>) {
        let (rows, cols) = ([2, 0], [3, 0, 2]);
        let selected = matrix.select(&rows, &cols);
        let mut found = [[0.0; 3]; 2];
        selected.for_each_stored(|row, col, value| found[row][col] = value);
        for (i, &row) in rows.iter().enumerate() {
            for (j, &col) in cols.iter().enumerate() {
                assert_eq!(found[i][j], ENTRIES[row * 4 + col]);
            }
        }
        assert_eq!((selected.rows(), selected.cols()), (2, 3));
        assert_eq!(matrix.select(&[], &cols).rows(), 0);
    }

    #[test]
    fn selected_entries_equal_the_matrix_in_every_layout() {
        let row_major = Dense::new(3, 4, Order::RowMajor, Values::Real(ENTRIES.to_vec().into()));
        check(&Matrix::Dense(row_major));
        let turned = (0..4).flat_map(|col| (0..3).map(move |row| ENTRIES[row * 4 + col]));
        check(&Matrix::Dense(Dense::new(3, 4, Order::ColMajor, Values::Real(turned.collect()))));
        let bytes = ENTRIES.iter().map(|&value| value as u8).collect();
        check(&Matrix::Dense(Dense::new(3, 4, Order::RowMajor, Values::Bytes(bytes))));
        let stored: Vec<usize> = (0..12).filter(|&place| ENTRIES[place] != 0.0).collect();
        let offsets = (0..=3).map(|row| stored.iter().filter(|&&place| place < row * 4).count()).collect();
        let indices: Vec<u32> = stored.iter().map(|place| (place % 4) as u32).collect();
        let values: Vec<f64> = stored.iter().map(|&place| ENTRIES[place]).collect();
        check(&Matrix::Sparse(Csr::new(3, 4, offsets, indices, values)));
    }
}
