//! `partwise audit`, and what `partwise simulate --audit` says: what left each party, who could read it, what attackers
//! make of it.

use std::collections::BTreeMap;
use std::io::{self as stdio, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use partwise::error::{Error, human_bytes};
use partwise::io::{ImageSide, Presence};
use partwise::matrix::Matrix;
use partwise::run::{Amount, Side};
use partwise::{Precision, Real, io};
use partwise_secure::audit::{Audit, Cover, Evidence, Left, Limits, Seat, Transcript, audit};
use partwise_secure::protocol::Settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ledger;
use crate::args::{AuditArgs, ReadArgs, SimulateArgs};
use crate::{input, machine, output, say};

/// What is held out unless asked otherwise.
pub const HOLDOUT: Amount = Amount::Share(0.2);

/// More was found than `--max-auc` allows.
#[derive(Debug, thiserror::Error)]
#[error("over the limit: AUC {found:.3} is above --max-auc {limit}")]
pub struct OverLimit {
    found: f64,
    limit: f64,
}

/// What `run.json` keeps, so that the data can be found again and dealt out as it was.
#[derive(Serialize, Deserialize)]
struct Recorded {
    path: PathBuf,
    header: Presence,
    row_names: Presence,
    images: Option<ImageSide>,
    /// The records of each party.
    dealt: Vec<Vec<usize>>,
    held_out: Vec<usize>,
}

pub fn recorded(args: &SimulateArgs, dealt: &[Vec<usize>], held_out: &[usize]) -> Value {
    let path = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    let &ReadArgs { header, row_names, images, .. } = &args.read;
    let (dealt, held_out) = (dealt.to_vec(), held_out.to_vec());
    serde_json::to_value(Recorded { path, header, row_names, images, dealt, held_out }).unwrap_or_default()
}

/// Refuses a transcript that does not fit the memory: of each sum the words of every party, masked and not, and the sum.
pub fn check_memory(settings: &Settings, parties: usize, features: usize) -> Result<()> {
    let words = features.saturating_mul(settings.rank.saturating_mul(2)) as u64 * 4;
    let needed = words.saturating_mul(parties as u64 + 1).saturating_mul(settings.rounds as u64);
    let available = machine::available_memory();
    if needed > available {
        bail!(
            "--rounds: the messages of {} rounds take up to {}, of which {} are free; give fewer rounds, or a lower --rank",
            settings.rounds,
            human_bytes(needed),
            human_bytes(available)
        );
    }
    Ok(())
}

/// Runs all attacks on all cores.
pub fn of<T: Real>(evidence: &Evidence<'_, T>) -> Result<Audit> {
    Ok(audit(evidence, &Limits { threads: machine::cores(), ..Limits::default() })?)
}

pub fn write(file: &mut dyn Write, audit: &Audit) -> stdio::Result<()> {
    serde_json::to_writer_pretty(&mut *file, audit)?;
    writeln!(file)
}

/// Prints what was found, and fails if that is more than is allowed.
pub fn conclude(audit: &Audit, limit: Option<f64>, quiet: bool) -> Result<()> {
    if !quiet {
        say::tell(&text(audit));
    }
    match limit {
        Some(limit) if audit.highest_auc > limit => Err(OverLimit { found: audit.highest_auc, limit }.into()),
        _ => Ok(()),
    }
}

pub fn run(args: &AuditArgs) -> Result<()> {
    if let Some(path) = ledger::found(&args.dir) {
        return ledger::run(&path, args);
    }
    let record = read_record(&args.dir)?;
    match serde_json::from_value(record["precision"].clone()) {
        Ok(Precision::F64) => run_with::<f64>(args, &record),
        _ => run_with::<f32>(args, &record),
    }
}

fn run_with<T: Real>(args: &AuditArgs, record: &Value) -> Result<()> {
    let dir = &args.dir;
    let target = dir.join(output::AUDIT);
    output::check_file(&target, "DIR", args.force)?;
    let damaged = |what: &str, error: serde_json::Error| {
        anyhow!("{}: {what} cannot be read ({error}); simulate again", dir.join("run.json").display())
    };
    let recorded: Recorded =
        serde_json::from_value(record["recorded"].clone()).map_err(|error| damaged("`recorded`", error))?;
    let mut settings: Settings =
        serde_json::from_value(record.clone()).map_err(|error| damaged("the settings", error))?;
    settings.colluders = args.colluders.unwrap_or(settings.colluders);
    let transcript = read_transcript(&dir.join(output::TRANSCRIPT))?;
    let matrix = read_data::<T>(args, &recorded, record)?;
    let u = read_u::<T>(dir, matrix.cols(), settings.rank)?;
    let (dealt, held_out) = (&recorded.dealt[..], &recorded.held_out[..]);
    if dealt.iter().flatten().chain(held_out).any(|&row| row >= matrix.rows()) || !held_out.is_sorted() {
        bail!(
            "{}: `recorded` names records that there are not; simulate again",
            dir.join("run.json").display()
        );
    }
    let evidence =
        Evidence { transcript: &transcript, settings: &settings, matrix: &matrix, dealt, held_out, u: &u };
    let audit = of(&evidence)?;
    output::write_whole(&target, "DIR", |file| write(file, &audit))?;
    if args.json {
        say::answer(&serde_json::to_string(&audit)?)?;
    }
    conclude(&audit, args.max_auc, args.quiet || args.json)
}

/// `run.json` of a simulation that was recorded.
fn read_record(dir: &Path) -> Result<Value> {
    const CURE: &str = "give a folder that `partwise simulate --record` wrote";
    if !dir.is_dir() {
        bail!("{} is not a folder; {CURE}", dir.display());
    }
    let path = dir.join("run.json");
    let text = std::fs::read(&path).map_err(|error| anyhow!("{}: {error}; {CURE}", path.display()))?;
    let record: Value = serde_json::from_slice(&text)
        .map_err(|error| anyhow!("{}: not the JSON of a run ({error}); {CURE}", path.display()))?;
    if !record["recorded"].is_object() || !dir.join(output::TRANSCRIPT).exists() {
        bail!(
            "{} has no transcript of what was said; simulate again with --record, or with --audit",
            dir.display()
        );
    }
    Ok(record)
}

fn read_transcript(path: &Path) -> Result<Transcript> {
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    Transcript::read(&mut stdio::BufReader::new(file))
        .map_err(|problem| anyhow!("{}: {problem}; simulate again with --record", path.display()))
}

/// The matrix, with a row a record, if it is still the one that the run had.
fn read_data<T: Real>(args: &AuditArgs, recorded: &Recorded, record: &Value) -> Result<Matrix<T>> {
    let path = args.data.as_ref().unwrap_or(&recorded.path);
    if !path.exists() {
        bail!(
            "{} is not there, but the audit needs the records; give the matrix with --data",
            path.display()
        );
    }
    if record["input"]["sha256"] != input::sha256(path)?.as_str() {
        bail!("{} is not the matrix of this run; give that with --data", path.display());
    }
    let &Recorded { header, row_names, images, .. } = recorded;
    let transpose = record["transpose"].as_bool().unwrap_or(false);
    let read = ReadArgs { transpose, header, row_names, images };
    let matrix = input::read::<T>(path, &read, None)?.matrix;
    Ok(match serde_json::from_value(record["records"].clone()) {
        Ok(Side::Columns) => matrix.into_transpose(),
        _ => matrix,
    })
}

/// The final U, which all parties that stayed have.
fn read_u<T: Real>(dir: &Path, features: usize, rank: usize) -> Result<Vec<T>> {
    let parties = (1..=255).map(|number| dir.join(format!("{}{number}/U.npy", output::PARTY)));
    let Some(path) = parties.into_iter().find(|path| path.exists()) else {
        bail!("{} has no party's U.npy; simulate again with --record", dir.display());
    };
    let (rows, cols, u) = io::npy::read_array::<T>(&path, machine::available_memory())?;
    if (rows, cols) != (features, rank) {
        bail!("{} is {rows} x {cols}, not {features} x {rank}; simulate again with --record", path.display());
    }
    Ok(u)
}

/// Tables and verdict.
fn text(audit: &Audit) -> String {
    let mut text = String::from("\nwhat left the parties\n");
    text.push_str(&table(
        &["party", "what", "messages", "bytes", "travelled", "could be read by"],
        &left(&audit.left),
    ));
    text.push_str("\nattacks: can somebody tell whether a record was in a party's data?\n");
    let header = ["seat", "attack", "on", "AUC", "s.e.", "members", "others", "mean score", "of others"];
    text.push_str(&table(&header, &findings(audit)));
    if !audit.recoveries.is_empty() {
        text.push_str("\nlinear recovery of M from opened sketches\n");
        let header = ["seat", "method", "rounds", "equations", "unknowns", "error", "recovered"];
        text.push_str(&table(&header, &recoveries(audit)));
    }
    text.push('\n');
    audit.verdict.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
    text
}

/// Parties of which the same left are one line.
fn left(all: &[Left]) -> Vec<Vec<String>> {
    let mut parties: BTreeMap<(Cover, &str, u64, u64), Vec<u16>> = BTreeMap::new();
    for left in all {
        parties.entry((left.cover, &left.kind, left.count, left.bytes)).or_default().push(left.party);
    }
    let readers = |cover: Cover| all.iter().find(|left| left.cover == cover).map(|left| &left.readers);
    let line = |((cover, kind, count, bytes), parties): (&(Cover, &str, u64, u64), &Vec<u16>)| {
        let readers: Vec<String> =
            readers(*cover).into_iter().flatten().map(|seat: &Seat| seat.to_string()).collect();
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
            finding.seat.to_string(),
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
            recovery.seat.to_string(),
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

/// Columns as wide as what is in them.
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
