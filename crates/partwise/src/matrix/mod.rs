//! Matrices: dense or sparse, with an element type that is known at run time, owned or borrowed.

mod build;
mod element;
#[cfg(feature = "faer")]
mod faer;
mod lend;
#[cfg(feature = "ndarray")]
mod ndarray;
mod observed;
#[cfg(feature = "sprs")]
mod sprs;

use std::fmt;
use std::marker::PhantomData;

use partwise_core::Real;
use partwise_core::io::ImageShape;
use partwise_core::matrix::{Buffer, Csr, Dense, Matrix as CoreMatrix, Order, Values};

pub(crate) use build::factor;
pub use element::{Element, ElementType, Float};
pub(crate) use lend::{Lent, converted};
pub use observed::Observed;

use crate::error::{Error, Result};

/// A matrix M, dense or sparse, of `f32`, `f64` or bytes.
///
/// A matrix comes from a file ([`read`](crate::read)), from vectors, from borrowed slices, or from types of
/// `ndarray`, `faer` and `sprs` if the features of these names are enabled. Entries that are borrowed or
/// moved in are not copied: factorizations read them in place. `'a` is the lifetime of borrowed entries; a
/// matrix that owns its entries is a `Matrix<'static>`.
///
/// ```
/// use partwise::Matrix;
/// use partwise::types::ElementType;
///
/// let owned = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
/// assert_eq!((owned.rows(), owned.cols(), owned.element()), (2, 3, ElementType::F64));
/// assert_eq!(owned.get(1, 2), 1.0);
///
/// let numbers = [1.0_f32, 2.0, 3.0, 4.0];
/// let borrowed = Matrix::from_slice(2, 2, &numbers)?;
/// assert_eq!(borrowed.as_slice::<f32>().unwrap().as_ptr(), numbers.as_ptr());
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone)]
pub struct Matrix<'a> {
    pub(crate) stored: Stored,
    /// Whether the stored matrix is Mᵀ; only for sparse matrices.
    pub(crate) transposed: bool,
    pub(crate) row_labels: Option<Vec<String>>,
    pub(crate) col_labels: Option<Vec<String>>,
    pub(crate) image: Option<ImageShape>,
    /// Entries may be borrowed: their buffers are valid for this lifetime.
    borrowed: PhantomData<&'a [u8]>,
}

/// The entries by type. Bytes are stored in the narrower type.
#[derive(Clone)]
pub enum Stored {
    F32(CoreMatrix<f32>),
    F64(CoreMatrix<f64>),
}

/// Runs the same code for both types.
macro_rules! either {
    ($stored:expr, $matrix:ident => $value:expr) => {
        match $stored {
            $crate::matrix::Stored::F32($matrix) => $value,
            $crate::matrix::Stored::F64($matrix) => $value,
        }
    };
}
pub(crate) use either;

impl<'a> Matrix<'a> {
    pub(crate) fn new(stored: Stored, transposed: bool) -> Self {
        let (row_labels, col_labels, image) = (None, None, None);
        Matrix { stored, transposed, row_labels, col_labels, image, borrowed: PhantomData }
    }

    /// Returns the number of rows, m.
    pub fn rows(&self) -> usize {
        self.sides().0
    }

    /// Returns the number of columns, n.
    pub fn cols(&self) -> usize {
        self.sides().1
    }

    fn sides(&self) -> (usize, usize) {
        let (rows, cols) = either!(&self.stored, matrix => (matrix.rows(), matrix.cols()));
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }

    /// Returns the number of stored entries: all entries of a dense matrix, the nonzeros of a sparse one.
    pub fn stored(&self) -> usize {
        either!(&self.stored, matrix => matrix.stored())
    }

    /// Returns whether only nonzero entries are stored.
    pub fn is_sparse(&self) -> bool {
        either!(&self.stored, matrix => matches!(matrix, CoreMatrix::Sparse(_)))
    }

    /// Returns the type of the entries.
    pub fn element(&self) -> ElementType {
        match &self.stored {
            _ if self.as_bytes().is_some() => ElementType::U8,
            Stored::F32(_) => ElementType::F32,
            Stored::F64(_) => ElementType::F64,
        }
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        <u8 as element::sealed::Sealed>::entries(&self.stored).map(|(entries, _)| entries)
    }

    /// Returns the entry at a row and a column, counted from 0.
    ///
    /// # Panics
    /// If the matrix has no such row or column.
    pub fn get(&self, row: usize, col: usize) -> f64 {
        assert!(row < self.rows() && col < self.cols(), "entry ({row}, {col}) of a {self:?}");
        let (row, col) = if self.transposed { (col, row) } else { (row, col) };
        either!(&self.stored, matrix => match matrix {
            CoreMatrix::Dense(dense) => dense.get(row, col).to_f64(),
            CoreMatrix::Sparse(csr) => {
                let (cols, entries) = csr.row(row);
                cols.binary_search(&(col as u32)).map_or(0.0, |place| entries[place].to_f64())
            }
        })
    }

    /// Returns the transpose, without copying entries.
    ///
    /// ```
    /// # use partwise::Matrix;
    /// let csr = Matrix::from_csr(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0])?;
    /// let turned = csr.into_transpose();
    /// assert_eq!((turned.rows(), turned.cols(), turned.get(2, 0)), (3, 2, 1.0));
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn into_transpose(self) -> Self {
        let sparse = self.is_sparse();
        let stored = match self.stored {
            stored if sparse => stored,
            Stored::F32(matrix) => Stored::F32(matrix.into_transpose()),
            Stored::F64(matrix) => Stored::F64(matrix.into_transpose()),
        };
        Matrix {
            stored,
            transposed: sparse && !self.transposed,
            row_labels: self.col_labels,
            col_labels: self.row_labels,
            image: None,
            borrowed: PhantomData,
        }
    }

    /// Returns all entries row by row, including the zeros of a sparse matrix.
    ///
    /// ```
    /// # use partwise::Matrix;
    /// let m = Matrix::from_slice(2, 2, &[1_u8, 2, 3, 4])?;
    /// assert_eq!(m.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(m.into_transpose().to_vec::<f64>(), [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn to_vec<T: Float>(&self) -> Vec<T> {
        let (rows, cols) = self.sides();
        let mut all = vec![T::ZERO; rows * cols];
        either!(&self.stored, matrix => matrix.for_each_stored(|row, col, value| {
            let (row, col) = if self.transposed { (col, row) } else { (row, col) };
            all[row * cols + col] = T::from_f64(value);
        }));
        all
    }

    /// Returns the entries row by row as a slice, if the matrix is dense, stored by row, and has entries of
    /// this type.
    pub fn as_slice<E: Element>(&self) -> Option<&[E]> {
        let (entries, order) = E::entries(&self.stored)?;
        (order == Order::RowMajor).then_some(entries)
    }

    /// Returns the entries row by row, without a copy if [`Matrix::as_slice`] has them and no clone shares
    /// them.
    ///
    /// ```
    /// # use partwise::Matrix;
    /// let numbers = vec![1.0, 2.0, 3.0, 4.0];
    /// let place = numbers.as_ptr();
    /// let m = Matrix::from_vec(2, 2, numbers)?;
    /// assert_eq!(m.into_vec::<f64>().as_ptr(), place);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn into_vec<T: Float>(self) -> Vec<T> {
        match self.as_slice::<T>() {
            Some(_) => T::take(self.stored).unwrap_or_default(),
            None => self.to_vec(),
        }
    }

    /// Returns the row offsets, the column numbers and the entries, if the matrix is sparse, stored by row,
    /// and of this type.
    pub fn as_csr<T: Float>(&self) -> Option<(&[usize], &[u32], &[T])> {
        match T::of(&self.stored)? {
            CoreMatrix::Sparse(csr) if !self.transposed => Some((csr.offsets(), csr.indices(), csr.values())),
            _ => None,
        }
    }

    /// Returns a matrix that owns its entries; borrowed entries are copied.
    pub fn into_owned(self) -> Matrix<'static> {
        let stored = match self.stored {
            Stored::F32(matrix) => Stored::F32(owned(matrix)),
            Stored::F64(matrix) => Stored::F64(owned(matrix)),
        };
        let Matrix { transposed, row_labels, col_labels, image, .. } = self;
        Matrix { stored, transposed, row_labels, col_labels, image, borrowed: PhantomData }
    }

    /// Returns the names of the rows, if there are any.
    pub fn row_labels(&self) -> Option<&[String]> {
        self.row_labels.as_deref()
    }

    /// Returns the names of the columns, if there are any.
    pub fn col_labels(&self) -> Option<&[String]> {
        self.col_labels.as_deref()
    }

    /// Returns the matrix with a name for each row.
    pub fn with_row_labels(self, labels: Vec<String>) -> Result<Self> {
        check_labels("row_labels", &labels, self.rows())?;
        Ok(Matrix { row_labels: Some(labels), ..self })
    }

    /// Returns the matrix with a name for each column.
    pub fn with_col_labels(self, labels: Vec<String>) -> Result<Self> {
        check_labels("col_labels", &labels, self.cols())?;
        Ok(Matrix { col_labels: Some(labels), ..self })
    }
}

fn check_labels(name: &str, labels: &[String], expected: usize) -> Result<()> {
    if labels.len() == expected {
        return Ok(());
    }
    Err(Error::of_parameter(name, format!("there are {}, but the matrix needs {expected}", labels.len())))
}

/// Copies borrowed entries.
fn owned<T: Real>(matrix: CoreMatrix<T>) -> CoreMatrix<T> {
    match matrix {
        CoreMatrix::Dense(dense) => {
            let (rows, cols, order) = (dense.rows(), dense.cols(), dense.order());
            let values = match dense.into_values() {
                Values::Bytes(bytes) => Values::Bytes(Buffer::shared(bytes.unshared())),
                Values::Real(reals) => Values::Real(Buffer::shared(reals.unshared())),
            };
            CoreMatrix::Dense(Dense::new(rows, cols, order, values))
        }
        CoreMatrix::Sparse(csr) => {
            let (rows, cols) = (csr.rows(), csr.cols());
            let (offsets, indices, values) = csr.into_parts();
            CoreMatrix::Sparse(Csr::new(rows, cols, offsets, Buffer::shared(indices), Buffer::shared(values)))
        }
    }
}

/// Describes the matrix without its entries.
impl fmt::Debug for Matrix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.sides();
        let kind = if self.is_sparse() { "sparse" } else { "dense" };
        write!(f, "{kind} {rows} x {cols} matrix of {:?}", self.element())
    }
}

/// Compares sizes and entries, regardless of their types.
impl PartialEq for Matrix<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.sides() == other.sides() && self.to_vec::<f64>() == other.to_vec::<f64>()
    }
}
