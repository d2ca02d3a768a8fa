//! Arguments of `partwise convert`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;

use super::values::choice;
use super::{LabelArgs, ReadArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise convert M.mtx.gz M.npz
  partwise convert counts.csv counts.npy --transpose
  partwise convert frames.zip frames.npy
  partwise convert M.npy M.bin --precision f32

Numbers keep their type: bytes stay bytes in .npy, float32 stays float32, and text has all digits.";

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The matrix: .npy, .npz (SciPy sparse), .mtx, .csv, .tsv, .h5ad or .bin (the paper's program), each also
    /// with .gz; or a folder or .zip of JPEG and PNG images
    #[arg(value_name = "IN")]
    pub file: PathBuf,
    /// File to write: .npy, .npz (sparse, csr), .mtx, .csv, .tsv or .bin, each also with .gz
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    /// Round or widen numbers to this type instead of keeping the file's own
    #[arg(long, value_parser = choice(&Precision::ALL))]
    pub precision: Option<Precision>,
    /// Store the arrays of an .npz as they are: larger, but `factorize --memory` can then stream them
    #[arg(long)]
    pub uncompressed: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
