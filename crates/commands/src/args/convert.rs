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

Numbers keep their type: in .npy bytes stay bytes and float32 stays float32; text has all digits.";

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Matrix file (.npy, .npz, .mtx, .csv, .tsv, .h5ad, .bin; also .gz), or a folder or .zip of images
    #[arg(value_name = "IN")]
    pub file: PathBuf,
    /// File to write: .npy, .npz, .mtx, .csv, .tsv or .bin, also with .gz
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    /// Convert numbers to this type [default: the type in the file]
    #[arg(long, value_parser = choice(&Precision::ALL))]
    pub precision: Option<Precision>,
    /// Write an uncompressed .npz, which `factorize --memory` can stream
    #[arg(long)]
    pub uncompressed: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
