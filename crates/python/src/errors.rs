//! Maps Partwise's errors to Python exceptions, with parameters in place of fields.

use partwise::Error;
use partwise::wording::Field;
use partwise_federation::Error as FederationError;
use partwise_secure::Error as SecureError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyConnectionError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};

/// The parameters for fields that have another name in Python.
const NAMES: [(&str, &str); 17] = [
    ("rank", "n_components"),
    ("iterations", "max_iter"),
    ("tolerance", "tol"),
    ("restarts", "n_init"),
    ("threads", "n_jobs"),
    ("l1_u", "alpha_W"),
    ("l2_u", "alpha_W"),
    ("l1_v", "alpha_H"),
    ("l2_v", "alpha_H"),
    ("algorithm", "solver"),
    ("solver", "sketch_solver"),
    ("loss", "beta_loss"),
    ("missing", "missing_values"),
    ("file", "X"),
    ("matrix", "X"),
    // Fields that only the program has.
    ("record", "--record"),
    ("audit", "--audit"),
];

/// Settings of a simulation, which are named as in `run.json`.
const OF_SIMULATION: [&str; 2] = ["tolerance", "threads"];

/// The prefix of accepted risks, which are settings.
const ACCEPTED: &str = "accepted.";

/// The name of a field in `NMF`.
fn parameter(field: &Field) -> String {
    if let ("precision", Some(value)) = (&*field.name, &field.value) {
        return value.replace('f', "float");
    }
    let known = NAMES.iter().find(|(name, _)| *name == field.name);
    let name = match (known, field.name.strip_prefix(ACCEPTED)) {
        (Some((_, name)), _) => name.to_string(),
        (None, Some(risk)) => format!("{risk}=True"),
        (None, None) => field.name.to_string(),
    };
    match &field.value {
        Some(value) => format!("{name} {value}"),
        None => name,
    }
}

/// The name of a field in `simulate` and `audit`.
pub fn setting(field: &Field) -> String {
    if OF_SIMULATION.contains(&&*field.name) { field.name.to_string() } else { parameter(field) }
}

fn python_as(error: &Error, sentence: String) -> PyErr {
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(sentence),
        Error::Io { .. } => PyOSError::new_err(sentence),
        Error::RankLost { .. } | Error::Protocol { .. } => PyRuntimeError::new_err(sentence),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(sentence),
    }
}

/// The Python exception for an error of the library.
pub fn python(error: Error) -> PyErr {
    python_as(&error, error.wording().named(parameter))
}

/// The Python exception for an error of a simulation or an audit.
pub fn of_secure(error: SecureError) -> PyErr {
    let sentence = error.wording().named(setting);
    match error {
        SecureError::Core(error) => python_as(&error, sentence),
        SecureError::Risk { .. }
        | SecureError::FewRecords { .. }
        | SecureError::Outside { .. }
        | SecureError::Folder { .. } => PyValueError::new_err(sentence),
        _ => PyRuntimeError::new_err(sentence),
    }
}

/// The Python exception for an error of a federation.
pub fn of_federation(error: FederationError) -> PyErr {
    let sentence = error.wording().named(parameter);
    match error {
        FederationError::Core(error) => python(error),
        FederationError::Secure(error) => of_secure(error),
        FederationError::Network { .. }
        | FederationError::Exposed { .. }
        | FederationError::Status { .. }
        | FederationError::Refused { .. } => PyConnectionError::new_err(sentence),
        FederationError::Dishonest { .. } => PyRuntimeError::new_err(sentence),
        _ => PyValueError::new_err(sentence),
    }
}
