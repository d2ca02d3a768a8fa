//! Partwise's errors as Python's, with the same sentence in Python's words.

use partwise::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

/// What the program's options are called here.
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
    ("--sketch-cols", "sketch_cols"),
    ("--sketch-rows", "sketch_rows"),
    ("--target-error", "target_error"),
    ("--time-limit", "time_limit"),
    ("--", ""),
];

/// The options in a sentence, by their names in Python.
fn in_python(sentence: &str) -> String {
    NAMES.iter().fold(sentence.to_string(), |sentence, (option, name)| sentence.replace(option, name))
}

/// The Python error.
pub fn python(error: Error) -> PyErr {
    let sentence = in_python(&error.to_string());
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(sentence),
        Error::Io { .. } => PyOSError::new_err(sentence),
        Error::RankLost { .. } | Error::Protocol { .. } => PyRuntimeError::new_err(sentence),
        _ => PyValueError::new_err(sentence),
    }
}
