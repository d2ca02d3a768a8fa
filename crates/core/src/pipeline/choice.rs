//! The choice of `auto` if the network is known: exact on the grid, or sketched. By counts and constants, never by a
//! clock.

use super::request::Request;
use crate::Real;
use crate::comm::{Comm, Network};
use crate::error::Result;
use crate::io::Presence;
use crate::plan::{Constants, Job};
use crate::run::{Algorithm, MatrixSize, RunSettings, Settings, Storage};

/// The costs of messages and arithmetic.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The network between the ranks.
    pub network: Network,
    /// The times of this machine.
    pub constants: Constants,
    /// The origin of the costs, in words.
    pub origin: String,
}

/// A choice, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `auto`, or `dsanls`.
    pub algorithm: Algorithm,
    /// Whether the exact way begins on samples.
    pub samples: bool,
    /// The reason, in words.
    pub why: String,
}

impl Choice {
    /// The settings with it.
    pub(super) fn apply(&self, settings: &mut Settings) {
        (settings.algorithm, settings.samples) = (self.algorithm, self.samples);
    }

    /// A description of the method, with the reason for its choice.
    pub fn describe(&self, plan: &str) -> String {
        match self.algorithm {
            Algorithm::Dsanls => format!("auto: {plan}; {}", self.why),
            _ => format!("{plan}; {}", self.why),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let sketched = u8::from(self.algorithm == Algorithm::Dsanls);
        [&[sketched, u8::from(self.samples)], self.why.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[sketched, samples], why) = bytes.split_first_chunk()?;
        let algorithm = if sketched == 1 { Algorithm::Dsanls } else { Algorithm::Auto };
        Some(Choice { algorithm, samples: samples == 1, why: String::from_utf8_lossy(why).into_owned() })
    }
}

/// The choice for a matrix, if there is one to make and the network is known.
pub(super) fn choose<T: Real>(request: &Request, settings: &RunSettings, size: MatrixSize) -> Option<Choice> {
    let costs = request.resources.costs.as_ref().filter(|_| request.is_open())?;
    let network = Network { combine: costs.constants.combine, ..costs.network };
    let MatrixSize { rows, cols, storage } = size;
    let job = Job {
        rows,
        cols,
        nonzeros: if let Storage::Sparse(count) = storage { Some(count) } else { None },
        bytes: storage == Storage::Bytes,
        settings: Settings::clone(settings),
        nodes: request.resources.machine.nodes,
        grid: None,
        precision: T::PRECISION,
    };
    // A run that starts on samples is exact.
    let algorithm = match request.samples {
        Presence::Yes => Algorithm::Auto,
        Presence::Auto | Presence::No => job.best(&network, &costs.constants),
    };
    let samples = match request.samples {
        Presence::Auto => job.pays_samples(&network, &costs.constants),
        Presence::Yes => true,
        Presence::No => false,
    };
    let seconds = |algorithm| job.estimate(algorithm, &network, &costs.constants).parts.seconds();
    let why = format!(
        "on {network} by {}: {:.2e} s per exact iteration, {:.2e} s per iteration of dsanls, about {} of which equal \
         an exact one",
        costs.origin,
        seconds(Algorithm::Auto),
        seconds(Algorithm::Dsanls),
        job.sketched_iterations()
    );
    Some(Choice { algorithm, samples, why })
}

/// The choice on every rank, by rank 0's costs, since those of other machines may differ.
pub(super) fn choose_on<T: Real>(
    comm: &dyn Comm,
    request: &Request,
    settings: &RunSettings,
    size: MatrixSize,
) -> Result<Option<Choice>> {
    if !request.is_open() {
        return Ok(None);
    }
    let chosen = if comm.rank() == 0 { choose::<T>(request, settings, size) } else { None };
    let told = comm.broadcast(chosen.map_or(Vec::new(), |choice| choice.to_bytes()))?;
    Ok(Choice::from_bytes(&told))
}
