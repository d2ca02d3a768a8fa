//! Arguments of `partwise calibrate`.

use std::path::PathBuf;

use clap::Args;

use super::values::count;

pub const EXAMPLES: &str = "\
Examples:
  partwise calibrate --threads 8
  mpirun -n 16 partwise calibrate --threads 8 --force

Run it as the jobs will be run: constants are those of a rank with so many threads, among so many ranks at once.";

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Threads a rank [default: all cores, shared between the ranks]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub threads: Option<usize>,
    /// File to write [default: partwise/calibration.json in the user's config folder, where `plan` and `auto` look]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Measure little, in a second or two: good for trying, not for predictions
    #[arg(long)]
    pub quick: bool,
    /// Print the file
    #[arg(long)]
    pub json: bool,
}
