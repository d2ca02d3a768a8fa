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
  partwise party init hospital-a --federation heart --coordinator fed.example.org:7400 --out a
  partwise party join hospital-a/party.toml --data records.npz --out result";

const INIT_EXAMPLES: &str = "\
Examples:
  partwise party init hospital-a --federation heart --coordinator fed.example.org:7400 --out a
  partwise party init bank-2 --federation fraud --coordinator 10.0.0.5:7400 --out bank-2";

const JOIN_EXAMPLES: &str = "\
Examples:
  partwise party join hospital-a/party.toml --data records.npz --check
  partwise party join hospital-a/party.toml --data records.npz --out result";

const LEDGER_EXAMPLES: &str = "\
Examples:
  partwise party ledger hospital-a/party.toml
  partwise party ledger hospital-a/party.toml --json";

const ROTATE_EXAMPLES: &str = "\
Examples:
  partwise party rotate-key hospital-a/party.toml
  partwise party rotate-key /etc/partwise/party.toml";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  partwise party accept-key hospital-a/party.toml hospital-b-1f0c22d9.handover
  partwise party accept-key hospital-a/party.toml *.handover";

/// The options of `party join` that `-h` shows.
pub const COMMON: &[&str] =
    &["data", "records", "header", "row_names", "check", "threads", "out", "force", "no_report", "log"];

#[derive(Debug, Subcommand)]
pub enum PartyCommand {
    /// Create a party's keys, its certificate request and party.toml
    #[command(after_help = INIT_EXAMPLES)]
    Init(PartyInitArgs),
    /// Join the federation with local records, or resume after an interruption
    #[command(after_help = JOIN_EXAMPLES)]
    Join(Box<JoinArgs>),
    /// Print what all runs have opened of each data set, and with which parties
    #[command(after_help = LEDGER_EXAMPLES)]
    Ledger(PartyLedgerArgs),
    /// Replace this party's identity key between runs, and write a hand-over for all others
    #[command(after_help = ROTATE_EXAMPLES)]
    RotateKey(RotateKeyArgs),
    /// Accept other parties' new identity keys from their hand-overs
    #[command(after_help = ACCEPT_EXAMPLES)]
    AcceptKey(AcceptKeyArgs),
}

#[derive(Debug, Args)]
pub struct PartyLedgerArgs {
    /// Configuration of the party, from `party init`
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RotateKeyArgs {
    /// Configuration of the party, from `party init`
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct AcceptKeyArgs {
    /// Configuration file in which to replace the fingerprints
    #[arg(value_name = "FILE.TOML")]
    pub file: PathBuf,
    /// Hand-over files from `party rotate-key`
    #[arg(required = true, value_name = "HANDOVER")]
    pub handovers: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PartyInitArgs {
    /// Name of the party, of the characters a-z, 0-9 and -
    pub name: String,
    /// Name of the federation
    #[arg(long, value_name = "NAME")]
    pub federation: String,
    /// Address of the coordinator
    #[arg(long, value_name = "HOST:PORT")]
    pub coordinator: String,
    /// Folder to create
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Configuration of the party, from `party init`
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
    /// Local records: .npy, .npz, .mtx, .csv, .tsv or .h5ad, also with .gz
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Whether records (samples) are the rows or the columns of the file
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows", value_name = "SIDE")]
    pub records: Side,
    /// Folder for U.npy, V.npy, trace.csv, run.json and report.html
    #[arg(short, long, value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// Text file with the name of a person per line, one line per record, if people have several records; never sent
    #[arg(long, value_name = "FILE")]
    pub person: Option<PathBuf>,
    /// Withhold the results, with exit code 3, if a component reproduces a person of this party: a cosine above
    /// this, and more than half of this party's part of the component. The files are kept in the party's state
    /// instead
    #[arg(value_parser = cosine, allow_hyphen_values = true, long, value_name = "X", default_value_t = MAX_RECORD_COSINE)]
    pub max_record_cosine: f64,
    /// Replace the results in an existing folder
    #[arg(long)]
    pub force: bool,
    /// Do not write report.html
    #[arg(long)]
    pub no_report: bool,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32")]
    pub precision: Precision,
    /// Number of threads [default: all cores]
    #[arg(long, value_parser = count, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    #[command(flatten)]
    pub line: LineArgs,
}
