//! The gate must not stop honest runs, and `few-rounds` must come close to the result of many rounds: on
//! small tables in `make test`, on real tables from `PARTWISE_DATA` in `make long-runs`.

use std::path::PathBuf;

use partwise::io::{ReadOptions, read};
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise_secure::protocol::{Protocol, Settings};
use partwise_secure::split::{Split, parts};
use partwise_secure::{Plan, Safeguards, simulate};

const PARTIES: usize = 5;

/// The relative error of a run in which every party applies its default checks.
fn guarded(matrix: &Matrix<f32>, mut settings: Settings) -> f64 {
    settings.accepted.pooled_sums_show_records = true;
    settings.accepted.few_records_show_in_sums = true;
    let dealt = Split::Uniform.deal(matrix.rows(), PARTIES);
    let plan = Plan { safeguards: Safeguards::default(), ..Plan::new(settings) };
    let outcome = simulate(parts(matrix, &dealt).unwrap(), &plan);
    outcome.unwrap_or_else(|error| panic!("{error}")).relative_error
}

fn unguarded(matrix: &Matrix<f32>, mut settings: Settings) -> f64 {
    settings.accepted.pooled_sums_show_records = true;
    let dealt = Split::Uniform.deal(matrix.rows(), PARTIES);
    simulate(parts(matrix, &dealt).unwrap(), &Plan::new(settings)).unwrap().relative_error
}

/// 600 records of three kinds with noise, one row each.
fn small(seed: u64) -> Matrix<f32> {
    let (records, features) = (600, 30);
    let mut rng = stream(seed, Purpose::Fill, 0, 0);
    let mut values = Vec::new();
    for record in 0..records {
        let weights: Vec<f64> =
            (0..3).map(|kind| if record % 3 == kind { 1.0 } else { 0.3 } * uniform(&mut rng)).collect();
        for feature in 0..features {
            let mixed: f64 =
                (0..3).map(|kind| weights[kind] * if feature % 3 == kind { 1.0 } else { 0.1 }).sum();
            values.push((mixed + 0.1 * uniform(&mut rng)) as f32);
        }
    }
    Matrix::Dense(Dense::new(records, features, Order::RowMajor, Values::Real(values.into())))
}

fn settings(protocol: Protocol, seed: u64, rank: usize) -> Settings {
    let settings = Settings { seed, tolerance: 0.0, ..Settings::new(protocol, rank) };
    Settings { rounds: settings.rounds.min(20), ..settings }
}

#[test]
fn honest_runs_pass_the_gate() {
    for seed in 0..3 {
        for protocol in
            [Protocol::Pooled, Protocol::FewRounds, Protocol::SynSd, Protocol::SynSsdU, Protocol::AsynSd]
        {
            guarded(&small(seed), settings(protocol, seed, 3));
        }
    }
}

#[test]
fn few_rounds_come_close_to_many() {
    for seed in 0..3 {
        let many = Settings { rounds: 200, ..settings(Protocol::Pooled, seed, 3) };
        let (many, few) =
            (unguarded(&small(seed), many), unguarded(&small(seed), settings(Protocol::FewRounds, seed, 3)));
        assert!(few <= 1.02 * many, "seed {seed}: {few} in 10 rounds, {many} in 200");
    }
}

/// A table from `PARTWISE_DATA` with one row per record, limited to `most` rows; `None` if the file is
/// absent.
fn table(name: &str, most: usize) -> Option<Matrix<f32>> {
    let path = PathBuf::from(std::env::var_os("PARTWISE_DATA")?).join(name);
    let options = ReadOptions { memory: 8 << 30, ..Default::default() };
    let matrix = read::<f32>(&path, &options).ok()?.matrix;
    let matrix = if name.starts_with("samson") || name.starts_with("pcawg") {
        matrix.into_transpose()
    } else {
        matrix
    };
    Some(matrix.part(0..most.min(matrix.rows()), 0..matrix.cols()))
}

#[test]
#[ignore = "minutes, and needs PARTWISE_DATA"]
fn honest_runs_on_real_tables_pass_the_gate() {
    for name in ["face.npy.gz", "mnist.npy.gz", "newsgroups.npz", "samson.npy.gz"] {
        let Some(matrix) = table(name, 20_000) else { continue };
        for seed in 0..20 {
            for protocol in [Protocol::SynSd, Protocol::FewRounds] {
                guarded(&matrix, settings(protocol, seed, 10));
            }
        }
        eprintln!("{name}: no stop in 20 seeds");
    }
}

#[test]
#[ignore = "minutes, and needs PARTWISE_DATA"]
fn few_rounds_come_close_to_many_on_real_tables() {
    for name in ["pcawg.npy.gz", "mnist.npy.gz", "newsgroups.npz"] {
        let Some(matrix) = table(name, 20_000) else { continue };
        let errors = |protocol, rounds| {
            let error = |seed| unguarded(&matrix, Settings { rounds, ..settings(protocol, seed, 10) });
            (0..4).map(error).sum::<f64>() / 4.0
        };
        let (many, few) = (errors(Protocol::Pooled, 300), errors(Protocol::FewRounds, 10));
        eprintln!("{name}: {few:.5} in 10 rounds, {many:.5} in 300: {:.4}", few / many);
        assert!(few <= 1.02 * many, "{name}: {few} in 10 rounds, {many} in 300");
    }
}
