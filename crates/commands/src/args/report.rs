//! Arguments of `partwise report`.

use std::path::PathBuf;

use clap::Args;
use partwise::run::Side;

use super::ShapeArgs;
use super::values::choice;

pub const EXAMPLES: &str = "\
Examples:
  partwise report result --open
  partwise report faces --image-shape 19x19";

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Result folder of `factorize` or `simulate`
    pub dir: PathBuf,
    /// Open the report in the browser
    #[arg(long)]
    pub open: bool,
    /// Replace a report.html that Partwise did not write
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Whether samples are rows or columns, for a result of `factorize` [default: as in the run]
    #[arg(long, value_parser = choice(&Side::ALL), value_name = "SIDE")]
    pub records: Option<Side>,
}
