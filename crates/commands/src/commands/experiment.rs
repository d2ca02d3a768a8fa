//! `partwise experiment`: runs an experiment that a file describes, and draws its charts.

use anyhow::{Result, anyhow, bail};
use partwise_experiment::{Error, Experiment, Scope, Stage, perform, search, write};

use crate::args::ExperimentArgs;
use crate::context::Context;
use crate::interrupt::Interrupted;
use crate::{machine, output};

pub fn run(args: &ExperimentArgs, context: &Context) -> Result<()> {
    let experiment = Experiment::read(&args.file)?;
    if let Some(name) = args.only.iter().find(|name| !is_panel(&experiment, name)) {
        let names: Vec<&str> = experiment.panels.iter().map(|panel| panel.name.as_str()).collect();
        bail!("--only: {} has no panel {name}; it has {}", args.file.display(), names.join(", "));
    }
    let runs = args.out.join("runs");
    if args.out.exists()
        && !runs.exists()
        && std::fs::read_dir(&args.out).map_or(true, |mut all| all.next().is_some())
    {
        bail!(
            "{} already exists and is not the folder of an experiment; choose another --out",
            args.out.display()
        );
    }
    if !args.out.exists() {
        output::check_new_folder(&args.out)?;
    }
    let program = context.program.clone().map_or_else(std::env::current_exe, Ok)?;
    let stage = Stage {
        program: &program,
        data: &args.data,
        out: &args.out,
        scope: Scope { quick: args.quick, cores: machine::cores() },
        jobs: args.jobs.unwrap_or_else(machine::cores),
        only: &args.only,
    };
    std::fs::create_dir_all(&runs)?;
    let tell = |line: &str| {
        if !args.quiet {
            context.console.tell(line);
        }
    };
    if args.search {
        let lines = search(&experiment, &stage, &tell).map_err(explain)?;
        let target = args.out.join("search.csv");
        return context
            .outputs
            .write_whole(&target, "--out", |file| file.write_all((lines.join("\n") + "\n").as_bytes()));
    }
    let done = perform(&experiment, &stage, &tell).map_err(explain)?;
    write(&experiment, &done, &args.out)?;
    tell(&format!("written to {}", args.out.join("index.html").display()));
    Ok(())
}

/// An error in the program's words. Ctrl-C reaches the runs and the experiment in any order, and the exit
/// code is the same in either case.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => Interrupted.into(),
        error @ Error::NoData { .. } => anyhow!("--data: {error}"),
        error => error.into(),
    }
}

fn is_panel(experiment: &Experiment, name: &str) -> bool {
    experiment.panels.iter().any(|panel| panel.name.eq_ignore_ascii_case(name))
}
