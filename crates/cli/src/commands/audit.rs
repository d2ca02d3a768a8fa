//! `partwise audit`: what a party's ledger says that left it.

use anyhow::Result;
use partwise_federation::ledger::{self, Cover};
use serde_json::json;

use crate::federation_args::AuditArgs;
use crate::{input, say};

pub fn run(args: &AuditArgs) -> Result<()> {
    let path = if args.dir.is_dir() { args.dir.join(ledger::NAME) } else { args.dir.clone() };
    let read = ledger::read(&path)?;
    let summary = ledger::summary(&read.entries);
    if args.json {
        let kinds = summary.iter().map(|((kind, cover), (count, bytes))| {
            json!({ "kind": kind, "cover": cover, "count": count, "bytes": bytes })
        });
        let report =
            json!({ "lines": read.entries.len(), "last": read.last, "sent": kinds.collect::<Vec<_>>() });
        return say::answer(&report.to_string());
    }
    let mut text =
        format!("{}: {} lines, chain unbroken up to {}\n", path.display(), read.entries.len(), read.last);
    if let (Some(first), Some(last)) = (read.entries.first(), read.entries.last()) {
        text.push_str(&format!("from {} to {}\n", first.time, last.time));
    }
    text.push_str(&format!("{:18} {:>8} {:>12}  who could read it\n", "what left", "count", "bytes"));
    for ((kind, cover), (count, bytes)) in &summary {
        let readers = match cover {
            Cover::Masked => "nobody; masked, only the sum over the cohort was opened",
            Cover::Plain => "the coordinator, as it was",
            Cover::Public => "the coordinator; keys, signatures, words, and what was opened for all",
        };
        text.push_str(&format!("{kind:18} {count:>8} {:>12}  {readers}\n", input::size(*bytes)));
    }
    say::answer(&text)
}
