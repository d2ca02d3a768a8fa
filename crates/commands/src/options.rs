//! Refuses options that would be ignored, before any file is read.
//!
//! The parameters that a method uses are listed with the methods: [`partwise::run::Algorithm::uses`] and
//! [`partwise_secure::protocol::Protocol::uses`].

use std::path::Path;

use anyhow::{Result, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use partwise::io::{FileFormat, Presence};
use partwise::run::Algorithm;

use crate::args::{Cli, Command, FactorizeArgs, PartyCommand, ReadArgs};
use crate::launch::Launched;
use crate::parts;

/// Refuses the first option on the command line that the command would ignore.
pub fn check(cli: &Cli, matches: &ArgMatches, launched: Option<Launched>) -> Result<()> {
    let Some((_, matches)) = matches.subcommand() else { return Ok(()) };
    let ids = matches.ids().map(|id| id.as_str());
    let given: Vec<&str> =
        ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine)).collect();
    match &cli.command {
        Command::Factorize(args) => {
            factorize(args, &given, launched)?;
            if launched.is_none_or(|launched| launched.size < 2) {
                whole(&args.file)?;
            }
            reading(&args.file, &args.read, args.shape.image_shape.is_some())
        }
        Command::Simulate(args) => {
            args.settings().check_given(given)?;
            whole(&args.file)?;
            reading(&args.file, &args.read, args.shape.image_shape.is_some())
        }
        Command::Convert(args) => {
            if args.uncompressed && FileFormat::of(&args.out).is_ok_and(|kind| kind != FileFormat::Npz) {
                bail!("--uncompressed: {} is not an .npz file; leave it out", args.out.display());
            }
            whole(&args.file)?;
            reading(&args.file, &args.read, false)
        }
        Command::Inspect(args) => whole(&args.file).and_then(|()| reading(&args.file, &args.read, false)),
        Command::Evaluate(args) => whole(&args.file).and_then(|()| reading(&args.file, &args.read, false)),
        Command::Transform(args) => whole(&args.file).and_then(|()| reading(&args.file, &args.read, false)),
        Command::Party(PartyCommand::Join(args)) => reading(&args.data, &args.read, false),
        _ => Ok(()),
    }
}

fn factorize(args: &FactorizeArgs, given: &[&str], launched: Option<Launched>) -> Result<()> {
    let processes = launched.map_or(1, |launched| launched.size);
    // `auto` may choose `dsanls`; then the sketch sizes matter for the choice.
    let open = args.algorithm == Algorithm::Auto
        && !args.network.is_empty()
        && args.grid.is_none()
        && args.samples != Presence::Yes
        && args.nodes.max(processes) > 1;
    let sizes = ["sketch_cols", "sketch_rows"];
    let given = || given.iter().copied();
    args.settings().check_given(given().filter(|id| !(open && sizes.contains(id))))?;
    if given().any(|id| id == "reduction") && launched.is_none() {
        bail!(
            "--reduction: this option needs mpirun, because in-process workers always add in order; leave it out"
        );
    }
    if processes > 1 && !args.network.is_empty() && args.algorithm != Algorithm::Auto {
        bail!("--network: under MPI only auto uses it, because clocks are real; leave it out");
    }
    Ok(())
}

/// Refuses the parts of a split matrix outside of an MPI job.
fn whole(file: &Path) -> Result<()> {
    let Ok(text) = std::fs::read(file.join(parts::RECORD)) else { return Ok(()) };
    let split = serde_json::from_slice::<parts::Split>(&text);
    let processes = split.map_or("N".to_string(), |split| split.nodes.to_string());
    let file = file.display();
    bail!(
        "{file} contains parts of a matrix for {processes} processes; use `mpirun -n {processes} partwise factorize \
         {file} ...` with a program built with MPI, or give the original matrix"
    )
}

/// Refuses options for tables and images if the file is neither. With `shaped`, rows or columns are images.
fn reading(file: &Path, args: &ReadArgs, shaped: bool) -> Result<()> {
    // A file of unknown format is refused when it is read.
    let Ok(kind) = FileFormat::of(file) else { return Ok(()) };
    let table = matches!(kind, FileFormat::Csv | FileFormat::Tsv);
    for (name, presence) in [("--header", args.header), ("--row-names", args.row_names)] {
        if presence != Presence::Auto && !table {
            bail!("{name}: {} is not a .csv or .tsv table; leave it out", file.display());
        }
    }
    if args.images.is_some() && kind != FileFormat::Images && !shaped {
        bail!("--images: {} is not a folder or .zip of images; leave it out", file.display());
    }
    Ok(())
}
