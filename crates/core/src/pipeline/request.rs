//! A request, checked as far as possible without the matrix.

use super::choice::Costs;
use crate::error::{Error, Result};
use crate::io::Presence;
use crate::matrix::Shape;
use crate::partition::Access;
use crate::run::{Algorithm, CheckedSettings, Footprint, Layout, Machine, MatrixSize, Settings, Workload};
use crate::{Real, machine};

/// The resources of a run.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Workers, their threads and grid. For a rank of a job, its threads, and as many workers as there are ranks.
    pub machine: Machine,
    /// The memory limit in bytes for a matrix from a file: if it does not fit, it is streamed block by block.
    pub memory: Option<u64>,
    /// The number of copies of U and V while the matrix is streamed: the current ones, a given start, and those for
    /// checkpoints.
    pub copies: u64,
    /// The costs of the network and of this machine, for `auto`; `None` if unknown. Over ranks, those of rank 0
    /// count.
    pub costs: Option<Costs>,
    /// The advice for too little memory.
    pub advice: MemoryAdvice,
}

impl Resources {
    /// Uses all available memory, and assumes an unknown network.
    pub fn new(machine: Machine) -> Self {
        Resources { machine, memory: None, copies: 1, costs: None, advice: MemoryAdvice::GENERAL }
    }

    /// The maximum number of copies of U and V in memory at the same time: the current ones, those given or
    /// read from a checkpoint, the best restart so far and its copy for checkpoints, and the source of a
    /// checkpoint being written. A run that can be resumed includes what resuming needs, so that the resumed
    /// run has the same blocks and therefore the same bits.
    pub fn copies(given: bool, resumable: bool, restarts: usize) -> u64 {
        let (given, restarts) = (given || resumable, restarts > 1);
        1 + u64::from(given) + 2 * u64::from(restarts) + u64::from(resumable) * (1 + u64::from(restarts))
    }

    /// Bytes that may be used: the limit, if there is one, or what is available.
    pub(super) fn memory(&self) -> u64 {
        self.memory.unwrap_or(u64::MAX).min(machine::available_memory())
    }
}

/// The advice for too little memory; only the caller knows what its users can change.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAdvice {
    /// Advice if a factorization is too large for this machine.
    pub too_large: &'static str,
    /// Advice if a file exceeds the memory limit and cannot be streamed.
    pub unstreamable: &'static str,
}

impl MemoryAdvice {
    /// Advice that names no parameter of any front end.
    pub const GENERAL: MemoryAdvice = MemoryAdvice {
        too_large: "use fewer components, f32 or a machine with more memory",
        unstreamable: "this format cannot be streamed; convert the file to .npy or uncompressed .npz, or allow more \
             memory",
    };
}

/// The treatment of the factors after the last iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// They stay as the method left them, in the scale that the settings ask for.
    #[default]
    AsIterated,
    /// U is solved for exactly with V fixed, so that it equals the transform of the same rows; components that it
    /// then does not use are emptied where V is penalized, and the error is evaluated again.
    ExactRows,
}

/// Checked settings and everything else about a run.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) settings: CheckedSettings,
    pub(super) resources: Resources,
    pub(super) samples: Presence,
    pub(super) finish: Finish,
}

impl Request {
    /// A run with these settings, if the workers can be arranged as requested.
    pub fn new(settings: CheckedSettings, resources: Resources) -> Result<Self> {
        let machine = &resources.machine;
        if machine.nodes == 0 {
            return Err(Error::parameter("nodes", "0 is too few; give 1 or more"));
        }
        settings.grid(machine.grid, Shape { rows: 1, cols: 1 }, machine.nodes)?;
        Ok(Request { settings, resources, samples: Presence::Auto, finish: Finish::default() })
    }

    /// Whether `auto` must, must not or may start on samples.
    pub fn with_samples(self, samples: Presence) -> Self {
        Request { samples, ..self }
    }

    /// Sets the treatment of the factors after the run.
    pub fn with_finish(self, finish: Finish) -> Self {
        Request { finish, ..self }
    }

    /// A request for a matrix without missing or weighted entries.
    pub(super) fn with_all_entries(self) -> Result<Self> {
        let settings = Settings { incomplete: false, ..(*self.settings).clone() }.checked()?;
        Ok(Request { settings, ..self })
    }

    /// Sets the costs of the network and of this machine, for `auto`.
    pub fn with_costs(mut self, costs: Option<Costs>) -> Self {
        self.resources.costs = costs;
        self
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether `auto` may choose another method.
    pub fn is_open(&self) -> bool {
        let machine = &self.resources.machine;
        self.settings.algorithm == Algorithm::Auto
            && self.settings.access() == Access::Whole
            && machine.nodes > 1
            && machine.grid.is_none()
    }

    /// The memory of a method for a matrix of this size.
    pub(super) fn footprint<T: Real>(
        &self,
        size: MatrixSize,
        algorithm: Algorithm,
        layout: Layout,
    ) -> Footprint {
        let access = Settings { algorithm, ..(*self.settings).clone() }.access();
        let workload =
            Workload { size, algorithm, access, rank: self.settings.rank, precision: T::PRECISION };
        workload.footprint(&layout)
    }

    /// The memory for a matrix that all workers of this process share.
    pub(super) fn in_memory<T: Real>(&self, size: MatrixSize, algorithm: Algorithm) -> Footprint {
        self.footprint::<T>(size, algorithm, Layout::Workers(self.resources.machine.nodes))
    }

    /// Refuses work that does not fit in the available memory, before it starts.
    pub(super) fn check_available(&self, what: &str, needed: u64) -> Result<()> {
        let available = machine::available_memory();
        if needed <= available {
            return Ok(());
        }
        let cure = self.resources.advice.too_large.into();
        Err(Error::Memory { what: what.into(), needed, available, cure })
    }
}
