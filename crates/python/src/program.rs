//! The program `partwise`, which the wheel installs as well.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the program with these arguments, its own path first, and returns its exit code.
#[pyfunction]
pub fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let path = arguments.first().map(PathBuf::from).unwrap_or_default();
    py.detach(|| partwise_commands::run_embedded(arguments, path))
}
