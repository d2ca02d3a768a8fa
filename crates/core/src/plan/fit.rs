//! Refuses impossible plans, with advice.

use super::Job;
use crate::error::{Error, Result, human_bytes as size};
use crate::grid::Grid;
use crate::partition::Access;
use crate::run::{Algorithm, Footprint};

/// The methods of which at least one must fit.
const METHODS: [Algorithm; 3] = [Algorithm::Hals, Algorithm::Auto, Algorithm::Dsanls];

/// Refuses a job that does not fit; `memory` is the limit per process.
pub fn check(job: &Job, memory: Option<u64>) -> Result<()> {
    let too_few = |name: &str| Err(Error::parameter(name, "0 is too few; give 1 or more"));
    for (name, count) in
        [("rows", job.rows), ("cols", job.cols), ("nodes", job.nodes), ("rank", job.settings.rank)]
    {
        if count == 0 {
            return too_few(name);
        }
    }
    job.settings.check(job.rows, job.cols)?;
    let entries = job.rows as u128 * job.cols as u128;
    let stored = match job.nonzeros {
        Some(0) => return too_few("nonzeros"),
        Some(stored) if stored as u128 > entries => {
            let problem =
                format!("{stored} is more than the {entries} entries of the matrix; give at most {entries}");
            return Err(Error::parameter("nonzeros", problem));
        }
        Some(stored) => stored as u128,
        None => entries,
    };
    if job.nodes as u128 > stored {
        let problem = format!(
            "{} processes are more than the {stored} entries of the matrix; give at most {stored}",
            job.nodes
        );
        return Err(Error::parameter("nodes", problem));
    }
    Grid::of(job.grid, job.rows, job.cols, job.nodes)?;
    match memory {
        Some(memory) if needed(job).most() > memory => {
            Err(Error::parameter("memory", advice(job, memory, stored)))
        }
        _ => Ok(()),
    }
}

/// The memory of the method that needs the least.
fn needed(job: &Job) -> Footprint {
    let of = |algorithm: Algorithm| {
        let grid = match algorithm.access() {
            Access::Sampled | Access::Lines => Grid::tall(job.nodes),
            Access::Whole => job.grid.unwrap_or_else(|| Grid::choose(job.rows, job.cols, job.nodes)),
        };
        job.memory(algorithm, grid)
    };
    let all = METHODS.map(of);
    all.into_iter().min_by_key(Footprint::most).unwrap_or(all[0])
}

/// Advice on what would fit: more processes, or if none are enough, larger machines or fewer components.
fn advice(job: &Job, memory: u64, stored: u128) -> String {
    let with = |nodes: usize| needed(&Job { nodes, grid: None, ..job.clone() });
    let fits = |nodes: usize| with(nodes).most() <= memory;
    let need = needed(job);
    let begin = format!("a process needs {} but has {}", size(need.most()), size(memory));
    let largest = usize::try_from(stored).unwrap_or(usize::MAX).min(1 << 40);
    let mut enough = job.nodes;
    // The memory for saving does not depend on the number of processes.
    while need.saving < memory && enough < largest && !fits(enough) {
        enough = enough.saturating_mul(2).min(largest);
    }
    if fits(enough) {
        // Sizes of grids make it uneven, so this is not always the smallest number; it always fits.
        let (mut low, mut high) = (job.nodes, enough);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        return format!(
            "{begin}; use {high} processes, which need {} each, or machines with more memory",
            size(with(high).most())
        );
    }
    let a_rank = 3 * (job.rows as u64).saturating_add(job.cols as u64).saturating_mul(job.precision.bytes());
    let rank = match memory.saturating_sub(need.matrix) / a_rank.max(1) {
        0 => String::new(),
        rank => format!(", or fewer than {} components", rank + 1),
    };
    format!(
        "{begin}, and more processes do not help, because each holds both factors when they are saved ({}); use \
         machines with {} per process{rank}",
        size(need.saving),
        size(need.most())
    )
}
