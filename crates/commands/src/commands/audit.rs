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
use partwise_secure::audit::{
    Adversary, Audit, Cover, Evidence, Individuals, Left, LeftOut, Limits, Rate, Reconstruction,
    TruePositives, audit,
};
use partwise_secure::protocol::Settings;
use serde::Serialize;

use super::ledger;
use crate::args::{AuditArgs, ReadArgs, SimulateArgs};
use crate::context::Context;
use crate::{flags, machine, output, report};

/// The share of records held out by default.
pub const HOLDOUT: Amount = Amount::Share(0.2);

/// The audit found more than a limit allows.
#[derive(Debug, thiserror::Error)]
pub enum OverLimit {
    /// The limit of `--max-auc` is exceeded.
    #[error("limit exceeded: the AUC {found:.3} is above --max-auc {limit}")]
    Auc { found: f64, limit: f64 },
    /// The limit of `--max-record-cosine` is exceeded in a simulation.
    #[error(
        "limit exceeded: a component is a single record (cosine {found:.3}, above --max-record-cosine \
         {limit}); its party would withhold its files, but others would have seen U"
    )]
    Record { found: f64, limit: f64 },
    /// The limit of `--max-record-cosine` is exceeded at a party.
    #[error(
        "withheld: a component is a single record of this party (cosine {found:.3}, above --max-record-cosine \
         {limit}); the other parties and the coordinator have already seen U. {kept} has the files and \
         individuals.json, which identifies the record; inform those responsible for it before you use them"
    )]
    Withheld { found: f64, limit: f64, kept: String },
}

/// The limits of an audit.
#[derive(Clone, Copy)]
pub struct Allowed {
    /// `--max-auc`.
    pub auc: Option<f64>,
    /// `--max-record-cosine`.
    pub record_cosine: Option<f64>,
}

/// Where an audit finds the data again; `None` if the path is not UTF-8, which JSON requires.
pub fn recorded(
    args: &SimulateArgs,
    (dealt, held_out): (&[Vec<usize>], &[Vec<usize>]),
    people: Option<&[usize]>,
) -> Option<RecordedData> {
    let path = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    path.to_str()?;
    let &ReadArgs { header, row_names, images, .. } = &args.read;
    let (dealt, held_out) = (dealt.to_vec(), held_out.to_vec());
    let people = people.map(<[usize]>::to_vec);
    Some(RecordedData { path, header, row_names, images, dealt, held_out, people })
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

pub fn write(file: &mut dyn Write, found: &impl Serialize) -> stdio::Result<()> {
    serde_json::to_writer_pretty(&mut *file, found)?;
    writeln!(file)
}

/// Prints the findings, and fails if they exceed the limit.
pub fn conclude(context: &Context, audit: &Audit, allowed: Allowed, quiet: bool) -> Result<()> {
    if !quiet {
        context.console.tell(&text(audit));
    }
    let (auc, cosine) = (audit.highest_auc, audit.individuals.highest_at_party);
    match allowed {
        Allowed { record_cosine: Some(limit), .. } if cosine > limit => {
            Err(OverLimit::Record { found: cosine, limit }.into())
        }
        Allowed { auc: Some(limit), .. } if auc > limit => Err(OverLimit::Auc { found: auc, limit }.into()),
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
    for (own, party) in audit.owners.iter().zip(1..) {
        let folder = dir.join(format!("{}{party}", output::PARTY));
        // There is no file of a party that left.
        if folder.is_dir() {
            context.outputs.write_into(&folder, output::INDIVIDUALS, output::DIR, |file| write(file, own))?;
        }
    }
    // An existing page is regenerated to show the audit.
    report::after_run(context, dir, dir.join(report::NAME).exists());
    if args.json {
        context.console.answer(&serde_json::to_string(&audit)?)?;
    }
    let allowed = Allowed { auc: args.max_auc, record_cosine: args.max_record_cosine };
    conclude(context, &audit, allowed, args.quiet || args.json)
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
    let header = ["seat", "attack", "on", "AUC", "s.e.", "members", "others", "told at 0.1%", "told at 1%"];
    text.push_str(&table(&header, &findings(audit)));
    text.push_str(
        "  AUC: 0.5 is guessing, 1 is certainty; s.e.: standard error; others: held-out records; told at 1%: \
         the share of members identified at 1% false positives, with 95% bounds\n",
    );
    text.push_str(&individuals(&audit.individuals));
    if !audit.reconstructions.is_empty() {
        text.push_str("\nreconstruction of records\n");
        let header = ["seat", "attack", "records tried", "found exactly", "median cosine", "highest"];
        text.push_str(&table(&header, &reconstructions(audit)));
    }
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
    let products = "  U: the components (the factor of the features, in the paper's letters); M V, M S, S U, V \
     V: products of records, components, weights V and sketches S\n";
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
        ]
        .into_iter()
        .chain(finding.true_positives.iter().map(told))
        .collect()
    };
    audit.findings.iter().map(line).collect()
}

/// The share of members that an attack identifies, with its bounds.
fn told(rate: &TruePositives) -> String {
    let Some(told) = rate.told else { return "not estimable".into() };
    let Rate { lowest, highest, .. } = told.members;
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    format!("{}% ({} to {})", percent(told.members.share()), percent(lowest), percent(highest))
}

/// The table of people who resemble a component.
fn individuals(found: &Individuals) -> String {
    let Individuals { people, reproduced, most, highest_cosine, left_out, .. } = found;
    let mut text = format!(
        "\npeople: does a component represent a single person?\n  {reproduced} of {people} people dominate a \
         component (cosine above {most}, and more than half of its weight); the highest cosine is \
         {highest_cosine:.3}\n"
    );
    if !left_out.is_empty() {
        let line = |person: &LeftOut| {
            let LeftOut { cosine, leverage, cosine_without } = person;
            vec![format!("{:.0}%", 100.0 * leverage), format!("{cosine:.3}"), format!("{cosine_without:.3}")]
        };
        let lines: Vec<Vec<String>> = left_out.iter().map(line).collect();
        text.push_str(&table(&["share of the component", "cosine", "in a run without this person"], &lines));
    }
    text
}

fn reconstructions(audit: &Audit) -> Vec<Vec<String>> {
    let line = |found: &Reconstruction| {
        vec![
            found.adversary.to_string(),
            found.attack.clone(),
            found.tried.to_string(),
            found.exact.to_string(),
            format!("{:.3}", found.median_cosine),
            format!("{:.3}", found.highest_cosine),
        ]
    };
    audit.reconstructions.iter().map(line).collect()
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
