//! The drivers, where communication and arithmetic meet.
//!
//! [`factorize`] runs in-process ranks, each of them a `driver::Run` on its communicator.

mod checked;
mod convergence;
mod driver;
mod evaluate;
mod factorize;
mod factors;
mod fit;
mod links;
mod log;
mod memory;
mod method;
mod monitor;
pub mod record;
#[cfg(test)]
mod remote_device;
mod report;
mod residual;
mod restarts;
mod sample;
mod scale;
mod settings;
mod snapshot;
mod start;
mod streamed;
mod svd;

pub use crate::solver::SketchedSolver;
pub use checked::{CheckedSettings, RunSettings};
pub use convergence::{Convergence, Evaluated};
pub(crate) use evaluate::no_value_at_zero;
pub use factorize::{Factorization, Machine, StartFrom, factorize, factorize_streamed};
pub(crate) use factorize::{Task, on_comm, on_observed, on_stream, on_workers};
pub use factors::{Factors, Side};
pub use memory::{Footprint, Layout, MatrixSize, Storage, Workload};
pub use method::Algorithm;
pub use method::auto::Plan;
pub use method::dsanls::{Damping, SketchedFactor, SketchedSide};
pub use monitor::{Directive, Monitor, Progress};
pub use report::{HeldOutError, Phases, RankReport, Redrawn, Report, Stop, TraceLine, headline, write_trace};
pub use residual::{Residual, error_of, residual_of, residual_of_observed, residual_on};
pub use restarts::RankOutcome;
pub use scale::Normalize;
pub use settings::{Amount, Init, Settings, Step};
pub use snapshot::Snapshot;
pub use start::draw;
pub use streamed::{Demand, Streamed};
