//! Federated nonnegative matrix factorization with secure aggregation (Sec. 4 of the paper).
//!
//! Parties with the same features and different records compute one common U, and each its own V_r, with M_r ≈ U
//! V_rᵀ. This crate has the protocols ([`protocol`]) and the secure aggregation below them ([`aggregation`]) as
//! plain state machines: no sockets, no files, no clocks. A transport is a [`link::Link`]; [`simulate()`] runs all
//! parties in one process.

pub mod aggregation;
pub mod audit;
mod basis;
pub mod coordinator;
pub mod digest;
pub mod encoding;
mod entropy;
mod error;
pub mod factors;
mod features;
pub mod fixed;
pub mod link;
pub mod net;
mod plausible;
pub mod protocol;
mod ranks;
pub mod risk;
mod safeguards;
pub mod server;
pub mod session;
mod simulate;
pub mod split;
pub mod sum;

pub use entropy::entropy;
pub use error::{Error, Peer, Result};
pub use ranks::{DataSizes, OnRank, run_on_rank, run_on_rank_recorded};
pub use safeguards::Safeguards;
pub use simulate::{
    CohortSummary, Cost, PartyOutcome, Plan, RunParties, SimulationOutcome, Traced, Vanishing, cohorts,
    groups, simulate, simulate_recorded,
};
