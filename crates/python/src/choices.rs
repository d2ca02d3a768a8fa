//! The choices of each setting, for checks in Python.

use std::collections::HashMap;

use partwise::run::{Algorithm, Init, Normalize, SketchedSolver};
use partwise::sketch::SketchKind;
use partwise_secure::protocol::Protocol;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The names of all variants of a setting, by the setting's name.
#[pyfunction]
pub fn choices() -> HashMap<&'static str, Vec<String>> {
    HashMap::from([
        ("algorithm", names(json!(Algorithm::ALL))),
        ("init", names(json!(Init::ALL))),
        ("normalize", names(json!(Normalize::ALL))),
        ("protocol", names(json!(Protocol::ALL))),
        ("sketch", names(json!(SketchKind::ALL))),
        ("solver", names(json!(SketchedSolver::ALL))),
    ])
}

/// The names of variants, as in `run.json`.
fn names(variants: Value) -> Vec<String> {
    let variants = variants.as_array().map_or(&[][..], Vec::as_slice);
    variants.iter().filter_map(|name| name.as_str().map(String::from)).collect()
}
