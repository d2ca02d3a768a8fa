//! Partwise's communicator over MPI, with real messages, MPI's own collectives, and checked results.
//!
//! The functions are those of the MPI standard, through the `mpi` crate's bindings, whose safe layer drops return
//! codes and cannot send more than 2^31 elements.

mod call;
mod comm;
mod session;

pub use comm::{MpiComm, Sums};
pub use session::{Session, abort};
