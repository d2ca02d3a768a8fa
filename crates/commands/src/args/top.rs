//! Arguments of `partwise top`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Example:
  partwise top result --count 5";

#[derive(Debug, Args)]
pub struct TopArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// How many features and samples to list for each component
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'n', long, default_value_t = 10, value_name = "N")]
    pub count: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
