//! The choices of each setting, for checks in Python.

use std::collections::HashMap;

use partwise::objective::Loss;
use partwise::run::{Algorithm, Init, Normalize, SketchedSolver};
use partwise::sketch::SketchKind;
use partwise_secure::protocol::{Protocol, Settings};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The names of all variants of a setting, by the setting's name.
#[pyfunction]
pub fn choices() -> HashMap<&'static str, Vec<String>> {
    HashMap::from([
        ("algorithm", names(json!(Algorithm::ALL))),
        ("init", names(json!(Init::ALL))),
        ("loss", names(json!(Loss::ALL))),
        ("normalize", names(json!(Normalize::ALL))),
        ("protocol", names(json!(Protocol::ALL))),
        ("sketch", names(json!(SketchKind::ALL))),
        ("solver", names(json!(SketchedSolver::ALL))),
        ("simulation", simulation()),
    ])
}

/// The settings that `simulate` takes by name.
fn simulation() -> Vec<String> {
    let mut settings = json!(Settings::new(Protocol::SynSd, 1));
    let risks = settings["accepted"].take();
    let of =
        |object: &Value| object.as_object().map_or(Vec::new(), |fields| fields.keys().cloned().collect());
    let mut names: Vec<String> = [of(&settings), of(&risks)].concat();
    names.retain(|name| !["accepted", "protocol", "rank"].contains(&&name[..]));
    names
}

/// The names of variants, as in `run.json`.
fn names(variants: Value) -> Vec<String> {
    let variants = variants.as_array().map_or(&[][..], Vec::as_slice);
    variants.iter().filter_map(|name| name.as_str().map(String::from)).collect()
}
