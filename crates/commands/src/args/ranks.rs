//! Arguments of `partwise ranks`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;
use partwise::run::{Algorithm, Settings};

use super::reading::{LabelArgs, ReadArgs};
use super::values::{choice, components, count, real, whole};

pub const EXAMPLES: &str = "\
Examples:
  partwise ranks M.npz --components 2..20 --restarts 10 --out ranks
  partwise ranks counts.csv --components 5,8,13,20 --out ranks --seed 1";

/// The options that `-h` shows.
pub const COMMON: &[&str] =
    &["components", "restarts", "out", "force", "resume", "seed", "threads", "transpose", "json"];

#[derive(Debug, Args)]
pub struct RanksArgs {
    /// The matrix, in any format that `factorize` reads
    pub file: PathBuf,
    /// Numbers of components to try: a range with both ends (2..20) or a list (5,8,13)
    #[arg(short = 'k', long, value_parser = components, value_name = "RANGE")]
    pub components: ComponentNumbers,
    /// Random starts for each number, which are compared with each other
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 10, value_name = "R")]
    pub restarts: usize,
    /// Folder for ranks.csv, ranks.json and report.html
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing folder
    #[arg(long)]
    pub force: bool,
    /// Continue an interrupted run from DIR.fits
    #[arg(long)]
    pub resume: bool,
    /// Method of every fit
    #[arg(long, value_parser = choice(&Algorithm::ALL), default_value = "auto")]
    pub algorithm: Algorithm,
    /// Seed of the first start and of the held-out blocks
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Stop each fit after this many iterations
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = Settings::ITERATIONS, value_name = "N")]
    pub iterations: usize,
    /// Stop each fit when the error falls by less than this share of itself per iteration; 0: never
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = Settings::TOLERANCE, value_name = "X")]
    pub tolerance: f64,
    /// Fits that run at the same time, each on one thread [default: all cores]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32")]
    pub precision: Precision,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the result as JSON on stdout
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// Numbers of components in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentNumbers(pub Vec<usize>);
