//! The errors of the library, with the data that users need to correct them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::wording::Wording;

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the library; each message names the place and gives advice. Fields are named as in the settings;
/// [`Error::wording`] marks them for front ends with other names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("{}: {source}; {}", path.display(), io_cure(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// The content of a file does not match its name, or is damaged.
    #[error("{}{problem}", begin_format(path, place))]
    Format {
        /// The file.
        path: PathBuf,
        /// Where in the file (header, line 3, member data.npy, ...).
        place: String,
        /// The problem and its remedy.
        problem: Wording,
    },
    /// An entry that cannot be factorized.
    #[error("{}{cure}", begin_entry(path, *row, *column, value))]
    Entry {
        /// The file.
        path: PathBuf,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The entry as text.
        value: String,
        /// The remedy.
        cure: Wording,
    },
    /// Something does not fit in memory, which is detected before it is allocated.
    #[error("{}{cure}", begin_memory(what, *needed, *available))]
    Memory {
        /// The object.
        what: String,
        /// The bytes that it needs.
        needed: u64,
        /// The available bytes.
        available: u64,
        /// The remedy.
        cure: Wording,
    },
    /// A parameter out of its range.
    #[error("{name}: {problem}")]
    Parameter {
        /// The parameter, by its name in the settings (`rank`).
        name: String,
        /// The problem and its remedy.
        problem: Wording,
    },
    /// Another rank ended before this one received its answer.
    #[error("process {rank} lost its connection to process {peer}, whose own message says why")]
    RankLost {
        /// The rank that noticed it.
        rank: usize,
        /// The rank that ended.
        peer: usize,
    },
    /// The network between ranks, or its library, failed.
    #[error(
        "process {rank}: {call} failed ({problem}); if no other process gives a reason, see the messages of mpirun"
    )]
    Transport {
        /// The rank that noticed it.
        rank: usize,
        /// The call that failed.
        call: &'static str,
        /// The library's message.
        problem: String,
    },
    /// Two ranks no longer run the same program.
    #[error(
        "process {rank} received {got} from process {peer} but expected {expected}; this is a bug in Partwise, please \
         report it"
    )]
    Protocol {
        /// The rank that noticed it.
        rank: usize,
        /// The rank that sent the message.
        peer: usize,
        /// The received message.
        got: String,
        /// The expected message.
        expected: String,
    },
    /// A rank's part of a matrix is unusable.
    #[error("{}: {problem}", path.display())]
    Part {
        /// The file, or the folder of all parts.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// An error that all ranks of a job know: that of the first rank with an error.
    #[error("{problem}")]
    Agreed {
        /// The message of that rank's error.
        problem: Wording,
    },
    /// A `run.json` that is not the record of a run.
    #[error("{}: not the record of a run ({problem}); run it again", path.display())]
    DamagedRecord {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: serde_json::Error,
    },
    /// A `run.json` of a later version of the program.
    #[error(
        "{}: written by Partwise {version} in format {format}, but this program reads formats up to {}; update \
         Partwise", path.display(), crate::run::record::FORMAT_VERSION
    )]
    NewerRecord {
        /// The file.
        path: PathBuf,
        /// The format of the record.
        format: u32,
        /// The version of the program that wrote it.
        version: String,
    },
    /// The computation was cancelled ([`crate::cancel::Cancel`]).
    #[error("interrupted")]
    Interrupted,
    /// An iterate is not finite.
    #[error(
        "the factors overflowed at iteration {iteration}; use double precision, rescale the matrix, or increase the \
         damping of sketched steps"
    )]
    Diverged {
        /// The iteration at which it was noticed.
        iteration: usize,
    },
}

impl Error {
    /// An [`Error::Io`] for `path`, as a closure for `map_err`.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io { path, source }
    }

    /// An [`Error::Format`].
    pub fn format(path: impl AsRef<Path>, place: impl Into<String>, problem: impl Into<Wording>) -> Error {
        Error::Format { path: path.as_ref().to_path_buf(), place: place.into(), problem: problem.into() }
    }

    /// An [`Error::Parameter`].
    pub fn parameter(name: impl Into<String>, problem: impl Into<Wording>) -> Error {
        Error::Parameter { name: name.into(), problem: problem.into() }
    }

    /// An [`Error::Parameter`] for a parameter that the chosen method would ignore, with the methods that use it.
    pub fn unused<M: Serialize>(parameter: &str, method: M, users: &[M]) -> Error {
        let name = |method: &M| match serde_json::to_value(method) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::new(),
        };
        let users: Vec<String> = users.iter().map(name).collect();
        let users = match &users[..] {
            [] => String::new(),
            [one] => format!(", or choose {one}"),
            [first @ .., last] => format!(", or choose {} or {last}", first.join(", ")),
        };
        let problem = format!("{} does not use it; leave it out{users}", name(&method));
        Error::parameter(parameter, problem)
    }

    /// The message with its fields marked.
    pub fn wording(&self) -> Wording {
        match self {
            Error::Format { path, place, problem } => {
                Wording::new(begin_format(path, place)).then(problem.clone())
            }
            Error::Entry { path, row, column, value, cure } => {
                Wording::new(begin_entry(path, *row, *column, value)).then(cure.clone())
            }
            Error::Memory { what, needed, available, cure } => {
                Wording::new(begin_memory(what, *needed, *available)).then(cure.clone())
            }
            Error::Parameter { name, problem } => {
                Wording::default().field(name.clone()).text(": ").then(problem.clone())
            }
            Error::Agreed { problem } => problem.clone(),
            others => others.to_string().into(),
        }
    }
}

fn begin_format(path: &Path, place: &str) -> String {
    format!("{}, {place}: ", path.display())
}

fn begin_entry(path: &Path, row: usize, column: usize, value: &str) -> String {
    format!("{}: row {}, column {} (counted from 1) is {value}; ", path.display(), row + 1, column + 1)
}

fn begin_memory(what: &str, needed: u64, available: u64) -> String {
    format!("{what} needs {} of memory, but {} is available; ", human_bytes(needed), human_bytes(available))
}

/// The remedy for an error of the operating system.
fn io_cure(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "check the path",
        ErrorKind::PermissionDenied => "check its permissions",
        ErrorKind::StorageFull => "free space there",
        _ => "check the path, the permissions and the free space",
    }
}

/// `1536` as `1.5 KiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let exponent = (bytes.max(1).ilog2() / 10) as usize;
    if exponent == 0 {
        return format!("{bytes} B");
    }
    format!("{:.1} {}", bytes as f64 / (1u64 << (10 * exponent)) as f64, UNITS[exponent])
}
