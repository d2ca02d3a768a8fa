//! Arguments of `partwise simulate`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;
use partwise::comm::Network;
use partwise::run::{Amount, Side, SketchedSolver, Step};
use partwise::sketch::SketchKind;
use partwise_secure::protocol::{Aggregation, Protocol, Settings as SecureSettings};
use partwise_secure::risk::Accepted;

use super::values::{area, choice, cosine, count, real, vanishing, whole};
use super::{LabelArgs, ReadArgs, ShapeArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise simulate patients.csv --parties 5 --protocol pooled -k 8 --out result
  partwise simulate M.npz --split hospitals.txt --protocol syn-sd -k 8 --audit --out result

Exit code 3: with --audit, an attack exceeds --max-auc.";

/// The options that `-h` shows.
pub const COMMON: &[&str] =
    &["records", "parties", "split", "rank", "protocol", "seed", "rounds", "audit", "out", "force"];

#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Matrix of all parties together, in any format that `factorize` reads
    pub file: PathBuf,
    #[command(flatten, next_help_heading = "Input")]
    pub read: ReadArgs,
    #[command(flatten, next_help_heading = "Input")]
    pub labels: LabelArgs,
    #[command(flatten, next_help_heading = "Input")]
    pub shape: ShapeArgs,
    /// Whether records (samples, such as patients) are rows or columns
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows", value_name = "SIDE", help_heading = "Input")]
    pub records: Side,

    /// Number of parties [default: as many as --split FILE names]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "N", help_heading = "Parties")]
    pub parties: Option<usize>,
    /// Who has which records: uniform, first=0.5 or a file with a party per line
    #[arg(long, default_value = "uniform", value_name = "HOW", help_heading = "Parties")]
    pub split: String,
    /// Relative time that each party needs for the same work, such as 1,1,4
    #[arg(long, value_delimiter = ',', value_parser = real, allow_hyphen_values = true, value_name = "X,...", help_heading = "Parties")]
    pub speeds: Vec<f64>,
    /// Simulated network between parties and coordinator [default: 1Gbit/s,5ms]
    #[arg(long, value_name = "NETWORK", help_heading = "Parties")]
    pub network: Option<Network>,
    /// Disconnect a party after some sums, such as 3@20
    #[arg(long, value_parser = vanishing, value_name = "PARTY@SUMS", help_heading = "Parties")]
    pub lose: Option<(u16, u64)>,

    /// Number of components, k
    #[arg(value_parser = count, allow_negative_numbers = true, short = 'k', long, visible_alias = "components", value_name = "K", help_heading = "Components")]
    pub rank: usize,
    /// Random seed of starting values and sketches
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N", help_heading = "Components")]
    pub seed: u64,

    /// HALS on sums over all parties (pooled), or one of the paper's protocols
    #[arg(long, value_parser = choice(&Protocol::ALL), help_heading = "Method")]
    pub protocol: Protocol,
    /// Local iterations between two exchanges [default: 2; 1 with pooled and dsanls-limited; 50 before the first with few-rounds]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "T2", help_heading = "Method")]
    pub inner: Option<usize>,
    /// Relaxation of asynchronous protocols: update t weighs rho / (rho + t)
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::RHO, value_name = "X", help_heading = "Method")]
    pub rho: f64,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32", help_heading = "Method")]
    pub precision: Precision,

    /// Maximum number of exchanges of the shared factor [default: 500; 10 with few-rounds]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "T1", help_heading = "Stopping")]
    pub rounds: Option<usize>,
    /// Stop when the error changes by less than this share per round; 0: never
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::TOLERANCE, value_name = "X", help_heading = "Stopping")]
    pub tolerance: f64,

    /// Whether contributions are masked (secure) or readable by the coordinator (plain)
    #[arg(long, value_parser = choice(&Aggregation::ALL), default_value = "secure", help_heading = "Security")]
    pub aggregation: Aggregation,
    /// Apply the checks of a federation's parties: leave out rare features, stop if a sum would reveal a record
    #[arg(long, help_heading = "Security")]
    pub safeguards: bool,
    /// Number of parties that may collude with each other and the coordinator
    #[arg(value_parser = count, allow_negative_numbers = true, long, default_value_t = 1, value_name = "C", help_heading = "Security")]
    pub colluders: usize,
    /// Allow two parties: each can compute the other's contribution
    #[arg(long, help_heading = "Security")]
    pub accept_that_two_parties_see_each_other: bool,
    /// Allow --aggregation plain with few records: contributions reveal some of them
    #[arg(long, help_heading = "Security")]
    pub accept_that_plain_shares_show_records: bool,
    /// Allow pooled where a party has no more records than features: membership can be inferred
    #[arg(long, help_heading = "Security")]
    pub accept_that_pooled_sums_show_records: bool,
    /// Continue without a party that left: the difference of two sums is nearly its contribution
    #[arg(long, help_heading = "Security")]
    pub accept_that_going_on_shows_the_leaver: bool,
    /// Allow --sketch subsample with dsanls-limited: it reveals records directly
    #[arg(long, help_heading = "Security")]
    pub accept_that_subsampling_opens_records: bool,
    /// Allow sums over fewer records than half the number of features: membership can be inferred
    #[arg(long, help_heading = "Security")]
    pub accept_that_few_records_show_in_sums: bool,

    /// Attack the messages as each adversary could; write audit.json
    #[arg(long, help_heading = "Audit")]
    pub audit: bool,
    /// Keep all messages in transcript.bin, which is as sensitive as the data
    #[arg(long, help_heading = "Audit")]
    pub record: bool,
    /// Records held out as non-members [default: 20% with --audit or --record]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Audit")]
    pub holdout: Option<Amount>,
    /// Text file with the name of a person per line, one line per record; whole people are held out
    #[arg(long, value_name = "FILE", help_heading = "Audit")]
    pub person: Option<PathBuf>,
    /// Highest cosine of a component and a record that dominates it (else exit code 3)
    #[arg(value_parser = cosine, allow_hyphen_values = true, long, value_name = "X", requires = "audit", help_heading = "Audit")]
    pub max_record_cosine: Option<f64>,
    /// Highest AUC that membership inference may reach (else exit code 3)
    #[arg(value_parser = area, allow_hyphen_values = true, long, value_name = "X", requires = "audit", help_heading = "Audit")]
    pub max_auc: Option<f64>,

    /// Folder for the factors of each party, trace.csv, run.json and report.html
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Replace the results in an existing folder
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Do not write report.html
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Print the record of the run as JSON
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub json: bool,

    /// Kind of sketch [default: subsample; gaussian with dsanls-limited]
    #[arg(long, value_parser = choice(&SketchKind::ALL), help_heading = "Sketched protocols")]
    pub sketch: Option<SketchKind>,
    /// Size of a party's sketched records [default: 10%; 2 k with dsanls-limited]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Sketched protocols")]
    pub sketch_records: Option<Amount>,
    /// Size of the sketched features [default: 10%; 2 k with dsanls-limited]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Sketched protocols")]
    pub sketch_features: Option<Amount>,
    /// Proximal coordinate descent (pcd) or projected gradient descent (pgd)
    #[arg(long, value_parser = choice(&SketchedSolver::ALL), default_value = "pcd", help_heading = "Sketched protocols")]
    pub solver: SketchedSolver,
    /// Damping of the first step [default: 0.1; 2 with pgd]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Sketched protocols")]
    pub alpha: Option<f64>,
    /// Increase of the damping per iteration [default: 0.02; 0.002 with pgd]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Sketched protocols")]
    pub beta: Option<f64>,
    /// Damping relative to the Gram diagonal, or absolute as in the paper
    #[arg(long, value_parser = choice(&Step::ALL), default_value = "unit-free", help_heading = "Sketched protocols")]
    pub step: Step,
}

impl SimulateArgs {
    pub fn settings(&self) -> SecureSettings {
        let (alpha, beta) = self.solver.damping();
        let defaults = SecureSettings::new(self.protocol, self.rank);
        SecureSettings {
            seed: self.seed,
            rounds: self.rounds.unwrap_or(defaults.rounds),
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
