//! Options that were given but would be ignored are refused, before anything is read.
//!
//! Which parameters a method uses is listed with the methods: [`partwise::run::Algorithm::uses`] and
//! [`partwise_secure::protocol::Protocol::uses`].

use std::path::Path;

use anyhow::{Result, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use partwise::io::{Kind, Presence};
use partwise::run::Algorithm;

use crate::args::{Cli, Command, FactorizeArgs, ReadArgs};
use crate::federation_args::PartyCommand;
use crate::launch::Launched;

/// Refuses the first option on the command line that the command would ignore.
pub fn check(cli: &Cli, matches: &ArgMatches, launched: Option<Launched>) -> Result<()> {
    let Some((_, matches)) = matches.subcommand() else { return Ok(()) };
    let ids = matches.ids().map(|id| id.as_str());
    let given: Vec<&str> =
        ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine)).collect();
    match &cli.command {
        Command::Factorize(args) => {
            factorize(args, &given, launched)?;
            reading(&args.file, &args.read, args.shape.image_shape.is_some())
        }
        Command::Simulate(args) => {
            args.settings().check_given(given)?;
            reading(&args.file, &args.read, args.shape.image_shape.is_some())
        }
        Command::Convert(args) => {
            if args.uncompressed && Kind::of(&args.out).is_ok_and(|kind| kind != Kind::Npz) {
                bail!("--uncompressed: {} is not an .npz file; leave it out", args.out.display());
            }
            reading(&args.file, &args.read, false)
        }
        Command::Inspect(args) => reading(&args.file, &args.read, false),
        Command::Evaluate(args) => reading(&args.file, &args.read, false),
        Command::Transform(args) => reading(&args.file, &args.read, false),
        Command::Party(PartyCommand::Join(args)) => reading(&args.data, &args.read, false),
        _ => Ok(()),
    }
}

fn factorize(args: &FactorizeArgs, given: &[&str], launched: Option<Launched>) -> Result<()> {
    let processes = launched.map_or(1, |launched| launched.size);
    // Where `auto` may turn out to be `dsanls`, the sizes of the sketches take part in the choice.
    let open = args.algorithm == Algorithm::Auto
        && !args.network.is_empty()
        && args.grid.is_none()
        && args.nodes.max(processes) > 1;
    let sizes = ["sketch_cols", "sketch_rows"];
    let given = || given.iter().copied();
    args.settings().check_given(given().filter(|id| !(open && sizes.contains(id))))?;
    if given().any(|id| id == "reduction") && launched.is_none() {
        bail!(
            "--reduction: workers within one process always add up in their order; leave it out, or use mpirun"
        );
    }
    if processes > 1 && !args.network.is_empty() && args.algorithm != Algorithm::Auto {
        bail!("--network: under MPI, where clocks are real, only auto uses it; leave it out");
    }
    Ok(())
}

/// Options of text tables and of images, where the file is neither. Where `shaped`, rows or columns are images.
fn reading(file: &Path, args: &ReadArgs, shaped: bool) -> Result<()> {
    // A file of an unknown kind is refused when it is read.
    let Ok(kind) = Kind::of(file) else { return Ok(()) };
    let table = matches!(kind, Kind::Csv | Kind::Tsv);
    for (name, presence) in [("--header", args.header), ("--row-names", args.row_names)] {
        if presence != Presence::Auto && !table {
            bail!("{name}: {} is not a .csv or .tsv table; leave it out", file.display());
        }
    }
    if args.images.is_some() && kind != Kind::Images && !shaped {
        bail!("--images: {} is not a folder or .zip of images; leave it out", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};
    use partwise_experiment::{Experiment, Scope};

    use super::*;

    /// The refusal of a command line, if it is refused.
    fn refused(words: &[String]) -> Option<String> {
        let matches = Cli::command().try_get_matches_from(words).unwrap();
        let cli = Cli::from_arg_matches(&matches).unwrap();
        check(&cli, &matches, None).err().map(|error| error.to_string())
    }

    #[test]
    fn experiments_give_no_option_that_is_ignored() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for entry in std::fs::read_dir(folder).unwrap() {
            let experiment = Experiment::read(&entry.unwrap().path()).unwrap();
            let scope = Scope { quick: false, cores: 2 };
            for run in experiment.runs(scope) {
                let words = experiment.arguments(&run, Path::new("M.npy"), scope, None);
                let words = [&["partwise".to_string()][..], &words, &["--out".into(), "x".into()]].concat();
                assert_eq!(refused(&words), None, "{words:?}");
            }
        }
    }

    #[test]
    fn defaults_are_not_options_that_were_given() {
        for words in ["factorize M.npy --rank 3 --out x", "simulate M.npy --protocol pooled --rank 3 --out x"]
        {
            let words: Vec<String> = format!("partwise {words}").split(' ').map(String::from).collect();
            assert_eq!(refused(&words), None);
        }
    }
}
