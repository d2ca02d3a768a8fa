//! Initialization and finalization of MPI.

use mpi::Threading;
use mpi::ffi;
use mpi::traits::AsRaw;
use partwise::comm::Comm;
use partwise::error::{Error, Result};

use crate::call::{Shared, checked};
use crate::comm::{MpiComm, Sums};

/// MPI between initialization and finalization.
pub struct Session {
    world: ffi::MPI_Comm,
    library: Shared,
}

impl Session {
    /// Joins the job that `mpirun` started. This can be done once.
    pub fn begin() -> Result<Self> {
        let refused = |problem: &str| Error::Transport {
            rank: 0,
            call: "MPI_Init_thread",
            problem: problem.to_string(),
        };
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
            return Err(refused("MPI was initialized before"));
        };
        if threading < Threading::Serialized {
            return Err(refused("this MPI library was built without threads"));
        }
        let world = universe.world().as_raw();
        // SAFETY: MPI is initialized. Communicators made from this one inherit the handler.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(world, ffi::RSMPI_ERRORS_RETURN) };
        checked(0, "MPI_Comm_set_errhandler", code)?;
        Ok(Session { world, library: Shared::new(universe) })
    }

    /// A communicator of all ranks.
    pub fn comm(&self, sums: Sums) -> Result<MpiComm> {
        MpiComm::duplicate(&self.library, self.world, sums)
    }

    /// Leaves the job once all sent messages have arrived.
    pub fn end(self, comm: &MpiComm) -> Result<()> {
        self.library.lock().finish(comm.rank())
    }
}

/// Ends the whole job at once, on all ranks, with this exit code.
pub fn abort(code: i32) -> ! {
    // SAFETY: MPI_Abort may be called at any time while MPI is initialized; that it may run beside another thread's call,
    // which never returns then, is no matter any more.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    std::process::exit(code)
}
