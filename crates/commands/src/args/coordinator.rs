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
  partwise coordinator sign coordinator hospital-a.request hospital-b.request
  partwise coordinator run coordinator/federation.toml --check
  partwise coordinator run coordinator/federation.toml --out result";

#[derive(Debug, Subcommand)]
pub enum CoordinatorCommand {
    /// Make a federation's private certificate authority, the coordinator's own certificate and federation.toml
    Init(CoordinatorInitArgs),
    /// Answer parties' certificate requests and add them to federation.toml
    Sign(SignArgs),
    /// Accept parties' new identity keys by their hand-overs
    AcceptKey(AcceptKeyArgs),
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
