//! The command line.

use std::path::PathBuf;

use crate::federation_args::{
    COORDINATOR_EXAMPLES, CoordinatorCommand, PARTY_EXAMPLES, PartyCommand, ProvisionArgs,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use partwise::comm::Network;
use partwise::grid::Grid;
use partwise::io::{ImageSide, Presence};
use partwise::run::{Algorithm, Amount, Init, Normalize, Settings, Side, SketchedSolver, Step};
use partwise::{Precision, sketch};
use partwise_secure::protocol::{Aggregation, Protocol, Settings as SecureSettings};
use partwise_secure::risk::Accepted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Nonnegative matrix factorization: M ≈ U Vᵀ with all entries ≥ 0.
#[derive(Debug, Parser)]
#[command(name = "partwise", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  partwise inspect M.npz
  partwise convert M.csv M.npy
  partwise factorize M.npz --rank 20 --out result
  partwise report result --open
  partwise top result
  partwise evaluate result M.npz
  partwise transform result new.npz --out W.npy
  partwise simulate M.npz --parties 5 --protocol syn-sd --rank 20 --out result
  partwise audit result
  partwise plan --rows 1e6 --cols 1e5 --nonzeros 1e8 --rank 50 --nodes 16 --network 10Gbit/s,20us";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Factorize a matrix and write U, V, the error curve and a record of the run
    #[command(after_help = FACTORIZE_EXAMPLES)]
    Factorize(Box<FactorizeArgs>),
    /// Write a matrix in another format, exactly
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Part a matrix into a folder with a part for each rank of a job, on a cluster
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(SplitArgs),
    /// Show a matrix's size, density, range and the memory that a factorization needs
    #[command(after_help = "Example:\n  partwise inspect M.mtx.gz --rank 50")]
    Inspect(InspectArgs),
    /// Recompute the relative error of a result on a matrix
    #[command(after_help = "Example:\n  partwise evaluate result M.npz")]
    Evaluate(EvaluateArgs),
    /// Fit new rows (or columns) to the fixed factors of a result, exactly
    #[command(
        after_help = "Examples:\n  partwise transform result new.npz --out W.npy\n  partwise transform result new.csv --side columns --out W.tsv"
    )]
    Transform(TransformArgs),
    /// Run a federation on one machine: parties that keep their records share one factor of the features
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// What left each party of a recorded simulation, who could read it, and what attackers make of it; or what left a
    /// party of a federation, by its ledger
    #[command(after_help = AUDIT_EXAMPLES)]
    Audit(AuditArgs),
    /// Regenerate the report page of a run: components, samples, error curve, time, traffic
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Run what a file describes, and draw it: the figures of the paper
    #[command(after_help = EXPERIMENT_EXAMPLES)]
    Experiment(ExperimentArgs),
    /// The centre of a federation: its certificates, and the sums of its parties
    #[command(subcommand, after_help = COORDINATOR_EXAMPLES)]
    Coordinator(CoordinatorCommand),
    /// One organisation of a federation, which keeps its records
    #[command(subcommand, after_help = PARTY_EXAMPLES)]
    Party(PartyCommand),
    /// Make all keys and files of a federation at once, for trials
    #[command(after_help = "Example:\n  partwise provision --demo --parties 3 --rank 8 --out trial")]
    Provision(ProvisionArgs),
    /// List each component's strongest features and samples
    #[command(after_help = "Example:\n  partwise top result --count 5")]
    Top(TopArgs),
    /// Say what a factorization will take on a cluster: memory, bytes and seconds, the best method and grid
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Measure this machine, and under mpirun the network, for `plan` and `auto`
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(CalibrateArgs),
}

const PLAN_EXAMPLES: &str = "\
Examples:
  partwise plan --rows 1e9 --cols 1e7 --nonzeros 1e12 --rank 100 --nodes 1024 --network 100Gbit/s,5us
  partwise plan --rows 70000 --cols 784 --rank 20 --nodes 8 --network 1Gbit/s,100us --memory 16GiB --json

Nonzeros are taken to be spread evenly, and each node to be one rank. `partwise calibrate` replaces the built-in constants,
which are those of one core.";

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  partwise calibrate --threads 8
  mpirun -n 16 partwise calibrate --threads 8 --force

Run it as the jobs will be run: constants are those of a rank with so many threads, among so many ranks at once.";

const FACTORIZE_EXAMPLES: &str = "\
Examples:
  partwise factorize M.npy --rank 16 --out result
  partwise factorize M.npz --rank 50 --algorithm dsanls --nodes 4 --out result
  partwise factorize genes.csv --records columns --rank 8 --restarts 5 --tsv --out result
  partwise factorize M.npz --rank 50 --init-from result --tolerance 1e-6 --out better
  partwise factorize M.npz --rank 50 --nodes 16 --network 1Gbit/s,100us --out as-on-16-machines

Exit code 130: interrupted by Ctrl-C or SIGTERM; the result so far is saved.";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  partwise simulate patients.csv --parties 5 --protocol pooled --rank 8 --out result
  partwise simulate M.npz --parties 6 --protocol asyn-ssd-v --split first=0.5 --speeds 1,1,4 --rank 20 --out result
  partwise simulate M.npy --records columns --split hospitals.txt --protocol syn-sd --rank 8 --out result
  partwise simulate M.npz --parties 5 --protocol syn-sd --rank 8 --audit --max-auc 0.6 --out result";

const AUDIT_EXAMPLES: &str = "\
Examples:
  partwise simulate M.npz --parties 5 --protocol syn-sd --rank 8 --record --out result
  partwise audit result
  partwise audit result --data moved/M.npz --max-auc 0.6 --force
  partwise audit hospital-a/state

Exit code 3: an AUC is above --max-auc.";

const REPORT_EXAMPLES: &str = "\
Examples:
  partwise report result --open
  partwise report faces --image-shape 19x19
  partwise report cells --records columns";

const EXPERIMENT_EXAMPLES: &str = "\
Examples:
  partwise experiment experiments/general-error.toml --data ../shared/data --out general-error
  partwise experiment experiments/general-error.toml --data ../shared/data --out some --only FACE --quick

What is finished is kept: the same command again goes on where it was.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  partwise convert M.mtx.gz M.npz
  partwise convert counts.csv counts.npy --transpose
  partwise convert frames.zip frames.npy
  partwise convert M.npy M.bin --precision f32

Numbers keep their type: bytes stay bytes in .npy, float32 stays float32, and text has all digits.";

const SPLIT_EXAMPLES: &str = "\
Example:
  partwise split M.npz --nodes 8 --out M.parts
  mpirun -n 8 partwise factorize M.parts --rank 50 --out result";

/// How to read a matrix file.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Work on the transposed matrix (`evaluate` and `transform` do as the run did; there it means the opposite)
    #[arg(long)]
    pub transpose: bool,
    /// In a text table: whether the first line holds column names
    #[arg(long, value_parser = named::<Presence>(&["auto", "yes", "no"]), default_value = "auto", value_name = "WHEN")]
    pub header: Presence,
    /// In a text table: whether the first column holds row names
    #[arg(long, value_parser = named::<Presence>(&["auto", "yes", "no"]), default_value = "auto", value_name = "WHEN")]
    pub row_names: Presence,
    /// Of a folder or .zip of images: whether an image becomes a column or a row [default: columns; where there was
    /// a run, as there]
    #[arg(long, value_parser = named::<ImageSide>(&["columns", "rows"]), value_name = "SIDE")]
    pub images: Option<ImageSide>,
}

/// Text files with names for rows and columns.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// A text file with a name a line for the file's rows (before --transpose)
    #[arg(long, value_name = "FILE")]
    pub row_labels: Option<PathBuf>,
    /// A text file with a name a line for the file's columns (before --transpose)
    #[arg(long, value_name = "FILE")]
    pub col_labels: Option<PathBuf>,
}

/// How to see what a component is made of.
#[derive(Debug, Args)]
pub struct ShapeArgs {
    /// Where a row or column of a table is a picture: its width and height (28x28), with x3 behind them for colours
    #[arg(long, value_name = "WxH")]
    pub image_shape: Option<Picture>,
}

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
    #[arg(long, value_parser = named::<Side>(&["rows", "columns"]), value_name = "SIDE")]
    pub records: Option<Side>,

    /// Method: the fastest that we know, by the size of M (auto); exact by coordinate descent (hals), by multiplicative
    /// updates (mu) or by exact least squares (bpp); or sketched, for many nodes (dsanls)
    #[arg(long, value_parser = named::<Algorithm>(&["auto", "hals", "mu", "bpp", "dsanls"]), default_value = "auto", help_heading = "Method")]
    pub algorithm: Algorithm,
    /// Whether auto begins on samples of a dense matrix [default: yes; where the network is known, if it pays]
    #[arg(long, value_parser = named::<Presence>(&["auto", "yes", "no"]), default_value = "auto", hide_default_value = true, value_name = "WHEN", help_heading = "Method")]
    pub samples: Presence,
    /// Kind of sketch, with dsanls
    #[arg(long, value_parser = named::<sketch::SketchKind>(&["subsample", "gaussian", "count", "srht"]), default_value = "subsample", help_heading = "Method")]
    pub sketch: sketch::SketchKind,
    /// Columns that U's subproblem is sketched to: a share (0.1, 10%) or a number; 1.0 is exact
    /// [default: a tenth, a hundredth from 100,000 on, at least 4 k; exact if the matrix is 10 times as tall]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_cols: Option<Amount>,
    /// Rows that V's subproblem is sketched to, likewise [default: exact if the matrix is 10 times as wide]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_rows: Option<Amount>,
    /// Solver of sketched subproblems: proximal coordinate descent or projected gradient descent
    #[arg(long, value_parser = named::<SketchedSolver>(&["pcd", "pgd"]), default_value = "pcd", help_heading = "Method")]
    pub solver: SketchedSolver,
    /// Damping of the sketched step, (alpha + beta t) g: its beginning [default: 0.1; with pgd 2]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub alpha: Option<f64>,
    /// ... and its growth an iteration [default: 0.02; with pgd 0.002]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub beta: Option<f64>,
    /// Units of the damping: free of units (g is the mean Gram diagonal so far), or the paper's (g = 1)
    #[arg(long, value_parser = named::<Step>(&["unit-free", "absolute"]), default_value = "unit-free", help_heading = "Method")]
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
    #[arg(long, value_parser = named::<Init>(&["random", "nndsvd", "nndsvda", "nndsvdar"]), default_value = "random", help_heading = "Method")]
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
    #[arg(long, value_parser = named::<Sums>(&["native", "ordered"]), default_value = "native", help_heading = "Machine")]
    pub reduction: Sums,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]), default_value = "f32", help_heading = "Machine")]
    pub precision: Precision,

    /// Also write U.tsv and V.tsv, with labels
    #[arg(long, help_heading = "Output")]
    pub tsv: bool,
    /// Scale of the components: the same norm in U and V, the method's own, norm 1 in U or V, or sum 1 in U or V
    /// [default: balanced; none with penalties or --bound]
    #[arg(long, value_parser = named::<Normalize>(&["balanced", "none", "u", "v", "sum-u", "sum-v"]), value_name = "HOW", help_heading = "Output")]
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
            rank: self.rank,
            sketch: self.sketch,
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

#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The matrix of all parties together, in any format that `factorize` reads
    pub file: PathBuf,
    /// Number of components, k
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, value_name = "K")]
    pub rank: usize,
    /// Folder to write party-1/U.npy, party-1/V.npy, ..., trace.csv, run.json and report.html to
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

    /// Number of parties [default: as many as the file of --split names]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Parties")]
    pub parties: Option<usize>,
    /// Whether a record (a patient) is a row or a column
    #[arg(long, value_parser = named::<Side>(&["rows", "columns"]), default_value = "rows", value_name = "SIDE", help_heading = "Parties")]
    pub records: Side,
    /// Who has which records: uniform, first=0.5 (the first party has half, the others share the rest), or a text file
    /// with a party's name a line, a line a record
    #[arg(long, default_value = "uniform", value_name = "HOW", help_heading = "Parties")]
    pub split: String,
    /// How many times as long each party takes for the same work, on the simulated clock: 1,1,4
    #[arg(long, value_delimiter = ',', value_parser = real, allow_hyphen_values = true, value_name = "X,...", help_heading = "Parties")]
    pub speeds: Vec<f64>,
    /// The lines between parties and coordinator, on the simulated clock: bandwidth and latency [default: 1Gbit/s,5ms]
    #[arg(long, value_name = "NETWORK", help_heading = "Parties")]
    pub network: Option<Network>,
    /// Let a party vanish after so many sums: 3@20
    #[arg(long, value_parser = vanishing, value_name = "PARTY@SUMS", help_heading = "Parties")]
    pub lose: Option<(u16, u64)>,

    /// Method: HALS on the pooled matrix (pooled), the paper's synchronous (syn-) and asynchronous (asyn-) methods, or
    /// DSANLS that stops before its sketches determine a record (dsanls-limited)
    #[arg(long, value_parser = named::<Protocol>(&["pooled", "syn-sd", "syn-ssd-u", "syn-ssd-v", "syn-ssd-uv", "asyn-sd", "asyn-ssd-v", "dsanls-limited"]), help_heading = "Method")]
    pub protocol: Protocol,
    /// T1: exchanges of the shared factor at most (asynchronous: of each group, on average)
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = SecureSettings::ROUNDS, value_name = "T1", help_heading = "Method")]
    pub rounds: usize,
    /// T2, or T of the asynchronous methods: local iterations between two exchanges
    /// [default: 2; pooled and dsanls-limited have 1]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "T2", help_heading = "Method")]
    pub inner: Option<usize>,
    /// Relaxation of the asynchronous methods: update t weighs rho / (rho + t)
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::RHO, value_name = "X", help_heading = "Method")]
    pub rho: f64,
    /// Kind of sketch, with the sketched methods [default: subsample; with dsanls-limited gaussian]
    #[arg(long, value_parser = named::<sketch::SketchKind>(&["subsample", "gaussian", "count", "srht"]), help_heading = "Method")]
    pub sketch: Option<sketch::SketchKind>,
    /// What a party's records are sketched to: a share (0.1, 10%) or a number
    /// [default: a tenth, at least 4 k; with dsanls-limited 2 k]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_records: Option<Amount>,
    /// What the features are sketched to, likewise
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_features: Option<Amount>,
    /// Solver of sketched subproblems
    #[arg(long, value_parser = named::<SketchedSolver>(&["pcd", "pgd"]), default_value = "pcd", help_heading = "Method")]
    pub solver: SketchedSolver,
    /// Damping of the sketched step, (alpha + beta t) g: its beginning [default: 0.1; with pgd 2]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub alpha: Option<f64>,
    /// ... and its growth an iteration [default: 0.02; with pgd 0.002]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub beta: Option<f64>,
    /// Units of the damping: free of units, or the paper's
    #[arg(long, value_parser = named::<Step>(&["unit-free", "absolute"]), default_value = "unit-free", help_heading = "Method")]
    pub step: Step,
    /// Stop when the error moved by no more than this share of itself a round, over 10 rounds; 0: never
    /// (the asynchronous methods do all rounds)
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::TOLERANCE, value_name = "X", help_heading = "Method")]
    pub tolerance: f64,
    /// Seed of the shared factor's start and of sketches, and in a simulation of each party's own factor
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N", help_heading = "Method")]
    pub seed: u64,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]), default_value = "f32", help_heading = "Method")]
    pub precision: Precision,

    /// How shares travel: masked, so that those who follow the protocol see sums alone (secure), or as they are (plain)
    #[arg(long, value_parser = named::<Aggregation>(&["secure", "plain"]), default_value = "secure", help_heading = "Security")]
    pub aggregation: Aggregation,
    /// How many parties may collude with each other and the coordinator
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "C", help_heading = "Security")]
    pub colluders: usize,
    /// Audit the run: what left each party, who could read it, what attackers make of it; also written to audit.json
    #[arg(long, help_heading = "Audit")]
    pub audit: bool,
    /// Keep all messages in transcript.bin, for `partwise audit`. It has every party's own shares: keep it as you keep the data
    #[arg(long, help_heading = "Audit")]
    pub record: bool,
    /// Records that are in nobody's data, to compare members with: a share (0.2, 20%) or a number
    /// [default: 20% with --audit or --record, else none]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Audit")]
    pub holdout: Option<Amount>,
    /// With --audit: exit code 3 if an attack of the audit tells members with a higher AUC than this, from a seat that the
    /// run was to be safe from. A lower AUC is an average over records, not a guarantee for each
    #[arg(value_parser = area, allow_hyphen_values = true, long, value_name = "X", requires = "audit", help_heading = "Audit")]
    pub max_auc: Option<f64>,

    /// Allow two parties, of which each can compute the other's share
    #[arg(long, help_heading = "Security")]
    pub accept_that_two_parties_see_each_other: bool,
    /// Allow --aggregation plain where a party has fewer records than 2 k or than features (pooled and dsanls-limited:
    /// than twice as many): its share shows some
    #[arg(long, help_heading = "Security")]
    pub accept_that_plain_shares_show_records: bool,
    /// Allow pooled where a party has no more records than there are features: membership can be told
    #[arg(long, help_heading = "Security")]
    pub accept_that_pooled_sums_show_records: bool,
    /// Go on after a party left, then once more without it: the sum before minus the sum after is nearly its share
    #[arg(long, help_heading = "Security")]
    pub accept_that_going_on_shows_the_leaver: bool,
    /// Allow --sketch subsample in dsanls-limited, which opens records at once
    #[arg(long, help_heading = "Security")]
    pub accept_that_subsampling_opens_records: bool,
    /// Allow fewer records, all parties of a sum but C together, than half of the features: membership can be told from
    /// sums
    #[arg(long, help_heading = "Security")]
    pub accept_that_few_records_show_in_sums: bool,

    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Do not make report.html
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Print the record of the run as JSON
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub json: bool,
}

impl SimulateArgs {
    pub fn settings(&self) -> SecureSettings {
        let (alpha, beta) = self.solver.damping();
        let defaults = SecureSettings::new(self.protocol, self.rank);
        SecureSettings {
            seed: self.seed,
            rounds: self.rounds,
            inner: self.inner.unwrap_or(defaults.inner),
            rho: self.rho,
            sketch: self.sketch.unwrap_or(defaults.sketch),
            sketch_records: self.sketch_records,
            sketch_features: self.sketch_features,
            solver: self.solver,
            alpha: self.alpha.unwrap_or(alpha),
            beta: self.beta.unwrap_or(beta),
            step: self.step,
            tolerance: self.tolerance,
            aggregation: self.aggregation,
            colluders: self.colluders,
            accepted: Accepted {
                two_parties_see_each_other: self.accept_that_two_parties_see_each_other,
                plain_shares_show_records: self.accept_that_plain_shares_show_records,
                pooled_sums_show_records: self.accept_that_pooled_sums_show_records,
                going_on_shows_the_leaver: self.accept_that_going_on_shows_the_leaver,
                subsampling_opens_records: self.accept_that_subsampling_opens_records,
                few_records_show_in_sums: self.accept_that_few_records_show_in_sums,
            },
            ..defaults
        }
    }
}

#[derive(Debug, Args)]
pub struct AuditArgs {
    /// A folder that `simulate --record` wrote; or a party's state folder or its ledger, to see what left it in federations
    /// and whether the ledger is whole
    pub dir: PathBuf,
    /// The matrix, if it is not where the run found it
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// How many parties collude, with each other and the coordinator [default: as the run had it]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "C")]
    pub colluders: Option<usize>,
    /// Exit code 3 if an attack tells members with a higher AUC than this, from a seat that the run was to be safe from. A
    /// lower AUC is an average over records, not a guarantee for each
    #[arg(value_parser = area, allow_hyphen_values = true, long, value_name = "X")]
    pub max_auc: Option<f64>,
    /// Replace an audit.json that is there
    #[arg(long)]
    pub force: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print audit.json
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The matrix: .npy, .npz (SciPy sparse), .mtx, .csv, .tsv, .h5ad or .bin (the paper's program), each also
    /// with .gz; or a folder or .zip of JPEG and PNG images
    #[arg(value_name = "IN")]
    pub file: PathBuf,
    /// File to write: .npy, .npz (sparse, csr), .mtx, .csv, .tsv or .bin, each also with .gz
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
    /// Round or widen numbers to this type instead of keeping the file's own
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]))]
    pub precision: Option<Precision>,
    /// Store the arrays of an .npz as they are: larger, but `factorize --memory` can then stream them
    #[arg(long)]
    pub uncompressed: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// Who adds up over MPI ranks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sums {
    /// MPI.
    Native,
    /// Partwise, in the order of the ranks.
    Ordered,
}

#[derive(Debug, Args)]
pub struct SplitArgs {
    /// The matrix: .npy, .npz, .mtx (coordinates) or .bin, each also with .gz
    pub file: PathBuf,
    /// Number of ranks
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N")]
    pub nodes: usize,
    /// Folder to write the parts to
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Part the transposed matrix
    #[arg(long)]
    pub transpose: bool,
    /// Round or widen numbers to this type instead of keeping the file's own
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]))]
    pub precision: Option<Precision>,
}

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
    #[arg(long, value_parser = named::<Precision>(&["f32", "f64"]), default_value = "f32")]
    pub precision: Precision,
    /// Constants that `calibrate --out` wrote [default: those of this user, or built-in ones]
    #[arg(long, value_name = "FILE")]
    pub constants: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The matrix
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Number of components for the estimate of memory
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, default_value_t = 20, value_name = "K")]
    pub rank: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// The matrix
    pub file: PathBuf,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TransformArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// New rows (or columns) of the same kind of matrix
    pub file: PathBuf,
    /// File to write the fitted factor to: .npy or .tsv
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Whether FILE holds new rows or new columns
    #[arg(long, value_parser = named::<Side>(&["rows", "columns"]), default_value = "rows")]
    pub side: Side,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A folder that `factorize` or `simulate` wrote
    pub dir: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Replace a report.html that Partwise did not make
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Whether a sample is a row or a column, for a result of `factorize` [default: as in the run]
    #[arg(long, value_parser = named::<Side>(&["rows", "columns"]), value_name = "SIDE")]
    pub records: Option<Side>,
}

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

#[derive(Debug, Args)]
pub struct TopArgs {
    /// A folder that `factorize` wrote
    pub dir: PathBuf,
    /// How many features and samples to list for each component
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'n', long, default_value_t = 10, value_name = "N")]
    pub count: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Width, height and channels of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub channels: u8,
}

impl std::str::FromStr for Picture {
    type Err = &'static str;

    /// `28x28`, or `320x240x3`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Option<Vec<u32>> =
            text.split(['x', 'X', '×']).map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[width, height]) if width > 0 && height > 0 => Ok(Picture { width, height, channels: 1 }),
            Some(&[width, height, channels @ (1 | 3)]) if width > 0 && height > 0 => {
                Ok(Picture { width, height, channels: channels as u8 })
            }
            _ => Err("give width and height such as 28x28, or with colours 320x240x3"),
        }
    }
}

/// One of the library's choices, by the name that it has in `run.json`.
pub fn named<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(Value::String(name)))
}

/// Time or iterations between two checkpoints.
#[derive(Clone, Copy, Debug)]
pub enum Interval {
    Iterations(usize),
    Seconds(f64),
}

/// `50` iterations, or `30s`, `10m`, `2h`.
fn interval(text: &str) -> Result<Interval, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("0 is too few; give 1 or more".into()),
        Ok(count) => Ok(Interval::Iterations(count)),
        Err(_) => seconds(text)
            .map(Interval::Seconds)
            .map_err(|_| "an interval is a number of iterations, or a time such as 30s, 10m or 2h".into()),
    }
}

/// `90`, `90s`, `1.5m` or `2h` in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(time) if time.is_finite() && time >= 0.0 => Ok(time * unit),
        _ => Err("a time is a number of seconds, or a number with s, m or h behind it".into()),
    }
}

/// `2GiB`, `1.5G`, `256MiB` or `1000000` in bytes; all units are powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let exponent = match unit {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(1),
        "m" | "mb" | "mib" => Some(2),
        "g" | "gb" | "gib" => Some(3),
        "t" | "tb" | "tib" => Some(4),
        _ => None,
    };
    match (number.trim().parse::<f64>(), exponent) {
        (Ok(number), Some(exponent)) if number.is_finite() && number > 0.0 => {
            Ok((number * 1024f64.powi(exponent)) as u64)
        }
        _ => Err("a size is a number of bytes, or a number with KiB, MiB, GiB or TiB behind it".into()),
    }
}

/// How many; that 0 is too few is said where it is known of what.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "give a whole number of 1 or more".into())
}

/// The same for large ones, such as 1e9.
fn large(text: &str) -> Result<usize, String> {
    // Below 2^53 a number with an exponent is what it says.
    let exponent =
        || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    let number = text.parse().ok().or_else(|| exponent().map(|number| number as usize));
    number.ok_or_else(|| "give a whole number of 1 or more, such as 1000000 or 1e6".into())
}

/// `3@20`: party 3, after 20 sums.
fn vanishing(text: &str) -> Result<(u16, u64), String> {
    let parsed =
        text.split_once('@').and_then(|(party, sums)| Some((party.parse().ok()?, sums.parse().ok()?)));
    parsed.ok_or_else(|| "give a party and a number of sums, such as 3@20".into())
}

/// An area under a ROC curve that can be a limit.
fn area(text: &str) -> Result<f64, String> {
    let area = text.parse::<f64>().ok().filter(|area| (0.5..=1.0).contains(area));
    area.ok_or_else(|| "give a number from 0.5 (guessing) to 1 (certainty)".into())
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("give a whole number from 0 to {}", u64::MAX))
}

fn real(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number such as 0.01 or 1e-5".into())
}
