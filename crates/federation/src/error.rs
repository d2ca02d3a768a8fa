//! The errors of federations, with the data that users need to correct them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use partwise::wording::Wording;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate. Fields are named as in the settings; [`Error::wording`] marks them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the secure protocols.
    #[error(transparent)]
    Secure(#[from] partwise_secure::Error),
    /// An error of the core library.
    #[error(transparent)]
    Core(#[from] partwise::Error),
    /// An unusable file.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// The coordinator proposes something that this party does not allow.
    #[error(
        "the coordinator proposes {asked}, but {file} allows {allowed}; change one of them (nothing was shared)"
    )]
    Policy {
        /// The file with the policy.
        file: String,
        /// The proposed setting.
        asked: String,
        /// The allowed setting.
        allowed: String,
    },
    /// The parties disagree on the settings of the run.
    #[error("{who} and this party disagree on {what}; correct it and start again (nothing was shared)")]
    Disagreement {
        /// The other party.
        who: String,
        /// The differing setting.
        what: String,
    },
    /// The coordinator refuses this party.
    #[error("the coordinator refused this party: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// A connection that cannot be established.
    #[error("{what}: {problem}")]
    Network {
        /// The other end.
        what: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// An address beyond this machine, without certificates.
    #[error("{}", exposed(peer, address))]
    Exposed {
        /// The participant whose address it is.
        peer: &'static str,
        /// The address.
        address: String,
    },
    /// The status page cannot be served.
    #[error("{}", status(address, problem))]
    Status {
        /// The address of the page.
        address: SocketAddr,
        /// The problem.
        problem: String,
    },
    /// A risk that was not accepted.
    #[error("{}", risk(problem, cure, accept))]
    Risk {
        /// What others would learn.
        problem: String,
        /// How to avoid it.
        cure: Wording,
        /// The name of the risk in the configuration files.
        accept: String,
    },
    /// The coordinator violates the protocol.
    #[error("the coordinator sent {problem}; this party stops, find out why before it runs again")]
    Dishonest {
        /// The violation.
        problem: String,
    },
    /// State that does not match the run.
    #[error("{problem}")]
    State {
        /// The problem and its remedy.
        problem: String,
    },
}

impl Error {
    /// An error about a file.
    pub fn file(path: impl AsRef<Path>, problem: impl Into<String>) -> Error {
        Error::File { path: path.as_ref().into(), problem: problem.into() }
    }

    /// The message with its fields marked.
    pub fn wording(&self) -> Wording {
        match self {
            Error::Secure(error) => error.wording(),
            Error::Core(error) => error.wording(),
            Error::Exposed { peer, address } => exposed(peer, address),
            Error::Status { address, problem } => status(address, problem),
            Error::Risk { problem, cure, accept } => risk(problem, cure, accept),
            others => others.to_string().into(),
        }
    }

    /// An operating system's error about a file.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Error {
        move |error| Error::file(path, format!("{error}; {}", cure(&error)))
    }
}

fn exposed(peer: &str, address: &str) -> Wording {
    Wording::default().field("insecure").text(format!(
        " with the {peer} {address}: is refused, since others could read along; use a loopback address or certificates"
    ))
}

fn status(address: &SocketAddr, problem: &str) -> Wording {
    Wording::default().field("status_address").text(format!(" {address}: {problem}; choose another"))
}

fn risk(problem: &str, cure: &Wording, accept: &str) -> Wording {
    let accepting = format!(", or accept it with accept = [\"{accept}\"] in every file");
    Wording::new(format!("{problem}; ")).then(cure.clone()).text(accepting)
}

fn cure(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            "free space there and start again; the run resumes where it stopped"
        }
        std::io::ErrorKind::NotFound => "check the name",
        std::io::ErrorKind::PermissionDenied => "check who may use it",
        std::io::ErrorKind::AlreadyExists => "choose another name, or remove it first",
        _ => "correct it and start again",
    }
}
