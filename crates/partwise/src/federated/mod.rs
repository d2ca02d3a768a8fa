//! Factorizations between parties that keep their records to themselves.
//!
//! Each party has records (rows of M) with the same features (columns). All end with one common V, of the features, and each
//! with its own rows of U; only masked sums leave a party. [`simulate`] runs all parties in this process, to see what a method
//! gives and costs. [`Coordinator`] and [`Party`] are the two ends of a federation over the network, to be embedded in a
//! program of one's own; the guide's page on federations explains the files that they read.

#[cfg(feature = "federation")]
mod ends;
mod simulate;

#[cfg(feature = "federation")]
pub use ends::{Coordinator, FederationOutcome, Joined, Party};
pub use partwise_secure::protocol::{Aggregation, Protocol, Stop};
pub use simulate::{Federation, PartyFactors, Risk, Simulated, simulate};
