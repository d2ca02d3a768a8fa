//! The drivers: where communication and arithmetic meet.
//!
//! [`factorize`] runs in-process ranks, each of them a `driver::Run` on its communicator.

mod auto;
mod convergence;
mod driver;
mod dsanls;
mod evaluate;
mod exact;
mod factorize;
mod factors;
mod links;
mod memory;
mod method;
mod monitor;
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

pub use auto::Plan;
pub use convergence::{Convergence, Evaluated};
pub use dsanls::{Damping, SketchedSide};
pub use factorize::{Factorization, Machine, StartFrom, factorize, factorize_on};
pub use factors::{Factors, Side};
pub use memory::{memory_needed, memory_needed_whole};
pub use monitor::{Directive, Monitor, Progress};
pub use report::{Phases, RankReport, Redrawn, Report, Stop, TraceLine};
pub(crate) use residual::residual_here;
pub use residual::{Residual, error_of, residual_of, residual_on};
pub use restarts::RankOutcome;
pub(crate) use restarts::best_of_restarts_here;
pub use scale::Normalize;
pub use settings::{Algorithm, Amount, Init, Settings, SketchedSolver, Step};
pub use snapshot::Snapshot;
pub use start::draw;
pub use streamed::{Demand, Streamed, factorize_streamed};
