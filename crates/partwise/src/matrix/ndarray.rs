//! Conversions from and to `ndarray`. A view is read in place if its rows or its columns are contiguous.

use ndarray::{Array2, ArrayView2, ShapeBuilder};
use partwise_core::matrix::{Buffer, Order};

use super::build::borrowed;
use super::{Element, Float, Matrix};

/// Converts without a copy if the view is contiguous by row or by column.
///
/// ```
/// use ndarray::array;
/// use partwise::Matrix;
///
/// let a = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let m = Matrix::from(a.view());
/// assert_eq!(m.as_slice::<f64>().unwrap().as_ptr(), a.as_ptr());
/// assert_eq!(Matrix::from(a.t()).get(2, 1), 6.0);
/// assert_eq!(m.as_ndarray::<f64>().unwrap(), a);
/// ```
impl<'a, E: Element> From<ArrayView2<'a, E>> for Matrix<'a> {
    fn from(view: ArrayView2<'a, E>) -> Self {
        let (rows, cols) = view.dim();
        if let Some(entries) = view.to_slice() {
            return Matrix::new(E::dense(rows, cols, Order::RowMajor, borrowed(entries)), false);
        }
        if let Some(entries) = view.reversed_axes().to_slice() {
            return Matrix::new(E::dense(rows, cols, Order::ColMajor, borrowed(entries)), false);
        }
        let entries = Buffer::shared(view.iter().copied().collect());
        Matrix::new(E::dense(rows, cols, Order::RowMajor, entries), false)
    }
}

/// Converts without a copy if the array is contiguous by row or by column.
impl<E: Element> From<Array2<E>> for Matrix<'static> {
    fn from(array: Array2<E>) -> Self {
        let (rows, cols) = array.dim();
        let order = match (array.is_standard_layout(), array.t().is_standard_layout()) {
            (true, _) => Order::RowMajor,
            (false, true) => Order::ColMajor,
            (false, false) => {
                let entries = Buffer::shared(array.iter().copied().collect());
                return Matrix::new(E::dense(rows, cols, Order::RowMajor, entries), false);
            }
        };
        let length = array.len();
        let (entries, first) = array.into_raw_vec_and_offset();
        let entries = match first {
            // A sliced array may have unused elements at the beginning or end of its vector.
            Some(first) if entries.len() > length => entries[first..first + length].to_vec(),
            _ => entries,
        };
        Matrix::new(E::dense(rows, cols, order, Buffer::shared(entries)), false)
    }
}

impl Matrix<'_> {
    /// Returns the entries as a view, if the matrix is dense and they have this type.
    pub fn as_ndarray<E: Element>(&self) -> Option<ArrayView2<'_, E>> {
        let (entries, order) = E::entries(&self.stored)?;
        let shape = (self.rows(), self.cols());
        match order {
            Order::RowMajor => ArrayView2::from_shape(shape, entries).ok(),
            Order::ColMajor => ArrayView2::from_shape(shape.f(), entries).ok(),
        }
    }

    /// Copies all entries to an array.
    pub fn to_ndarray<T: Float>(&self) -> Array2<T> {
        let (rows, cols) = (self.rows(), self.cols());
        let entries = self.to_vec::<T>();
        Array2::from_shape_fn((rows, cols), |(row, col)| entries[row * cols + col])
    }
}
