//! The record of a run, `run.json`: how it went, and everything needed to repeat it.
//!
//! Every command that runs something writes a [`RunRecord`] and every command that looks at a result reads one.
//! `docs/formats.md` explains each key. What differs between kinds of runs is a [`RunKind`], which is recognized by its
//! keys, as it was before files had a `format_version`.

mod factorization;
mod parties;
#[cfg(test)]
mod tests;

pub use factorization::{
    Clock, FactorizationRecord, InputRecord, MachineRecord, MethodRecord, RankRecord, ReadingRecord,
    RunSummary, StreamedRecord, SumOrder,
};
pub use parties::{
    CoordinatorRecord, CostRecord, FederationEnd, FederationRecord, LinkBytes, PartyRecord, PartyResult,
    ProtocolSettings, RecordedData, SentRecord, SharedFactor, SimulatedEnd, SimulatedParty, SimulationRecord,
    TranscriptRecord,
};

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Side;
use crate::Precision;
use crate::error::{Error, Result};
use crate::io::{ImageShape, ImageSide};
use crate::objective::Loss;

/// The name of the record's file in the folder of a run.
pub const RUN_FILE: &str = "run.json";

/// The layout of `run.json` that this program writes. It is raised when programs that read the layout before it would take
/// a new file to mean something else; files written before layouts were numbered have none and count as 0.
pub const FORMAT_VERSION: u32 = 1;

/// How a run went, and everything needed to repeat it: the content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// The version of Partwise that wrote it.
    pub version: String,
    /// See [`FORMAT_VERSION`].
    pub format_version: u32,
    /// ‖M − U Vᵀ‖_F / ‖M‖_F at the end; NaN, written as `null`, if there is none.
    pub relative_error: f64,
    /// The part that depends on the kind of run.
    #[serde(flatten)]
    pub kind: RunKind,
}

/// The kinds of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunKind {
    /// One matrix, in one process or under MPI.
    Factorization(Box<FactorizationRecord>),
    /// A simulation of parties in one process or under MPI.
    Simulation(Box<SimulationRecord>),
    /// A federation, as its coordinator or one of its parties saw it.
    Federation(Box<FederationRecord>),
}

/// The part of a file that is needed before the rest can be interpreted.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    version: String,
    #[serde(default)]
    format_version: u32,
    #[serde(default = "not_a_number", deserialize_with = "number")]
    relative_error: f64,
}

impl Head {
    const KEYS: [&str; 3] = ["version", "format_version", "relative_error"];
}

impl RunRecord {
    /// The record of a run of this program.
    pub fn new(relative_error: f64, kind: RunKind) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_string();
        RunRecord { version, format_version: FORMAT_VERSION, relative_error, kind }
    }

    /// Reads the record in the folder of a run.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(RUN_FILE);
        let text = std::fs::read(&path).map_err(Error::io(&path))?;
        RunRecord::parse(&path, &text)
    }

    /// Reads the record in the folder of a run, if there is one.
    pub fn read_if_there(folder: &Path) -> Result<Option<Self>> {
        folder.join(RUN_FILE).exists().then(|| RunRecord::read(folder)).transpose()
    }

    /// Reads the content of the file `path`.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let damaged = |problem: serde_json::Error| Error::DamagedRecord { path: path.into(), problem };
        let value: Value = serde_json::from_slice(text).map_err(damaged)?;
        let head = Head::deserialize(&value).map_err(damaged)?;
        if head.format_version > FORMAT_VERSION {
            let (path, format, version) = (path.into(), head.format_version, head.version);
            return Err(Error::NewerRecord { path, format, version });
        }
        RunRecord::deserialize(value).map_err(damaged)
    }

    /// Writes `run.json`.
    pub fn write(&self, file: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *file, self)?;
        writeln!(file)
    }

    /// The keys of `run.json` and their values.
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // A struct whose maps have strings as keys is an object.
            _ => Map::new(),
        }
    }

    /// The side of M that the samples are on.
    pub fn samples(&self) -> Side {
        match &self.kind {
            RunKind::Factorization(run) => run.samples(),
            RunKind::Simulation(run) => run.shared_factor.records(),
            RunKind::Federation(run) => run.shared_factor.records(),
        }
    }

    /// Whether the matrix was turned after it was read.
    pub fn transpose(&self) -> bool {
        match &self.kind {
            RunKind::Factorization(run) => run.reading.transpose,
            RunKind::Simulation(run) => run.transpose,
            RunKind::Federation(run) => run.party().is_some_and(|party| party.transpose),
        }
    }

    /// The element type of the factors, where the record says it.
    pub fn precision(&self) -> Option<Precision> {
        match &self.kind {
            RunKind::Factorization(run) => Some(run.machine.precision),
            RunKind::Simulation(run) => Some(run.precision),
            RunKind::Federation(run) => run.party().map(|party| party.precision),
        }
    }

    /// How a sample is a picture, if it is one.
    pub fn image(&self) -> Option<ImageShape> {
        match &self.kind {
            RunKind::Factorization(run) => run.image,
            RunKind::Simulation(run) => run.image,
            RunKind::Federation(_) => None,
        }
    }

    /// The side that images were on when they were read, before the matrix was turned.
    pub fn images_in_file(&self) -> Option<ImageSide> {
        let shape = self.image()?;
        Some(if self.transpose() { shape.images.other() } else { shape.images })
    }

    /// The settings on which the parties of a run agreed, if there were any.
    pub fn protocol(&self) -> Option<&ProtocolSettings> {
        match &self.kind {
            RunKind::Factorization(_) => None,
            RunKind::Simulation(run) => Some(&run.settings),
            RunKind::Federation(run) => Some(&run.settings),
        }
    }

    /// The matrix that was factorized, where one process saw all of it.
    pub fn input(&self) -> Option<&InputRecord> {
        match &self.kind {
            RunKind::Factorization(run) => Some(&run.input),
            RunKind::Simulation(run) => Some(&run.input),
            RunKind::Federation(_) => None,
        }
    }

    /// The warnings of the run.
    pub fn warnings(&self) -> &[String] {
        match &self.kind {
            RunKind::Factorization(run) => &run.summary.warnings,
            RunKind::Simulation(run) => &run.warnings,
            RunKind::Federation(_) => &[],
        }
    }

    /// Iterations or rounds that were done.
    pub fn steps(&self) -> usize {
        match &self.kind {
            RunKind::Factorization(run) => run.summary.iterations,
            RunKind::Simulation(run) => run.rounds,
            RunKind::Federation(run) => run.rounds,
        }
    }

    /// Why it ended, by the name that this has in the record.
    pub fn stopped_by(&self) -> String {
        match &self.kind {
            RunKind::Factorization(run) => name_of(&run.summary.stopped_by),
            RunKind::Simulation(run) => run.stopped_by.clone(),
            RunKind::Federation(run) => run.stopped_by.clone(),
        }
    }

    /// The relative change of the error at which it was to stop.
    pub fn tolerance(&self) -> Option<f64> {
        match &self.kind {
            RunKind::Factorization(run) => Some(run.method.tolerance),
            RunKind::Simulation(run) => run.settings.tolerance(),
            RunKind::Federation(run) => run.settings.tolerance(),
        }
    }

    /// The transport of messages between processes, if there were several.
    pub fn transport(&self) -> Option<Transport> {
        match &self.kind {
            RunKind::Factorization(run) => run.machine.transport,
            RunKind::Simulation(run) => run.transport,
            RunKind::Federation(run) => Some(run.transport),
        }
    }

    /// Whether seconds are those of a modelled network.
    pub fn has_virtual_clock(&self) -> bool {
        matches!(&self.kind, RunKind::Factorization(run) if run.summary.clock == Clock::Virtual)
    }

    /// The loss that was minimized.
    pub fn loss_name(&self) -> Loss {
        match &self.kind {
            RunKind::Factorization(run) => run.method.loss_name.unwrap_or_default(),
            RunKind::Simulation(_) | RunKind::Federation(_) => Loss::Frobenius,
        }
    }

    /// Seconds on the clock of the run, if recorded.
    pub fn seconds(&self) -> Option<f64> {
        match &self.kind {
            RunKind::Factorization(run) => Some(run.summary.seconds),
            RunKind::Simulation(run) => Some(run.seconds),
            RunKind::Federation(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for RunRecord {
    /// A federation is recognized by its name, a simulation by its list of parties; other records are factorizations.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;

        let mut fields = Map::deserialize(deserializer)?;
        let head = Head::deserialize(&Value::Object(fields.clone())).map_err(D::Error::custom)?;
        // Settings of protocols keep whatever keys are left.
        fields.retain(|key, _| !Head::KEYS.contains(&key.as_str()));
        let is = |key: &str, of_kind: fn(&Value) -> bool| fields.get(key).is_some_and(of_kind);
        let kind = if is("federation", Value::is_string) {
            serde_json::from_value(Value::Object(fields)).map(RunKind::Federation)
        } else if is("parties", Value::is_array) {
            serde_json::from_value(Value::Object(fields)).map(RunKind::Simulation)
        } else {
            serde_json::from_value(Value::Object(fields)).map(RunKind::Factorization)
        };
        let Head { version, format_version, relative_error } = head;
        Ok(RunRecord { version, format_version, relative_error, kind: kind.map_err(D::Error::custom)? })
    }
}

/// A transport of messages between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// MPI.
    Mpi,
    /// gRPC, between the machines of a federation.
    Grpc,
}

/// The name that a value has in JSON, for those of other crates.
pub fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

fn not_a_number() -> f64 {
    f64::NAN
}

/// JSON has no NaN: such a number is written as `null`.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A list of numbers, NaN among them written as `null`.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let numbers: Vec<Option<f64>> = Vec::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}
