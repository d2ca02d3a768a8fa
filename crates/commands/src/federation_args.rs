//! The command line of federations.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use partwise::Precision;
use partwise::run::Side;
use partwise_federation::certificates::DAYS;
use partwise_federation::log::Format;

use crate::args::{LabelArgs, ReadArgs, count, named};
use crate::say;

pub const COORDINATOR_EXAMPLES: &str = "\
Examples:
  partwise coordinator init heart-study --host fed.example.org --out coordinator
  partwise coordinator sign coordinator hospital-a.request hospital-b.request
  partwise coordinator run coordinator/federation.toml --check
  partwise coordinator run coordinator/federation.toml --out result";

pub const PARTY_EXAMPLES: &str = "\
Examples:
  partwise party init hospital-a --federation heart-study --coordinator fed.example.org:7400 --out hospital-a
  partwise party join hospital-a/party.toml --data records.npz --check
  partwise party join hospital-a/party.toml --data records.npz --out result";

#[derive(Debug, Subcommand)]
pub enum CoordinatorCommand {
    /// Make a federation's private certificate authority, the coordinator's own certificate and federation.toml
    Init(CoordinatorInitArgs),
    /// Answer parties' certificate requests and add them to federation.toml
    Sign(SignArgs),
    /// Wait for the parties, bring them to an agreement and serve their sums
    Run(CoordinatorRunArgs),
}

#[derive(Debug, Args)]
pub struct CoordinatorInitArgs {
    /// The federation's name: a-z, 0-9 and -
    pub federation: String,
    /// Folder to make
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Further host names or addresses that the coordinator's certificate is for
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Days that the coordinator's certificate is good for
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=3650), value_name = "N")]
    pub days: u32,
}

#[derive(Debug, Args)]
pub struct SignArgs {
    /// The folder that `coordinator init` made
    pub dir: PathBuf,
    /// Requests that `party init` made
    #[arg(required = true, value_name = "REQUEST")]
    pub requests: Vec<PathBuf>,
    /// Days that the certificates are good for
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=3650), value_name = "N")]
    pub days: u32,
}

/// How to speak and connect.
#[derive(Debug, Args)]
pub struct LineArgs {
    /// Without certificates and encryption, for trials on one machine: other addresses than loopback are refused
    #[arg(long)]
    pub insecure: bool,
    /// Test configuration, certificates, clock, connection and data, and share nothing
    #[arg(long)]
    pub check: bool,
    /// What the lines on stderr look like
    #[arg(long, value_parser = log_format, default_value = "text", value_name = "text|json")]
    pub log: Format,
}

impl LineArgs {
    /// From here on, lines on stderr are as they were asked for.
    pub fn begin(&self) {
        if self.log == Format::Json {
            say::in_json();
        }
    }
}

#[derive(Debug, Args)]
pub struct CoordinatorRunArgs {
    /// What `coordinator init` wrote and you completed
    #[arg(value_name = "FEDERATION.TOML")]
    pub file: PathBuf,
    /// Folder to write V.npy (the factor of the features), trace.csv, run.json and report.html to
    #[arg(short, long, value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// Replace the results in an existing folder
    #[arg(long)]
    pub force: bool,
    /// Do not make report.html
    #[arg(long)]
    pub no_report: bool,
    /// Go on when a party has left, if all allow it, instead of waiting, and do it once more in the end; the difference of
    /// two sums is nearly its share
    #[arg(long)]
    pub continue_without: bool,
    /// Where the read-only status page is, /metrics and /healthz with it; "none" for none
    #[arg(long, value_parser = status_address, default_value = "127.0.0.1:7401", value_name = "ADDRESS")]
    pub status_address: StatusAddress,
    #[command(flatten)]
    pub line: LineArgs,
}

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
    #[arg(long, value_parser = named::<Side>(&["rows", "columns"]), default_value = "rows", value_name = "SIDE")]
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
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]), default_value = "f32")]
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

#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// Make all keys in one place, which is for trials only: in earnest every party makes its own
    #[arg(long, required = true)]
    pub demo: bool,
    /// Folder to make
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The federation's name
    #[arg(long, default_value = "demo", value_name = "NAME")]
    pub federation: String,
    /// How many parties
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=255), value_name = "N")]
    pub parties: u16,
    /// Where the coordinator listens
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS")]
    pub address: String,
    /// The method, as in federation.toml
    #[arg(long, default_value = "syn-sd", value_name = "P")]
    pub protocol: String,
    /// Number of components, k
    #[arg(short = 'k', long, default_value_t = 8, value_parser = count, value_name = "K")]
    pub rank: usize,
    /// Rounds at most
    #[arg(long, default_value_t = 100, value_parser = count, value_name = "N")]
    pub rounds: usize,
    /// Further lines of [method], such as tolerance=0
    #[arg(long, value_name = "KEY=VALUE")]
    pub method: Vec<String>,
    /// Risks that all accept, by name, such as pooled-sums-show-records
    #[arg(long, value_name = "RISK")]
    pub accept: Vec<String>,
    /// Let the parties allow that the others go on when somebody has left
    #[arg(long)]
    pub continue_without: bool,
    /// Seconds after which a party is held to hang
    #[arg(long, default_value_t = 300.0, value_name = "S")]
    pub deadline: f64,
    /// Seconds between two signs of life
    #[arg(long, default_value_t = 10.0, value_name = "S")]
    pub heartbeat: f64,
}

/// Where the status page is, if anywhere.
#[derive(Clone, Copy, Debug)]
pub struct StatusAddress(pub Option<SocketAddr>);

fn status_address(text: &str) -> Result<StatusAddress, String> {
    match text {
        "none" => Ok(StatusAddress(None)),
        _ => text
            .parse()
            .map(|address| StatusAddress(Some(address)))
            .map_err(|_| "give an address and a port, such as 127.0.0.1:7401, or none".to_string()),
    }
}

fn log_format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("give text or json".into()),
    }
}
