//! Partwise: nonnegative matrix factorization, M ≈ U Vᵀ with all entries ≥ 0.

pub mod error;
pub mod io;
pub mod matrix;
mod real;

pub use error::{Error, Result};
pub use real::{Precision, Real};
