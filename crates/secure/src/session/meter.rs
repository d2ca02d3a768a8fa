//! The costs of a party's sums.

use std::time::Duration;

/// Counters of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    /// Real time in the machines: masks, shares, signatures, fixed point.
    pub masking: Duration,
    /// Real time in waiting for others.
    pub waiting: Duration,
    /// Sums that were answered, and exchanges with the coordinator.
    pub sums: u64,
    /// Messages to the coordinator that it had to answer.
    pub round_trips: u64,
    /// Bytes sent and received, as the methods count them: without key exchange and evaluation.
    pub bytes: u64,
}
