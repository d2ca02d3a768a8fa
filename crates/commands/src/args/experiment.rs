//! Arguments of `partwise experiment`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise experiment experiments/general-error.toml --data ../shared/data --out general-error
  partwise experiment experiments/general-error.toml --data ../shared/data --out some --only FACE --quick

What is finished is kept: the same command again goes on where it was.";

#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// The description: matrices, methods, parameters, nodes, when runs end, what is drawn
    pub file: PathBuf,
    /// The folder of the matrices; panels whose matrix is absent are left out
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Folder to write runs.csv, curves.csv, an SVG a panel and index.html to
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only these panels, such as FACE,MNIST
    #[arg(long, value_delimiter = ',', value_name = "PANEL,...")]
    pub only: Vec<String>,
    /// A little of it: shorter runs, no panels that the file calls long, and of several numbers of nodes the least and the
    /// most
    #[arg(long)]
    pub quick: bool,
    /// Instead, try all alpha and beta of 0.1, 1 and 10, and write their errors to search.csv
    #[arg(long)]
    pub search: bool,
    /// Runs at a time [default: as many as there are cores]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}
