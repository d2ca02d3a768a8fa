//! The status of a run as JSON, and in the format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use super::{PartyStatus, RunStatus};

/// The number of rejections by reason.
type Rejections = BTreeMap<&'static str, u64>;

impl RunStatus {
    /// The status as JSON; `rejected` is the number of rejections by reason.
    pub(super) fn json(&self, rejected: &Rejections) -> String {
        let settings = &self.terms.settings;
        let parties = self.parties.iter().map(|party| {
            let [received, sent] = party.bytes();
            json!({
                "name": party.name, "state": party.presence, "dropouts": party.dropouts,
                "bytes_received": received, "bytes_sent": sent,
            })
        });
        json!({
            "federation": self.terms.federation,
            "version": crate::VERSION,
            "protocol": settings.protocol,
            "aggregation": settings.aggregation,
            "rank": settings.rank,
            "max_rounds": settings.all_rounds(self.terms.groups.len()),
            "phase": self.phase,
            "round": self.curve.last().map_or(0, |point| point.round),
            "sums": self.sums,
            "epochs": self.epochs,
            "parties": parties.collect::<Vec<_>>(),
            "waiting_for": self.waiting,
            "curve": self.curve,
            "warnings": self.warnings,
            "rejected": rejected,
        })
        .to_string()
    }

    /// The status in the text format of Prometheus.
    pub(super) fn metrics(&self, rejected: &Rejections) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
            let _ = writeln!(text, "# HELP partwise_{name} {help}\n# TYPE partwise_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "partwise_{name}{labels} {value}");
            }
        };
        let alone = |value: f64| vec![(String::new(), value)];
        let by_party = |of: &dyn Fn(&PartyStatus) -> f64| -> Vec<(String, f64)> {
            let line = |party: &PartyStatus| (format!("{{party=\"{}\"}}", party.name), of(party));
            self.parties.iter().map(line).collect()
        };
        let last = self.curve.last();
        family("round", "gauge", "Rounds done.", alone(last.map_or(0.0, |point| point.round as f64)));
        let error = last.map_or(Vec::new(), |point| alone(point.relative_error));
        family("relative_error", "gauge", "Relative error over all parties.", error);
        family("sums_total", "counter", "Number of opened sums.", alone(self.sums as f64));
        family("epochs_total", "counter", "Key exchanges.", alone(self.epochs as f64));
        let connected = |party: &PartyStatus| f64::from(u8::from(party.live.is_some()));
        family("party_connected", "gauge", "Whether the party is connected.", by_party(&connected));
        family(
            "party_dropouts_total",
            "counter",
            "Lost connections.",
            by_party(&|party| party.dropouts as f64),
        );
        let received = |party: &PartyStatus| party.bytes()[0] as f64;
        family(
            "party_received_bytes_total",
            "counter",
            "Bytes received from the party.",
            by_party(&received),
        );
        family(
            "party_sent_bytes_total",
            "counter",
            "Bytes sent to the party.",
            by_party(&|party| party.bytes()[1] as f64),
        );
        let rejected = rejected.iter();
        let rejected = rejected.map(|(reason, count)| (format!("{{reason=\"{reason}\"}}"), *count as f64));
        family("rejected_total", "counter", "Number of rejections.", rejected.collect());
        text
    }
}
