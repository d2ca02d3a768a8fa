//! The page as a whole: head, figures, sections.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::text::{base64, bytes, count, escape, number, seconds};
use crate::{Components, Run, components, frames, progress, records, secure, settings};

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
         <meta name=\"color-scheme\" content=\"light dark\">{GENERATOR}<title>{0}, {1} components – Partwise</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body><header><p class=\"brand\">Partwise</p>\
         <h1>{0}</h1><p class=\"lead\">{2}</p></header><main>",
        escape(name),
        run.features.k,
        escape(&lead(run))
    );
    tiles(&mut html, run);
    let sections = [
        ("Components", components::section(run, &components)),
        ("Records", records::section(run, &components)),
        ("Before and after", frames::section(run)),
        ("How it went", progress::section(run)),
        ("Who saw what", secure::section(run)),
        ("Settings", settings::section(run)),
    ];
    for (title, content) in sections.iter().filter(|(_, content)| !content.is_empty()) {
        let _ = write!(html, "<section><h2>{title}</h2>{content}</section>");
    }
    let version = run.record["version"].as_str().unwrap_or_default();
    let _ = writeln!(
        html,
        "</main><footer>Made by Partwise {} from this folder's files; <code>partwise report</code> makes it again. \
         The page fetches nothing.</footer><script>{SCRIPT}</script></body></html>",
        escape(version)
    );
    html
}

/// The run in a sentence.
fn lead(run: &Run) -> String {
    let record = &run.record;
    let (rows, cols) = (&record["input"]["rows"], &record["input"]["cols"]);
    let method = match (&record["plan"], &record["protocol"], &record["algorithm"]) {
        (Value::String(plan), _, _) => plan.clone(),
        (_, Value::String(protocol), _) => {
            let parties = record["parties"].as_array().map_or(run.records.len(), Vec::len);
            format!("{protocol} between {parties} parties")
        }
        (_, _, Value::String(algorithm)) => algorithm.clone(),
        _ => "factors of unknown origin".into(),
    };
    let size = match (rows.as_u64(), cols.as_u64()) {
        (Some(rows), Some(cols)) => format!("{} × {}", count(rows), count(cols)),
        _ if run.records.is_empty() => format!("Records of {} features", count(run.features.rows as u64)),
        _ => format!("{} × {}", count(run.record_count() as u64), count(run.features.rows as u64)),
    };
    let stored = match (record["input"]["stored"].as_u64(), rows.as_u64(), cols.as_u64()) {
        (Some(stored), Some(rows), Some(cols)) if stored < rows.saturating_mul(cols) => {
            format!(", {} entries", count(stored))
        }
        _ => String::new(),
    };
    format!("{size}{stored}, as the sum of {} components. Method: {method}.", run.features.k)
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
        let plural = if steps == 1 { "" } else { "s" };
        let why = record["stopped_by"].as_str().map_or("", reason);
        tiles.push(("", format!("{} {}{plural}", count(steps), run.step_name()), why.into()));
    }
    if let Some(time) = record["seconds"].as_f64() {
        tiles.push(("time", seconds(time), progress::clock(run).into()));
    }
    let sent = if run.is_secure() { &record["cost"]["bytes_per_party"] } else { &record["bytes_sent"] };
    match sent.as_u64() {
        Some(sent) if sent > 0 => {
            let whose = if run.is_secure() { "to and from a party" } else { "sent by rank 0" };
            tiles.push(("bytes", bytes(sent), whose.into()));
        }
        _ => {}
    }
    let features = count(run.features.rows as u64);
    tiles.push(match run.records.is_empty() {
        true => ("features", features, "records stay with the parties".into()),
        false => ("records", count(run.record_count() as u64), format!("{features} features")),
    });
    html.push_str("<dl class=\"tiles\">");
    for (name, value, note) in tiles {
        let _ = write!(
            html,
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"note\">{}</dd></div>",
            escape(if name.is_empty() { "length" } else { name }),
            escape(&value),
            escape(&note)
        );
    }
    html.push_str("</dl>");
}

fn reason(stopped_by: &str) -> &str {
    match stopped_by {
        "iterations" => "all that were asked for",
        "rounds" => "all that were asked for",
        "tolerance" => "then the error hardly fell",
        "target-error" => "then the wanted error was reached",
        "time-limit" => "then the time was up",
        "interrupted" => "then the user stopped it",
        "leak-budget" => "one more would show a record",
        other => other,
    }
}
