//! Arguments of `partwise evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::{KnownArgs, ReadArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise evaluate result M.npz
  partwise evaluate result M.npz --json

Give the file in its original layout: if the run used --transpose, this command does too.";

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Result folder of `factorize`
    pub dir: PathBuf,
    /// Matrix with the same rows and columns
    pub file: PathBuf,
    #[command(flatten)]
    pub known: KnownArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
