//! Partwise's errors as Python's, with the same sentence in Python's words.

use partwise::Error;
use partwise_federation::Error as FederationError;
use partwise_secure::Error as SecureError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyConnectionError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};

/// What the program's options are called here, where it is not the same name with underscores.
const NAMES: &[(&str, &str)] = &[
    ("--precision f32", "float32"),
    ("--precision f64", "float64"),
    ("--rank", "n_components"),
    ("--iterations", "max_iter"),
    ("--tolerance", "tol"),
    ("--restarts", "n_init"),
    ("--threads", "n_jobs"),
    ("--l1-u", "alpha_W"),
    ("--l2-u", "alpha_W"),
    ("--l1-v", "alpha_H"),
    ("--l2-v", "alpha_H"),
    ("--algorithm", "solver"),
    ("--solver", "sketch_solver"),
];

/// Parameters of `simulate`, whose settings have the names that they have in `run.json`.
const OF_SIMULATION: &[(&str, &str)] = &[("--tolerance", "tolerance"), ("--threads", "threads")];

/// Accepting a risk is a setting.
const ACCEPTED: &str = "--accept-that-";

/// A sentence with the names of options replaced by those of parameters. Only whole words are names: not `--` within a path.
fn in_python(sentence: &str, own: &[(&str, &str)]) -> String {
    let mut said = String::new();
    let mut rest = sentence;
    while let Some(place) = rest.find("--") {
        let (before, option) = rest.split_at(place);
        said.push_str(before);
        let inside =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '/' | '.' | '\\');
        let end = option.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
        let word = &option[..end.unwrap_or(option.len())];
        let path = before.ends_with(inside) || option[word.len()..].starts_with(['/', '_', '\\']);
        let known = own.iter().chain(NAMES).find(|(name, _)| match name.split_once(' ') {
            Some(_) => option.starts_with(name),
            None => word == *name,
        });
        let (taken, name) = match (path, known) {
            (true, _) => (word.len(), word.to_string()),
            (false, Some((option, name))) => (option.len(), name.to_string()),
            (false, None) => match word.strip_prefix(ACCEPTED) {
                Some(risk) => (word.len(), format!("{}=True", risk.replace('-', "_"))),
                None => (word.len(), word[2..].replace('-', "_")),
            },
        };
        said.push_str(&name);
        rest = &option[taken..];
    }
    said + rest
}

/// The library's error, without a word changed in paths.
fn sentence(error: Error, own: &[(&str, &str)]) -> String {
    match error {
        Error::Format { path, place, problem } => {
            Error::Format { path, place, problem: in_python(&problem, own) }.to_string()
        }
        error @ (Error::Io { .. } | Error::Entry { .. }) => error.to_string(),
        error => in_python(&error.to_string(), own),
    }
}

fn python_as(error: Error, own: &[(&str, &str)]) -> PyErr {
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(sentence(error, own)),
        Error::Io { .. } => PyOSError::new_err(sentence(error, own)),
        Error::RankLost { .. } | Error::Protocol { .. } => PyRuntimeError::new_err(sentence(error, own)),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(sentence(error, own)),
    }
}

/// The Python error for one of the library.
pub fn python(error: Error) -> PyErr {
    python_as(error, &[])
}

/// The Python error for one of a simulation or an audit.
pub fn of_secure(error: SecureError) -> PyErr {
    let said = |error: SecureError| in_python(&error.to_string(), OF_SIMULATION);
    match error {
        SecureError::Core(error) => python_as(error, OF_SIMULATION),
        error @ (SecureError::Risk { .. } | SecureError::FewRecords { .. } | SecureError::Outside { .. }) => {
            PyValueError::new_err(said(error))
        }
        // These have paths in them.
        SecureError::Folder { problem } => PyValueError::new_err(match problem.strip_suffix("--data") {
            Some(before) => format!("{before}data"),
            None => problem,
        }),
        SecureError::Stopped { problem } => PyRuntimeError::new_err(problem),
        error => PyRuntimeError::new_err(said(error)),
    }
}

/// The Python error for one of a federation.
pub fn of_federation(error: FederationError) -> PyErr {
    match error {
        FederationError::Core(error) => python(error),
        FederationError::Secure(error) => of_secure(error),
        FederationError::Network { what, problem } => {
            let error = FederationError::Network { what: in_python(&what, &[]), problem };
            PyConnectionError::new_err(error.to_string())
        }
        error @ FederationError::Refused { .. } => PyConnectionError::new_err(error.to_string()),
        error @ FederationError::Dishonest { .. } => PyRuntimeError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}
