//! The context that every command receives in addition to its arguments.

use std::path::PathBuf;

use crate::console::Console;
use crate::output::Outputs;

/// The console, and the outputs that are being written.
#[derive(Clone, Default)]
pub struct Context {
    pub console: Console,
    pub outputs: Outputs,
    /// The command that starts the program again, if it is not the executable of this process.
    pub program: Option<PathBuf>,
}
