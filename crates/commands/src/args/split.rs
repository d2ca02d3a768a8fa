//! Arguments of `partwise split`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;

use super::values::{choice, count};

pub const EXAMPLES: &str = "\
Examples:
  partwise split M.npz --nodes 8 --out M.parts
  mpirun -n 8 partwise factorize M.parts -k 50 --out result";

#[derive(Debug, Args)]
pub struct SplitArgs {
    /// Matrix: .npy, .npz, .mtx (coordinates) or .bin, also with .gz
    pub file: PathBuf,
    /// Number of MPI processes
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub nodes: usize,
    /// Folder for the parts
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Split the transposed matrix
    #[arg(long)]
    pub transpose: bool,
    /// Convert numbers to this type [default: the type in the file]
    #[arg(long, value_parser = choice(&Precision::ALL))]
    pub precision: Option<Precision>,
}
