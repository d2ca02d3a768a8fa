//! The table of `docs/secure.md`: every method against HALS on the pooled matrix and against each party alone.
//!
//! `compare FILE RANK rows|columns uniform|first=0.5 [PARTIES [ROUNDS [PROTOCOL]]]`

use std::path::Path;

use partwise::io::{self, Presence, ReadOptions};
use partwise::matrix::Matrix;
use partwise::run::{self, Factors, Machine, Progress, factorize};
use partwise::threads::Threads;
use partwise_secure::protocol::{Local, Protocol, Settings, party_seed};
use partwise_secure::risk::Accepted;
use partwise_secure::split::{Split, parts};
use partwise_secure::{Plan, SimulationOutcome, simulate};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize| arguments.get(place).map(String::as_str);
    let (Some(file), Some(rank), Some(side), Some(split)) =
        (argument(0), argument(1), argument(2), argument(3))
    else {
        return Err("compare FILE RANK rows|columns uniform|first=0.5 [PARTIES [ROUNDS [PROTOCOL]]]".into());
    };
    let rank: usize = rank.parse()?;
    let parties: usize = argument(4).unwrap_or("5").parse()?;
    let rounds: usize = argument(5).unwrap_or("200").parse()?;
    let matrix = io::read::<f32>(
        Path::new(file),
        &ReadOptions {
            memory: 1 << 34,
            header: Presence::Auto,
            row_names: Presence::Auto,
            images: Default::default(),
            missing_as_nan: false,
        },
    )?
    .matrix;
    let matrix = if side == "columns" { matrix.into_transpose() } else { matrix };
    let dealt = split.parse::<Split>()?.deal(matrix.rows(), parties);
    let dealt_parts = parts(&matrix, &dealt)?;

    println!("{file}, k = {rank}, {parties} parties, {split}, {rounds} rounds");
    let settings = Settings { rounds, tolerance: 0.0, ..Settings::new(Protocol::Pooled, rank) };
    let pooled = pooled_hals(&matrix, &dealt_parts, &settings)?;
    println!("| HALS on the pooled matrix | {pooled:.5} |");
    let alone = alone(&dealt_parts, rank, rounds)?;
    let each: Vec<String> = alone.iter().map(|(error, _)| format!("{error:.4}")).collect();
    println!("| each party alone | {:.5} | {}", together(&alone), each.join(", "));
    let asked = argument(6).map(|name| name.replace('-', "").to_lowercase());
    for protocol in Protocol::ALL {
        if asked.as_ref().is_some_and(|asked| *asked != format!("{protocol:?}").to_lowercase()) {
            continue;
        }
        let settings = Settings {
            accepted: Accepted {
                pooled_sums_show_records: true,
                few_records_show_in_sums: true,
                ..Accepted::default()
            },
            rounds,
            tolerance: 0.0,
            ..Settings::new(protocol, rank)
        };
        let plan = Plan::new(settings);
        match simulate(dealt_parts.clone(), &plan) {
            Ok(outcome) => row(protocol, &outcome, pooled, &alone),
            Err(error) => println!("| {protocol:?} | {error} |"),
        }
    }
    Ok(())
}

/// The error over all parties, from each party's and its squared norm.
fn together(parties: &[(f64, f64)]) -> f64 {
    let squares: f64 = parties.iter().map(|(error, norm)| error * error * norm).sum();
    (squares / parties.iter().map(|(_, norm)| norm).sum::<f64>()).sqrt()
}

fn row(protocol: Protocol, outcome: &SimulationOutcome<f32>, pooled: f64, alone: &[(f64, f64)]) {
    // The error at parts of the simulated time shows the way.
    let at = |share: f64| {
        let mut lines = outcome.trace.iter().rev().filter(|line| line.seconds <= share * outcome.seconds);
        lines.next().map_or("-".into(), |line| format!("{:.4}", line.relative_error))
    };
    let each = outcome.parties.iter().flatten().zip(alone).map(|(party, (alone, _))| {
        format!("{:.4} ({:+.1}%)", party.relative_error, 100.0 * (party.relative_error / alone - 1.0))
    });
    println!(
        "| {protocol:?} | {:.5} | {:+.2}% | {:.2} s ({}, {}, {}) | {:.1} MiB | {} rounds, {:?}, wall {:.1} s, masking {:.2} s | {}",
        outcome.relative_error,
        100.0 * (outcome.relative_error / pooled - 1.0),
        outcome.seconds,
        at(0.1),
        at(0.25),
        at(0.5),
        outcome.cost.bytes_per_party as f64 / (1 << 20) as f64,
        outcome.rounds,
        outcome.stopped_by,
        outcome.cost.wall_seconds,
        outcome.cost.masking_seconds,
        each.collect::<Vec<_>>().join(", "),
    );
}

/// From the parties' own start.
fn pooled_hals(matrix: &Matrix<f32>, dealt: &[Matrix<f32>], settings: &Settings) -> Result<f64, Failure> {
    let (features, records, k) = (matrix.cols(), matrix.rows(), settings.rank);
    let mut sum = 0.0;
    matrix.for_each_stored(|_, _, value| sum += value);
    let mean = sum / (features as f64 * records as f64);
    let (mut u, mut v) = (Vec::new(), Vec::new());
    for (party, part) in (1..).zip(dealt) {
        let mut local = Local::new(part.clone(), settings, Threads::new(1)?)?;
        local.start(settings.seed, party_seed(settings.seed, "partwise private", party), mean);
        v.extend(local.v);
        u = local.u;
    }
    let start = Factors { rows: features, cols: records, k, u, v };
    let hals = run::Settings {
        iterations: settings.rounds,
        tolerance: 0.0,
        algorithm: run::Algorithm::Hals,
        ..run::Settings::new(k)
    };
    let from = Some(run::StartFrom::Factors(&start));
    let machine = Machine::new(1, 2);
    let result = factorize(matrix.clone().into_transpose(), machine, &hals, from, &mut |_: &Progress| false)?;
    Ok(result.report.relative_error)
}

/// Every party's own NMF, with its own U, judged on its own data: the error and the squared norm of each.
fn alone(dealt: &[Matrix<f32>], rank: usize, rounds: usize) -> Result<Vec<(f64, f64)>, Failure> {
    let mut parties = Vec::new();
    for part in dealt {
        let mut norm = 0.0;
        part.for_each_stored(|_, _, value| norm += value * value);
        let hals = run::Settings {
            iterations: rounds,
            tolerance: 0.0,
            algorithm: run::Algorithm::Hals,
            ..run::Settings::new(rank)
        };
        let machine = Machine::new(1, 2);
        let result = factorize(part.clone(), machine, &hals, None, &mut |_: &Progress| false)?;
        parties.push((result.report.relative_error, norm));
    }
    Ok(parties)
}
