//! The command line: one file for each command.

mod audit;
mod calibrate;
mod completions;
mod convert;
mod coordinator;
mod evaluate;
mod experiment;
mod factorize;
mod help;
mod inspect;
mod man;
mod party;
mod plan;
mod provision;
mod ranks;
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
pub use completions::CompletionsArgs;
pub use convert::ConvertArgs;
pub use coordinator::{CoordinatorCommand, CoordinatorInitArgs, CoordinatorRunArgs, SignArgs};
pub use evaluate::EvaluateArgs;
pub use experiment::ExperimentArgs;
pub use factorize::FactorizeArgs;
pub use help::command;
pub use inspect::InspectArgs;
pub use man::ManArgs;
pub use party::{AcceptKeyArgs, JoinArgs, PartyCommand, PartyInitArgs, PartyLedgerArgs, RotateKeyArgs};
pub use plan::PlanArgs;
pub use provision::ProvisionArgs;
pub use ranks::RanksArgs;
pub use reading::{KnownArgs, LabelArgs, ReadArgs, ShapeArgs};
pub use report::ReportArgs;
pub use simulate::SimulateArgs;
pub use split::SplitArgs;
pub use top::TopArgs;
pub use transform::TransformArgs;
pub use values::{Interval, Picture};

/// Nonnegative matrix factorization: finds U and V with M ≈ U Vᵀ and no negative entry.
#[derive(Debug, Parser)]
#[command(name = "partwise", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  partwise factorize M.npz -k 20 --out result
  partwise report result --open";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Factorize a matrix
    #[command(after_help = factorize::EXAMPLES)]
    Factorize(Box<FactorizeArgs>),
    /// Compare numbers of components by held-out loss and stability
    #[command(after_help = ranks::EXAMPLES)]
    Ranks(RanksArgs),
    /// Regenerate the report page of a result
    #[command(after_help = report::EXAMPLES)]
    Report(ReportArgs),
    /// List the strongest features and samples of each component
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Compute the relative error of a result on a matrix
    #[command(after_help = evaluate::EXAMPLES)]
    Evaluate(EvaluateArgs),
    /// Fit new rows or columns to the components of a result
    #[command(after_help = transform::EXAMPLES)]
    Transform(TransformArgs),
    /// Describe a matrix and the memory that factorizing it needs
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(InspectArgs),
    /// Convert a matrix to another file format
    #[command(after_help = convert::EXAMPLES)]
    Convert(ConvertArgs),
    /// Cluster: estimate memory, traffic and time of a factorization
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArgs),
    /// Cluster: split a matrix into one part per MPI process
    #[command(after_help = split::EXAMPLES)]
    Split(SplitArgs),
    /// Cluster: measure this machine and its network for `plan` and `auto`
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(CalibrateArgs),
    /// Federation: simulate all parties on one machine
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Federation: show what left each party and what attacks recover from it
    #[command(after_help = audit::EXAMPLES)]
    Audit(AuditArgs),
    /// Federation: set up and run the coordinator
    #[command(subcommand, after_help = coordinator::EXAMPLES)]
    Coordinator(CoordinatorCommand),
    /// Federation: set up and run a party, which keeps its records
    #[command(subcommand, after_help = party::EXAMPLES)]
    Party(PartyCommand),
    /// Federation: create the keys and files of all parties at once, for trials
    #[command(after_help = provision::EXAMPLES)]
    Provision(ProvisionArgs),
    /// Run an experiment described in a file and draw its charts
    #[command(after_help = experiment::EXAMPLES)]
    Experiment(ExperimentArgs),
    /// Print shell completions
    #[command(after_help = completions::EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write man pages
    #[command(after_help = man::EXAMPLES)]
    Man(ManArgs),
}

impl Command {
    /// Whether the lines on stderr are JSON objects.
    pub fn logs_json(&self) -> bool {
        let line = match self {
            Command::Coordinator(CoordinatorCommand::Run(args)) => &args.line,
            Command::Party(PartyCommand::Join(args)) => &args.line,
            _ => return false,
        };
        line.log == Format::Json
    }
}
