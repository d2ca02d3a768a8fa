//! How this process was started: by itself, or as one rank of an MPI job.

use std::env;

use anyhow::{Result, bail};
use partwise::comm::Comm;

use crate::args::{Command, Sums};

/// What `mpirun` or `srun` tells a process in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    pub rank: usize,
    pub size: usize,
    /// Ranks on this machine.
    pub local: usize,
}

/// Rank and number of ranks, as Open MPI, MPICH (and Intel MPI and Slurm's PMI-2), MVAPICH, and Slurm with PMIx name
/// them.
const NAMES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

/// Ranks on this machine, likewise.
const LOCAL: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"];

/// How this process was started, if not by itself.
pub fn launched() -> Option<Launched> {
    launched_in(&|name| env::var(name).ok())
}

fn launched_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.parse::<usize>().ok();
    let local = LOCAL.iter().find_map(|name| number(name)).unwrap_or(1).max(1);
    NAMES.iter().find_map(|(rank, size)| Some(Launched { rank: number(rank)?, size: number(size)?, local }))
}

/// The ranks that work on a command.
pub enum Job {
    /// One process.
    Alone,
    /// An MPI job.
    #[cfg(feature = "mpi")]
    Mpi(partwise_mpi::Session, partwise_mpi::MpiComm),
}

impl Job {
    /// Joins the others, if there are any.
    pub fn join(launched: Option<Launched>, command: &Command) -> Result<Self> {
        let Some(Launched { size: size @ 2.., .. }) = launched else { return Ok(Job::Alone) };
        let (sums, otherwise) = match command {
            Command::Factorize(args) => (args.reduction, format!(" and with --nodes {size}")),
            Command::Simulate(_) => (Sums::Ordered, String::new()),
            Command::Calibrate(_) => (Sums::Native, String::new()),
            _ => bail!("this command works in one process, but mpirun started {size}; run it without mpirun"),
        };
        #[cfg(not(feature = "mpi"))]
        {
            let _ = sums;
            bail!(
                "mpirun started {size} ranks, but this program was built without MPI; build it with `cargo build --release -p \
                 partwise-cli --features mpi`, or run it without mpirun{otherwise}"
            );
        }
        #[cfg(feature = "mpi")]
        {
            let _ = otherwise;
            let session = partwise_mpi::Session::begin()?;
            let comm = session.comm(match sums {
                Sums::Ordered => partwise_mpi::Sums::Ordered,
                Sums::Native => partwise_mpi::Sums::Native,
            })?;
            // A panic must not leave the other ranks waiting.
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                usual(panic);
                partwise_mpi::abort(crate::FAILURE.into());
            }));
            Ok(Job::Mpi(session, comm))
        }
    }

    /// The communicator, if there is one.
    pub fn comm(&self) -> Option<&dyn Comm> {
        match self {
            Job::Alone => None,
            #[cfg(feature = "mpi")]
            Job::Mpi(_, comm) => Some(comm),
        }
    }

    /// Takes leave of the others after a run that all ranks know the end of.
    pub fn leave(self) {
        #[cfg(feature = "mpi")]
        if let Job::Mpi(session, comm) = self {
            // Whoever cannot be reached any more does not wait for us either.
            let _ = session.end(&comm);
        }
    }

    /// Ends the job on every rank, if the others may still be at work.
    pub fn abort(&self) {
        #[cfg(feature = "mpi")]
        if let Job::Mpi(..) = self {
            partwise_mpi::abort(crate::FAILURE.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_names() {
        let with = |pairs: &'static [(&str, &str)]| {
            launched_in(&|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
            })
        };
        assert_eq!(with(&[]), None);
        let open_mpi = &[
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("PMIX_RANK", "3"),
        ];
        assert_eq!(with(open_mpi), Some(Launched { rank: 3, size: 8, local: 4 }));
        assert_eq!(
            with(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]),
            Some(Launched { rank: 0, size: 2, local: 1 })
        );
        let slurm =
            with(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "6"), ("SLURM_NTASKS_PER_NODE", "2")]);
        assert_eq!(slurm, Some(Launched { rank: 1, size: 6, local: 2 }));
        // A batch script by itself is one process, whatever its job has asked for.
        assert_eq!(with(&[("SLURM_NTASKS", "6"), ("SLURM_PROCID", "0")]), None);
    }
}
