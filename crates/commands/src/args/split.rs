//! Arguments of `partwise split`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;

use super::values::{choice, count};

pub const EXAMPLES: &str = "\
Example:
  partwise split M.npz --nodes 8 --out M.parts
  mpirun -n 8 partwise factorize M.parts --rank 50 --out result";

#[derive(Debug, Args)]
pub struct SplitArgs {
    /// The matrix: .npy, .npz, .mtx (coordinates) or .bin, each also with .gz
    pub file: PathBuf,
    /// Number of ranks
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub nodes: usize,
    /// Folder to write the parts to
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Part the transposed matrix
    #[arg(long)]
    pub transpose: bool,
    /// Round or widen numbers to this type instead of keeping the file's own
    #[arg(long, value_parser = choice(&Precision::ALL))]
    pub precision: Option<Precision>,
}
