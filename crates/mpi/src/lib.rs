//! Partwise's communicator over MPI: real messages and MPI's own collectives, every result looked at.
//!
//! The functions are those of the MPI standard, through the `mpi` crate's bindings: its safe layer drops return codes
//! and cannot send more than 2^31 elements.

mod call;
mod comm;
mod session;

pub use comm::{MpiComm, Sums};
pub use session::{Session, abort};
