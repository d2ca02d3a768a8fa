//! Experiments: a file describes the runs and the charts, the program is started for each run, and the results
//! become tables, charts and a page.

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

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run was interrupted by Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// A file that cannot be read or written.
    #[error("{}: {problem}; check the path and the free space", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's message.
        problem: std::io::Error,
    },
    /// An invalid description.
    #[error("{}: {problem}", path.display())]
    Description {
        /// Which.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// A run that failed.
    #[error("{run}: {said}; finished runs are kept, so correct the problem and run the command again")]
    Run {
        /// Its panel, method and nodes.
        run: String,
        /// The program's message.
        said: String,
    },
    /// A run whose results cannot be read.
    #[error("{}: {problem}; remove that folder and run the command again", folder.display())]
    Results {
        /// The folder of the run.
        folder: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A run of a later version of the program.
    #[error(transparent)]
    Record(partwise::Error),
    /// None of the panels has its data.
    #[error("none of the matrices is in {}: {names}; give the folder that has them", folder.display())]
    NoData {
        /// The data folder.
        folder: PathBuf,
        /// Which.
        names: String,
    },
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.into();
    |problem| Error::File { path, problem }
}
