//! The program `partwise`: nonnegative matrix factorization from the command line.

mod args;
mod commands;
mod folder;
mod input;
mod machine;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Cli, Command};

/// Exit code of everything that went wrong, bad arguments included.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error)
            if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            return fail(&first_sentence(&error.to_string()));
        }
        // Help and version, asked for or needed.
        Err(error) => error.exit(),
    };
    let result = match cli.command {
        Command::Factorize(args) => commands::factorize::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Evaluate(args) => commands::evaluate::run(&args),
        Command::Transform(args) => commands::transform::run(&args),
        Command::Top(args) => commands::top::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// One line on stderr, whatever the error.
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {}", message.trim().replace('\n', " "));
    ExitCode::from(FAILURE)
}

/// Clap's message without its usage block, which `--help` shows better.
fn first_sentence(message: &str) -> String {
    let text: Vec<&str> = message.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let text = text.join(" ");
    format!("{}; see `partwise --help`", text.trim_start_matches("error: "))
}
