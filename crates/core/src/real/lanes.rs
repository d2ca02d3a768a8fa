//! The SIMD operations that kernels need, for both element types.

use pulp::Simd;

use super::sealed::Sealed;

/// An element type's SIMD registers.
pub trait Lanes: Sealed + Sized {
    /// A register of `S`.
    type Vector<S: Simd>: Copy;
    /// The numbers as registers, without the remainder at the end.
    fn vectors<S: Simd>(numbers: &[Self]) -> &[Self::Vector<S>];
    /// The numbers as registers that can be written, without the remainder at the end.
    fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> &mut [Self::Vector<S>];
    /// One number in every lane.
    fn splat<S: Simd>(simd: S, number: Self) -> Self::Vector<S>;
    /// a b + c, rounded once.
    fn add_product<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// c − a b, rounded once.
    fn subtract_product<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// a + b.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a − b.
    fn difference<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Clamps to [0, upper]; NaN is kept, so that it is noticed.
    fn clamp<S: Simd>(simd: S, upper: Self::Vector<S>, value: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! impl_lanes {
    ($type:ident, $vector:ident, $as_simd:ident, $as_mut_simd:ident, $splat:ident, $mul_add:ident,
     $negate_mul_add:ident, $add:ident, $sub:ident, $less:ident, $greater:ident, $select:ident) => {
        impl Lanes for $type {
            type Vector<S: Simd> = S::$vector;
            #[inline(always)]
            fn vectors<S: Simd>(numbers: &[Self]) -> &[S::$vector] {
                S::$as_simd(numbers).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> &mut [S::$vector] {
                S::$as_mut_simd(numbers).0
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, number: Self) -> S::$vector {
                simd.$splat(number)
            }
            #[inline(always)]
            fn add_product<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn subtract_product<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$negate_mul_add(a, b, c)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn difference<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn clamp<S: Simd>(simd: S, upper: S::$vector, value: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                // Comparisons with NaN are false, which keeps it.
                let value = simd.$select(simd.$less(value, zero), zero, value);
                simd.$select(simd.$greater(value, upper), upper, value)
            }
        }
    };
}

impl_lanes!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    mul_add_f32s,
    negate_mul_add_f32s,
    add_f32s,
    sub_f32s,
    less_than_f32s,
    greater_than_f32s,
    select_f32s
);
impl_lanes!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    mul_add_f64s,
    negate_mul_add_f64s,
    add_f64s,
    sub_f64s,
    less_than_f64s,
    greater_than_f64s,
    select_f64s
);
