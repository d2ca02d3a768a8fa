//! What `factorize` asks of the pipeline, from its arguments.

use anyhow::{Result, bail};
use partwise::pipeline::{Costs, FileSource, MemoryAdvice, Request, Resources};
use partwise::run::{Machine, Settings};

use crate::args::FactorizeArgs;
use crate::commands::cluster::Team;
use crate::{constants, input, launch, machine};

/// What users can do about too little memory.
const ADVICE: MemoryAdvice = MemoryAdvice {
    too_large: input::TOO_LARGE,
    unstreamable: "this file can only be read whole: convert it first, with `partwise convert IN OUT.npy` (or OUT.npz \
                   --uncompressed), or raise --memory",
};

/// The request, if it makes sense whatever the matrix.
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
            // Clocks are real, whatever the network that `auto` chooses by.
            Machine { grid: args.grid, ..Machine::new(comm.size(), threads(args, local)?) }
        }
    };
    let resources = Resources { memory: args.memory, copies, advice: ADVICE, ..Resources::new(machine) };
    let request = Request::new(settings, resources)?.with_samples(args.samples);
    let costs = if request.is_open() { costs(args, team)? } else { None };
    Ok(request.with_costs(costs))
}

/// Refuses what does not go with a job of so many ranks.
fn check_job(args: &FactorizeArgs, size: usize) -> Result<()> {
    if args.nodes > 1 {
        bail!(
            "--nodes: these are ranks within one process, and mpirun has started {size} already; leave it out"
        );
    }
    if args.network.len() > 1 {
        bail!("--network: the ranks of MPI are on one network, and clocks are real; give one at most");
    }
    if args.memory.is_some() {
        bail!("--memory: ranks of MPI hold their parts of the matrix; leave it out, or add nodes");
    }
    Ok(())
}

/// What the network costs that was given; over MPI also the one that `calibrate` measured, on rank 0.
fn costs(args: &FactorizeArgs, team: &Team<'_>) -> Result<Option<Costs>> {
    let asked = args.network.first().copied();
    if !team.is_chief() || asked.is_none() && team.comm().is_none() {
        return Ok(None);
    }
    let known = constants::known(None)?;
    let Some(network) = asked.or(known.constants.network()) else { return Ok(None) };
    Ok(Some(Costs { network, origin: known.words(), constants: known.constants }))
}

/// The file, and how to read it. Ranks that need no labels do not read them: every rank puts given factors into the
/// order of the labels, and rank 0 writes these.
pub fn file(args: &FactorizeArgs, team: &Team<'_>) -> FileSource {
    let labelled = team.is_chief() || args.init_from.is_some();
    let labels = |path: &Option<_>| path.clone().filter(|_| labelled);
    FileSource {
        path: args.file.clone(),
        options: input::options(&args.read, None, 0),
        transpose: args.read.transpose,
        row_labels: labels(&args.labels.row_labels),
        col_labels: labels(&args.labels.col_labels),
    }
}

/// In-process ranks at most: each has a channel to every other.
const MOST_NODES: usize = 1024;

/// Threads of all ranks at most, well below what systems allow a process.
const MOST_THREADS: usize = 4096;

/// Threads of each of so many ranks on this machine.
fn threads(args: &FactorizeArgs, nodes: usize) -> Result<usize> {
    if nodes == 0 {
        bail!("--nodes: 0 nodes can compute nothing; give 1 or more");
    }
    if nodes > MOST_NODES {
        bail!("--nodes: {nodes} nodes are too many for one process; give at most {MOST_NODES}");
    }
    let cores = if args.network.is_empty() { machine::cores() } else { 1 };
    let threads = args.threads.unwrap_or((cores / nodes).max(1));
    if threads == 0 {
        bail!("--threads: 0 threads can compute nothing; give 1 or more");
    }
    if threads.saturating_mul(nodes) > MOST_THREADS {
        bail!(
            "--threads: {threads} on each of {nodes} nodes are too many for one process; give at most {}",
            MOST_THREADS / nodes
        );
    }
    Ok(threads)
}

/// How often U and V are in memory at once.
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

    /// Sums over blocks depend on where these end.
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
