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

use super::values::{Interval, choice, count, interval, real, seconds, size, whole};
use super::{LabelArgs, ReadArgs, ShapeArgs};
use crate::launch::Sums;

pub const EXAMPLES: &str = "\
Examples:
  partwise factorize M.npy --rank 16 --out result
  partwise factorize M.npz --rank 50 --algorithm dsanls --nodes 4 --out result
  partwise factorize genes.csv --records columns --rank 8 --restarts 5 --tsv --out result
  partwise factorize M.npz --rank 50 --init-from result --tolerance 1e-6 --out better
  partwise factorize M.npz --rank 50 --nodes 16 --network 1Gbit/s,100us --out as-on-16-machines

Exit code 130: interrupted by Ctrl-C or SIGTERM; the result so far is saved.";

#[derive(Debug, Args)]
pub struct FactorizeArgs {
    /// The matrix: .npy, .npz (SciPy sparse), .mtx, .csv, .tsv, .h5ad or .bin (the paper's program), each also
    /// with .gz; or a folder or .zip of JPEG and PNG images
    pub file: PathBuf,
    /// Number of components, k
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, value_name = "K")]
    pub rank: usize,
    /// Folder to write U.npy, V.npy, trace.csv, run.json and report.html to
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the results in an existing folder
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Whether a sample is a row or a column of the matrix, after --transpose; run.json remembers it for `report` and
    /// `top` [default: rows; for images, the side that they are on]
    #[arg(long, value_parser = choice(&Side::ALL), value_name = "SIDE")]
    pub records: Option<Side>,

    /// Method: the fastest that we know, by the size of M (auto); exact by coordinate descent (hals), by multiplicative
    /// updates (mu) or by exact least squares (bpp); or sketched, for many nodes (dsanls)
    #[arg(long, value_parser = choice(&Algorithm::ALL), default_value = "auto", help_heading = "Method")]
    pub algorithm: Algorithm,
    /// Whether auto begins on samples of a dense matrix [default: yes; where the network is known, if it pays]
    #[arg(long, value_parser = choice(&Presence::ALL), default_value = "auto", hide_default_value = true, value_name = "WHEN", help_heading = "Method")]
    pub samples: Presence,
    /// Kind of sketch, with dsanls
    #[arg(long, value_parser = choice(&SketchKind::ALL), default_value = "subsample", help_heading = "Method")]
    pub sketch: SketchKind,
    /// Columns that U's subproblem is sketched to: a share (0.1, 10%) or a number; 1.0 is exact
    /// [default: a tenth, a hundredth from 100,000 on, at least 4 k; exact if the matrix is 10 times as tall]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_cols: Option<Amount>,
    /// Rows that V's subproblem is sketched to, likewise [default: exact if the matrix is 10 times as wide]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_rows: Option<Amount>,
    /// Solver of sketched subproblems: proximal coordinate descent or projected gradient descent
    #[arg(long, value_parser = choice(&SketchedSolver::ALL), default_value = "pcd", help_heading = "Method")]
    pub solver: SketchedSolver,
    /// Damping of the sketched step, (alpha + beta t) g: its beginning [default: 0.1; with pgd 2]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub alpha: Option<f64>,
    /// ... and its growth an iteration [default: 0.02; with pgd 0.002]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub beta: Option<f64>,
    /// Units of the damping: free of units (g is the mean Gram diagonal so far), or the paper's (g = 1)
    #[arg(long, value_parser = choice(&Step::ALL), default_value = "unit-free", help_heading = "Method")]
    pub step: Step,
    /// Keep every entry of U and V at most sqrt(2 ||M||_F), as the paper's convergence proof asks
    #[arg(long, help_heading = "Method")]
    pub bound: bool,
    /// Penalty on the sum of U's entries; all four are scaled by the matrix's other side, so that a weight means
    /// the same at any size (scikit-learn's alpha_W * l1_ratio)
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
    /// Start: random at the matrix's scale, or from its singular vectors, with zeros kept (nndsvd), filled with the
    /// mean (nndsvda; for mu) or with small random numbers (nndsvdar)
    #[arg(long, value_parser = choice(&Init::ALL), default_value = "random", help_heading = "Method")]
    pub init: Init,
    /// Begin from U.npy and V.npy of this folder instead of a random start
    #[arg(long, value_name = "DIR", conflicts_with = "init", help_heading = "Method")]
    pub init_from: Option<PathBuf>,
    /// Seed of everything random; the same seed gives the same answer
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N", help_heading = "Method")]
    pub seed: u64,
    /// Number of runs, with seeds N, N+1, ..., of which the best is kept
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "R", help_heading = "Method")]
    pub restarts: usize,

    /// Stop after this many iterations
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = Settings::ITERATIONS, value_name = "N", help_heading = "Stopping")]
    pub iterations: usize,
    /// Stop when the error falls by less than this share of itself an iteration, over 10 iterations; 0: never
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = Settings::TOLERANCE, value_name = "X", help_heading = "Stopping")]
    pub tolerance: f64,
    /// Stop at this relative error
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Stopping")]
    pub target_error: Option<f64>,
    /// Stop after this much computing: seconds, or 10m, 2h (Ctrl-C stops too, and saves)
    #[arg(allow_negative_numbers = true, long, value_parser = seconds, value_name = "TIME", help_heading = "Stopping")]
    pub time_limit: Option<f64>,

    /// Save the run to DIR.checkpoint every so many iterations (50), or so much time (30s, 10m, 2h)
    #[arg(long, value_parser = interval, value_name = "N|TIME", help_heading = "Stopping")]
    pub checkpoint_every: Option<Interval>,
    /// Go on from DIR.checkpoint, to the same bits as if never interrupted; begin anew if there is none
    #[arg(long, help_heading = "Stopping")]
    pub resume: bool,

    /// In-process ranks, each with its own part of the matrix
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "N", help_heading = "Machine")]
    pub nodes: usize,
    /// Threads a rank [default: all cores, shared between the ranks; with --network 1]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Machine")]
    pub threads: Option<usize>,
    /// Use at most this much memory (256MiB, 2GiB): a matrix that does not fit stays in its file, .npy, .bin or .npz
    /// (csr or csc, uncompressed), and is read block by block in every iteration
    #[arg(value_parser = size, long, value_name = "SIZE", help_heading = "Machine")]
    pub memory: Option<u64>,
    /// Rows and columns of ranks for the exact methods [default: those that send the least]
    #[arg(long, value_name = "RxC", help_heading = "Machine")]
    pub grid: Option<Grid>,
    /// Keep virtual clocks, as if the in-process ranks were machines on this network: bandwidth and latency, such as
    /// 1Gbit/s,100us, or unlimited. Given more than once, trace.csv has a column for each. `auto` then chooses by it;
    /// under MPI, where clocks are real, it does nothing else
    #[arg(long, value_name = "NETWORK", help_heading = "Machine")]
    pub network: Vec<Network>,
    /// Who adds up over MPI ranks: MPI itself, or Partwise in rank order, to the same bits on any network (ranks within
    /// one process always do)
    #[arg(long, value_parser = choice(&Sums::ALL), default_value = "native", help_heading = "Machine")]
    pub reduction: Sums,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32", help_heading = "Machine")]
    pub precision: Precision,

    /// Also write U.tsv and V.tsv, with labels
    #[arg(long, help_heading = "Output")]
    pub tsv: bool,
    /// Scale of the components: the same norm in U and V, the method's own, norm 1 in U or V, or sum 1 in U or V
    /// [default: balanced; none with penalties or --bound]
    #[arg(long, value_parser = choice(&Normalize::ALL), value_name = "HOW", help_heading = "Output")]
    pub normalize: Option<Normalize>,
    /// Iterations between two lines of trace.csv [default: 1; with dsanls so that evaluating costs about a tenth]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Output")]
    pub trace_every: Option<usize>,
    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Do not make report.html
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Print progress and result as lines of JSON on stdout
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub json: bool,
}

impl FactorizeArgs {
    pub fn settings(&self) -> Settings {
        let (alpha, beta) = self.solver.damping();
        Settings {
            algorithm: self.algorithm,
            loss: Loss::Frobenius,
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
