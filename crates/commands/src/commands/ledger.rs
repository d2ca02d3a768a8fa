//! `partwise audit` of a party of a federation: what left it, by its ledger.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use partwise_federation::ledger::{self, Cover};
use serde_json::json;

use crate::args::AuditArgs;
use crate::context::Context;
use crate::input;

/// The path of the ledger, if `dir` is one or contains one.
pub fn found(path: &Path) -> Option<PathBuf> {
    let path = if path.is_dir() { path.join(ledger::NAME) } else { path.to_path_buf() };
    path.is_file().then_some(path)
}

pub fn run(path: &Path, context: &Context, args: &AuditArgs) -> Result<()> {
    let ignored = [
        ("--data", args.data.is_some()),
        ("--colluders", args.colluders.is_some()),
        ("--max-auc", args.max_auc.is_some()),
        ("--force", args.force),
    ];
    if let Some((option, _)) = ignored.iter().find(|(_, given)| *given) {
        bail!("{option}: {} is a ledger, which cannot be attacked; leave it out", path.display());
    }
    let read = ledger::read(path)?;
    let summary = ledger::summary(&read.entries);
    if args.json {
        let kinds = summary.iter().map(|((kind, cover), (count, bytes))| {
            json!({ "kind": kind, "cover": cover, "count": count, "bytes": bytes })
        });
        let report =
            json!({ "lines": read.entries.len(), "last": read.last, "sent": kinds.collect::<Vec<_>>() });
        return context.console.answer(&report.to_string());
    }
    let mut text =
        format!("{}: {} lines, chain unbroken up to {}\n", path.display(), read.entries.len(), read.last);
    if let (Some(first), Some(last)) = (read.entries.first(), read.entries.last()) {
        text.push_str(&format!("from {} to {}\n", first.time, last.time));
    }
    text.push_str(&format!("{:18} {:>8} {:>12}  who could read it\n", "what left", "count", "bytes"));
    for ((kind, cover), (count, bytes)) in &summary {
        let readers = match cover {
            Cover::Masked => "nobody (masked; only the sum over the cohort was opened)",
            Cover::Plain => "the coordinator",
            Cover::Public => "the coordinator (keys, signatures, control messages and opened sums)",
        };
        text.push_str(&format!("{kind:18} {count:>8} {:>12}  {readers}\n", input::size(*bytes)));
    }
    context.console.answer(&text)
}
