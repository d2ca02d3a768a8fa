//! What `auto` chooses where the network is known: exact on the grid, or sketched. By counts and constants, never by a clock.

use anyhow::{Result, bail};
use partwise::Precision;
use partwise::comm::Network;
use partwise::io::Presence;
use partwise::matrix::Values;
use partwise::plan::Job;
use partwise::run::{Algorithm, Plan, Settings};

use crate::args::FactorizeArgs;
use crate::constants;

/// A choice, and why.
#[derive(Clone)]
pub struct Choice {
    pub algorithm: Algorithm,
    /// Whether the exact way begins on samples.
    pub samples: bool,
    pub why: String,
}

impl Choice {
    /// The settings with it.
    pub fn apply(&self, settings: &mut Settings) {
        (settings.algorithm, settings.samples) = (self.algorithm, self.samples);
    }
}

/// How a matrix is stored.
#[derive(Clone, Copy, PartialEq)]
pub enum Entries {
    Sparse(usize),
    Bytes,
    Reals,
}

impl Entries {
    pub fn of<T>(values: &Values<T>) -> Self {
        if matches!(values, Values::Bytes(_)) { Entries::Bytes } else { Entries::Reals }
    }
}

/// Whether there is something to choose.
pub fn is_open(args: &FactorizeArgs, settings: &Settings, nodes: usize) -> bool {
    settings.algorithm == Algorithm::Auto && nodes > 1 && args.grid.is_none()
}

/// Refuses `--samples yes` where there are none to begin on.
pub fn check_samples(args: &FactorizeArgs, plan: &Plan, streamed: bool) -> Result<()> {
    if args.samples == Presence::Yes && (streamed || plan.samples().is_empty()) {
        bail!(
            "--samples: {} is sparse, has few rows and columns, or stays in its file, and auto begins on samples of none of \
             these; leave it out",
            args.file.display()
        );
    }
    Ok(())
}

/// The choice for an m x n matrix; none if nobody knows the network. Between ranks
/// of one process only `--network` is one; over MPI also the one that `calibrate` measured.
pub fn choose(
    args: &FactorizeArgs,
    settings: &Settings,
    (rows, cols, entries): (usize, usize, Entries),
    (nodes, precision): (usize, Precision),
    mpi: bool,
) -> Result<Option<Choice>> {
    let asked = args.network.first();
    if asked.is_none() && !mpi {
        return Ok(None);
    }
    let known = constants::known(None)?;
    let Some(network) = asked.copied().or(known.constants.network()) else { return Ok(None) };
    let network = Network { combine: known.constants.combine, ..network };
    let settings = settings.clone();
    let nonzeros = if let Entries::Sparse(count) = entries { Some(count) } else { None };
    let bytes = entries == Entries::Bytes;
    let job = Job { rows, cols, nonzeros, bytes, settings, nodes, grid: None, precision };
    // What begins on samples is exact.
    let algorithm = match args.samples {
        Presence::Yes => Algorithm::Auto,
        _ => job.best(&network, &known.constants),
    };
    let samples = match args.samples {
        Presence::Auto => job.pays_samples(&network, &known.constants),
        Presence::Yes => true,
        Presence::No => false,
    };
    let seconds = |algorithm| job.estimate(algorithm, &network, &known.constants).parts.seconds();
    let why = format!(
        "on {network} by {}: an exact iteration takes {:.2e} s, one of dsanls {:.2e} s, of which about {} are needed for it",
        known.words(),
        seconds(Algorithm::Auto),
        seconds(Algorithm::Dsanls),
        job.sketched_iterations()
    );
    Ok(Some(Choice { algorithm, samples, why }))
}
