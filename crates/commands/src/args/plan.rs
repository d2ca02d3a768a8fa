//! Arguments of `partwise plan`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;
use partwise::comm::Network;
use partwise::grid::Grid;
use partwise::run::Amount;

use super::values::{choice, large, size};

pub const EXAMPLES: &str = "\
Examples:
  partwise plan --rows 1e9 --cols 1e7 --nonzeros 1e12 --rank 100 --nodes 1024 --network 100Gbit/s,5us
  partwise plan --rows 70000 --cols 784 --rank 20 --nodes 8 --network 1Gbit/s,100us --memory 16GiB --json

Nonzeros are taken to be spread evenly, and each node to be one rank. `partwise calibrate` replaces the built-in constants,
which are those of one core.";

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Rows of the matrix, such as 1e9
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "M")]
    pub rows: usize,
    /// Columns of the matrix
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "N")]
    pub cols: usize,
    /// Entries that are not zero, of a sparse matrix [default: a dense one]
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "COUNT")]
    pub nonzeros: Option<usize>,
    /// Entries are bytes, as of images, which are kept so
    #[arg(long, conflicts_with = "nonzeros")]
    pub bytes: bool,
    /// Number of components, k
    #[arg(value_parser = large, allow_negative_numbers = true, short = 'k', long, value_name = "K")]
    pub rank: usize,
    /// Number of ranks
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "N")]
    pub nodes: usize,
    /// Bandwidth and latency between them, such as 100Gbit/s,5us, or unlimited [default: as measured by `mpirun ...
    /// partwise calibrate`, or 10Gbit/s,20us]
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<Network>,
    /// Memory of a node (256GiB); what needs more is refused [default: no limit]
    #[arg(value_parser = size, long, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Rows and columns of ranks for the exact methods [default: those that send the least]
    #[arg(long, value_name = "RxC")]
    pub grid: Option<Grid>,
    /// Columns that U's subproblem is sketched to, with dsanls, as for `factorize`
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT")]
    pub sketch_cols: Option<Amount>,
    /// Rows that V's subproblem is sketched to, likewise
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT")]
    pub sketch_rows: Option<Amount>,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32")]
    pub precision: Precision,
    /// Constants that `calibrate --out` wrote [default: those of this user, or built-in ones]
    #[arg(long, value_name = "FILE")]
    pub constants: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
