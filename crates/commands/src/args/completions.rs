//! Arguments of `partwise completions`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::Shell;

pub const EXAMPLES: &str = "\
Examples:
  partwise completions bash > ~/.local/share/bash-completion/completions/partwise
  partwise completions fish > ~/.config/fish/completions/partwise.fish";

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_parser = PossibleValuesParser::new(["bash", "zsh", "fish", "powershell"]).try_map(|name| name.parse::<Shell>()))]
    pub shell: Shell,
}
