//! Everything in the program `partwise` except its start: arguments, commands, progress and folders. The way to
//! join an MPI job is passed in, so that the programs with and without MPI use the same library.

mod args;
mod checkpoint;
mod commands;
mod console;
mod constants;
mod context;
mod fits;
mod flags;
mod folder;
mod input;
mod interrupt;
pub mod launch;
mod machine;
mod options;
mod output;
mod parts;
mod progress;
mod report;
mod request;
mod results;
mod warnings;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use commands::audit::OverLimit;
use commands::cluster::Agreed;
use console::Console;
use context::Context;
use interrupt::{INTERRUPTED, Interrupted};
use launch::{Job, Join, Launched};
use partwise::comm::Comm;
use partwise_federation::party::{Hooks, NoHooks};

/// Exit code of every failure, bad arguments included.
pub const FAILURE: u8 = 2;

/// Exit code of an audit that exceeds its limit.
const OVER_LIMIT: u8 = 3;

/// Runs the program with its command line. Without `join` it runs in one process.
pub fn run(join: Option<Join>) -> ExitCode {
    run_with(std::env::args_os().collect(), join, &(Arc::new(NoHooks) as Arc<dyn Hooks>))
}

/// Runs the program with these arguments, the first of which is its name. `hooks` are those of `party join`.
pub fn run_with(args: Vec<OsString>, join: Option<Join>, hooks: &Arc<dyn Hooks>) -> ExitCode {
    ExitCode::from(exit_code(args, join, hooks, None))
}

/// Runs the program within another one, which can start it again by `program`. Returns its exit code.
pub fn run_embedded(args: Vec<OsString>, program: PathBuf) -> u8 {
    exit_code(args, None, &(Arc::new(NoHooks) as Arc<dyn Hooks>), Some(program))
}

fn exit_code(
    args: Vec<OsString>,
    join: Option<Join>,
    hooks: &Arc<dyn Hooks>,
    program: Option<PathBuf>,
) -> u8 {
    let launched = launch::launched();
    let mut context = Context { program, ..Context::default() };
    if launched.is_some_and(|launched| launched.rank > 0) {
        context.console = Console::silent();
    }
    let parsed = args::command(&args)
        .try_get_matches_from(&args)
        .and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error)
            if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            return fail_before_mpi(context.console, &usage_error(&error, &args), launched);
        }
        // Help and version.
        Err(error) => error.exit(),
    };
    // These save what they have when they are interrupted.
    let listening = match cli.command {
        Command::Factorize(_) | Command::Ranks(_) => Ok(()),
        _ => interrupt::end_at_once(&context.outputs),
    };
    let checked = listening.and_then(|()| options::check(&cli, &matches, launched));
    let job = match checked.and_then(|()| launch::join(launched, &cli.command, join)) {
        Ok(job) => job,
        Err(error) => return fail_before_mpi(context.console, &flags::words(&error), launched),
    };
    if cli.command.logs_json() {
        context.console = context.console.in_json();
    }
    let result = perform(&cli.command, &context, job.as_ref().map(|job| job.comm()), hooks);
    let code = conclude(result, context.console, job.as_deref());
    if let Some(job) = job {
        job.leave();
    }
    code
}

/// Runs a command.
fn perform(
    command: &Command,
    context: &Context,
    comm: Option<&dyn Comm>,
    hooks: &Arc<dyn Hooks>,
) -> anyhow::Result<()> {
    match command {
        Command::Factorize(args) => commands::factorize::run(args, context, comm),
        Command::Ranks(args) => commands::ranks::run(args, context),
        Command::Convert(args) => commands::convert::run(args, context),
        Command::Split(args) => commands::split::run(args, context),
        Command::Inspect(args) => commands::inspect::run(args, context),
        Command::Evaluate(args) => commands::evaluate::run(args, context),
        Command::Transform(args) => commands::transform::run(args, context),
        Command::Simulate(args) => commands::simulate::run(args, context, comm),
        Command::Audit(args) => commands::audit::run(args, context),
        Command::Report(args) => commands::report::run(args, context),
        Command::Experiment(args) => commands::experiment::run(args, context),
        Command::Coordinator(command) => commands::coordinator::run(command, context),
        Command::Party(command) => commands::party::run(command, context, hooks),
        Command::Provision(args) => commands::provision::run(args, context),
        Command::Top(args) => commands::top::run(args, context),
        Command::Plan(args) => commands::plan::run(args, context),
        Command::Calibrate(args) => commands::calibrate::run(args, context, comm),
        Command::Completions(args) => commands::completions::run(args, context),
        Command::Man(args) => commands::completions::man(args, context),
    }
}

/// The exit code of a command, after its error message is printed.
fn conclude(result: anyhow::Result<()>, console: Console, job: Option<&dyn Job>) -> u8 {
    // Library errors include their causes in their messages.
    match result {
        Ok(()) => 0,
        Err(error) if error.is::<OverLimit>() => {
            console.warn(&error.to_string());
            OVER_LIMIT
        }
        Err(error) if error.is::<Interrupted>() => INTERRUPTED,
        Err(error) if error.is::<Agreed>() => fail(console, &error.to_string()),
        Err(error) => {
            // The other processes do not know of the error, and may wait for this one.
            let code = fail(console.speaking(), &flags::words(&error));
            if let Some(job) = job {
                job.abort();
            }
            code
        }
    }
}

/// Prints an error before the MPI processes are connected: process 0 prints before mpirun sees another one end.
fn fail_before_mpi(console: Console, message: &str, launched: Option<Launched>) -> u8 {
    if launched.is_some_and(|launched| launched.rank > 0) {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    fail(console, message)
}

/// Prints an error as one line on stderr.
fn fail(console: Console, message: &str) -> u8 {
    let line: Vec<&str> = message.split(char::is_control).filter(|part| !part.is_empty()).collect();
    console.warn(&format!("error: {}", line.join(" ").trim()));
    FAILURE
}

/// Clap's message with its suggestion, but without the usage block.
fn usage_error(error: &clap::Error, args: &[OsString]) -> String {
    let text = error.to_string();
    let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let mut sentence = first.join(" ").trim_start_matches("error: ").to_string();
    let suggestions =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let suggestion = suggestions.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) => names.first().cloned(),
        _ => None,
    });
    match (foreign(error), suggestion) {
        (Some(hint), _) => sentence.push_str(&format!(" ({hint})")),
        (None, Some(suggestion)) => sentence.push_str(&format!(" (did you mean {suggestion}?)")),
        (None, None) => {}
    }
    format!(
        "{sentence}; see `partwise {}--help`",
        asked_command(args).map_or(String::new(), |name| name + " ")
    )
}

/// A hint for options of other programs that Partwise does not have, or names differently.
fn foreign(error: &clap::Error) -> Option<String> {
    const LOSS: &str = "the loss is always the squared error; leave it out";
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let ours = match given.trim_start_matches('-').replace('_', "-").to_lowercase().as_str() {
        "beta-loss" | "loss" | "objective" => return Some(LOSS.into()),
        "n-components" => "--rank",
        "max-iter" => "--iterations",
        "random-state" => "--seed",
        "n-init" => "--restarts",
        "n-jobs" => "--threads",
        "alpha-w" => "--l1-u or --l2-u",
        "alpha-h" => "--l1-v or --l2-v",
        _ => return None,
    };
    Some(format!("did you mean {ours}?"))
}

/// The command that the user named, if it exists.
fn asked_command(args: &[OsString]) -> Option<String> {
    let name = args.get(1)?.to_str()?;
    Cli::command().find_subcommand(name).map(|_| name.into())
}
