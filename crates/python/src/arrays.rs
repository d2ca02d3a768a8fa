//! Converts NumPy arrays and SciPy matrices to Partwise matrices without a copy, and factors back to arrays.

use std::ptr::NonNull;
use std::sync::Arc;

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::matrix::{Buffer, Csr, Dense, Matrix, Order, Values};
use partwise::pipeline::SharedMatrix;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

/// The numbers of a contiguous array, in place. They must not change while the buffer is in use, which the
/// documentation asks of users, because Python cannot enforce it.
fn lent<E: Element + Send + Sync + 'static>(array: PyBuffer<E>, name: &str) -> PyResult<Buffer<E>> {
    let slice = array.as_slice_ptr().or_else(|| array.as_fortran_slice_ptr());
    let slice = slice.filter(|slice| slice.cast::<E>().is_aligned());
    let slice: NonNull<[E]> =
        slice.ok_or_else(|| PyValueError::new_err(format!("{name} is not contiguous; copy it")))?;
    // SAFETY: the exporter keeps the memory in place until the view is released, which its owner does when dropped.
    Ok(unsafe { Buffer::foreign(slice, Arc::new(array)) })
}

/// The numbers of an array, row by row.
pub fn copied<T: Real + Element>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}

/// Fills an array that Python allocated.
pub fn fill<T: Real + Element>(array: &Bound<'_, PyAny>, numbers: &[T]) -> PyResult<()> {
    PyBuffer::<T>::get(array)?.copy_from_slice(array.py(), numbers)
}

/// M as Python provides it, and whether the matrix read from it is Mᵀ.
pub struct Lent<T> {
    matrix: Matrix<T>,
    transposed: bool,
}

impl<T: Real + Element> Lent<T> {
    /// Reads a two-dimensional array of `T` or of bytes, by row or by column, or a SciPy matrix in csr or csc
    /// format. Only 64-bit indices are copied.
    pub fn new(x: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = x.py();
        if !x.hasattr(intern!(py, "indptr"))? {
            return Ok(Lent { matrix: Matrix::Dense(dense(x)?), transposed: false });
        }
        let (rows, cols): (usize, usize) = x.getattr(intern!(py, "shape"))?.extract()?;
        let by_column = x.getattr(intern!(py, "format"))?.extract::<&str>()? == "csc";
        let (majors, minors) = if by_column { (cols, rows) } else { (rows, cols) };
        Ok(Lent { matrix: Matrix::Sparse(sparse(x, majors, minors)?), transposed: by_column })
    }

    /// Mᵀ.
    pub fn turned(&self, cancel: &Cancel) -> Matrix<T> {
        match (&self.matrix, self.transposed) {
            (Matrix::Sparse(csr), true) => Matrix::Sparse(csr.clone()),
            (Matrix::Sparse(csr), false) => Matrix::Sparse(csr.transpose_until(cancel)),
            (Matrix::Dense(dense), _) => Matrix::Dense(dense.clone().into_transpose()),
        }
    }
}

impl<T: Real> SharedMatrix<T> for Lent<T> {
    fn matrix(&self, cancel: &Cancel) -> Matrix<T> {
        match (&self.matrix, self.transposed) {
            (Matrix::Sparse(csr), true) => Matrix::Sparse(Csr::from_transpose(csr.clone(), cancel)),
            (matrix, _) => matrix.clone(),
        }
    }

    fn stored(&self) -> (Matrix<T>, bool) {
        (self.matrix.clone(), self.transposed)
    }
}

fn dense<T: Real + Element>(x: &Bound<'_, PyAny>) -> PyResult<Dense<T>> {
    let shape = |shape: &[usize], by_row: bool| match shape {
        &[rows, cols] => Ok((rows, cols, if by_row { Order::RowMajor } else { Order::ColMajor })),
        _ => Err(PyValueError::new_err(format!("X has {} dimensions; give a matrix", shape.len()))),
    };
    let ((rows, cols, order), values) = match PyBuffer::<u8>::get(x) {
        Ok(bytes) => (shape(bytes.shape(), bytes.is_c_contiguous())?, Values::Bytes(lent(bytes, "X")?)),
        Err(_) => {
            let reals = PyBuffer::<T>::get(x)?;
            (shape(reals.shape(), reals.is_c_contiguous())?, Values::Real(lent(reals, "X")?))
        }
    };
    Ok(Dense::new(rows, cols, order, values))
}

fn sparse<T: Real + Element>(x: &Bound<'_, PyAny>, majors: usize, minors: usize) -> PyResult<Csr<T>> {
    let py = x.py();
    let largest = Csr::<T>::MAX_DIMENSION;
    if majors > largest || minors > largest {
        let problem =
            format!("X is too large: a sparse matrix may have {largest} rows and columns; remove empty ones");
        return Err(PyValueError::new_err(problem));
    }
    let offsets = x.getattr(intern!(py, "indptr"))?;
    let offsets: Vec<i64> = match PyBuffer::<i64>::get(&offsets) {
        Ok(offsets) => offsets.to_vec(py)?,
        Err(_) => PyBuffer::<i32>::get(&offsets)?.to_vec(py)?.into_iter().map(i64::from).collect(),
    };
    let indices = x.getattr(intern!(py, "indices"))?;
    let indices: Buffer<u32> = match PyBuffer::<i64>::get(&indices) {
        // An index that does not fit is out of range.
        Ok(wide) => wide.to_vec(py)?.into_iter().map(|index| index.try_into().unwrap_or(u32::MAX)).collect(),
        // SciPy's indices are signed but never negative.
        Err(_) => {
            lent(PyBuffer::get(&indices.call_method1(intern!(py, "view"), ("uint32",))?)?, "X.indices")?
        }
    };
    let values = lent(PyBuffer::<T>::get(&x.getattr(intern!(py, "data"))?)?, "X.data")?;
    // What does not fit is out of range, as this is; negative indices are large unsigned ones.
    let offsets = offsets.into_iter().map(|offset| offset.try_into().unwrap_or(usize::MAX)).collect();
    Csr::checked(majors, minors, offsets, indices, values).ok_or_else(|| {
        PyValueError::new_err("X is a damaged sparse matrix: its indices do not ascend within its shape")
    })
}
