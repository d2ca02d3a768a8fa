//! Arguments of `partwise transform`.

use std::path::PathBuf;

use clap::Args;
use partwise::run::Side;

use super::values::choice;
use super::{KnownArgs, ReadArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise transform result new.npz --out W.npy
  partwise transform result new.csv --side columns --out V.tsv

Give the file in its original layout: if the run used --transpose, this command does too.";

#[derive(Debug, Args)]
pub struct TransformArgs {
    /// Result folder of `factorize`
    pub dir: PathBuf,
    /// Matrix of new rows (or columns) with the same features
    pub file: PathBuf,
    /// File for the fitted factor: .npy or .tsv
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Whether FILE contains new rows or new columns
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows")]
    pub side: Side,
    #[command(flatten)]
    pub known: KnownArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
