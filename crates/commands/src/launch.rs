//! Detects how this process was started: alone, or as a process of an MPI job.

use std::env;

use anyhow::{Result, bail};
use partwise::comm::Comm;
use serde::{Deserialize, Serialize};

use crate::args::Command;

/// How sums over MPI processes are computed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sums {
    /// MPI.
    Native,
    /// By Partwise, in the order of the processes.
    Ordered,
}

impl Sums {
    /// Both.
    pub const ALL: [Sums; 2] = [Sums::Native, Sums::Ordered];
}

/// What `mpirun` or `srun` tells a process in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// This one.
    pub rank: usize,
    /// The number of processes.
    pub size: usize,
    /// The number of processes on this machine.
    pub local: usize,
}

/// The variables for the process number and the number of processes of Open MPI, MPICH (with Intel MPI and Slurm's
/// PMI-2), MVAPICH, and Slurm with PMIx.
const NAMES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

/// The variables for the number of processes on this machine.
const LOCAL: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"];

/// How an MPI launcher started this process, if one did.
pub fn launched() -> Option<Launched> {
    launched_in(&|name| env::var(name).ok())
}

/// Reads the same from these environment variables.
pub fn launched_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.parse::<usize>().ok();
    let local = LOCAL.iter().find_map(|name| number(name)).unwrap_or(1).max(1);
    NAMES.iter().find_map(|(rank, size)| Some(Launched { rank: number(rank)?, size: number(size)?, local }))
}

/// The MPI processes that work on a command.
pub trait Job {
    /// The communicator that connects the processes.
    fn comm(&self) -> &dyn Comm;

    /// Leaves the job after a run whose end all processes know.
    fn leave(self: Box<Self>);

    /// Ends the job on every process, if the others may still be working.
    fn abort(&self);
}

/// The function with which a process joins an MPI job.
pub type Join = fn(Sums) -> Result<Box<dyn Job>>;

/// Joins the other processes, if there are any.
pub(crate) fn join(
    launched: Option<Launched>,
    command: &Command,
    join: Option<Join>,
) -> Result<Option<Box<dyn Job>>> {
    let Some(Launched { size: size @ 2.., .. }) = launched else { return Ok(None) };
    let (sums, otherwise) = match command {
        Command::Factorize(args) => (args.reduction, format!(" and with --nodes {size}")),
        Command::Simulate(_) => (Sums::Ordered, String::new()),
        Command::Calibrate(_) => (Sums::Native, String::new()),
        _ => bail!("this command runs in one process, but mpirun started {size}; run it without mpirun"),
    };
    let Some(join) = join else {
        bail!(
            "mpirun started {size} processes, but this program was built without MPI; build it with `cargo build \
             --release -p partwise-cli --features mpi`, or run it without mpirun{otherwise}"
        );
    };
    join(sums).map(Some)
}
