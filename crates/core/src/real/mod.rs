//! The two element types that a factorization computes in: `f32` and `f64`.

mod lanes;
mod per_type;

use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

pub use lanes::Lanes;
pub use per_type::PerReal;
pub(crate) use per_type::precompiled;

mod sealed {
    /// Seals [`Real`](super::Real) to the types in this file.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point type of factors and arithmetic.
pub trait Real:
    sealed::Sealed
    + faer::traits::RealField
    + Lanes
    + bytemuck::Pod
    + Copy
    + PartialOrd
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Which of the two types this is.
    const PRECISION: Precision;
    /// The nearest value of this type (infinite where `value` is out of its range).
    fn from_f64(value: f64) -> Self;
    /// This value, exactly.
    fn to_f64(self) -> f64;
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// Chooses between a value for `f32` and one for `f64`.
    fn select<F: PerReal>(narrow: F::Of<f32>, wide: F::Of<f64>) -> F::Of<Self>;
}

macro_rules! impl_real {
    ($type:ident, $precision:expr, ($narrow:ident, $wide:ident) => $chosen:ident) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const PRECISION: Precision = $precision;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                $type::mul_add(self, factor, addend)
            }
            #[inline(always)]
            fn select<F: PerReal>($narrow: F::Of<f32>, $wide: F::Of<f64>) -> F::Of<Self> {
                $chosen
            }
        }
    };
}

impl_real!(f32, Precision::F32, (narrow, _wide) => narrow);
impl_real!(f64, Precision::F64, (_narrow, wide) => wide);

/// The names of the element types, for parameters and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    F32,
    /// 64-bit floating point.
    F64,
}

impl Precision {
    /// Both.
    pub const ALL: [Precision; 2] = [Precision::F32, Precision::F64];

    /// Bytes that one element takes.
    pub fn bytes(self) -> u64 {
        match self {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }
}
