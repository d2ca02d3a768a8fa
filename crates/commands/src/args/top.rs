//! Arguments of `partwise top`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise top result
  partwise top result --count 5 --json";

#[derive(Debug, Args)]
pub struct TopArgs {
    /// Result folder of `factorize`, or a party's folder of `simulate`
    pub dir: PathBuf,
    /// Number of features and samples to list per component
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'n', long, default_value_t = 10, value_name = "N")]
    pub count: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
