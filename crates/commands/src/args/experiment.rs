//! Arguments of `partwise experiment`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise experiment experiments/general-error.toml --data data --out result
  partwise experiment experiments/general-error.toml --data data --out trial --only FACE --quick

Finished runs are kept: after an interruption, the same command continues with the rest.";

#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Description of the experiment: matrices, methods, parameters, stopping and charts
    pub file: PathBuf,
    /// Folder with the matrices; panels whose matrix is missing are skipped
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Folder for runs.csv, curves.csv, one SVG per panel and index.html
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only these panels, such as FACE,MNIST
    #[arg(long, value_delimiter = ',', value_name = "PANEL,...")]
    pub only: Vec<String>,
    /// Run a short version: fewer iterations, panels and numbers of workers
    #[arg(long)]
    pub quick: bool,
    /// Try alpha and beta of 0.1, 1 and 10 instead, and write the errors to search.csv
    #[arg(long)]
    pub search: bool,
    /// Number of simultaneous runs [default: number of cores]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}
