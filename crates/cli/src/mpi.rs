//! Joins the processes of an MPI job.

use std::panic;

use anyhow::Result;
use partwise::comm::Comm;
use partwise_commands::FAILURE;
use partwise_commands::launch::{Job, Sums};
use partwise_mpi::{MpiComm, Session};

struct MpiJob {
    session: Session,
    comm: MpiComm,
}

/// Joins the other processes.
pub fn join(sums: Sums) -> Result<Box<dyn Job>> {
    let session = Session::begin()?;
    let comm = session.comm(match sums {
        Sums::Ordered => partwise_mpi::Sums::Ordered,
        Sums::Native => partwise_mpi::Sums::Native,
    })?;
    // A panic must not leave the other processes waiting.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        usual(panic);
        partwise_mpi::abort(FAILURE.into());
    }));
    Ok(Box::new(MpiJob { session, comm }))
}

impl Job for MpiJob {
    fn comm(&self) -> &dyn Comm {
        &self.comm
    }

    fn leave(self: Box<Self>) {
        // Processes that cannot be reached do not wait for this one.
        let _ = self.session.end(&self.comm);
    }

    fn abort(&self) {
        partwise_mpi::abort(FAILURE.into());
    }
}
