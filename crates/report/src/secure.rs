//! Who received what in a run between parties, and the attack results of its audit.

use std::fmt::Write;

use serde_json::Value;

use crate::text::{bytes, count, details, escape, number, shortened, table};
use crate::{Run, parties};

pub fn section(run: &Run) -> String {
    let Some(settings) = run.protocol() else { return String::new() };
    let masked = settings.aggregation != "plain";
    let shared = match &*settings.protocol {
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
        ["its samples, M_r", "yes", "no", "no"],
        ["the weights of its samples, V_r", "yes", "no", "no"],
        [shared, "yes", others, hub],
        ["U, the components", "yes", "yes", "yes"],
        ["sum and squares of all entries, number of samples, final error", "yes", "summed up", "summed up"],
    ];
    let header = ["what party r has", "party r sees it", "other parties", "the coordinator"];
    let mut html = table(&header, rows.map(|row| row.map(String::from).to_vec()));
    let _ = write!(
        html,
        "<p class=\"note\">{} Parties and coordinator are taken to follow the protocol, at most {} of the parties colluding: \
         a coordinator or a party that does not can recover individual samples. Sums reveal something too, the less the more \
         parties and samples there are; the components show what the samples have in common, and one of many may be a single \
         sample. Letters are the paper's: U is the factor of the features, V_r that of the party's samples.</p>",
        if masked {
            "What parties sent was masked, so that those who follow the protocol saw sums alone."
        } else {
            "<strong>Nothing was masked: the coordinator saw every party's share.</strong>"
        },
        settings.colluders
    );
    html.push_str(&transcripts(run));
    html.push_str(&party_table(run));
    html.push_str(&run.audit.as_ref().map_or_else(no_audit, audit));
    html.push_str(&run.individuals.as_ref().map_or_else(String::new, individuals));
    html
}

/// What was opened, and whether all parties received the same.
fn transcripts(run: &Run) -> String {
    let all = run.simulation().map_or(&[][..], |record| &record.transcripts);
    if all.is_empty() {
        return String::new();
    }
    let rows = all.iter().map(|transcript| {
        let agreed = if transcript.agreed { "yes" } else { "no: parties were told different things" };
        vec![
            format!("{} parties", transcript.parties.len()),
            count(transcript.sums),
            agreed.into(),
            shortened(&transcript.hash, 17),
        ]
    });
    let header = ["cohort", "sums opened", "same transcript at all parties", "its hash"];
    format!("<h3>What was opened</h3>{}", table(&header, rows))
}

fn party_table(run: &Run) -> String {
    let all = parties::of(run);
    let rows = all.iter().map(|party| {
        vec![
            party.name.clone(),
            party.records.map_or("–".into(), |records| count(records as u64)),
            party.relative_error.filter(|error| !error.is_nan()).map_or("–".into(), number),
            match &party.sent {
                _ if party.left => "left".into(),
                None => "–".into(),
                Some(sent) => bytes(sent.iter().map(|message| message.bytes).sum()),
            },
        ]
    });
    format!("<h3>Parties</h3>{}", table(&["party", "samples", "relative error", "sent"], rows))
}

fn no_audit() -> String {
    "<h3>Audit</h3><p>This run was not audited: what adversaries could learn from its sums was not measured.</p>".into()
}

/// The audit: its verdict, the attack results, what left each party, and every number.
fn audit(audit: &Value) -> String {
    let list = |name: &str| audit[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut html = String::from("<h3>Audit</h3><ul>");
    for sentence in list("verdict").iter().filter_map(Value::as_str) {
        let _ = write!(html, "<li>{}</li>", escape(sentence));
    }
    html.push_str("</ul>");
    html.push_str(&left_out(list_of(&audit["individuals"], "left_out")));
    html.push_str(&reconstructions(list("reconstructions")));
    html.push_str(&findings(list("findings")));
    let rows = list("left").iter().map(|left| {
        let readers: Vec<String> = left["readers"].as_array().into_iter().flatten().map(seat).collect();
        vec![
            format!("party {}", left["party"]),
            words(&left["kind"]),
            words(&left["cover"]),
            bytes(left["bytes"].as_u64().unwrap_or(0)),
            if readers.is_empty() { "nobody".into() } else { readers.join(", ") },
        ]
    });
    if !list("left").is_empty() {
        let header = ["party", "what left it", "how it travelled", "bytes", "who could read it"];
        html.push_str(&details("What left each party, and who could read it", &table(&header, rows)));
    }
    let mut rows = Vec::new();
    flatten("", audit, &mut rows);
    html.push_str(&details("All numbers of the audit", &table(&["what", "value"], rows)));
    html
}

fn list_of<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[][..], Vec::as_slice)
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

fn figure(value: &Value) -> String {
    value.as_f64().map_or("–".into(), number)
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or("–".into(), |share| format!("{:.1}%", 100.0 * share))
}

/// The people with the largest share of a component, in runs with and without them, without their identity.
fn left_out(people: &[Value]) -> String {
    let rows = people.iter().map(|person| {
        vec![percent(&person["leverage"]), figure(&person["cosine"]), figure(&person["cosine_without"])]
    });
    let header =
        ["share of a component that is one person", "cosine with it", "cosine in a run without this person"];
    let note = "<p class=\"note\">The people with the highest share of a component. A cosine of 1 means that the component is this \
                person's record; where it is much lower without the person, the component exists because of this person. Each \
                party's folder has individuals.json, which tells the party which of its own records these are.</p>";
    if people.is_empty() {
        String::new()
    } else {
        format!("<h4>Is a component a single person?</h4>{}{note}", table(&header, rows))
    }
}

/// Records that attacks reconstructed.
fn reconstructions(all: &[Value]) -> String {
    let rows = all.iter().map(|found| {
        let outcome = match found["noticed"].as_str() {
            Some(_) => "parties noticed and stopped".into(),
            None => format!("{} of {}", found["exact"], found["tried"]),
        };
        vec![words(&found["attack"]), seat(&found["seat"]), outcome, figure(&found["median_cosine"])]
    });
    let header = ["attack", "adversary", "records computed exactly", "median cosine"];
    if all.is_empty() {
        String::new()
    } else {
        format!("<h4>Reconstructed records</h4>{}", table(&header, rows))
    }
}

/// How well attacks tell who was in the data.
fn findings(all: &[Value]) -> String {
    let rows = all.iter().map(|finding| {
        let auc = format!("{} ± {}", figure(&finding["auc"]), figure(&finding["standard_error"]));
        let mut row = vec![words(&finding["attack"]), seat(&finding["seat"]), words(&finding["on"]), auc];
        row.extend(list_of(finding, "true_positives").iter().map(told));
        row
    });
    let header =
        ["attack", "adversary", "on", "AUC (0.5: guessing, 1: certainty)", "told at 0.1%", "told at 1%"];
    let note = "<p class=\"note\">\"Told at 1%\" is the share of people in the data that the attack identifies at 1% \
                false positives, with 95% bounds.</p>";
    // Audits of earlier versions have no rates.
    let columns = if all.iter().any(|finding| finding["true_positives"].is_array()) { 6 } else { 4 };
    if all.is_empty() {
        return String::new();
    }
    format!(
        "<h4>Who was in the data?</h4>{}{}",
        table(&header[..columns], rows),
        if columns == 6 { note } else { "" }
    )
}

/// The share of members that an attack identifies, with its bounds.
fn told(rate: &Value) -> String {
    let members = &rate["told"]["members"];
    let (Some(count), Some(of)) = (members["count"].as_f64(), members["of"].as_f64()) else {
        return "not estimable".into();
    };
    let bounds = format!("{} to {}", percent(&members["lowest"]), percent(&members["highest"]));
    format!("{:.1}% ({bounds})", 100.0 * count / of.max(1.0))
}

/// A party's own most exposed records, on its own page.
fn individuals(own: &Value) -> String {
    let rows = list_of(own, "components").iter().map(|person| {
        vec![
            words(&person["record"]),
            words(&person["component"]),
            figure(&person["cosine"]),
            percent(&person["leverage"]),
        ]
    });
    let header = [
        "record (row of the file, from 0)",
        "component",
        "cosine with it",
        "share of this party's part of it",
    ];
    format!(
        "<h3>Records most similar to components</h3>{}<p class=\"note\">Only this party has this table; the page is as \
         confidential as the records. A component with a cosine near 1 and a share above 50% is this person rather than a \
         pattern of many.</p>",
        table(&header, rows)
    )
}

/// The adversary in words.
fn seat(seat: &Value) -> String {
    match (seat.as_str(), seat["colluding"].as_u64()) {
        (Some("everybody"), _) => "anyone who has the components".into(),
        (Some("party"), _) => "another party".into(),
        (Some("all-others"), _) => "all others together".into(),
        (Some(name), _) => name.into(),
        (None, Some(1)) => "coordinator and a party".into(),
        (None, Some(count)) => format!("coordinator and {count} parties"),
        (None, None) => seat.to_string(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_audit_is_shown_with_its_verdict_attacks_and_readers() {
        let html = audit(&json!({
            "verdict": ["Members <cannot> be told."],
            "findings": [{"attack": "span", "seat": {"colluding": 2}, "on": "U", "auc": 0.512, "standard_error": 0.02}],
            "left": [{"party": 1, "kind": "U", "cover": "masked", "count": 3, "bytes": 2048, "readers": ["all-others"]}],
        }));
        for expected in [
            "Members &lt;cannot&gt; be told.",
            "coordinator and 2 parties",
            "0.5120 ± 0.0200",
            "2.0 KiB",
            "all others together",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        let told = json!({"false_positives": 0.01, "told": {"members": {"count": 3, "of": 60, "lowest": 0.01, "highest": 0.14}}});
        let html = audit(&json!({
            "individuals": {"left_out": [{"cosine": 0.998, "leverage": 0.82, "cosine_without": 0.706}]},
            "reconstructions": [
                {"attack": "trajectory", "seat": "coordinator", "exact": 7, "tried": 9, "median_cosine": 0.9999},
                {"attack": "wrong sums", "seat": "party", "exact": 0, "tried": 9, "median_cosine": 0.1, "noticed": "<why>"},
            ],
            "findings": [{
                "attack": "span", "seat": "party", "on": "sums", "auc": 0.5, "standard_error": 0.1,
                "true_positives": [{"false_positives": 0.001, "told": null}, told],
            }],
        }));
        for expected in [
            "82.0%",
            "0.7060",
            "7 of 9",
            "parties noticed and stopped",
            "not estimable",
            "5.0% (1.0% to 14.0%)",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        let own = individuals(
            &json!({"components": [{"record": 7, "component": 3, "cosine": 0.95, "leverage": 0.6}]}),
        );
        assert!(own.contains("<td class=\"short\">7</td>") && own.contains("60.0%"), "{own}");
        // A different shape, or an empty file, must not cause a failure.
        assert!(audit(&json!({"findings": 3, "left": [null]})).contains("Audit"));
    }
}
