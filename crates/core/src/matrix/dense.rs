//! A dense matrix in the order, and for images in the bytes, of its file.

use std::ops::Range;

use super::Buffer;
use crate::Real;

/// Which index of a dense matrix runs fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A row is contiguous (C order).
    RowMajor,
    /// A column is contiguous (Fortran order).
    ColMajor,
}

/// The entries of a dense matrix. Images stay bytes: a quarter of the memory and traffic of `f32`.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<T> {
    /// Unsigned bytes.
    Bytes(Buffer<u8>),
    /// Reals of the type that the factorization computes in.
    Real(Buffer<T>),
}

impl<T: Real> Values<T> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Values::Bytes(bytes) => bytes.len(),
            Values::Real(reals) => reals.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, if they are bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Values::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The entries as a vector, if they are bytes.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        if let Values::Bytes(bytes) = self { Some(bytes.unshared()) } else { None }
    }

    /// Entry `index` in storage order.
    #[inline(always)]
    pub fn get(&self, index: usize) -> T {
        match self {
            Values::Bytes(bytes) => T::from_f64(bytes[index] as f64),
            Values::Real(reals) => reals[index],
        }
    }
}

/// A dense matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    rows: usize,
    cols: usize,
    order: Order,
    values: Values<T>,
}

impl<T: Real> Dense<T> {
    /// A matrix from its entries in storage order.
    ///
    /// # Panics
    /// If there are not `rows * cols` entries.
    pub fn new(rows: usize, cols: usize, order: Order, values: Values<T>) -> Self {
        assert_eq!(rows.checked_mul(cols), Some(values.len()), "a dense matrix holds rows x columns entries");
        Dense { rows, cols, order, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The storage order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The entries in storage order.
    pub fn values(&self) -> &Values<T> {
        &self.values
    }

    /// Takes the entries out, in storage order.
    pub fn into_values(self) -> Values<T> {
        self.values
    }

    /// Number of contiguous vectors: rows in row-major order, columns otherwise.
    pub fn majors(&self) -> usize {
        match self.order {
            Order::RowMajor => self.rows,
            Order::ColMajor => self.cols,
        }
    }

    /// Length of a contiguous vector.
    pub fn minors(&self) -> usize {
        match self.order {
            Order::RowMajor => self.cols,
            Order::ColMajor => self.rows,
        }
    }

    /// Position of an entry in storage.
    #[inline(always)]
    pub fn position(&self, row: usize, col: usize) -> usize {
        match self.order {
            Order::RowMajor => row * self.cols + col,
            Order::ColMajor => col * self.rows + row,
        }
    }

    /// One entry.
    #[inline(always)]
    pub fn get(&self, row: usize, col: usize) -> T {
        self.values.get(self.position(row, col))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let width = match self.values {
            Values::Bytes(_) => 1,
            Values::Real(_) => T::PRECISION.bytes(),
        };
        self.values.len() as u64 * width
    }

    /// The transpose: the same entries, read the other way.
    pub fn into_transpose(self) -> Self {
        let order = match self.order {
            Order::RowMajor => Order::ColMajor,
            Order::ColMajor => Order::RowMajor,
        };
        Dense { rows: self.cols, cols: self.rows, order, values: self.values }
    }

    /// The entries in the given rows and columns, copied in the same order.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let (majors, minors) = match self.order {
            Order::RowMajor => (rows.clone(), cols.clone()),
            Order::ColMajor => (cols.clone(), rows.clone()),
        };
        let values = match &self.values {
            Values::Bytes(bytes) => Values::Bytes(lines(bytes, self.minors(), majors, minors).into()),
            Values::Real(reals) => Values::Real(lines(reals, self.minors(), majors, minors).into()),
        };
        Dense::new(rows.len(), cols.len(), self.order, values)
    }
}

/// A part of every one of some lines.
fn lines<E: Copy>(values: &[E], length: usize, majors: Range<usize>, minors: Range<usize>) -> Vec<E> {
    let mut part = Vec::with_capacity(majors.len() * minors.len());
    for major in majors {
        part.extend_from_slice(&values[major * length..][minors.clone()]);
    }
    part
}
