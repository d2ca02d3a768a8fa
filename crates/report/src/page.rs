//! The page as a whole: head, figures, sections.

use std::fmt::Write;

use partwise::objective::Loss;
use partwise::run::record::{RunKind, RunRecord, name_of};
use partwise::run::{Side, headline};
use sha2::{Digest, Sha256};

use crate::text::{base64, bytes, count, escape, number, seconds};
use crate::{Components, Run, SampleFactor, components, frames, progress, samples, secure, settings};

/// Marks pages of Partwise; a file without it is only replaced on request.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"Partwise\">";

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a run.
pub fn page(run: &Run) -> String {
    let components = Components::of(run);
    let name = name(run);
    let mut html = String::new();
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
    let version = run.record.as_ref().map_or("", |record| &record.version);
    document(&Document {
        title: &format!("{name}, {}", many(run.features.k as u64, "component")),
        heading: &name,
        lead: &lead(run),
        main: &html,
        footer: &format!(
            "Made by Partwise {} from the files in this folder; <code>partwise report</code> regenerates it.",
            escape(version)
        ),
    })
}

/// The parts of a page; `main` and `footer` are HTML, the others are text.
pub struct Document<'a> {
    /// The title of the browser tab, before the name of the program.
    pub title: &'a str,
    /// The heading.
    pub heading: &'a str,
    /// The paragraph below it.
    pub lead: &'a str,
    /// The content.
    pub main: &'a str,
    /// The program that created the page.
    pub footer: &'a str,
}

/// Assembles a page that makes no network requests.
pub fn document(document: &Document<'_>) -> String {
    let Document { title, heading, lead, main, footer } = *document;
    // The policy forbids fetching anything and running any other script.
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        base64(Sha256::digest(SCRIPT.as_bytes()).as_slice())
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{GENERATOR}<title>{} – Partwise</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body><header><p class=\"brand\">Partwise</p>\
         <h1>{}</h1><p class=\"lead\">{}</p></header><main>{main}</main><footer>{footer} The page makes no network \
         requests.</footer><script>{SCRIPT}</script></body></html>\n",
        escape(title),
        escape(heading),
        escape(lead)
    )
}

/// The input: a file, or the federation and the party.
fn name(run: &Run) -> String {
    let Some(record) = &run.record else { return "a matrix".into() };
    if let RunKind::Federation(record) = &record.kind {
        let whose = record.party().map_or("the coordinator", |party| &party.party);
        return format!("{}, {whose}", record.federation);
    }
    record.input().and_then(|input| input.name.clone()).unwrap_or_else(|| "a matrix".into())
}

/// The method in words.
fn method(run: &Run) -> String {
    let Some(record) = &run.record else { return "unknown".into() };
    let (protocol, parties) = match &record.kind {
        RunKind::Factorization(record) if record.summary.plan.is_empty() => {
            return name_of(&record.method.algorithm);
        }
        RunKind::Factorization(record) => return headline(&record.summary.plan).into(),
        RunKind::Simulation(record) => (&record.settings.protocol, record.parties.len()),
        RunKind::Federation(record) => (&record.settings.protocol, record.parties.len()),
    };
    format!("{protocol} between {parties} parties")
}

/// A summary of the run in a few sentences.
fn lead(run: &Run) -> String {
    let input = run.record.as_ref().and_then(|record| record.input());
    let features = run.features.rows as u64;
    let size = match input {
        _ if run.samples.is_empty() => many(features, "feature"),
        Some(input) => format!("{} × {}", count(input.rows as u64), count(input.cols as u64)),
        None => {
            let (samples, features) = (count(run.sample_count() as u64), count(features));
            match run.sample_factor {
                SampleFactor::U => format!("{samples} × {features}"),
                SampleFactor::V => format!("{features} × {samples}"),
            }
        }
    };
    let side = match (run.sample_factor, run.simulation().map(|record| record.records)) {
        _ if run.samples.is_empty() => "",
        // Simulations of earlier versions always have the samples in V.
        (_, Some(Side::Rows)) | (SampleFactor::U, _) => " (rows are samples)",
        (SampleFactor::V, _) => " (columns are samples)",
    };
    let stored = match input {
        Some(input) if input.stored < input.rows.saturating_mul(input.cols) => {
            format!(", {} stored entries", count(input.stored as u64))
        }
        _ => String::new(),
    };
    let method = method(run);
    format!("{size}{side}{stored}. {}. Method: {method}.", many(run.features.k as u64, "component"))
}

/// The warnings of the run.
fn warnings(html: &mut String, run: &Run) {
    let all = run.record.as_ref().map_or(&[][..], |record| record.warnings());
    if all.is_empty() {
        return;
    }
    html.push_str("<aside class=\"warnings\" aria-label=\"Warnings\"><ul>");
    for warning in all {
        let _ = write!(html, "<li>{}</li>", escape(warning));
    }
    html.push_str("</ul></aside>");
}

/// A count with its noun in the singular or plural.
fn many(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// The formula of the relative error.
fn relative_to(loss: Loss) -> &'static str {
    match loss {
        Loss::Frobenius => "‖M − U Vᵀ‖ / ‖M‖",
        Loss::Kl => "Kullback-Leibler divergence / that of the best constant",
        Loss::Is => "Itakura-Saito divergence / that of the best constant",
    }
}

/// The key figures of the run.
fn tiles(html: &mut String, run: &Run) {
    let mut tiles: Vec<(&str, String, String)> = Vec::new();
    if let Some(record) = &run.record {
        if !record.relative_error.is_nan() {
            tiles.push((
                "relative error",
                number(record.relative_error),
                relative_to(record.loss_name()).into(),
            ));
        }
        let name = if run.is_secure() { "rounds" } else { "iterations" };
        tiles.push((name, count(record.steps() as u64), reason(record)));
        if let Some(time) = record.seconds() {
            tiles.push(("time", seconds(time), progress::clock(run).into()));
        }
    }
    let (sent, whose) = match (run.factorization(), run.simulation()) {
        (Some(record), _) => (record.summary.bytes_sent, "sent per process"),
        (_, Some(record)) => (record.cost.bytes_per_party, "sent and received per party"),
        (None, None) => (0, ""),
    };
    if sent > 0 {
        tiles.push(("traffic", bytes(sent), whose.into()));
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
fn reason(record: &RunRecord) -> String {
    match (&*record.stopped_by(), record.tolerance()) {
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
    use std::path::Path;

    /// A run with samples in U and components in another order than by energy, as after `--init-from` or a
    /// simulation.
    fn run(record: Option<RunRecord>) -> Run {
        let factor = |rows, values: &[f32]| Factor { rows, k: 2, values: values.to_vec() };
        let weights = factor(3, &[1.0, 4.0, 2.0, 1.0, 0.0, 0.0]);
        Run {
            record,
            audit: None,
            individuals: None,
            trace: Vec::new(),
            features: factor(2, &[1.0, 9.0, 1.0, 9.0]),
            feature_labels: None,
            samples: vec![Samples { party: None, weights, labels: None }],
            sample_factor: SampleFactor::U,
            shape: None,
            frames: None,
        }
    }

    fn parse(record: &str) -> RunRecord {
        RunRecord::parse(Path::new("run.json"), record.as_bytes()).unwrap()
    }

    /// A record of version 0.1 with these warnings.
    fn with_warnings(warnings: &[&str]) -> RunRecord {
        let text = include_str!("../../core/src/run/record/data/factorize-0.1.json");
        let mut record: serde_json::Value = serde_json::from_str(text).unwrap();
        record["warnings"] = json!(warnings);
        parse(&record.to_string())
    }

    #[test]
    fn each_kind_of_record_has_its_name_method_and_clock() {
        for (record, expected) in [
            (
                include_str!("../../core/src/run/record/data/factorize-dsanls-0.1.json"),
                ["<h1>digits.npy</h1>", "Method: dsanls, sketched", "virtual clock"],
            ),
            (
                include_str!("../../core/src/run/record/data/simulate-0.1.json"),
                ["<h1>records.csv</h1>", "Method: asyn-ssd-v between 5 parties", "simulated clock"],
            ),
            (
                include_str!("../../core/src/run/record/data/coordinator-0.1.json"),
                ["<h1>demo, the coordinator</h1>", "Method: syn-sd between 3 parties", "party-2"],
            ),
            (
                include_str!("../../core/src/run/record/data/party-0.1.json"),
                ["<h1>demo, party-1</h1>", "Method: syn-sd between 3 parties", "round limit"],
            ),
        ] {
            let html = page(&run(Some(parse(record))));
            for words in expected {
                assert!(html.contains(words), "{words}: {html}");
            }
        }
        assert!(page(&run(None)).contains("Method: unknown"));
    }

    #[test]
    fn components_stand_in_the_order_of_their_numbers() {
        let html = page(&run(None));
        let places = ["<h3>1 <small", "<h3>2 <small"].map(|heading| html.find(heading));
        assert!(places[0].is_some() && places[0] < places[1], "{html}");
    }

    #[test]
    fn written_weights_decide_which_component_leads() {
        let components = Components::of(&run(None));
        assert_eq!((components.leads, components.feature_leads), (vec![1, 1], vec![0, 2]));
    }

    #[test]
    fn warnings_are_shown_and_energy_is_defined() {
        let html = page(&run(Some(with_warnings(&["column 3 <dominates>"]))));
        assert!(html.contains("<li>column 3 &lt;dominates&gt;</li>"), "{html}");
        assert!(html.contains("‖U<sub>j</sub>‖ ‖V<sub>j</sub>‖ divided by its sum"), "{html}");
        assert!(!page(&run(None)).contains("<aside"));
        assert!(!page(&run(Some(with_warnings(&[])))).contains("<aside"));
    }
}
