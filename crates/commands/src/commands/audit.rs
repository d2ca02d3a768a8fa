//! `partwise audit`, and the output of `partwise simulate --audit`: what left each party, who could read it, and
//! what attacks recover from it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self as stdio, Write};

use anyhow::{Result, bail};
use partwise::Real;
use partwise::cancel::Cancel;
use partwise::error::human_bytes;
use partwise::run::Amount;
use partwise::run::record::RecordedData;
use partwise_secure::audit::folder::{self, Request, audit_folder};
use partwise_secure::audit::{Adversary, Audit, Cover, Evidence, Left, Limits, audit};
use partwise_secure::protocol::Settings;

use super::ledger;
use crate::args::{AuditArgs, ReadArgs, SimulateArgs};
use crate::context::Context;
use crate::{flags, machine, output, report};

/// The share of records held out by default.
pub const HOLDOUT: Amount = Amount::Share(0.2);

/// An attack exceeded `--max-auc`.
#[derive(Debug, thiserror::Error)]
#[error("limit exceeded: the AUC {found:.3} is above --max-auc {limit}")]
pub struct OverLimit {
    found: f64,
    limit: f64,
}

/// Where an audit finds the data again; `None` if the path is not UTF-8, which JSON requires.
pub fn recorded(args: &SimulateArgs, dealt: &[Vec<usize>], held_out: &[Vec<usize>]) -> Option<RecordedData> {
    let path = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    path.to_str()?;
    let &ReadArgs { header, row_names, images, .. } = &args.read;
    let (dealt, held_out) = (dealt.to_vec(), held_out.to_vec());
    Some(RecordedData { path, header, row_names, images, dealt, held_out })
}

/// Refuses a transcript that does not fit in memory: for each sum the words of every party, masked and not, and the
/// sum.
pub fn check_memory(settings: &Settings, parties: usize, features: usize) -> Result<()> {
    let words = features.saturating_mul(settings.rank.saturating_mul(2)) as u64 * 4;
    let needed = words.saturating_mul(parties as u64 + 1).saturating_mul(settings.rounds as u64);
    let available = machine::available_memory();
    if needed > available {
        bail!(
            "--rounds: the messages of {} rounds need up to {}, but only {} is free; use fewer rounds or a smaller \
             --rank",
            settings.rounds,
            human_bytes(needed),
            human_bytes(available)
        );
    }
    Ok(())
}

/// All cores.
fn limits() -> Limits {
    Limits { threads: machine::cores(), ..Limits::default() }
}

pub fn of<T: Real>(evidence: &Evidence<'_, T>) -> Result<Audit> {
    Ok(audit(evidence, &limits(), &Cancel::default())?.named(flags::name))
}

pub fn write(file: &mut dyn Write, audit: &Audit) -> stdio::Result<()> {
    serde_json::to_writer_pretty(&mut *file, audit)?;
    writeln!(file)
}

/// Prints the findings, and fails if they exceed the limit.
pub fn conclude(context: &Context, audit: &Audit, limit: Option<f64>, quiet: bool) -> Result<()> {
    if !quiet {
        context.console.tell(&text(audit));
    }
    match limit {
        Some(limit) if audit.highest_auc > limit => Err(OverLimit { found: audit.highest_auc, limit }.into()),
        _ => Ok(()),
    }
}

pub fn run(args: &AuditArgs, context: &Context) -> Result<()> {
    if let Some(path) = ledger::found(&args.dir) {
        return ledger::run(&path, context, args);
    }
    folder::check(&args.dir)?;
    let target = args.dir.join(output::AUDIT);
    output::check_file(&target, output::DIR, args.force)?;
    let (dir, data, colluders) = (&args.dir, args.data.as_deref(), args.colluders);
    let audit =
        audit_folder(&Request { dir, data, colluders, limits: limits(), cancel: &Cancel::default() })?
            .named(flags::name);
    context.outputs.write_into(dir, output::AUDIT, output::DIR, |file| write(file, &audit))?;
    // An existing page is regenerated to show the audit.
    report::after_run(context, dir, dir.join(report::NAME).exists());
    if args.json {
        context.console.answer(&serde_json::to_string(&audit)?)?;
    }
    conclude(context, &audit, args.max_auc, args.quiet || args.json)
}

/// The tables and the verdict.
fn text(audit: &Audit) -> String {
    let mut text = String::from("\nwhat left the parties\n");
    text.push_str(&table(
        &["party", "what", "messages", "bytes", "travelled", "could be read by"],
        &left(&audit.left),
    ));
    text.push_str(&legend(audit));
    text.push_str("\nattacks: can an adversary tell whether a record was in a party's data?\n");
    let header = ["seat", "attack", "on", "AUC", "s.e.", "members", "others", "mean score", "of others"];
    text.push_str(&table(&header, &findings(audit)));
    text.push_str("  AUC: 0.5 is guessing, 1 is certainty; s.e.: standard error; others: held-out records\n");
    if !audit.recoveries.is_empty() {
        text.push_str("\nlinear recovery of M from opened sketches\n");
        let header = ["seat", "method", "rounds", "equations", "unknowns", "error", "recovered"];
        text.push_str(&table(&header, &recoveries(audit)));
    }
    text.push('\n');
    audit.verdict.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
    text
}

/// Explains those words of the first table that occur in it.
fn legend(audit: &Audit) -> String {
    let covers: BTreeSet<Cover> = audit.left.iter().map(|left| left.cover).collect();
    let meaning = |cover: &Cover| match cover {
        Cover::Masked => {
            "  masked: random words on their own; only the sum over the parties is opened, for all\n"
        }
        Cover::Plain => "  plain: readable numbers\n",
        Cover::Control => "  no data: keys, signatures and what removes the masks from a sum\n",
    };
    let products = "  U: the components (the factor of the features, in the paper's letters); M V, M S, S U, V V: products of records, components, weights V and sketches S\n";
    std::iter::once(products).chain(covers.iter().map(meaning)).collect()
}

/// Parties with the same entries share one line.
fn left(all: &[Left]) -> Vec<Vec<String>> {
    let mut parties: BTreeMap<(Cover, &str, u64, u64), Vec<u16>> = BTreeMap::new();
    for left in all {
        parties.entry((left.cover, &left.kind, left.count, left.bytes)).or_default().push(left.party);
    }
    let readers = |cover: Cover| all.iter().find(|left| left.cover == cover).map(|left| &left.readers);
    let line = |((cover, kind, count, bytes), parties): (&(Cover, &str, u64, u64), &Vec<u16>)| {
        let readers: Vec<String> = readers(*cover)
            .into_iter()
            .flatten()
            .map(|adversary: &Adversary| adversary.to_string())
            .collect();
        let cover = match cover {
            Cover::Masked => "masked",
            Cover::Plain => "plain",
            Cover::Control => "no data",
        };
        vec![
            ranges(parties),
            kind.to_string(),
            count.to_string(),
            human_bytes(*bytes),
            cover.to_string(),
            readers.join("; "),
        ]
    };
    parties.iter().map(line).collect()
}

/// `1-3, 5`.
fn ranges(parties: &[u16]) -> String {
    let runs = parties.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[u16]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

fn findings(audit: &Audit) -> Vec<Vec<String>> {
    let line = |finding: &partwise_secure::audit::Finding| {
        let auc = finding.auc;
        vec![
            finding.adversary.to_string(),
            finding.attack.clone(),
            finding.on.clone(),
            format!("{:.3}", auc.value),
            format!("{:.3}", auc.standard_error),
            auc.members.to_string(),
            auc.others.to_string(),
            format!("{:.3}", finding.mean_of_members),
            format!("{:.3}", finding.mean_of_others),
        ]
    };
    audit.findings.iter().map(line).collect()
}

fn recoveries(audit: &Audit) -> Vec<Vec<String>> {
    let line = |recovery: &partwise_secure::audit::Recovery| {
        vec![
            recovery.adversary.to_string(),
            recovery.method.to_string(),
            recovery.iterations.to_string(),
            recovery.equations.to_string(),
            recovery.unknowns.to_string(),
            format!("{:.3}", recovery.relative_error),
            format!("{:.1}%", 100.0 * recovery.recovered),
        ]
    };
    audit.recoveries.iter().map(line).collect()
}

/// Makes columns as wide as their content.
fn table(header: &[&str], lines: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|name| name.to_string()).collect();
    let all = || std::iter::once(&header).chain(lines);
    let widths: Vec<usize> =
        (0..header.len()).map(|col| all().map(|line| line[col].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in all() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(&format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
    text
}
