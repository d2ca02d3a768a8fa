//! Of a run between parties: who saw what, and what an attacker could make of it.

use std::fmt::Write;

use serde_json::Value;

use crate::Run;
use crate::progress::party_name;
use crate::text::{bytes, count, details, escape, number, shortened, table};

pub fn section(run: &Run) -> String {
    if !run.is_secure() {
        return String::new();
    }
    let record = &run.record;
    let masked = record["aggregation"] != "plain";
    let shared = match record["protocol"].as_str().unwrap_or_default() {
        "pooled" => "M_r V_r and V_rᵀV_r, in every round",
        "syn-sd" | "syn-ssd-v" => "its own U, in every round",
        "syn-ssd-u" | "syn-ssd-uv" => "its own U in every round, Sᵀ U in every iteration",
        "asyn-sd" | "asyn-ssd-v" => "its own U, whenever its group exchanges",
        "dsanls-limited" => "M_r S_r and S_rᵀV_r, in every round",
        other => other,
    };
    let others = if masked { "as part of a sum over all parties" } else { "no" };
    let hub = if masked { "as part of a sum over all parties" } else { "yes, each party's own" };
    let rows = [
        ["its records, M_r", "yes", "no", "no"],
        ["how much of each component its records have, V_r", "yes", "no", "no"],
        [shared, "yes", others, hub],
        ["U, the components", "yes", "yes", "yes"],
        ["sum and squares of all entries, number of records, final error", "yes", "summed up", "summed up"],
    ];
    let header = ["what party r has", "party r sees it", "other parties", "the coordinator"];
    let mut html = table(&header, rows.map(|row| row.map(String::from).to_vec()));
    let _ = write!(
        html,
        "<p class=\"note\">{} Parties and coordinator are taken to be honest but curious, at most {} of the parties in league. \
         Sums tell something too, the less the more parties and records there are; the components tell what the records have in \
         common.</p>",
        if masked {
            "What parties sent was masked, so that only sums were seen."
        } else {
            "<strong>Nothing was masked: the coordinator saw every party's share.</strong>"
        },
        record["colluders"].as_u64().unwrap_or(1)
    );
    html.push_str(&transcripts(run));
    html.push_str(&parties(run));
    html.push_str(&run.audit.as_ref().map_or_else(no_audit, audit));
    html
}

/// What was opened, and whether all saw the same.
fn transcripts(run: &Run) -> String {
    let all = run.record["transcripts"].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return String::new();
    }
    let rows = all.iter().map(|transcript| {
        let parties = transcript["parties"].as_array().map_or(0, Vec::len);
        let agreed = match transcript["agreed"].as_bool() {
            Some(true) => "yes",
            Some(false) => "no: somebody was told other things",
            None => "unknown",
        };
        vec![
            format!("{parties} parties"),
            count(transcript["sums"].as_u64().unwrap_or(0)),
            agreed.into(),
            shortened(transcript["hash"].as_str().unwrap_or_default(), 17),
        ]
    });
    let header = ["cohort", "sums opened", "same transcript at all", "its hash"];
    format!("<h3>What was opened</h3>{}", table(&header, rows))
}

fn parties(run: &Run) -> String {
    let all = run.record["parties"].as_array().map_or(&[][..], Vec::as_slice);
    let rows = all.iter().enumerate().map(|(index, party)| {
        let sent: u64 =
            party["sent"].as_array().into_iter().flatten().filter_map(|kind| kind["bytes"].as_u64()).sum();
        let left = party["left"].as_bool().unwrap_or(false);
        vec![
            party_name(party, index),
            party["records"].as_u64().map_or("–".into(), count),
            party["relative_error"].as_f64().map_or("–".into(), number),
            if left { "left".into() } else { bytes(sent) },
        ]
    });
    format!("<h3>Parties</h3>{}", table(&["party", "records", "relative error", "sent"], rows))
}

fn no_audit() -> String {
    "<h3>Audit</h3><p>This run was not audited: what others could make of these sums has not been measured for it.</p>".into()
}

/// The audit: its conclusion in words if it has one, and every number.
fn audit(audit: &Value) -> String {
    let mut html = String::from("<h3>Audit</h3>");
    for name in ["summary", "conclusion", "verdict"] {
        if let Some(text) = audit[name].as_str() {
            let _ = write!(html, "<p>{}</p>", escape(text));
        }
    }
    let mut rows = Vec::new();
    flatten("", audit, &mut rows);
    html.push_str(&details("Every number of the audit", &table(&["what", "value"], rows)));
    html
}

fn flatten(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    const MOST: usize = 400;
    if rows.len() >= MOST {
        return;
    }
    let within = |part: String| if name.is_empty() { part } else { format!("{name}, {part}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&within(field.replace('_', " ")), value, rows));
        }
        Value::Array(values) => {
            values
                .iter()
                .zip(1..)
                .for_each(|(value, place): (_, usize)| flatten(&within(place.to_string()), value, rows));
        }
        Value::Null => {}
        Value::Number(value) if value.is_f64() => {
            rows.push(vec![name.into(), number(value.as_f64().unwrap_or(f64::NAN))]);
        }
        Value::String(text) => rows.push(vec![name.into(), text.clone()]),
        other => rows.push(vec![name.into(), other.to_string()]),
    }
}
