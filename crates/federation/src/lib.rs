//! Federations: one coordinator, to which each party opens one connection (gRPC over TLS 1.3, both sides
//! authenticated). The protocols, the masks and the order of messages are in [`partwise_secure`]; this crate adds
//! sockets, certificates, files and clocks.

pub mod agreement;
pub mod certificates;
pub mod config;
pub mod coordinator;
pub mod data_ledger;
mod deadline;
mod error;
pub mod frame;
pub mod handover;
mod io;
pub mod journal;
pub mod ledger;
pub mod log;
pub mod party;
pub mod private;
mod rpc;
pub mod status;
#[cfg(test)]
mod tests;
pub mod text;
mod tls;
#[cfg(test)]
mod vectors;

pub use error::{Error, Result};

/// The version that parties compare before a run.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
