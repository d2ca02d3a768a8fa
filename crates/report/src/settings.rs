//! Everything in `run.json` that is needed to repeat the run.

use serde_json::Value;

use crate::Run;
use crate::text::{details, table};

/// Keys that other sections show.
const ELSEWHERE: [&str; 9] = [
    "ranks",
    "phases",
    "parties",
    "cost",
    "transcripts",
    "errors_of_restarts",
    "redrawn",
    "warnings",
    "bytes",
];

pub fn section(run: &Run) -> String {
    let Some(record) = run.record.as_ref().map(|record| record.to_map()) else { return String::new() };
    let mut rows = Vec::new();
    for (name, value) in record.iter().filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        flatten(name, value, &mut rows);
    }
    let asked = details("All parameters and the input", &table(&["name", "value"], rows));
    let mut html = asked;
    let errors = run.factorization().map_or(&[][..], |record| &record.summary.errors_of_restarts);
    if errors.len() > 1 {
        let rows = errors
            .iter()
            .enumerate()
            .map(|(index, error)| vec![(index + 1).to_string(), Value::from(*error).to_string()]);
        html.push_str(&details("Errors of the restarts", &table(&["run", "relative error"], rows)));
    }
    html
}

/// Flattens keys to `input.rows` and so on; skips `null`.
fn flatten(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, rows);
            }
        }
        Value::String(text) => rows.push(vec![name.into(), text.clone()]),
        other => rows.push(vec![name.into(), other.to_string()]),
    }
}
