//! Arguments of `partwise inspect`.

use std::path::PathBuf;

use clap::Args;

use super::ReadArgs;
use super::values::count;

pub const EXAMPLES: &str = "\
Example:
  partwise inspect M.mtx.gz --rank 50";

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The matrix
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Number of components for the estimate of memory
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, default_value_t = 20, value_name = "K")]
    pub rank: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
