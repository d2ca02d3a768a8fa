//! Arguments of `partwise evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::ReadArgs;

pub const EXAMPLES: &str = "\
Examples:
  partwise evaluate result M.npz
  partwise evaluate result M.npz --json

The file has the same layout as the original: if the run transposed its matrix, this command does too.
With --transpose it does the opposite.";

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Result folder of `factorize`
    pub dir: PathBuf,
    /// Matrix with the same rows and columns
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
