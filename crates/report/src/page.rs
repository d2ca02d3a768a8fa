//! The page as a whole: head, figures, sections.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::text::{base64, bytes, count, escape, number, seconds};
use crate::{Components, Run, SampleFactor, components, frames, progress, samples, secure, settings};

/// What the page says of who made it: a file without it is not replaced unasked.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"Partwise\">";

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a run.
pub fn page(run: &Run) -> String {
    let components = Components::of(run);
    let name = run.record["input"]["name"].as_str().unwrap_or("a matrix");
    // Nothing may be fetched, and no script runs but the page's own.
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        base64(Sha256::digest(SCRIPT.as_bytes()).as_slice())
    );
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{GENERATOR}<title>{0}, {1} – Partwise</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body><header><p class=\"brand\">Partwise</p>\
         <h1>{0}</h1><p class=\"lead\">{2}</p></header><main>",
        escape(name),
        many(run.features.k as u64, "component"),
        escape(&lead(run))
    );
    warnings(&mut html, run);
    tiles(&mut html, run);
    let sections = [
        ("Components", components::section(run, &components)),
        ("Samples", samples::section(run, &components)),
        ("Originals and reconstructions", frames::section(run)),
        ("Convergence and cost", progress::section(run)),
        ("Who saw what", secure::section(run)),
        ("Settings", settings::section(run)),
    ];
    for (title, content) in sections.iter().filter(|(_, content)| !content.is_empty()) {
        let _ = write!(html, "<section><h2>{title}</h2>{content}</section>");
    }
    let version = run.record["version"].as_str().unwrap_or_default();
    let _ = writeln!(
        html,
        "</main><footer>Made by Partwise {} from the files in this folder; <code>partwise report</code> regenerates it. \
         The page makes no network requests.</footer><script>{SCRIPT}</script></body></html>",
        escape(version)
    );
    html
}

/// The run in a few sentences.
fn lead(run: &Run) -> String {
    let record = &run.record;
    let (rows, cols) = (&record["input"]["rows"], &record["input"]["cols"]);
    let method = match (&record["plan"], &record["protocol"], &record["algorithm"]) {
        (Value::String(plan), _, _) => plan.clone(),
        (_, Value::String(protocol), _) => {
            let parties = record["parties"].as_array().map_or(run.samples.len(), Vec::len);
            format!("{protocol} between {parties} parties")
        }
        (_, _, Value::String(algorithm)) => algorithm.clone(),
        _ => "unknown".into(),
    };
    let features = run.features.rows as u64;
    let size = match (rows.as_u64(), cols.as_u64()) {
        _ if run.samples.is_empty() => many(features, "feature"),
        (Some(rows), Some(cols)) => format!("{} × {}", count(rows), count(cols)),
        _ => {
            let (samples, features) = (count(run.sample_count() as u64), count(features));
            match run.sample_factor {
                SampleFactor::U => format!("{samples} × {features}"),
                SampleFactor::V => format!("{features} × {samples}"),
            }
        }
    };
    let side = match (run.sample_factor, run.is_secure().then(|| record["records"].as_str()).flatten()) {
        _ if run.samples.is_empty() => "",
        // Simulations of earlier versions have the samples in V whatever the data were.
        (_, Some("rows")) | (SampleFactor::U, _) => " (rows are samples)",
        (SampleFactor::V, _) => " (columns are samples)",
    };
    let stored = match (record["input"]["stored"].as_u64(), rows.as_u64(), cols.as_u64()) {
        (Some(stored), Some(rows), Some(cols)) if stored < rows.saturating_mul(cols) => {
            format!(", {} stored entries", count(stored))
        }
        _ => String::new(),
    };
    format!("{size}{side}{stored}. {}. Method: {method}.", many(run.features.k as u64, "component"))
}

/// What the run warned about.
fn warnings(html: &mut String, run: &Run) {
    let all: Vec<&str> =
        run.record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if all.is_empty() {
        return;
    }
    html.push_str("<aside class=\"warnings\" aria-label=\"Warnings\"><ul>");
    for warning in all {
        let _ = write!(html, "<li>{}</li>", escape(warning));
    }
    html.push_str("</ul></aside>");
}

/// A number of things, with the plural where there is not one.
fn many(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// The figures that a reader looks for first.
fn tiles(html: &mut String, run: &Run) {
    let record = &run.record;
    let mut tiles: Vec<(&str, String, String)> = Vec::new();
    if let Some(error) = record["relative_error"].as_f64() {
        tiles.push(("relative error", number(error), "‖M − U Vᵀ‖ / ‖M‖".into()));
    }
    let steps = record["iterations"].as_u64().or(record["rounds"].as_u64());
    if let Some(steps) = steps {
        let name = if run.is_secure() { "rounds" } else { "iterations" };
        tiles.push((name, count(steps), reason(run)));
    }
    if let Some(time) = record["seconds"].as_f64() {
        tiles.push(("time", seconds(time), progress::clock(run).into()));
    }
    let sent = if run.is_secure() { &record["cost"]["bytes_per_party"] } else { &record["bytes_sent"] };
    match sent.as_u64() {
        Some(sent) if sent > 0 => {
            let whose = if run.is_secure() { "sent and received per party" } else { "sent per process" };
            tiles.push(("traffic", bytes(sent), whose.into()));
        }
        _ => {}
    }
    let features = run.features.rows as u64;
    tiles.push(match run.samples.is_empty() {
        true => ("features", count(features), "samples stay with the parties".into()),
        false => ("samples", count(run.sample_count() as u64), many(features, "feature")),
    });
    html.push_str("<dl class=\"tiles\">");
    for (name, value, note) in tiles {
        let _ = write!(
            html,
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"note\">{}</dd></div>",
            name,
            escape(&value),
            escape(&note)
        );
    }
    html.push_str("</dl>");
}

/// Why the run ended.
fn reason(run: &Run) -> String {
    let stopped_by = run.record["stopped_by"].as_str().unwrap_or_default();
    match (stopped_by, run.record["tolerance"].as_f64()) {
        ("iterations", _) => "iteration limit".into(),
        ("rounds", _) => "round limit".into(),
        ("tolerance", Some(tolerance)) => format!("converged (relative change below {tolerance:e})"),
        ("tolerance", None) => "converged".into(),
        ("target-error", _) => "target error reached".into(),
        ("time-limit", _) => "time limit".into(),
        ("leak-budget", _) => "another round would reveal a sample".into(),
        (other, _) => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Factor, Samples};
    use serde_json::json;

    /// Samples in U, components in an order of their own, as after `--init-from` or a simulation.
    fn run(record: Value) -> Run {
        let factor = |rows, values: &[f32]| Factor { rows, k: 2, values: values.to_vec() };
        let weights = factor(3, &[1.0, 4.0, 2.0, 1.0, 0.0, 0.0]);
        Run {
            record,
            audit: None,
            trace: Vec::new(),
            features: factor(2, &[1.0, 9.0, 1.0, 9.0]),
            feature_labels: None,
            samples: vec![Samples { party: None, weights, labels: None }],
            sample_factor: SampleFactor::U,
            shape: None,
            frames: None,
        }
    }

    #[test]
    fn components_stand_in_the_order_of_their_numbers() {
        let html = page(&run(Value::Null));
        let places = ["<h3>1 <small", "<h3>2 <small"].map(|heading| html.find(heading));
        assert!(places[0].is_some() && places[0] < places[1], "{html}");
    }

    #[test]
    fn written_weights_decide_which_component_leads() {
        let components = Components::of(&run(Value::Null));
        assert_eq!((components.leads, components.feature_leads), (vec![1, 1], vec![0, 2]));
    }

    #[test]
    fn warnings_are_shown_and_energy_is_defined() {
        let html = page(&run(json!({ "warnings": ["column 3 <dominates>", 4] })));
        assert!(html.contains("<li>column 3 &lt;dominates&gt;</li>"), "{html}");
        assert!(html.contains("‖U<sub>j</sub>‖ ‖V<sub>j</sub>‖ divided by its sum"), "{html}");
        assert!(!page(&run(Value::Null)).contains("<aside"));
    }
}
