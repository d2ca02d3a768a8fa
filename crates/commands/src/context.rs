//! What every command is given besides its arguments.

use std::path::PathBuf;

use crate::console::Console;
use crate::output::Outputs;

/// How a command talks, and what it is writing.
#[derive(Clone, Default)]
pub struct Context {
    pub console: Console,
    pub outputs: Outputs,
    /// What starts the program again, where that is not the executable of this process.
    pub program: Option<PathBuf>,
}
