//! Arguments of `partwise provision`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Example:
  partwise provision --demo --parties 3 --rank 8 --out trial";

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
