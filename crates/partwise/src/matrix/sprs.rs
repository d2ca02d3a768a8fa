//! Conversions from and to `sprs`, by row and by column. 32-bit column numbers are read in place.

use partwise_core::matrix::{Buffer, Csr, Matrix as CoreMatrix};
use sprs::{CsMatI, CsMatViewI};

use super::build::borrowed;
use super::{Float, Matrix, either};
use crate::error::{Error, Result};

/// Converts without copying column numbers and entries.
///
/// ```
/// use partwise::Matrix;
/// use sprs::CsMatI;
///
/// let a: CsMatI<f64, u32, usize> = CsMatI::new((2, 3), vec![0, 1, 2], vec![1, 2], vec![3.0, 4.0]);
/// let m = Matrix::try_from(a.view())?;
/// assert_eq!((m.get(0, 1), m.get(1, 2)), (3.0, 4.0));
/// assert_eq!(Matrix::try_from(a.to_csc().view())?, m);
/// assert_eq!(m.to_sprs::<f64>(), a);
/// # Ok::<(), partwise::Error>(())
/// ```
impl<'a, T: Float> TryFrom<CsMatViewI<'a, T, u32, usize>> for Matrix<'a> {
    type Error = Error;

    fn try_from(view: CsMatViewI<'a, T, u32, usize>) -> Result<Self> {
        let offsets = view.proper_indptr().into_owned();
        let (rows, cols, by_column) = (view.rows(), view.cols(), view.is_csc());
        let (_, indices, entries) = view.into_raw_storage();
        sparse((rows, cols), by_column, offsets, borrowed(indices), borrowed(entries))
    }
}

/// Converts column numbers to 32 bits, without copying the entries.
impl<'a, T: Float> TryFrom<CsMatViewI<'a, T, usize, usize>> for Matrix<'a> {
    type Error = Error;

    fn try_from(view: CsMatViewI<'a, T, usize, usize>) -> Result<Self> {
        let offsets = view.proper_indptr().into_owned();
        let (rows, cols, by_column) = (view.rows(), view.cols(), view.is_csc());
        let (_, indices, entries) = view.into_raw_storage();
        let indices = indices.iter().map(|&index| u32::try_from(index).unwrap_or(u32::MAX)).collect();
        sparse((rows, cols), by_column, offsets, Buffer::shared(indices), borrowed(entries))
    }
}

/// Rejects matrices with more than 2³² − 1 rows or columns, and indices that do not ascend.
fn sparse<'a, T: Float>(
    (rows, cols): (usize, usize),
    by_column: bool,
    offsets: Vec<usize>,
    indices: Buffer<u32>,
    entries: Buffer<T>,
) -> Result<Matrix<'a>> {
    let (majors, minors) = if by_column { (cols, rows) } else { (rows, cols) };
    let csr = Csr::checked(majors, minors, offsets, indices, entries).ok_or_else(|| {
        Error::of_parameter(
            "matrix",
            "a side is longer than 2³² − 1, or indices do not ascend; use a smaller \
         matrix with sorted indices",
        )
    })?;
    Ok(Matrix::new(T::stored(CoreMatrix::Sparse(csr)), by_column))
}

impl Matrix<'_> {
    /// Copies the nonzero entries to a matrix stored by row.
    pub fn to_sprs<T: Float>(&self) -> CsMatI<T, u32, usize> {
        let (rows, cols) = (self.rows(), self.cols());
        let mut of_rows = vec![Vec::new(); rows];
        either!(&self.stored, matrix => matrix.for_each_stored(|row, col, value| {
            let (row, col) = if self.transposed { (col, row) } else { (row, col) };
            if value != 0.0 {
                of_rows[row].push((col as u32, T::from_f64(value)));
            }
        }));
        let mut offsets = vec![0];
        let (mut indices, mut entries) = (Vec::new(), Vec::new());
        for row in of_rows {
            let (of_row, values): (Vec<u32>, Vec<T>) = row.into_iter().unzip();
            indices.extend(of_row);
            entries.extend(values);
            offsets.push(indices.len());
        }
        CsMatI::new((rows, cols), offsets, indices, entries)
    }
}
