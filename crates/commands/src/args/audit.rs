//! Arguments of `partwise audit`.

use std::path::PathBuf;

use clap::Args;

use super::values::{area, cosine, count};

pub const EXAMPLES: &str = "\
Examples:
  partwise simulate M.npz --parties 5 --protocol syn-sd --rank 8 --record --out result
  partwise audit result
  partwise audit result --data moved/M.npz --max-auc 0.6 --force
  partwise audit hospital-a/state

Exit code 3: an AUC is above --max-auc, or a component is a record by --max-record-cosine.";

#[derive(Debug, Args)]
pub struct AuditArgs {
    /// A folder that `simulate --record` wrote; or a party's state folder or its ledger, to see what left it in federations
    /// and whether the ledger is whole
    pub dir: PathBuf,
    /// The matrix, if it is not where the run found it
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// How many parties collude, with each other and the coordinator [default: as the run had it]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "C")]
    pub colluders: Option<usize>,
    /// Exit code 3 if an attack tells members with a higher AUC than this, from a seat that the run was to be safe from. A
    /// lower AUC is an average over records, not a guarantee for each
    #[arg(value_parser = area, allow_hyphen_values = true, long, value_name = "X")]
    pub max_auc: Option<f64>,
    /// Exit code 3 if a component is a record of a party: their cosine is above this, and more than half of the party's part
    /// of the component is this person's
    #[arg(value_parser = cosine, allow_hyphen_values = true, long, value_name = "X")]
    pub max_record_cosine: Option<f64>,
    /// Replace an audit.json that is there
    #[arg(long)]
    pub force: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print audit.json
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}
