//! Conversions from and to `faer`. A matrix is read in place if its columns or its rows are contiguous.

use faer::{Mat, MatRef};
use partwise_core::matrix::{Buffer, Order};

use super::build::borrowed;
use super::{Float, Matrix};

/// Converts without a copy if there are no gaps between columns, or between rows.
///
/// ```
/// use faer::mat;
/// use partwise::Matrix;
///
/// let a = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0_f64]];
/// let m = Matrix::from(a.as_ref());
/// assert_eq!((m.rows(), m.cols(), m.get(1, 2)), (2, 3, 6.0));
/// assert_eq!(m.to_faer::<f64>(), a);
/// ```
impl<'a, T: Float> From<MatRef<'a, T>> for Matrix<'a> {
    fn from(view: MatRef<'a, T>) -> Self {
        let (rows, cols) = (view.nrows(), view.ncols());
        let of = |order, entries: Buffer<T>| Matrix::new(T::dense(rows, cols, order, entries), false);
        if rows * cols > 0 && (view.row_stride(), view.col_stride()) == (1, rows as isize) {
            return of(Order::ColMajor, borrowed(contiguous(view)));
        }
        if rows * cols > 0 && (view.row_stride(), view.col_stride()) == (cols as isize, 1) {
            return of(Order::RowMajor, borrowed(contiguous(view)));
        }
        let entries = (0..cols).flat_map(|col| (0..rows).map(move |row| view[(row, col)])).collect();
        of(Order::ColMajor, Buffer::shared(entries))
    }
}

/// The entries of a matrix without gaps, in the order of memory.
fn contiguous<T>(view: MatRef<'_, T>) -> &[T] {
    let length = view.nrows() * view.ncols();
    // SAFETY: the strides are those of a matrix that fills all positions from its first entry on, and the
    // view borrows all of them for the lifetime of the slice.
    unsafe { std::slice::from_raw_parts(view.as_ptr(), length) }
}

/// Copies the entries, because columns of a `Mat` are aligned, with gaps between them.
impl<T: Float> From<Mat<T>> for Matrix<'static> {
    fn from(matrix: Mat<T>) -> Self {
        Matrix::from(matrix.as_ref()).into_owned()
    }
}

impl Matrix<'_> {
    /// Returns the entries as a view, if the matrix is dense and they have this type.
    pub fn as_faer<T: Float>(&self) -> Option<MatRef<'_, T>> {
        let (entries, order) = T::entries(&self.stored)?;
        Some(match order {
            Order::RowMajor => MatRef::from_row_major_slice(entries, self.rows(), self.cols()),
            Order::ColMajor => MatRef::from_column_major_slice(entries, self.rows(), self.cols()),
        })
    }

    /// Copies all entries to a matrix.
    pub fn to_faer<T: Float>(&self) -> Mat<T> {
        let entries = self.to_vec::<T>();
        let cols = self.cols();
        Mat::from_fn(self.rows(), cols, |row, col| entries[row * cols + col])
    }
}
