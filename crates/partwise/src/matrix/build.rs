//! Matrices from vectors and slices.

use std::ptr::NonNull;
use std::sync::Arc;

use partwise_core::matrix::{Buffer, Csr, Matrix as CoreMatrix, Order};

use super::{Element, Float, Matrix};
use crate::error::{Error, Result};

/// A buffer of borrowed numbers, which a `Matrix<'a>` and everything computed from it may read during `'a`.
pub(super) fn borrowed<E: Send + Sync>(slice: &[E]) -> Buffer<E> {
    // SAFETY: every caller puts the buffer into a `Matrix<'a>` with the lifetime of the slice. Copies of
    // buffers made from such a matrix are dropped before the call that borrows the matrix returns.
    unsafe { Buffer::foreign(NonNull::from(slice), Arc::new(())) }
}

/// A factor stored by row.
pub(crate) fn factor<T: Float>(rows: usize, k: usize, entries: Vec<T>) -> Matrix<'static> {
    Matrix::new(T::dense(rows, k, Order::RowMajor, Buffer::shared(entries)), false)
}

fn check_length(rows: usize, cols: usize, length: usize) -> Result<()> {
    if rows.checked_mul(cols) == Some(length) {
        return Ok(());
    }
    let problem = format!("{length} entries do not make a {rows} x {cols} matrix");
    Err(Error::of_parameter("matrix", problem))
}

const CSR: &str = "these are not compressed sparse rows: there must be an offset for each row and the end, \
    from 0 to the number of entries, a column number for each entry, below the number of columns, and \
    ascending within a row";

impl Matrix<'static> {
    /// Creates a dense matrix of these entries, row by row, without copying them.
    pub fn from_vec<E: Element>(rows: usize, cols: usize, entries: Vec<E>) -> Result<Self> {
        check_length(rows, cols, entries.len())?;
        Ok(Matrix::new(E::dense(rows, cols, Order::RowMajor, Buffer::shared(entries)), false))
    }

    /// Creates a dense matrix of these rows, which are copied.
    ///
    /// ```
    /// # use partwise::Matrix;
    /// let m = Matrix::from_rows(&[vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0]])?;
    /// assert_eq!((m.rows(), m.cols()), (3, 2));
    /// assert!(Matrix::from_rows(&[vec![1.0, 2.0], vec![3.0]]).is_err());
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn from_rows<E: Element, R: AsRef<[E]>>(rows: &[R]) -> Result<Self> {
        let cols = rows.first().map_or(0, |row| row.as_ref().len());
        if let Some(row) = rows.iter().position(|row| row.as_ref().len() != cols) {
            let length = rows[row].as_ref().len();
            let problem = format!("row {} has {length} entries, but row 1 has {cols}", row + 1);
            return Err(Error::of_parameter("matrix", problem));
        }
        let entries = rows.iter().flat_map(|row| row.as_ref().iter().copied()).collect();
        Matrix::from_vec(rows.len(), cols, entries)
    }

    /// Creates a sparse matrix from compressed rows, as in SciPy's `csr_matrix`: the start of each row and
    /// the end of the last, the column numbers, and the entries. Within a row, column numbers ascend. Column
    /// numbers and entries are not copied.
    pub fn from_csr<T: Float>(
        rows: usize,
        cols: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        entries: Vec<T>,
    ) -> Result<Self> {
        let csr = Csr::checked(rows, cols, offsets, Buffer::shared(indices), Buffer::shared(entries));
        let csr = csr.ok_or_else(|| Error::of_parameter("matrix", CSR))?;
        Ok(Matrix::new(T::stored(CoreMatrix::Sparse(csr)), false))
    }

    /// Creates a sparse matrix from compressed columns, as in SciPy's `csc_matrix`.
    pub fn from_csc<T: Float>(
        rows: usize,
        cols: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        entries: Vec<T>,
    ) -> Result<Self> {
        Ok(Matrix::from_csr(cols, rows, offsets, indices, entries)?.into_transpose())
    }

    /// Creates a sparse matrix of (row, column, entry) triplets in any order; duplicates are summed.
    ///
    /// ```
    /// # use partwise::Matrix;
    /// let m = Matrix::from_triplets(2, 3, [(1, 2, 1.0_f32), (0, 0, 2.0), (1, 2, 3.0)])?;
    /// assert_eq!((m.stored(), m.get(1, 2)), (2, 4.0));
    /// assert!(Matrix::from_triplets(2, 3, [(2, 0, 1.0_f32)]).is_err());
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn from_triplets<T: Float>(
        rows: usize,
        cols: usize,
        triplets: impl IntoIterator<Item = (usize, usize, T)>,
    ) -> Result<Self> {
        let mut triplets: Vec<(usize, usize, T)> = triplets.into_iter().collect();
        triplets.sort_by_key(|&(row, col, _)| (row, col));
        let (mut offsets, mut indices, mut entries) =
            (vec![0; rows.saturating_add(1)], Vec::new(), Vec::<T>::new());
        let mut last = None;
        for (row, col, entry) in triplets {
            if row >= rows || col >= cols {
                let problem =
                    format!("there is an entry at row {row}, column {col} (from 0) of {rows} x {cols}");
                return Err(Error::of_parameter("matrix", problem));
            }
            if last == Some((row, col)) {
                let place = entries.len() - 1;
                entries[place] += entry;
                continue;
            }
            last = Some((row, col));
            offsets[row + 1] += 1;
            indices.push(u32::try_from(col).unwrap_or(u32::MAX));
            entries.push(entry);
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        Matrix::from_csr(rows, cols, offsets, indices, entries)
    }
}

impl<'a> Matrix<'a> {
    /// Creates a dense matrix of borrowed entries, row by row.
    pub fn from_slice<E: Element>(rows: usize, cols: usize, entries: &'a [E]) -> Result<Self> {
        check_length(rows, cols, entries.len())?;
        Ok(Matrix::new(E::dense(rows, cols, Order::RowMajor, borrowed(entries)), false))
    }

    /// Creates a sparse matrix of borrowed compressed rows; see [`Matrix::from_csr`].
    pub fn from_csr_slices<T: Float>(
        rows: usize,
        cols: usize,
        offsets: &[usize],
        indices: &'a [u32],
        entries: &'a [T],
    ) -> Result<Self> {
        let csr = Csr::checked(rows, cols, offsets.to_vec(), borrowed(indices), borrowed(entries));
        let csr = csr.ok_or_else(|| Error::of_parameter("matrix", CSR))?;
        Ok(Matrix::new(T::stored(CoreMatrix::Sparse(csr)), false))
    }
}
