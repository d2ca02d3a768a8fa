//! Partwise: nonnegative matrix factorization, M ≈ U Vᵀ with all entries ≥ 0.

pub mod cancel;
pub mod comm;
mod compiled;
pub mod error;
pub mod grid;
pub mod io;
pub mod kernels;
pub mod machine;
pub mod matrix;
pub mod partition;
pub mod plan;
pub mod random;
mod real;
pub mod run;
pub mod sketch;
pub mod solver;
pub mod threads;

pub use error::{Error, Result};
pub use real::{Precision, Real};
