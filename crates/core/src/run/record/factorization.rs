//! The content of `run.json` for a factorization, in the order of the tables in `docs/formats.md`.

use serde::{Deserialize, Serialize};

use super::{Transport, numbers};
use crate::Precision;
use crate::io::{ImageShape, Presence};
use crate::objective::Loss;
use crate::run::{
    Algorithm, HeldOutError, Init, Normalize, Phases, RankReport, Redrawn, Report, Settings, Side,
    SketchedSolver, Step, Stop, Streamed,
};
use crate::sketch::SketchKind;

/// A factorization of one matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorizationRecord {
    /// The outcome.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The settings of the method.
    #[serde(flatten)]
    pub method: MethodRecord,
    /// How the file was read.
    #[serde(flatten)]
    pub reading: ReadingRecord,
    /// The machine.
    #[serde(flatten)]
    pub machine: MachineRecord,
    /// The side of the samples; missing in early versions.
    #[serde(default)]
    pub records: Option<Side>,
    /// Whether the factors were also written as text.
    pub tsv: bool,
    /// The matrix.
    pub input: InputRecord,
    /// How the matrix was streamed, if it was.
    #[serde(default)]
    pub streamed: Option<StreamedRecord>,
    /// The image size of a row or column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageShape>,
    /// The numbers of the pictures in `frames.npy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<usize>,
}

impl FactorizationRecord {
    /// The side of the samples: by default that of images, or else rows.
    pub fn samples(&self) -> Side {
        self.records.or(self.image.map(|shape| shape.images.into())).unwrap_or(Side::Rows)
    }
}

/// The outcome of a factorization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Iterations done.
    pub iterations: usize,
    /// The final loss without penalties; missing in early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The error on held-out entries.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutError>,
    /// Seconds of computing.
    pub seconds: f64,
    /// The clock of its seconds.
    #[serde(default)]
    pub clock: Clock,
    /// The method in words, with what `auto` decided and why.
    #[serde(default)]
    pub plan: String,
    /// Why it ended.
    pub stopped_by: Stop,
    /// The seed of this run, the best of the restarts.
    pub seed: u64,
    /// The final error of each restart.
    #[serde(deserialize_with = "numbers")]
    pub errors_of_restarts: Vec<f64>,
    /// The warnings of the run.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Components that died and were redrawn.
    pub redrawn: Vec<Redrawn>,
    /// Seconds by phase, on rank 0.
    pub phases: Phases,
    /// Bytes that rank 0 handed to collectives.
    pub bytes_sent: u64,
    /// Bytes that rank 0 handed to collectives for evaluating, stopping, checkpoints and the start.
    pub bytes_evaluate: u64,
    /// The work of each rank.
    #[serde(default)]
    pub ranks: Vec<RankRecord>,
}

impl RunSummary {
    /// The outcome of the best restart, given the errors of all and the method in words. The caller adds the
    /// warnings.
    pub fn new(report: &Report, errors: &[f64], plan: String, clock: Clock) -> Self {
        RunSummary {
            iterations: report.iterations,
            loss: report.loss,
            held_out: report.held_out,
            seconds: report.seconds,
            clock,
            plan,
            stopped_by: report.stopped_by,
            seed: report.seed,
            errors_of_restarts: errors.to_vec(),
            warnings: Vec::new(),
            redrawn: report.redrawn.clone(),
            phases: report.phases,
            bytes_sent: report.bytes_sent,
            bytes_evaluate: report.bytes_evaluate,
            ranks: report.ranks.iter().map(|&report| RankRecord { report, peak_memory: None }).collect(),
        }
    }
}

/// The clock of a run's seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The clock of the machine.
    #[default]
    Real,
    /// The virtual clock of a modelled network.
    Virtual,
}

/// The work of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// Seconds and bytes of the rank.
    #[serde(flatten)]
    pub report: RankReport,
    /// The most bytes that the process has had; only processes of their own have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
}

/// What a method was asked to do, defaults included. What only sketched methods use is `None` for the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The method, as given.
    pub algorithm: Algorithm,
    /// See [`Settings::loss`]; missing in early versions, which had only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_name: Option<Loss>,
    /// See [`Settings::holdout`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<f64>,
    /// k.
    pub rank: usize,
    /// The seed of the first restart.
    pub first_seed: u64,
    /// How many restarts there were to be.
    pub restarts: usize,
    /// Iterations at most.
    pub max_iterations: usize,
    /// See [`Settings::tolerance`].
    pub tolerance: f64,
    /// See [`Settings::target_error`].
    pub target_error: Option<f64>,
    /// See [`Settings::time_limit`].
    pub time_limit: Option<f64>,
    /// The number of iterations between two lines of the trace that was used.
    pub trace_every: usize,
    /// See [`Settings::sketch`].
    pub sketch: Option<SketchKind>,
    /// The name of a custom sketch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_sketch: Option<String>,
    /// The number of columns that was used.
    pub sketch_cols: Option<usize>,
    /// The number of rows that was used.
    pub sketch_rows: Option<usize>,
    /// See [`Settings::solver`].
    pub solver: Option<SketchedSolver>,
    /// See [`Settings::alpha`].
    pub alpha: Option<f64>,
    /// See [`Settings::beta`].
    pub beta: Option<f64>,
    /// See [`Settings::step`].
    pub step: Option<Step>,
    /// See [`Settings::bound`].
    pub bound: bool,
    /// See [`Settings::l1_u`].
    pub l1_u: f64,
    /// See [`Settings::l1_u`].
    pub l1_v: f64,
    /// See [`Settings::l1_u`].
    pub l2_u: f64,
    /// See [`Settings::l1_u`].
    pub l2_v: f64,
    /// See [`Settings::init`].
    pub init: Init,
    /// The folder of the factors that it began from, as given.
    pub init_from: Option<String>,
    /// See [`Settings::samples`].
    #[serde(default)]
    pub samples: Option<bool>,
    /// The scale of the components.
    pub normalize: Normalize,
}

impl MethodRecord {
    /// What a run of these settings on a matrix of these sizes does. `algorithm` is the one that was asked for, which need
    /// not be the one of the settings where `auto` chose.
    pub fn new(algorithm: Algorithm, settings: &Settings, rows: usize, cols: usize, report: &Report) -> Self {
        let used = |parameter: &str| settings.algorithm.uses(parameter);
        let (sketch_cols, sketch_rows) = settings.sketch_sizes(rows, cols);
        MethodRecord {
            algorithm,
            loss_name: Some(settings.loss),
            holdout: settings.holdout,
            rank: settings.rank,
            first_seed: settings.seed,
            restarts: settings.restarts,
            max_iterations: settings.iterations,
            tolerance: settings.tolerance,
            target_error: settings.target_error,
            time_limit: settings.time_limit,
            trace_every: report.trace_every,
            sketch: (used("sketch") && settings.custom_sketch.is_none()).then_some(settings.sketch),
            custom_sketch: settings.custom_sketch.as_ref().map(|sketch| sketch.name().into()),
            sketch_cols: used("sketch_cols").then_some(sketch_cols),
            sketch_rows: used("sketch_rows").then_some(sketch_rows),
            solver: used("solver").then_some(settings.solver),
            alpha: used("alpha").then_some(settings.alpha),
            beta: used("beta").then_some(settings.beta),
            step: used("step").then_some(settings.step),
            bound: settings.bound,
            l1_u: settings.l1_u,
            l1_v: settings.l1_v,
            l2_u: settings.l2_u,
            l2_v: settings.l2_v,
            init: settings.init,
            init_from: None,
            samples: Some(settings.samples),
            normalize: settings.normalization(),
        }
    }
}

/// How the file was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadingRecord {
    /// Whether the matrix was turned.
    pub transpose: bool,
    /// Whether a table has a header.
    pub header: Presence,
    /// Whether a table has row names.
    pub row_names: Presence,
    /// The file of row labels, as given.
    pub row_labels: Option<String>,
    /// The file of column labels, as given.
    pub col_labels: Option<String>,
    /// Which entries are missing, as given: `nan`, `unstored`, `zero` or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The file of weights, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

/// The machine and the resources of a factorization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The element type.
    pub precision: Precision,
    /// Ranks.
    pub nodes: usize,
    /// Threads of each.
    pub threads: usize,
    /// The memory that it might take, in bytes.
    #[serde(default)]
    pub memory: Option<u64>,
    /// The networks that were modelled or planned for.
    #[serde(default)]
    pub network: Option<Vec<String>>,
    /// How the ranks of an exact method were arranged.
    #[serde(default)]
    pub grid: Option<String>,
    /// The transport of messages between processes, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// How processes summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<SumOrder>,
}

/// How sums over MPI ranks are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SumOrder {
    /// MPI.
    Native,
    /// Partwise, in the order of the ranks.
    Ordered,
}

/// The matrix that was factorized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputRecord {
    /// The name of its file, without folders.
    pub name: Option<String>,
    /// The size of its file.
    pub bytes: Option<u64>,
    /// The hash of its file.
    pub sha256: String,
    /// The format in words.
    pub format: String,
    /// Number of rows as factorized.
    pub rows: usize,
    /// Columns as factorized.
    pub cols: usize,
    /// Stored entries.
    pub stored: usize,
}

/// How a matrix was read that stayed in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamedRecord {
    /// Whether blocks consist of rows or of columns.
    pub lines: Side,
    /// Number of blocks.
    pub blocks: usize,
    /// The largest block in memory.
    pub block_bytes: u64,
    /// Passes over the file, or over samples of it.
    pub passes: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
}

impl From<&Streamed> for StreamedRecord {
    fn from(streamed: &Streamed) -> Self {
        let stream = streamed.stream();
        StreamedRecord {
            lines: if stream.by_columns() { Side::Columns } else { Side::Rows },
            blocks: streamed.blocks(),
            block_bytes: streamed.block_bytes(),
            passes: streamed.passes(),
            bytes_read: stream.bytes_read(),
        }
    }
}
