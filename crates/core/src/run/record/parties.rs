//! What `run.json` says of a run between parties: a simulation, or a federation as one of its ends saw it.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{InputRecord, Transport, number, numbers};
use crate::Precision;
use crate::io::{ImageShape, ImageSide, Presence};
use crate::run::Side;

/// Parties that were simulated. Settings are among its keys, `rounds` of them as `max_rounds`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulationRecord {
    /// Number of rounds.
    pub rounds: usize,
    /// Maximum number of rounds of an attempt.
    pub max_rounds: usize,
    /// If the run was done twice, the error of both attempts.
    #[serde(deserialize_with = "numbers")]
    pub attempts: Vec<f64>,
    /// Why it ended, by the protocol's name for it.
    pub stopped_by: String,
    /// Seconds on the simulated clock; under MPI on the real one.
    pub seconds: f64,
    /// The outcome of each party.
    pub parties: Vec<SimulatedParty>,
    /// The groups of an asynchronous method.
    pub groups: Vec<Vec<u16>>,
    /// The cost of the exchange.
    pub cost: CostRecord,
    /// What was opened, for each cohort.
    pub transcripts: Vec<TranscriptRecord>,
    /// Whether the records are the rows or the columns of the file.
    pub records: Side,
    /// Which factor all parties share.
    pub shared_factor: SharedFactor,
    /// The distribution of records, as given.
    pub split: String,
    /// How many times as long each party took for the same work.
    pub speeds: Vec<f64>,
    /// A party that left, and after how many sums.
    pub lose: Option<(u16, u64)>,
    /// The number of held-out records.
    pub holdout: usize,
    /// The simulated lines.
    pub network: String,
    /// Whether the matrix was turned after it was read.
    pub transpose: bool,
    /// The element type.
    pub precision: Precision,
    /// What carried the messages, if each party was a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// The matrix of all parties together.
    pub input: InputRecord,
    /// How a record is a picture.
    pub image: Option<ImageShape>,
    /// The warnings of the run.
    pub warnings: Vec<String>,
    /// The input of an audit, if messages were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedData>,
    /// The settings on which the parties agreed.
    #[serde(flatten)]
    pub settings: ProtocolSettings,
}

impl SimulationRecord {
    /// The settings on which the parties agreed, with the actual number of rounds.
    pub fn settings<S: DeserializeOwned>(&self) -> serde_json::Result<S> {
        let mut fields = self.settings.fields.clone();
        fields.insert("rounds".into(), self.rounds.into());
        serde_json::from_value(Value::Object(ProtocolSettings { fields, ..self.settings.clone() }.into_map()))
    }
}

/// What the parties of a run agreed on. What every reader understands has a name here; the rest belongs to the protocols,
/// which know it as their settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolSettings {
    /// The method.
    pub protocol: String,
    /// How shares travelled: `secure` or `plain`.
    pub aggregation: String,
    /// How many parties were assumed to collude.
    pub colluders: usize,
    /// All other settings.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl ProtocolSettings {
    /// The settings of a protocol.
    pub fn new(settings: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::from_value(serde_json::to_value(settings)?)
    }

    /// The relative change of the error at which it was to stop.
    pub fn tolerance(&self) -> Option<f64> {
        self.fields.get("tolerance")?.as_f64()
    }

    /// All settings but `rounds`, which a simulation writes as `max_rounds`.
    pub fn without_rounds(mut self) -> Self {
        self.fields.remove("rounds");
        self
    }

    fn into_map(self) -> Map<String, Value> {
        let ProtocolSettings { protocol, aggregation, colluders, mut fields } = self;
        fields.insert("protocol".into(), protocol.into());
        fields.insert("aggregation".into(), aggregation.into());
        fields.insert("colluders".into(), colluders.into());
        fields
    }
}

/// The factor of the features, which all parties share. Files and Python have U belong to the rows of the data and V to the
/// columns, whichever of them are the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedFactor {
    /// Records are columns. Early versions did not say so, and wrote the shared factor as U whatever the data were.
    #[default]
    U,
    /// The rows of the matrix are records.
    V,
}

impl SharedFactor {
    /// The one of data whose records are on this side.
    pub fn of(records: Side) -> Self {
        match records {
            Side::Rows => SharedFactor::V,
            Side::Columns => SharedFactor::U,
        }
    }

    /// The side that the records are on.
    pub fn records(self) -> Side {
        match self {
            SharedFactor::V => Side::Rows,
            SharedFactor::U => Side::Columns,
        }
    }

    /// The file of the shared factor, in a party's folder or the coordinator's.
    pub fn file(self) -> &'static str {
        match self {
            SharedFactor::U => "U.npy",
            SharedFactor::V => "V.npy",
        }
    }

    /// The file of a party's own factor.
    pub fn own_file(self) -> &'static str {
        match self {
            SharedFactor::U => "V.npy",
            SharedFactor::V => "U.npy",
        }
    }
}

/// A party of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedParty {
    /// Number of the party, from 1.
    pub party: usize,
    /// Name of the party, if a file specifies it.
    #[serde(default)]
    pub name: Option<String>,
    /// Outcome of the party.
    #[serde(flatten)]
    pub end: SimulatedEnd,
}

/// The outcome of a simulated party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SimulatedEnd {
    /// The party stayed to the end.
    Stayed(PartyResult),
    /// The party left.
    Left {
        /// True.
        left: bool,
    },
}

/// The result of a simulated party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartyResult {
    /// How many records it has.
    pub records: usize,
    /// The relative error of this party.
    #[serde(deserialize_with = "number")]
    pub relative_error: f64,
    /// The messages that the party sent, by kind.
    pub sent: Vec<SentRecord>,
}

/// Messages of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentRecord {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Bytes of these messages.
    pub bytes: u64,
}

/// The cost of a simulation's exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostRecord {
    /// Seconds on this machine.
    pub wall_seconds: f64,
    /// Seconds on this machine per round.
    pub wall_seconds_per_round: f64,
    /// Seconds that all parties spent on masks, shares, signatures and fixed point.
    pub masking_seconds: f64,
    /// Mean number of bytes that a party sent and received.
    pub bytes_per_party: u64,
    /// Bytes that the coordinator sent.
    pub bytes_of_coordinator: u64,
    /// Sums that a party took part in, on average.
    #[serde(deserialize_with = "number")]
    pub sums: f64,
    /// Messages of a party that the coordinator had to answer, per sum.
    #[serde(deserialize_with = "number")]
    pub round_trips_per_sum: f64,
}

/// What a cohort was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TranscriptRecord {
    /// The parties of the cohort.
    pub parties: Vec<u16>,
    /// Number of opened sums.
    pub sums: u64,
    /// The hash over all that the coordinator told.
    pub hash: String,
    /// Whether every party that stayed has the same.
    pub agreed: bool,
}

/// What finds the data of a recorded simulation again and deals them out as they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedData {
    /// The matrix.
    pub path: PathBuf,
    /// Whether a table has a header.
    pub header: Presence,
    /// Whether a table has row names.
    pub row_names: Presence,
    /// The side of images.
    pub images: Option<ImageSide>,
    /// The records of each party.
    pub dealt: Vec<Vec<usize>>,
    /// Held-out records, by the party of their kind.
    pub held_out: Vec<Vec<usize>>,
    /// The number of the person of each record of the matrix, if people have several records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<Vec<usize>>,
}

/// A federation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FederationRecord {
    /// Name of the federation.
    pub federation: String,
    /// The transport of messages.
    pub transport: Transport,
    /// The digest that all signed.
    pub run: String,
    /// The names of its parties.
    pub parties: Vec<String>,
    /// Number of rounds.
    pub rounds: usize,
    /// If the run was done twice, the error of both attempts.
    #[serde(default, deserialize_with = "numbers")]
    pub attempts: Vec<f64>,
    /// Why it ended, by the protocol's name for it.
    pub stopped_by: String,
    /// How many features there are.
    pub features: usize,
    /// Which factor all parties share.
    #[serde(default)]
    pub shared_factor: SharedFactor,
    /// The settings on which the parties agreed.
    pub settings: ProtocolSettings,
    /// The part that only this end knows.
    #[serde(flatten)]
    pub end: FederationEnd,
}

impl FederationRecord {
    /// The party's part, if the record is a party's.
    pub fn party(&self) -> Option<&PartyRecord> {
        match &self.end {
            FederationEnd::Party(party) => Some(party),
            FederationEnd::Coordinator(_) => None,
        }
    }
}

/// Whether the record is a party's or the coordinator's: a party's has the key `party`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FederationEnd {
    /// A party's.
    Party(PartyRecord),
    /// The coordinator's.
    Coordinator(CoordinatorRecord),
}

/// The part of a record that only a party knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartyRecord {
    /// Name of the party.
    pub party: String,
    /// The relative error of this party.
    #[serde(deserialize_with = "number")]
    pub own_relative_error: f64,
    /// How many records it has.
    pub records: usize,
    /// Whether its matrix was turned after it was read.
    pub transpose: bool,
    /// The element type of its factors.
    pub precision: Precision,
}

/// The part of a record that only the coordinator knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoordinatorRecord {
    /// The parties that have their results.
    pub finished: Vec<String>,
    /// The parties that have not.
    pub missing: Vec<String>,
    /// Whether all have the same shared factor.
    pub agreed: bool,
    /// Number of opened sums.
    pub sums: u64,
    /// Key exchanges since the last start.
    pub epochs: u64,
    /// Bytes by party, since the last start.
    pub bytes: Vec<LinkBytes>,
    /// The most bytes that the coordinator has had.
    pub peak_memory: u64,
}

/// Bytes on the socket to a party, TLS included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBytes {
    /// Bytes received from the party.
    pub received: u64,
    /// Bytes sent to the party.
    pub sent: u64,
}
