//! `partwise simulate`: parties that show nobody their data, on one machine.

use std::path::Path;

use anyhow::{Result, bail};
use partwise::io::{self, Input};
use partwise::matrix::Matrix;
use partwise::run::Side;
use partwise::{Precision, Real};
use partwise_secure::net::Line;
use partwise_secure::protocol::{Aggregation, Stop};
use partwise_secure::split::{self, Split};
use partwise_secure::{Outcome, Plan, simulate};
use serde_json::{Value, json};

use crate::args::SimulateArgs;
use crate::{input, output, say};

pub fn run(args: &SimulateArgs) -> Result<()> {
    match args.precision {
        Precision::F32 => run_in::<f32>(args),
        Precision::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &SimulateArgs) -> Result<()> {
    let settings = args.settings();
    // What is wrong whatever the matrix is said before it is read.
    settings.check()?;
    output::check_folder(&args.out, args.force)?;
    let Input { matrix, format, .. } = input::read::<T>(&args.file, &args.read, None)?;
    input::check_range(&args.file, &matrix)?;
    let (m, n, stored) = (matrix.rows(), matrix.cols(), matrix.stored());
    // The parts, each by row and by column.
    input::check_memory("the simulation", matrix.bytes().saturating_mul(4))?;
    let matrix = match args.records {
        Side::Rows => matrix,
        Side::Columns => matrix.into_transpose(),
    };
    let features = matrix.cols();
    let (names, dealt) = deal(args, &matrix)?;
    let parts = split::parts(matrix, &dealt)?;
    let plan =
        Plan { settings, slowness: args.speeds.clone(), line: Line::default(), threads: 1, loses: args.lose };
    if !args.quiet {
        warn(&plan, dealt.len());
    }
    let talk = !args.quiet && !args.json;
    if talk {
        say::tell(&format!("{}: {m} x {n}, {format}", args.file.display()));
        say::tell(&format!(
            "{} parties with {} to {} records of {features} features",
            dealt.len(),
            dealt.iter().map(Vec::len).min().unwrap_or(0),
            dealt.iter().map(Vec::len).max().unwrap_or(0)
        ));
    }
    let outcome = simulate(parts, &plan)?;
    let source = json!({
        "name": args.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        "bytes": input::bytes(&args.file), "sha256": input::sha256(&args.file)?, "format": format,
        "rows": m, "cols": n, "stored": stored,
    });
    let record = record::<T>(args, &plan, &outcome, &names, source)?;
    write(args, &outcome, features, &record)?;
    if args.json {
        say::answer(&record.to_string())?;
    } else if talk {
        conclude(args, &outcome);
    }
    Ok(())
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

fn record<T: Real>(
    args: &SimulateArgs,
    plan: &Plan,
    outcome: &Outcome<T>,
    names: &[String],
    source: Value,
) -> Result<Value> {
    let parties = outcome.parties.iter().zip(1..).map(|(party, number): (_, usize)| match party {
        Some(party) => json!({
            "party": number, "name": names.get(number - 1), "records": party.records,
            "relative_error": party.relative_error,
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
        "latency": plan.line.latency,
        "bandwidth": plan.line.bandwidth,
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

fn write<T: Real>(args: &SimulateArgs, outcome: &Outcome<T>, features: usize, record: &Value) -> Result<()> {
    let staging = output::Staging::new(&args.out)?;
    for (party, number) in outcome.parties.iter().zip(1..) {
        let Some(party) = party else { continue };
        let folder = format!("{}{number}", output::PARTY);
        staging
            .write(&format!("{folder}/U.npy"), |file| io::npy::write(file, features, args.rank, &party.u))?;
        staging.write(&format!("{folder}/V.npy"), |file| {
            io::npy::write(file, party.records, args.rank, &party.v)
        })?;
    }
    staging.write("trace.csv", |file| {
        writeln!(file, "round,seconds,relative_error,bytes")?;
        for line in &outcome.trace {
            writeln!(file, "{},{:.6},{:.9},{}", line.round, line.seconds, line.relative_error, line.bytes)?;
        }
        Ok(())
    })?;
    staging.write("run.json", |file| writeln!(file, "{record:#}"))?;
    staging.commit()
}

fn conclude<T>(args: &SimulateArgs, outcome: &Outcome<T>) {
    let why = match outcome.stopped_by {
        Stop::Rounds => "all rounds done",
        Stop::Tolerance => "the error hardly fell any more",
        Stop::LeakBudget => "one round more would show a record",
    };
    for (party, number) in outcome.parties.iter().zip(1..) {
        if party.is_none() {
            say::tell(&format!("party {number} left; the others went on"));
        }
    }
    say::tell(&format!(
        "relative error {:.6} after {} rounds and {:.2} s on the simulated clock ({why})",
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
}
