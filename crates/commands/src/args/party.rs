//! Arguments of `partwise party`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use partwise::Precision;
use partwise::run::Side;

use super::coordinator::LineArgs;
use super::values::{choice, count};
use super::{LabelArgs, ReadArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise party init hospital-a --federation heart-study --coordinator fed.example.org:7400 --out hospital-a
  partwise party join hospital-a/party.toml --data records.npz --check
  partwise party join hospital-a/party.toml --data records.npz --out result
  partwise party ledger hospital-a/party.toml
  partwise party rotate-key hospital-a/party.toml
  partwise party accept-key hospital-a/party.toml hospital-b-1f0c22d9.handover";

#[derive(Debug, Subcommand)]
pub enum PartyCommand {
    /// Make a party's keys, its certificate request and party.toml
    Init(PartyInitArgs),
    /// Take part with one's own records, or go on where this party was
    Join(Box<JoinArgs>),
    /// Print what all runs with each data set have opened so far, and with whom
    Ledger(PartyLedgerArgs),
    /// Replace this party's identity key between runs, and write a hand-over for all others
    RotateKey(RotateKeyArgs),
    /// Accept other parties' new identity keys by their hand-overs
    AcceptKey(AcceptKeyArgs),
}

#[derive(Debug, Args)]
pub struct PartyLedgerArgs {
    /// What `party init` wrote and you completed
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RotateKeyArgs {
    /// What `party init` wrote and you completed
    #[arg(value_name = "PARTY.TOML")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct AcceptKeyArgs {
    /// The configuration that has the fingerprints, which are replaced there
    #[arg(value_name = "FILE.TOML")]
    pub file: PathBuf,
    /// Hand-overs that `party rotate-key` wrote
    #[arg(required = true, value_name = "HANDOVER")]
    pub handovers: Vec<PathBuf>,
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
