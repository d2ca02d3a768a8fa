//! Arguments of `partwise simulate`.

use std::path::PathBuf;

use clap::Args;
use partwise::Precision;
use partwise::comm::Network;
use partwise::run::{Amount, Side, SketchedSolver, Step};
use partwise::sketch::SketchKind;
use partwise_secure::protocol::{Aggregation, Protocol, Settings as SecureSettings};
use partwise_secure::risk::Accepted;

use super::values::{area, choice, count, real, vanishing, whole};
use super::{LabelArgs, ReadArgs, ShapeArgs};

pub const EXAMPLES: &str = "\
Examples:
  partwise simulate patients.csv --parties 5 --protocol pooled --rank 8 --out result
  partwise simulate M.npz --parties 6 --protocol asyn-ssd-v --split first=0.5 --speeds 1,1,4 --rank 20 --out result
  partwise simulate M.npy --records columns --split hospitals.txt --protocol syn-sd --rank 8 --out result
  partwise simulate M.npz --parties 5 --protocol syn-sd --rank 8 --audit --max-auc 0.6 --out result";

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
    #[arg(long, value_parser = choice(&Side::ALL), default_value = "rows", value_name = "SIDE", help_heading = "Parties")]
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

    /// Method: HALS on the pooled matrix (pooled), the same in a few exchanges (few-rounds), the paper's synchronous (syn-) and asynchronous (asyn-) methods, or
    /// DSANLS that stops before its sketches determine a record (dsanls-limited)
    #[arg(long, value_parser = choice(&Protocol::ALL), help_heading = "Method")]
    pub protocol: Protocol,
    /// T1: exchanges of the shared factor at most (asynchronous: of each group, on average)
    /// [default: 500; few-rounds has 10]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "T1", help_heading = "Method")]
    pub rounds: Option<usize>,
    /// T2, or T of the asynchronous methods: local iterations between two exchanges
    /// [default: 2; pooled and dsanls-limited have 1, few-rounds has 50 before its first exchange]
    #[arg(value_parser = count, allow_negative_numbers = true, long, value_name = "T2", help_heading = "Method")]
    pub inner: Option<usize>,
    /// Relaxation of the asynchronous methods: update t weighs rho / (rho + t)
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::RHO, value_name = "X", help_heading = "Method")]
    pub rho: f64,
    /// Kind of sketch, with the sketched methods [default: subsample; with dsanls-limited gaussian]
    #[arg(long, value_parser = choice(&SketchKind::ALL), help_heading = "Method")]
    pub sketch: Option<SketchKind>,
    /// What a party's records are sketched to: a share (0.1, 10%) or a number
    /// [default: a tenth, at least 4 k; with dsanls-limited 2 k]
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_records: Option<Amount>,
    /// What the features are sketched to, likewise
    #[arg(allow_negative_numbers = true, long, value_name = "AMOUNT", help_heading = "Method")]
    pub sketch_features: Option<Amount>,
    /// Solver of sketched subproblems
    #[arg(long, value_parser = choice(&SketchedSolver::ALL), default_value = "pcd", help_heading = "Method")]
    pub solver: SketchedSolver,
    /// Damping of the sketched step, (alpha + beta t) g: its beginning [default: 0.1; with pgd 2]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub alpha: Option<f64>,
    /// ... and its growth an iteration [default: 0.02; with pgd 0.002]
    #[arg(value_parser = real, allow_hyphen_values = true, long, value_name = "X", help_heading = "Method")]
    pub beta: Option<f64>,
    /// Units of the damping: free of units, or the paper's
    #[arg(long, value_parser = choice(&Step::ALL), default_value = "unit-free", help_heading = "Method")]
    pub step: Step,
    /// Stop when the error moved by no more than this share of itself a round, over 10 rounds; 0: never
    /// (the asynchronous methods do all rounds)
    #[arg(value_parser = real, allow_hyphen_values = true, long, default_value_t = SecureSettings::TOLERANCE, value_name = "X", help_heading = "Method")]
    pub tolerance: f64,
    /// Seed of the shared factor's start and of sketches, and in a simulation of each party's own factor
    #[arg(value_parser = whole, allow_negative_numbers = true, long, default_value_t = 0, value_name = "N", help_heading = "Method")]
    pub seed: u64,
    /// Floating-point type of the factors and the arithmetic
    #[arg(long, value_parser = choice(&Precision::ALL), default_value = "f32", help_heading = "Method")]
    pub precision: Precision,

    /// How shares travel: masked, so that those who follow the protocol see sums alone (secure), or as they are (plain)
    #[arg(long, value_parser = choice(&Aggregation::ALL), default_value = "secure", help_heading = "Security")]
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

    /// Check what a party of a federation checks by default: leave out rare features, and stop where a single record
    /// would show in what is uploaded
    #[arg(long, help_heading = "Parties")]
    pub safeguards: bool,

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
