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
  partwise plan --rows 1e9 --cols 1e7 --nonzeros 1e12 -k 100 --nodes 1024 --network 100Gbit/s,5us
  partwise plan --rows 70000 --cols 784 -k 20 --nodes 8 --network 1Gbit/s,100us --memory 16GiB

Estimates assume evenly spread nonzeros and one core per process, unless `partwise calibrate` has measured this machine.";

/// The options that `-h` shows.
pub const COMMON: &[&str] =
    &["rows", "cols", "nonzeros", "rank", "nodes", "network", "memory", "constants", "json"];

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Rows of the matrix, such as 1e9
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "M")]
    pub rows: usize,
    /// Columns of the matrix
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "N")]
    pub cols: usize,
    /// Number of nonzero entries of a sparse matrix [default: the matrix is dense]
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "COUNT")]
    pub nonzeros: Option<usize>,
    /// Entries are bytes, such as pixels
    #[arg(long, conflicts_with = "nonzeros")]
    pub bytes: bool,
    /// Number of components, k
    #[arg(value_parser = large, allow_negative_numbers = true, short = 'k', long, visible_alias = "components", value_name = "K")]
    pub rank: usize,
    /// Number of processes
    #[arg(value_parser = large, allow_negative_numbers = true, long, value_name = "N")]
    pub nodes: usize,
    /// Bandwidth,latency such as 1Gbit/s,100us [default: calibrated, or 10Gbit/s,20us]
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<Network>,
    /// Maximum memory per process, such as 16GiB [default: no limit]
    #[arg(value_parser = size, long, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Process grid of the exact methods [default: the one that sends the least]
    #[arg(long, value_name = "RxC")]
    pub grid: Option<Grid>,
    /// Columns in U's subproblem of dsanls, a share or a number [default: by size]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT")]
    pub sketch_cols: Option<Amount>,
    /// Rows in V's subproblem of dsanls, a share or a number [default: by size]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT")]
    pub sketch_rows: Option<Amount>,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32")]
    pub precision: Precision,
    /// Constants from `calibrate --out` [default: those of this user, or built-in ones]
    #[arg(long, value_name = "FILE")]
    pub constants: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
