//! Arguments of `partwise evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::ReadArgs;

pub const EXAMPLES: &str = "\
Example:
  partwise evaluate result M.npz";

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// The matrix
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
