//! The types of entries.

use partwise_core::matrix::{Buffer, Dense, Matrix, Order, Values};

use super::Stored;

/// The type of the entries of a [`Matrix`](crate::Matrix), known at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// Bytes, as in images. They stay bytes during the factorization.
    U8,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

pub(crate) mod sealed {
    use super::{Buffer, Order, Stored};

    /// The operations that matrices need for a type of entries.
    pub trait Sealed: Copy + Send + Sync + 'static {
        /// Wraps a dense matrix of these entries.
        fn dense(rows: usize, cols: usize, order: Order, entries: Buffer<Self>) -> Stored;
        /// The entries of a dense matrix of this type, and their order.
        fn entries(stored: &Stored) -> Option<(&[Self], Order)>;
        /// Takes out the entries of a dense matrix of this type, and their order.
        fn take(stored: Stored) -> Option<Vec<Self>>;
    }

    /// The operations that matrices need for a floating-point type.
    pub trait Float: partwise_core::Real {
        /// The matrix, if it has this type.
        fn of(stored: &Stored) -> Option<&partwise_core::matrix::Matrix<Self>>;
        /// Wraps a matrix of this type.
        fn stored(matrix: partwise_core::matrix::Matrix<Self>) -> Stored;
    }
}

/// A type of entries: `f32`, `f64`, or `u8`.
pub trait Element: sealed::Sealed {}

/// A floating-point type: `f32` or `f64`.
pub trait Float: Element + sealed::Float {}

impl Element for u8 {}
impl Element for f32 {}
impl Element for f64 {}
impl Float for f32 {}
impl Float for f64 {}

macro_rules! float {
    ($type:ident, $variant:ident) => {
        impl sealed::Sealed for $type {
            fn dense(rows: usize, cols: usize, order: Order, entries: Buffer<Self>) -> Stored {
                Stored::$variant(Matrix::Dense(Dense::new(rows, cols, order, Values::Real(entries))))
            }

            fn entries(stored: &Stored) -> Option<(&[Self], Order)> {
                let Stored::$variant(Matrix::Dense(dense)) = stored else { return None };
                let Values::Real(entries) = dense.values() else { return None };
                Some((entries, dense.order()))
            }

            fn take(stored: Stored) -> Option<Vec<Self>> {
                let Stored::$variant(Matrix::Dense(dense)) = stored else { return None };
                let Values::Real(entries) = dense.into_values() else { return None };
                Some(entries.unshared())
            }
        }

        impl sealed::Float for $type {
            fn of(stored: &Stored) -> Option<&Matrix<Self>> {
                if let Stored::$variant(matrix) = stored { Some(matrix) } else { None }
            }

            fn stored(matrix: Matrix<Self>) -> Stored {
                Stored::$variant(matrix)
            }
        }
    };
}

float!(f32, F32);
float!(f64, F64);

/// Bytes are stored in a matrix of the narrower type.
impl sealed::Sealed for u8 {
    fn dense(rows: usize, cols: usize, order: Order, entries: Buffer<Self>) -> Stored {
        Stored::F32(Matrix::Dense(Dense::new(rows, cols, order, Values::Bytes(entries))))
    }

    fn entries(stored: &Stored) -> Option<(&[Self], Order)> {
        let (values, order) = match stored {
            Stored::F32(Matrix::Dense(dense)) => (dense.values().bytes()?, dense.order()),
            Stored::F64(Matrix::Dense(dense)) => (dense.values().bytes()?, dense.order()),
            _ => return None,
        };
        Some((values, order))
    }

    fn take(stored: Stored) -> Option<Vec<Self>> {
        match stored {
            Stored::F32(Matrix::Dense(dense)) => dense.into_values().into_bytes(),
            Stored::F64(Matrix::Dense(dense)) => dense.into_values().into_bytes(),
            _ => None,
        }
    }
}
