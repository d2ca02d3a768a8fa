//! Arguments of `partwise coordinator`, and those that it shares with `partwise party`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use partwise_federation::certificates::DAYS;
use partwise_federation::log::Format;

use super::AcceptKeyArgs;

pub const EXAMPLES: &str = "\
Examples:
  partwise coordinator init heart-study --host fed.example.org --out coordinator
  partwise coordinator run coordinator/federation.toml --out result";

const INIT_EXAMPLES: &str = "\
Examples:
  partwise coordinator init heart-study --out coordinator
  partwise coordinator init heart-study --host fed.example.org --host 10.0.0.5 --out coordinator";

const SIGN_EXAMPLES: &str = "\
Examples:
  partwise coordinator sign coordinator hospital-a.request hospital-b.request
  partwise coordinator sign coordinator hospital-c.request --days 90";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  partwise coordinator accept-key coordinator/federation.toml hospital-b-1f0c22d9.handover
  partwise coordinator accept-key coordinator/federation.toml *.handover";

const RUN_EXAMPLES: &str = "\
Examples:
  partwise coordinator run coordinator/federation.toml --check
  partwise coordinator run coordinator/federation.toml --out result";

#[derive(Debug, Subcommand)]
pub enum CoordinatorCommand {
    /// Create the certificate authority, the coordinator's certificate and federation.toml
    #[command(after_help = INIT_EXAMPLES)]
    Init(CoordinatorInitArgs),
    /// Sign the parties' certificate requests and add the parties to federation.toml
    #[command(after_help = SIGN_EXAMPLES)]
    Sign(SignArgs),
    /// Accept parties' new identity keys from their hand-overs
    #[command(after_help = ACCEPT_EXAMPLES)]
    AcceptKey(AcceptKeyArgs),
    /// Wait for the parties and run the federation
    #[command(after_help = RUN_EXAMPLES)]
    Run(CoordinatorRunArgs),
}

#[derive(Debug, Args)]
pub struct CoordinatorInitArgs {
    /// Name of the federation, of the characters a-z, 0-9 and -
    pub federation: String,
    /// Folder to create
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Additional host name or address for the coordinator's certificate; repeatable
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Validity of the coordinator's certificate in days
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=3650), value_name = "N")]
    pub days: u32,
}

#[derive(Debug, Args)]
pub struct SignArgs {
    /// Folder of `coordinator init`
    pub dir: PathBuf,
    /// Certificate requests of `party init`
    #[arg(required = true, value_name = "REQUEST")]
    pub requests: Vec<PathBuf>,
    /// Validity of the certificates in days
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=3650), value_name = "N")]
    pub days: u32,
}

/// Connections and logs of coordinators and parties.
#[derive(Debug, Args)]
pub struct LineArgs {
    /// Check configuration, certificates, clock, connection and data, then exit
    #[arg(long)]
    pub check: bool,
    /// Disable certificates and encryption, for trials on one machine
    #[arg(long)]
    pub insecure: bool,
    /// Format of the log lines on stderr
    #[arg(long, value_parser = log_format, default_value = "text", value_name = "text|json")]
    pub log: Format,
}

#[derive(Debug, Args)]
pub struct CoordinatorRunArgs {
    /// Configuration of the federation, from `coordinator init`
    #[arg(value_name = "FEDERATION.TOML")]
    pub file: PathBuf,
    /// Folder for V.npy (the shared factor), trace.csv, run.json and report.html
    #[arg(short, long, value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// Replace the results in an existing folder
    #[arg(long)]
    pub force: bool,
    /// Do not write report.html
    #[arg(long)]
    pub no_report: bool,
    /// Continue without parties that left; reveals nearly what they contributed
    #[arg(long)]
    pub continue_without: bool,
    /// Address of the read-only status page, /metrics and /healthz, or none
    #[arg(long, value_parser = status_address, default_value = "127.0.0.1:7401", value_name = "ADDRESS")]
    pub status_address: StatusAddress,
    #[command(flatten)]
    pub line: LineArgs,
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
