//! The program `partwise`: nonnegative matrix factorization from the command line.

#[cfg(feature = "mpi")]
mod mpi;

use std::process::ExitCode;

use partwise_commands::launch::Join;

#[cfg(feature = "mpi")]
const JOIN: Option<Join> = Some(mpi::join);

#[cfg(not(feature = "mpi"))]
const JOIN: Option<Join> = None;

fn main() -> ExitCode {
    partwise_commands::run(JOIN)
}
