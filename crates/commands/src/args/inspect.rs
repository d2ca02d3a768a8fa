//! Arguments of `partwise inspect`.

use std::path::PathBuf;

use clap::Args;

use super::ReadArgs;
use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise inspect M.mtx.gz -k 50
  partwise inspect table.csv --header yes --json";

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Matrix, in any format that `factorize` reads
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Number of components for the memory estimate
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, visible_alias = "components", default_value_t = 20, value_name = "K")]
    pub rank: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
