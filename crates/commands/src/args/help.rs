//! Help texts: `--help` shows all options in groups, `-h` only those that most people use.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::{Cli, factorize, party, plan, simulate};

/// Commands with many options, and the options that `-h` shows.
const COMMON: [(&[&str], &[&str]); 4] = [
    (&["factorize"], factorize::COMMON),
    (&["plan"], plan::COMMON),
    (&["simulate"], simulate::COMMON),
    (&["party", "join"], party::COMMON),
];

const ALL_OPTIONS: &str = "Use --help to see all options.";

/// The command line with the help texts that these arguments ask for.
pub fn command(args: &[OsString]) -> Command {
    let short = args.iter().any(|arg| arg == "-h");
    let shortened = |command, (path, common): &(&[&str], &[&str])| shorten(command, path, common);
    match short {
        true => COMMON.iter().fold(Cli::command(), shortened),
        false => Cli::command(),
    }
}

/// Hides the less common options of the subcommand at `path`. Hidden options are parsed all the same.
fn shorten(command: Command, path: &[&str], common: &[&str]) -> Command {
    if let [name, rest @ ..] = path {
        return command.mut_subcommand(name, |inner| shorten(inner, rest, common));
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let shown = |id: &str| common.contains(&id);
    command.after_help(format!("{ALL_OPTIONS}\n\n{examples}")).mut_args(|arg| {
        let hidden = !arg.is_positional() && !shown(arg.get_id().as_str());
        arg.hide(hidden).help_heading(None::<&'static str>)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(command: &'a Command, path: &[&str]) -> &'a Command {
        path.iter().fold(command, |command, name| command.find_subcommand(name).unwrap())
    }

    #[test]
    fn common_options_exist_and_are_at_most_ten() {
        for (path, common) in COMMON {
            let command = Cli::command();
            let known: Vec<&str> =
                find(&command, path).get_arguments().map(|arg| arg.get_id().as_str()).collect();
            assert!(common.len() <= 10, "{path:?}");
            assert!(common.iter().all(|id| known.contains(id)), "{path:?}");
        }
    }

    #[test]
    fn commands_without_a_short_help_have_at_most_twelve_options() {
        let mut rest = vec![(Vec::new(), Cli::command())];
        while let Some((path, command)) = rest.pop() {
            let short = COMMON.iter().any(|(common, _)| path.iter().eq(common.iter()));
            assert!(short || command.get_arguments().count() <= 12, "{path:?}");
            for inner in command.get_subcommands() {
                let path = path.iter().cloned().chain([inner.get_name().to_string()]).collect();
                rest.push((path, inner.clone()));
            }
        }
    }
}
