//! `partwise completions` and `partwise man`: generated from the definitions of the command line.

use anyhow::{Result, anyhow};
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::context::Context;

pub fn run(args: &CompletionsArgs, context: &Context) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "partwise", &mut script);
    context.console.answer(&String::from_utf8(script)?)
}

pub fn man(args: &ManArgs, context: &Context) -> Result<()> {
    let dir = args.dir.display();
    let failed = |error| anyhow!("{dir}: cannot write man pages: {error}; choose another folder");
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    context.console.answer(&format!("man pages written to {dir}"))
}
