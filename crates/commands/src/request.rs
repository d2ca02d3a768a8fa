//! Builds the request to the pipeline from the arguments of `factorize`.

use anyhow::{Result, bail};
use partwise::pipeline::{Costs, FileSource, MemoryAdvice, Request, Resources};
use partwise::run::{Machine, Settings};

use crate::args::FactorizeArgs;
use crate::commands::cluster::Team;
use crate::{constants, input, launch, machine};

/// The advice for too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: input::TOO_LARGE,
    unstreamable: "this format cannot be streamed; convert the file with `partwise convert IN OUT.npy` (or OUT.npz \
         --uncompressed), or raise --memory",
};

/// The request, if it is valid for any matrix.
pub fn request(args: &FactorizeArgs, team: &Team<'_>) -> Result<Request> {
    let settings = args.settings().checked()?;
    let copies = copies(args, &settings);
    let machine = match team.comm() {
        None => {
            let threads = threads(args, args.nodes)?;
            let networks = args.network.clone();
            Machine { grid: args.grid, networks, ..Machine::new(args.nodes, threads) }
        }
        Some(comm) => {
            check_job(args, comm.size())?;
            let local = launch::launched().map_or(1, |launched| launched.local);
            // Clocks are real, whatever network `auto` chooses by.
            Machine { grid: args.grid, ..Machine::new(comm.size(), threads(args, local)?) }
        }
    };
    let resources = Resources { memory: args.memory, copies, advice: ADVICE, ..Resources::new(machine) };
    let request = Request::new(settings, resources)?.with_samples(args.samples);
    let costs = if request.is_open() { costs(args, team)? } else { None };
    Ok(request.with_costs(costs))
}

/// Refuses options that do not go with an MPI job of this size.
fn check_job(args: &FactorizeArgs, size: usize) -> Result<()> {
    if args.nodes > 1 {
        bail!(
            "--nodes: in-process workers cannot be combined with mpirun, which started {size} processes; leave it out"
        );
    }
    if args.network.len() > 1 {
        bail!("--network: MPI processes are on one network; give at most one");
    }
    if args.memory.is_some() {
        bail!(
            "--memory: MPI processes keep their parts of the matrix in memory; leave it out, or use more processes"
        );
    }
    Ok(())
}

/// The costs of the given network, or over MPI those that `calibrate` measured on process 0.
fn costs(args: &FactorizeArgs, team: &Team<'_>) -> Result<Option<Costs>> {
    let asked = args.network.first().copied();
    if !team.is_chief() || asked.is_none() && team.comm().is_none() {
        return Ok(None);
    }
    let known = constants::known(None)?;
    let Some(network) = asked.or(known.constants.network()) else { return Ok(None) };
    Ok(Some(Costs { network, origin: known.words(), constants: known.constants }))
}

/// The file and how to read it. Only processes that need labels read them: every process reorders given factors by
/// the labels, and process 0 writes them.
pub fn file(args: &FactorizeArgs, team: &Team<'_>) -> FileSource {
    let labelled = team.is_chief() || args.init_from.is_some();
    let labels = |path: &Option<_>| path.clone().filter(|_| labelled);
    FileSource {
        path: args.file.clone(),
        options: input::options(&args.read, None, 0),
        transpose: args.read.transpose,
        row_labels: labels(&args.labels.row_labels),
        col_labels: labels(&args.labels.col_labels),
        missing: args.known.missing.clone(),
        weights: args.known.weights.clone(),
    }
}

/// The maximum number of in-process workers; each has a channel to every other.
const MOST_NODES: usize = 1024;

/// The maximum number of threads of all workers, well below the limits of operating systems.
const MOST_THREADS: usize = 4096;

/// The number of threads per worker on this machine.
fn threads(args: &FactorizeArgs, nodes: usize) -> Result<usize> {
    if nodes == 0 {
        bail!("--nodes: 0 is too few; give 1 or more");
    }
    if nodes > MOST_NODES {
        bail!("--nodes: {nodes} workers are too many for one process; give at most {MOST_NODES}");
    }
    let cores = if args.network.is_empty() { machine::cores() } else { 1 };
    let threads = args.threads.unwrap_or((cores / nodes).max(1));
    if threads == 0 {
        bail!("--threads: 0 is too few; give 1 or more");
    }
    if threads.saturating_mul(nodes) > MOST_THREADS {
        bail!(
            "--threads: {threads} for each of {nodes} workers are too many for one process; give at most {}",
            MOST_THREADS / nodes
        );
    }
    Ok(threads)
}

/// How many copies of U and V are in memory at once.
fn copies(args: &FactorizeArgs, settings: &Settings) -> u64 {
    let resumable = args.checkpoint_every.is_some() || args.resume;
    Resources::copies(args.init_from.is_some(), resumable, settings.restarts)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FactorizeArgs,
    }

    /// Sums over blocks depend on the block boundaries.
    #[test]
    fn a_resumed_run_has_the_blocks_of_the_run_that_was_interrupted() {
        let copies_of = |words: &str| {
            let words = format!("factorize M.npy --rank 4 --out r {words}");
            let Line { args } = Line::try_parse_from(words.split_whitespace()).unwrap();
            copies(&args, &args.settings())
        };
        for words in ["", "--restarts 3", "--init-from s"] {
            let first = copies_of(&format!("{words} --checkpoint-every 5"));
            assert_eq!(first, copies_of(&format!("{words} --checkpoint-every 5 --resume")), "{words}");
            assert_eq!(first, copies_of(&format!("{words} --resume")), "{words}");
        }
    }
}
