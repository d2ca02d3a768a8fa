//! Arguments of `partwise calibrate`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise calibrate --threads 8
  mpirun -n 16 partwise calibrate --threads 8 --force

Use the same number of processes and threads as the jobs that you plan.";

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Threads per process [default: all cores, shared equally]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub threads: Option<usize>,
    /// File to write [default: partwise/calibration.json in the user's configuration folder]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Measure for a second or two only; too inaccurate for predictions
    #[arg(long)]
    pub quick: bool,
    /// Print the measured constants as JSON
    #[arg(long)]
    pub json: bool,
}
