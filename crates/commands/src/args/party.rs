//! Arguments of `partwise party`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use partwise::Precision;
use partwise::run::Side;
use partwise_secure::audit::MAX_RECORD_COSINE;

use super::coordinator::LineArgs;
use super::values::{choice, cosine, count};
use super::{LabelArgs, ReadArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise party init hospital-a --federation heart-study --coordinator fed.example.org:7400 --out hospital-a
  partwise party join hospital-a/party.toml --data records.npz --check
  partwise party join hospital-a/party.toml --data records.npz --out result";

#[derive(Debug, Subcommand)]
pub enum PartyCommand {
    /// Make a party's keys, its certificate request and party.toml
    Init(PartyInitArgs),
    /// Take part with one's own records, or go on where this party was
    Join(Box<JoinArgs>),
}

#[derive(Debug, Args)]
pub struct PartyInitArgs {
    /// The party's name: a-z, 0-9 and -
    pub name: String,
    /// The federation's name
    #[arg(long, value_name = "NAME")]
    pub federation: String,
    /// Where the coordinator listens
    #[arg(long, value_name = "HOST:PORT")]
    pub coordinator: String,
    /// Folder to make
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub struct JoinArgs {
    /// What `party init` wrote and you completed
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
    /// This party's records: .npy, .npz (SciPy sparse), .mtx, .csv, .tsv or .h5ad, each also with .gz
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Whether records are the file's rows or its columns
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows", value_name = "SIDE")]
    pub records: Side,
    /// Folder to write U.npy, V.npy, trace.csv, run.json and report.html to
    #[arg(short, long, value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// A text file with a person's name a line, a line a record, if people have several records; it stays here
    #[arg(long, value_name = "FILE")]
    pub person: Option<PathBuf>,
    /// Withhold the results, with exit code 3, if a component is a record of this party: their cosine is above this, and more
    /// than half of this party's part of the component is this person's. They are kept with the party's state instead
    #[arg(value_parser = cosine, allow_hyphen_values = true, long, value_name = "X", default_value_t = MAX_RECORD_COSINE)]
    pub max_record_cosine: f64,
    /// Replace the results in an existing folder
    #[arg(long)]
    pub force: bool,
    /// Do not make report.html
    #[arg(long)]
    pub no_report: bool,
    /// Arithmetic and files in single or double precision
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32")]
    pub precision: Precision,
    /// Threads to compute with [default: all cores]
    #[arg(long, value_parser = count, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    #[command(flatten)]
    pub line: LineArgs,
}
