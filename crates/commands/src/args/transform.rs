//! Arguments of `partwise transform`.

use std::path::PathBuf;

use clap::Args;
use partwise::run::Side;

use super::ReadArgs;
use super::values::choice;

pub const EXAMPLES: &str = "\
Examples:
  partwise transform result new.npz --out W.npy
  partwise transform result new.csv --side columns --out W.tsv";

#[derive(Debug, Args)]
pub struct TransformArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// New rows (or columns) of the same kind of matrix
    pub file: PathBuf,
    /// File to write the fitted factor to: .npy or .tsv
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Whether FILE holds new rows or new columns
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows")]
    pub side: Side,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
