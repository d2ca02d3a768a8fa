//! How this process was started: by itself, or as one rank of an MPI job.

use std::env;

use anyhow::{Result, bail};
use partwise::comm::Comm;
use serde::{Deserialize, Serialize};

use crate::args::Command;

/// Who adds up over MPI processes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sums {
    /// MPI.
    Native,
    /// Partwise, in the order of the ranks.
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
    /// All of them.
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

/// The same where these are the environment's variables.
pub fn launched_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.parse::<usize>().ok();
    let local = LOCAL.iter().find_map(|name| number(name)).unwrap_or(1).max(1);
    NAMES.iter().find_map(|(rank, size)| Some(Launched { rank: number(rank)?, size: number(size)?, local }))
}

/// The ranks that work on a command.
pub trait Job {
    /// How they reach each other.
    fn comm(&self) -> &dyn Comm;

    /// Takes leave of the others after a run that all ranks know the end of.
    fn leave(self: Box<Self>);

    /// Ends the job on every rank, if the others may still be at work.
    fn abort(&self);
}

/// How a process joins the others.
pub type Join = fn(Sums) -> Result<Box<dyn Job>>;

/// Joins the others, if there are any.
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
            "mpirun started {size} processes, but this program was built without MPI; build it with `cargo build --release -p partwise-cli --features mpi`, or run it without mpirun{otherwise}"
        );
    };
    join(sums).map(Some)
}
