//! Code that is compiled for both element types in the crate that contains it.
//!
//! Rust compiles a generic function in every crate that calls it. For functions with much below them, [`precompiled!`]
//! avoids that: what callers compile is a choice between two functions that exist.

use super::Real;

/// A type that depends on the element type, such as that of a function.
pub trait PerReal {
    /// The type for `T`.
    type Of<T: Real>;
}

/// Declares generic functions that call the generic functions behind `=`, which are compiled here for both types.
macro_rules! precompiled {
    ($(
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident<$real:ident>($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $function:path;
    )*) => {$(
        $(#[$meta])*
        #[allow(clippy::type_complexity)]
        $visibility fn $name<$real: $crate::Real>($($argument: $type),*) -> $result {
            struct Signature;
            impl $crate::real::PerReal for Signature {
                type Of<$real: $crate::Real> = fn($($type),*) -> $result;
            }
            // A constant, unlike a static, would be compiled by the caller, and the functions with it.
            static F32: <Signature as $crate::real::PerReal>::Of<f32> = $function;
            static F64: <Signature as $crate::real::PerReal>::Of<f64> = $function;
            $real::select::<Signature>(F32, F64)($($argument),*)
        }
    )*};
}
pub(crate) use precompiled;
