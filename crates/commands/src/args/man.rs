//! Arguments of `partwise man`.

use std::path::PathBuf;

use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  partwise man ~/.local/share/man/man1
  partwise man man";

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder for partwise.1 and one page per command; existing pages are replaced
    pub dir: PathBuf,
}
