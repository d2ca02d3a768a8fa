//! Arguments of `partwise audit`.

use std::path::PathBuf;

use clap::Args;

use super::values::{area, cosine, count};

pub const EXAMPLES: &str = "\
Examples:
  partwise audit result --max-auc 0.6
  partwise audit hospital-a/state

Exit code 3: an attack exceeds --max-auc, or a component is a record by --max-record-cosine.";

#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Result folder of `simulate --record`, or a party's state folder or ledger
    pub dir: PathBuf,
    /// Matrix of the run [default: the path in run.json]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Number of parties that collude with each other and the coordinator [default: as in the run]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "C")]
    pub colluders: Option<usize>,
    /// Highest AUC that membership inference may reach (else exit code 3)
    #[arg(value_parser = area, allow_hyphen_values = true, long, value_name = "X")]
    pub max_auc: Option<f64>,
    /// Highest cosine of a component and a record that dominates it (else exit code 3)
    #[arg(value_parser = cosine, allow_hyphen_values = true, long, value_name = "X")]
    pub max_record_cosine: Option<f64>,
    /// Replace an existing audit.json
    #[arg(long)]
    pub force: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print audit.json
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}
