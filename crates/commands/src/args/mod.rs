//! The command line: one file for each command.

mod audit;
mod calibrate;
mod convert;
mod coordinator;
mod evaluate;
mod experiment;
mod factorize;
mod inspect;
mod party;
mod plan;
mod provision;
mod reading;
mod report;
mod simulate;
mod split;
mod top;
mod transform;
mod values;

use clap::{Parser, Subcommand};
use partwise_federation::log::Format;

pub use audit::AuditArgs;
pub use calibrate::CalibrateArgs;
pub use convert::ConvertArgs;
pub use coordinator::{CoordinatorCommand, CoordinatorInitArgs, CoordinatorRunArgs, SignArgs};
pub use evaluate::EvaluateArgs;
pub use experiment::ExperimentArgs;
pub use factorize::FactorizeArgs;
pub use inspect::InspectArgs;
pub use party::{AcceptKeyArgs, JoinArgs, PartyCommand, PartyInitArgs, PartyLedgerArgs, RotateKeyArgs};
pub use plan::PlanArgs;
pub use provision::ProvisionArgs;
pub use reading::{LabelArgs, ReadArgs, ShapeArgs};
pub use report::ReportArgs;
pub use simulate::SimulateArgs;
pub use split::SplitArgs;
pub use top::TopArgs;
pub use transform::TransformArgs;
pub use values::{Interval, Picture};

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
    #[command(after_help = factorize::EXAMPLES)]
    Factorize(Box<FactorizeArgs>),
    /// Write a matrix in another format, exactly
    #[command(after_help = convert::EXAMPLES)]
    Convert(ConvertArgs),
    /// Part a matrix into a folder with a part for each rank of a job, on a cluster
    #[command(after_help = split::EXAMPLES)]
    Split(SplitArgs),
    /// Show a matrix's size, density, range and the memory that a factorization needs
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(InspectArgs),
    /// Recompute the relative error of a result on a matrix
    #[command(after_help = evaluate::EXAMPLES)]
    Evaluate(EvaluateArgs),
    /// Fit new rows (or columns) to the fixed factors of a result, exactly
    #[command(after_help = transform::EXAMPLES)]
    Transform(TransformArgs),
    /// Run a federation on one machine: parties that keep their records share one factor of the features
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// What left each party of a recorded simulation, who could read it, and what attackers make of it; or what left a
    /// party of a federation, by its ledger
    #[command(after_help = audit::EXAMPLES)]
    Audit(AuditArgs),
    /// Regenerate the report page of a run: components, samples, error curve, time, traffic
    #[command(after_help = report::EXAMPLES)]
    Report(ReportArgs),
    /// Run what a file describes, and draw it: the figures of the paper
    #[command(after_help = experiment::EXAMPLES)]
    Experiment(ExperimentArgs),
    /// The centre of a federation: its certificates, and the sums of its parties
    #[command(subcommand, after_help = coordinator::EXAMPLES)]
    Coordinator(CoordinatorCommand),
    /// One organisation of a federation, which keeps its records
    #[command(subcommand, after_help = party::EXAMPLES)]
    Party(PartyCommand),
    /// Make all keys and files of a federation at once, for trials
    #[command(after_help = provision::EXAMPLES)]
    Provision(ProvisionArgs),
    /// List each component's strongest features and samples
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Say what a factorization will take on a cluster: memory, bytes and seconds, the best method and grid
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArgs),
    /// Measure this machine, and under mpirun the network, for `plan` and `auto`
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(CalibrateArgs),
}

impl Command {
    /// Whether its lines on stderr are to be JSON objects.
    pub fn logs_json(&self) -> bool {
        let line = match self {
            Command::Coordinator(CoordinatorCommand::Run(args)) => &args.line,
            Command::Party(PartyCommand::Join(args)) => &args.line,
            _ => return false,
        };
        line.log == Format::Json
    }
}
