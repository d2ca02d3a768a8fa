//! `partwise simulate`: parties that show nobody their data, in one process or as ranks of an MPI job.

use std::path::Path;

use anyhow::{Result, bail};
use partwise::comm::Comm;
use partwise::error::Error as CoreError;
use partwise::io::{self, Input};
use partwise::matrix::Matrix;
use partwise::run::Side;
use partwise::{Precision, Real};
use partwise_secure::net::TOWNS;
use partwise_secure::protocol::{Aggregation, Stop};
use partwise_secure::split::{self, Split};
use partwise_secure::{Error, OnRank, Outcome, PartyOutcome, Plan, run_on_rank, simulate};
use serde_json::{Value, json};

use super::cluster::{Agreed, agree, local, same_file};
use crate::args::SimulateArgs;
use crate::{input, output, say};

pub fn run(args: &SimulateArgs, comm: Option<&dyn Comm>) -> Result<()> {
    match (args.precision, comm) {
        (Precision::F32, None) => alone::<f32>(args),
        (Precision::F64, None) => alone::<f64>(args),
        (Precision::F32, Some(comm)) => on_ranks::<f32>(args, comm),
        (Precision::F64, Some(comm)) => on_ranks::<f64>(args, comm),
    }
}

/// What was read, and who has what of it.
struct Dealt<M> {
    matrix: M,
    features: usize,
    /// The parties' names, where a file gives them.
    names: Vec<String>,
    records: Vec<Vec<usize>>,
    plan: Plan,
    /// What the record says of the file.
    source: Value,
}

impl<M> Dealt<M> {
    fn counts(&self) -> Vec<usize> {
        self.records.iter().map(Vec::len).collect()
    }

    /// The matrix, and the rest.
    fn apart(self) -> (M, Dealt<()>) {
        let Dealt { matrix, features, names, records, plan, source } = self;
        (matrix, Dealt { matrix: (), features, names, records, plan, source })
    }
}

/// All parties in this process.
fn alone<T: Real>(args: &SimulateArgs) -> Result<()> {
    output::check_folder(&args.out, args.force)?;
    let (matrix, dealt) = read::<T>(args)?.apart();
    // The parts, each by row and by column.
    input::check_memory("the simulation", matrix.bytes().saturating_mul(4))?;
    let parts = split::parts(&matrix, &dealt.records)?;
    drop(matrix);
    introduce(args, &dealt);
    let outcome = simulate(parts, &dealt.plan)?;
    let record = record(args, &dealt, &outcome)?;
    let staging = output::Staging::new(&args.out)?;
    for (party, number) in outcome.parties.iter().zip(1..) {
        if let Some(party) = party {
            write_party(&staging, args, number, party, dealt.features)?;
        }
    }
    write_run(&staging, &outcome, &record)?;
    staging.commit()?;
    conclude(args, &outcome, &record)
}

/// The coordinator, or one party, as a rank of a job: each reads the file and keeps its own records, each party writes its
/// own factors, and rank 0 the rest.
fn on_ranks<T: Real>(args: &SimulateArgs, comm: &dyn Comm) -> Result<()> {
    let chief = comm.rank() == 0;
    if args.network.is_some() {
        return Err(Agreed("--network: between ranks clocks are real; leave it out".into()).into());
    }
    agree(comm, if chief { output::check_folder(&args.out, args.force) } else { Ok(()) })?;
    let (matrix, dealt) = agree(comm, read::<T>(args))?.apart();
    agree(comm, same_file(comm, dealt.source.to_string().as_bytes(), &args.file))?;
    let counts = dealt.counts();
    agree(comm, dealt.plan.check(&counts, dealt.features).map_err(Into::into))?;
    let own = comm.rank().checked_sub(1).and_then(|party| dealt.records.get(party..=party));
    let part = own.map(|own| split::parts(&matrix, own)).transpose();
    let part = agree(comm, part.map_err(Into::into))?.and_then(|mut parts| parts.pop());
    drop(matrix);
    introduce(args, &dealt);
    let ran = run_on_rank(comm, part, (&counts, dealt.features), &dealt.plan);
    let ran = ran.map_err(|error| match error {
        Error::Core(error @ (CoreError::Transport { .. } | CoreError::RankLost { .. })) => local(comm, error),
        // Every rank has it.
        error => Agreed(error.to_string()).into(),
    })?;

    let staging = agree(comm, if chief { output::Staging::new(&args.out).map(Some) } else { Ok(None) })?;
    let path =
        staging.as_ref().map(|staging| staging.path().to_string_lossy().into_owned()).unwrap_or_default();
    let path = String::from_utf8_lossy(&comm.broadcast(path.into_bytes())?).into_owned();
    let staging = staging.unwrap_or_else(|| output::Staging::of_another(path.into(), &args.out));
    let written = match ran {
        OnRank::Party(party) => {
            write_party(&staging, args, comm.rank(), &party, dealt.features).map(|()| None)
        }
        OnRank::Coordinator(outcome) => record(args, &dealt, &outcome).and_then(|mut record| {
            record["transport"] = json!("mpi");
            write_run(&staging, &outcome, &record)?;
            Ok(Some((outcome, record)))
        }),
    };
    let written = agree(comm, written)?;
    agree(comm, if chief { staging.commit() } else { Ok(()) })?;
    written.map_or(Ok(()), |(outcome, record)| conclude(args, &outcome, &record))
}

fn read<T: Real>(args: &SimulateArgs) -> Result<Dealt<Matrix<T>>> {
    let settings = args.settings();
    // What is wrong whatever the matrix is said before it is read.
    settings.check()?;
    let Input { matrix, format, .. } = input::read::<T>(&args.file, &args.read, None)?;
    input::check_range(&args.file, &matrix)?;
    let source = json!({
        "name": args.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        "bytes": input::bytes(&args.file), "sha256": input::sha256(&args.file)?, "format": format,
        "rows": matrix.rows(), "cols": matrix.cols(), "stored": matrix.stored(),
    });
    let matrix = match args.records {
        Side::Rows => matrix,
        Side::Columns => matrix.into_transpose(),
    };
    let (names, records) = deal(args, &matrix)?;
    let line = args.network.unwrap_or(TOWNS);
    let plan = Plan { settings, slowness: args.speeds.clone(), line, threads: 1, loses: args.lose };
    Ok(Dealt { features: matrix.cols(), matrix, names, records, plan, source })
}

/// What users should know before it starts.
fn introduce<M>(args: &SimulateArgs, dealt: &Dealt<M>) {
    if !args.quiet {
        warn(&dealt.plan, dealt.records.len());
    }
    if !args.quiet && !args.json {
        let counts = dealt.counts();
        let (rows, cols, format) = (&dealt.source["rows"], &dealt.source["cols"], &dealt.source["format"]);
        say::tell(&format!(
            "{}: {rows} x {cols}, {}",
            args.file.display(),
            format.as_str().unwrap_or_default()
        ));
        say::tell(&format!(
            "{} parties with {} to {} records of {} features",
            counts.len(),
            counts.iter().min().unwrap_or(&0),
            counts.iter().max().unwrap_or(&0),
            dealt.features
        ));
    }
}

/// The parties' names, where a file gives them, and their records.
fn deal<T: Real>(args: &SimulateArgs, matrix: &Matrix<T>) -> Result<(Vec<String>, Vec<Vec<usize>>)> {
    let (names, dealt) = match (args.split.parse::<Split>(), args.parties) {
        (Ok(_), None) => {
            bail!("--parties: how many parties there are is missing; give it, or a file to --split")
        }
        (Ok(split), Some(parties)) => {
            if !(2..=255).contains(&parties) {
                bail!("--parties: {parties} is out of range; give 2 to 255");
            }
            (Vec::new(), split.deal(matrix.rows(), parties))
        }
        (Err(problem), _) if !Path::new(&args.split).exists() => {
            bail!("--split: {problem}; check {}", args.split)
        }
        (Err(_), _) => split::by_name(&io::labels::read(Path::new(&args.split), matrix.rows())?),
    };
    if let Some(parties) = args.parties.filter(|&parties| parties != dealt.len()) {
        bail!(
            "--parties: {parties} is asked for, but {} names {}; leave one of them out",
            args.split,
            dealt.len()
        );
    }
    Ok((names, dealt))
}

/// What users should know before it starts.
fn warn(plan: &Plan, parties: usize) {
    let settings = &plan.settings;
    if settings.aggregation == Aggregation::Plain {
        say::warn(
            "warning: without masks the coordinator sees every party's share, and with it much of what the records have \
             in common; leave out --aggregation plain to let it see sums alone",
        );
    } else if parties == 3 {
        say::warn(
            "note: three parties tolerate no dropout: a sum without one of them would be opened for nobody",
        );
    }
    let one_group = parties < 2 * (settings.colluders + 2).max(3);
    if settings.protocol.is_asynchronous() && settings.aggregation == Aggregation::Secure && one_group {
        say::warn(
            "note: so few parties form one group, whose members wait for the slowest before its sum is opened, though \
             they compute on meanwhile",
        );
    }
}

fn record<T: Real>(args: &SimulateArgs, dealt: &Dealt<()>, outcome: &Outcome<T>) -> Result<Value> {
    let Dealt { plan, names, source, .. } = dealt;
    let parties = outcome.parties.iter().zip(1..).map(|(party, number): (_, usize)| match party {
        Some(party) => json!({
            "party": number, "name": names.get(number - 1), "records": party.records,
            "relative_error": party.relative_error, "sent": party.sent,
        }),
        None => json!({ "party": number, "name": names.get(number - 1), "left": true }),
    });
    let mut record = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "relative_error": outcome.relative_error,
        "rounds": outcome.rounds,
        "stopped_by": outcome.stopped_by,
        "seconds": outcome.seconds,
        "parties": parties.collect::<Vec<_>>(),
        "groups": outcome.groups,
        "cost": outcome.cost,
        "transcripts": outcome.transcripts,
        "max_rounds": plan.settings.rounds,
        "records": args.records,
        "split": args.split,
        "speeds": args.speeds,
        "lose": args.lose,
        "network": plan.line.to_string(),
        "transpose": args.read.transpose,
        "precision": T::PRECISION,
        "input": source,
    });
    if let (Some(record), Value::Object(rest)) =
        (record.as_object_mut(), serde_json::to_value(&plan.settings)?)
    {
        for (name, value) in rest {
            record.entry(name).or_insert(value);
        }
    }
    Ok(record)
}

/// What a party would have.
fn write_party<T: Real>(
    staging: &output::Staging,
    args: &SimulateArgs,
    number: usize,
    party: &PartyOutcome<T>,
    features: usize,
) -> Result<()> {
    let folder = format!("{}{number}", output::PARTY);
    staging.write(&format!("{folder}/U.npy"), |file| io::npy::write(file, features, args.rank, &party.u))?;
    staging.write(&format!("{folder}/V.npy"), |file| io::npy::write(file, party.records, args.rank, &party.v))
}

fn write_run<T>(staging: &output::Staging, outcome: &Outcome<T>, record: &Value) -> Result<()> {
    staging.write("trace.csv", |file| {
        writeln!(file, "round,seconds,relative_error,bytes")?;
        for line in &outcome.trace {
            writeln!(file, "{},{:.6},{:.9},{}", line.round, line.seconds, line.relative_error, line.bytes)?;
        }
        Ok(())
    })?;
    staging.write("run.json", |file| writeln!(file, "{record:#}"))
}

fn conclude<T>(args: &SimulateArgs, outcome: &Outcome<T>, record: &Value) -> Result<()> {
    if args.json {
        return say::answer(&record.to_string());
    }
    if args.quiet {
        return Ok(());
    }
    let why = match outcome.stopped_by {
        Stop::Rounds => "all rounds done",
        Stop::Tolerance => "the error hardly fell any more",
        Stop::LeakBudget => "one round more would show a record",
    };
    let clock = if record["transport"].is_null() { " on the simulated clock" } else { "" };
    for (party, number) in outcome.parties.iter().zip(1..) {
        if party.is_none() {
            say::tell(&format!("party {number} left; the others went on"));
        }
    }
    say::tell(&format!(
        "relative error {:.6} after {} rounds and {:.2} s{clock} ({why})",
        outcome.relative_error, outcome.rounds, outcome.seconds
    ));
    let cost = outcome.cost;
    say::tell(&format!(
        "a party sent and received {}, in {:.0} sums of {:.1} round trips; all took {:.2} s here, {:.2} s of it masking",
        input::size(cost.bytes_per_party),
        cost.sums,
        cost.round_trips_per_sum,
        cost.wall_seconds,
        cost.masking_seconds
    ));
    say::tell(&format!("written to {}", args.out.display()));
    Ok(())
}
