//! The error type of the crate.

use std::error::Error as StdError;
use std::fmt;

use partwise_core::wording::Field;
use partwise_core::{Error as CoreError, wording::Wording};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: one sentence that says what is wrong, where, and what to do.
///
/// ```
/// use partwise::{ErrorKind, Matrix, Nmf};
///
/// let m = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]])?;
/// let error = Nmf::new(0).fit(&m).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Parameter);
/// assert_eq!(error.parameter(), Some("components"));
/// assert_eq!(error.to_string(), "components: 0 is too few; give 1 or more");
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    parameter: Option<String>,
    sentence: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of errors, for programs that handle them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A parameter is out of range, does not fit the matrix, or is not used by the method.
    /// [`Error::parameter`] returns its name.
    Parameter,
    /// A file or a matrix has invalid content.
    Data,
    /// The operating system refused to read or write.
    Io,
    /// Something does not fit in memory, which is detected before it is allocated.
    Memory,
    /// The computation was cancelled by a [`CancelToken`](crate::CancelToken).
    Cancelled,
    /// The factors are no longer finite.
    Diverged,
    /// A federated run would reveal more than was accepted, or the parties disagree.
    Refused,
    /// A connection of a federation was lost or cannot be established.
    Connection,
    /// Any other error.
    Other,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The invalid parameter, named like its method of [`Nmf`](crate::Nmf).
    pub fn parameter(&self) -> Option<&str> {
        self.parameter.as_deref()
    }

    pub(crate) fn of_parameter(name: &str, problem: impl fmt::Display) -> Self {
        Error {
            kind: ErrorKind::Parameter,
            parameter: Some(name.into()),
            sentence: format!("{name}: {problem}"),
            source: None,
        }
    }

    pub(crate) fn data(sentence: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Data, parameter: None, sentence: sentence.into(), source: None }
    }

    /// Converts another crate's error to this crate's terms.
    pub(crate) fn wrap(
        kind: ErrorKind,
        wording: &Wording,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Error { kind, parameter: None, sentence: wording.named(words), source: Some(Box::new(source)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

/// Names of the core's fields that differ in this crate.
const NAMES: [(&str, &str); 8] = [
    ("rank", "components"),
    ("algorithm", "method"),
    ("solver", "sketch_solver"),
    ("custom_sketch", "sketch"),
    ("nodes", "workers"),
    ("file", "matrix"),
    ("factors", "start"),
    ("finish", "exact_rows"),
];

fn name(field: &str) -> &str {
    NAMES.iter().find(|(core, _)| *core == field).map_or(field, |(_, own)| own)
}

fn words(field: &Field) -> String {
    match &field.value {
        Some(value) => format!("{} {value}", name(&field.name)),
        None => name(&field.name).to_string(),
    }
}

impl From<CoreError> for Error {
    fn from(error: CoreError) -> Self {
        let kind = match &error {
            CoreError::Parameter { name: field, problem } => {
                return Error::of_parameter(name(field), problem.named(words));
            }
            CoreError::Io { .. } => ErrorKind::Io,
            CoreError::Format { .. }
            | CoreError::Entry { .. }
            | CoreError::Part { .. }
            | CoreError::DamagedRecord { .. }
            | CoreError::NewerRecord { .. } => ErrorKind::Data,
            CoreError::Memory { .. } => ErrorKind::Memory,
            CoreError::Interrupted => {
                let sentence = "the computation was cancelled".into();
                return Error { kind: ErrorKind::Cancelled, parameter: None, sentence, source: None };
            }
            CoreError::Diverged { .. } => ErrorKind::Diverged,
            _ => ErrorKind::Other,
        };
        let wording = error.wording();
        Error::wrap(kind, &wording, error)
    }
}

#[cfg(feature = "simulate")]
impl From<partwise_secure::Error> for Error {
    fn from(error: partwise_secure::Error) -> Self {
        use partwise_secure::Error as Secure;
        let kind = match error {
            Secure::Core(error) => return error.into(),
            Secure::Risk { .. } | Secure::FewRecords { .. } | Secure::Dishonest { .. } => ErrorKind::Refused,
            Secure::Outside { .. } | Secure::Folder { .. } => ErrorKind::Data,
            Secure::Left { .. } | Secure::LinkLost { .. } => ErrorKind::Connection,
            _ => ErrorKind::Other,
        };
        let wording = error.wording();
        Error::wrap(kind, &wording, error)
    }
}

#[cfg(feature = "federation")]
impl From<partwise_federation::Error> for Error {
    fn from(error: partwise_federation::Error) -> Self {
        use partwise_federation::Error as Federation;
        let kind = match error {
            Federation::Core(error) => return error.into(),
            Federation::Secure(error) => return error.into(),
            Federation::File { .. } => ErrorKind::Data,
            Federation::Network { .. } | Federation::Status { .. } => ErrorKind::Connection,
            Federation::Exposed { .. }
            | Federation::Policy { .. }
            | Federation::Disagreement { .. }
            | Federation::Refused { .. }
            | Federation::Risk { .. }
            | Federation::Dishonest { .. } => ErrorKind::Refused,
            _ => ErrorKind::Other,
        };
        let wording = error.wording();
        Error::wrap(kind, &wording, error)
    }
}
