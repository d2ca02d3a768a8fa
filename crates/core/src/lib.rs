//! Partwise: nonnegative matrix factorization, M ≈ U Vᵀ with all entries ≥ 0.

pub mod cancel;
pub mod comm;
pub mod device;
pub mod error;
pub mod grid;
pub mod io;
pub mod kernels;
pub mod machine;
pub mod matrix;
pub mod objective;
pub mod partition;
pub mod pipeline;
pub mod plan;
pub mod random;
mod real;
mod registry;
pub mod run;
pub mod selection;
pub mod sketch;
pub mod solver;
pub mod threads;
pub mod wording;

pub use error::{Error, Result};
pub use real::{Lanes, PerReal, Precision, Real};
