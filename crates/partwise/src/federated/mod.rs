//! Federated factorization: the parties keep their records.
//!
//! Each party has records (rows of M) with the same features (columns). All parties obtain the same V, and
//! each obtains its own rows of U; only masked sums leave a party. [`simulate`] runs all parties in this
//! process, to measure results and costs. [`Coordinator`] and [`Party`] are the two ends of a federation over
//! the network, for embedding in other programs; the guide's page on federations explains their configuration
//! files.

#[cfg(feature = "federation")]
mod ends;
mod simulate;

#[cfg(feature = "federation")]
pub use ends::{Coordinator, FederationOutcome, Joined, Party};
pub use partwise_secure::protocol::{Aggregation, Protocol, Stop};
pub use simulate::{Federation, PartyFactors, Risk, Simulated, simulate};
