//! Arguments of `partwise provision`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise provision --demo --parties 3 -k 8 --out trial
  partwise provision --demo --protocol pooled --accept pooled-sums-show-records --out trial";

#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// Confirm that this is a trial; in production every party creates its own keys
    #[arg(long, required = true)]
    pub demo: bool,
    /// Folder to create
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the federation
    #[arg(long, default_value = "demo", value_name = "NAME")]
    pub federation: String,
    /// Number of parties
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=255), value_name = "N")]
    pub parties: u16,
    /// Address of the coordinator
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS")]
    pub address: String,
    /// Protocol, as in federation.toml
    #[arg(long, default_value = "syn-sd", value_name = "P")]
    pub protocol: String,
    /// Number of components, k
    #[arg(short = 'k', long, visible_alias = "components", default_value_t = 8, value_parser = count, value_name = "K")]
    pub rank: usize,
    /// Maximum number of rounds
    #[arg(long, default_value_t = 100, value_parser = count, value_name = "N")]
    pub rounds: usize,
    /// Additional line of [method], such as tolerance=0; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub method: Vec<String>,
    /// Risk that all parties accept, such as pooled-sums-show-records; repeatable
    #[arg(long, value_name = "RISK")]
    pub accept: Vec<String>,
    /// Let all parties allow the run to continue without a party that left
    #[arg(long)]
    pub continue_without: bool,
    /// Seconds after which a silent party is considered unresponsive
    #[arg(long, default_value_t = 300.0, value_name = "S")]
    pub deadline: f64,
    /// Seconds between heartbeats
    #[arg(long, default_value_t = 10.0, value_name = "S")]
    pub heartbeat: f64,
}
