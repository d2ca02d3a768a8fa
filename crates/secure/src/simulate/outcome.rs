//! How a simulation went.

use serde::Serialize;

use crate::link::Sent;
use crate::protocol::Stop;

/// The result of a party.
#[derive(Clone, Debug)]
pub struct PartyOutcome<T> {
    /// U, features x k, by row.
    pub u: Vec<T>,
    /// V_r, records x k, by row.
    pub v: Vec<T>,
    /// The number of records.
    pub records: usize,
    /// ‖M_r − U V_rᵀ‖ / ‖M_r‖, which it would keep to itself.
    pub relative_error: f64,
    /// The messages that left the party, by kind.
    pub sent: Vec<Sent>,
}

/// A line of `trace.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Traced {
    /// Exchanges of U so far.
    pub round: usize,
    /// Seconds on the simulated clock.
    pub seconds: f64,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// Bytes that a party has sent and received so far.
    pub bytes: u64,
}

/// The costs of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds on this machine, all parties together on its cores.
    pub wall_seconds: f64,
    /// Wall-clock seconds per round.
    pub wall_seconds_per_round: f64,
    /// Seconds that the parties spent on masks, shares, signatures and fixed point, added up.
    pub masking_seconds: f64,
    /// The mean number of bytes that a party sent and received.
    pub bytes_per_party: u64,
    /// Bytes that the coordinator sent.
    pub bytes_of_coordinator: u64,
    /// Sums that a party took part in, on average.
    pub sums: f64,
    /// Messages of a party that the coordinator had to answer, a sum.
    pub round_trips_per_sum: f64,
}

/// What a cohort was told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CohortSummary {
    /// The parties of the cohort.
    pub parties: Vec<u16>,
    /// Number of opened sums.
    pub sums: u64,
    /// The hash over all that the coordinator told, in hexadecimal.
    pub hash: String,
    /// Whether every party that stayed to the end has the same.
    pub agreed: bool,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct SimulationOutcome<T> {
    /// The results by party; `None` for a party that disconnected.
    pub parties: Vec<Option<PartyOutcome<T>>>,
    /// The error over rounds.
    pub trace: Vec<Traced>,
    /// The final relative error over all parties.
    pub relative_error: f64,
    /// The number of rounds.
    pub rounds: usize,
    /// The errors of both attempts, if the run was repeated; the better one counts.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
    /// Seconds on the simulated clock.
    pub seconds: f64,
    /// The groups of an asynchronous method.
    pub groups: Vec<Vec<u16>>,
    /// The costs of the exchange.
    pub cost: Cost,
    /// What the cohorts were told.
    pub transcripts: Vec<CohortSummary>,
}
