//! Experiments: a file says what to run and what to draw, the program is started for each run, and what came out of it
//! becomes tables, charts and a page.

mod describe;
mod draw;
mod plan;
mod results;
mod runner;

use std::path::PathBuf;

pub use describe::Experiment;
pub use draw::write;
pub use plan::{Planned, Scope};
pub use results::Done;
pub use runner::{Stage, perform, search};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run was interrupted by Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// A file that cannot be read or written.
    #[error("{}: {problem}; check that it is there and that there is room", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
    /// A description that cannot be followed.
    #[error("{}: {problem}", path.display())]
    Description {
        /// Which.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A run that failed.
    #[error("{run}: {said}; what is finished is kept: call it again after a correction")]
    Run {
        /// Its panel, method and nodes.
        run: String,
        /// What the program said.
        said: String,
    },
    /// A run whose results cannot be read.
    #[error("{}: {problem}; remove that folder and call it again", folder.display())]
    Results {
        /// Where they are.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A run that a later version of the program left.
    #[error(transparent)]
    Record(partwise::Error),
    /// None of the panels has its data.
    #[error("none of the matrices is in {}: {names}; give the folder that has them", folder.display())]
    NoData {
        /// Where they were looked for.
        folder: PathBuf,
        /// Which.
        names: String,
    },
}

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.into();
    |problem| Error::File { path, problem }
}
