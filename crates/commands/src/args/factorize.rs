//! Arguments of `partwise factorize`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;
use partwise::comm::Network;
use partwise::grid::Grid;
use partwise::io::Presence;
use partwise::objective::Loss;
use partwise::run::{Algorithm, Amount, Init, Normalize, Settings, Side, SketchedSolver, Step};
use partwise::sketch::SketchKind;

use super::values::{Interval, choice, count, interval, real, seconds, share, size, whole};
use super::{KnownArgs, LabelArgs, ReadArgs, ShapeArgs};
use crate::launch::Sums;

pub const EXAMPLES: &str = "\
Examples:
  partwise factorize M.npz -k 20 --out result
  partwise factorize genes.csv --records columns -k 8 --restarts 5 --out result

Ctrl-C and SIGTERM end the run; the result so far is saved, and the exit code is 130.";

/// The options that `-h` shows.
pub const COMMON: &[&str] = &[
    "rank",
    "out",
    "records",
    "algorithm",
    "seed",
    "restarts",
    "iterations",
    "tolerance",
    "threads",
    "force",
];

#[derive(Debug, Args)]
pub struct FactorizeArgs {
    /// Matrix file (.npy, .npz, .mtx, .csv, .tsv, .h5ad, .bin; also .gz), or a folder or .zip of images
    pub file: PathBuf,
    #[command(flatten, next_help_heading = "Input")]
    pub read: ReadArgs,
    #[command(flatten, next_help_heading = "Input")]
    pub labels: LabelArgs,
    #[command(flatten, next_help_heading = "Input")]
    pub shape: ShapeArgs,
    /// Whether samples are rows or columns [default: rows; for images, as --images]
    #[arg(long, value_parser = choice(&Side::ALL), value_name = "SIDE", help_heading = "Input")]
    pub records: Option<Side>,

    /// Number of components, k
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, visible_alias = "components", value_name = "K", help_heading = "Components")]
    pub rank: usize,
    /// Starting values: random, or from the singular vectors of the matrix
    #[arg(long, value_parser = choice(&Init::ALL), default_value = "random", help_heading = "Components")]
    pub init: Init,
    /// Start from the factors in this result folder
    #[arg(long, value_name = "DIR", conflicts_with = "init", help_heading = "Components")]
    pub init_from: Option<PathBuf>,
    /// Random seed; the same seed gives the same result
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N", help_heading = "Components")]
    pub seed: u64,
    /// Number of runs with different seeds; the best is kept
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "R", help_heading = "Components")]
    pub restarts: usize,
    /// Scale of the components [default: balanced; none with penalties or --bound]
    #[arg(long, value_parser = choice(&Normalize::ALL), value_name = "HOW", help_heading = "Components")]
    pub normalize: Option<Normalize>,

    /// Method; auto chooses one by the size of the matrix
    #[arg(long, value_parser = choice(&Algorithm::ALL), default_value = "auto", help_heading = "Method")]
    pub algorithm: Algorithm,
    /// What is minimized: least squares (frobenius), the Kullback-Leibler divergence, for counts (kl), or the Itakura-Saito
    /// divergence, for power spectra (is; by auto or mu)
    #[arg(long, value_parser = choice(&Loss::ALL), default_value = "frobenius", help_heading = "Loss")]
    pub loss: Loss,
    #[command(flatten)]
    pub known: KnownArgs,
    /// Hold out this share of the entries (10%, 0.1) and report the error on them. If unstored entries are 0: this
    /// share of the stored entries, and as many unstored ones
    #[arg(long, value_parser = share, value_name = "SHARE", help_heading = "Loss")]
    pub holdout: Option<f64>,
    /// Whether auto starts on a sample of a dense matrix [default: if that is faster]
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", hide_default_value = true, value_name = "WHEN", help_heading = "Method")]
    pub samples: Presence,
    /// Penalty on the sum of U's entries
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = 0.0, value_name = "X", help_heading = "Method")]
    pub l1_u: f64,
    /// Penalty on the sum of V's entries
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = 0.0, value_name = "X", help_heading = "Method")]
    pub l1_v: f64,
    /// Penalty on half the sum of U's squared entries
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = 0.0, value_name = "X", help_heading = "Method")]
    pub l2_u: f64,
    /// Penalty on half the sum of V's squared entries
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = 0.0, value_name = "X", help_heading = "Method")]
    pub l2_v: f64,
    /// Keep every entry of U and V at most sqrt(2 ||M||_F)
    #[arg(long, help_heading = "Method")]
    pub bound: bool,

    /// Maximum number of iterations
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = Settings::ITERATIONS, value_name = "N", help_heading = "Stopping")]
    pub iterations: usize,
    /// Stop when the error changes by less than this share per iteration; 0: never
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = Settings::TOLERANCE, value_name = "X", help_heading = "Stopping")]
    pub tolerance: f64,
    /// Stop at this relative error
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Stopping")]
    pub target_error: Option<f64>,
    /// Stop after this much computing time, such as 90s, 10m or 2h
    #[arg(allow_negative_numbers = true, long, value_parser = seconds, value_name = "TIME", help_heading = "Stopping")]
    pub time_limit: Option<f64>,
    /// Save to DIR.checkpoint every N iterations, or every 30s, 10m or 2h
    #[arg(long, value_parser = interval, value_name = "N|TIME", help_heading = "Stopping")]
    pub checkpoint_every: Option<Interval>,
    /// Resume from DIR.checkpoint if it exists, with bit-identical results
    #[arg(long, help_heading = "Stopping")]
    pub resume: bool,

    /// Threads per worker or process [default: all cores; with --network 1]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Resources")]
    pub threads: Option<usize>,
    /// Maximum memory, such as 2GiB; larger matrices are streamed from their file
    #[arg(value_parser = size, long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<u64>,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32", help_heading = "Resources")]
    pub precision: Precision,
    /// In-process workers, each with its own block of the matrix
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "N", help_heading = "Resources")]
    pub nodes: usize,
    /// Process grid of the exact methods [default: least communication]
    #[arg(long, value_name = "RxC", help_heading = "Resources")]
    pub grid: Option<Grid>,
    /// Simulate a network between workers, such as 1Gbit/s,100us; repeatable
    #[arg(long, value_name = "NETWORK", help_heading = "Resources")]
    pub network: Vec<Network>,
    /// Sums over MPI processes: by MPI, or in process order with the same bits
    #[arg(long, value_parser = choice(&Sums::ALL), default_value = "native", help_heading = "Resources")]
    pub reduction: Sums,

    /// Folder for U.npy, V.npy, trace.csv, run.json and report.html
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Replace the results in an existing folder
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Also write U.tsv and V.tsv, with labels
    #[arg(long, help_heading = "Output")]
    pub tsv: bool,
    /// Iterations between two lines of trace.csv [default: 1; more with dsanls]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Output")]
    pub trace_every: Option<usize>,
    /// Do not write report.html
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Print progress and the result as lines of JSON on stdout
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub json: bool,

    /// Kind of sketch
    #[arg(long, value_parser = choice(&SketchKind::ALL), default_value = "subsample", help_heading = "DSANLS")]
    pub sketch: SketchKind,
    /// Columns in U's subproblem, a share (10%) or a number [default: by size]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "DSANLS")]
    pub sketch_cols: Option<Amount>,
    /// Rows in V's subproblem, a share or a number [default: by size]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "DSANLS")]
    pub sketch_rows: Option<Amount>,
    /// Proximal coordinate descent (pcd) or projected gradient descent (pgd)
    #[arg(long, value_parser = choice(&SketchedSolver::ALL), default_value = "pcd", help_heading = "DSANLS")]
    pub solver: SketchedSolver,
    /// Damping of the first step [default: 0.1; 2 with pgd]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "DSANLS")]
    pub alpha: Option<f64>,
    /// Increase of the damping per iteration [default: 0.02; 0.002 with pgd]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "DSANLS")]
    pub beta: Option<f64>,
    /// Damping relative to the Gram diagonal, or absolute as in the paper
    #[arg(long, value_parser = choice(&Step::ALL), default_value = "unit-free", help_heading = "DSANLS")]
    pub step: Step,
}

impl FactorizeArgs {
    pub fn settings(&self) -> Settings {
        let (alpha, beta) = self.solver.damping();
        Settings {
            algorithm: self.algorithm,
            loss: self.loss,
            incomplete: self.known.given(),
            holdout: self.holdout,
            rank: self.rank,
            sketch: self.sketch,
            custom_sketch: None,
            sketch_cols: self.sketch_cols,
            sketch_rows: self.sketch_rows,
            solver: self.solver,
            alpha: self.alpha.unwrap_or(alpha),
            beta: self.beta.unwrap_or(beta),
            step: self.step,
            bound: self.bound,
            l1_u: self.l1_u,
            l1_v: self.l1_v,
            l2_u: self.l2_u,
            l2_v: self.l2_v,
            init: self.init,
            seed: self.seed,
            iterations: self.iterations,
            tolerance: self.tolerance,
            target_error: self.target_error,
            time_limit: self.time_limit,
            restarts: self.restarts,
            trace_every: self.trace_every,
            normalize: self.normalize,
            samples: !matches!(self.samples, Presence::No),
        }
    }
}
