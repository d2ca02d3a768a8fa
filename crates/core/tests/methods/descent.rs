//! Exact methods go down, and all methods go where they should together.

use crate::common::{matrices, run, settings};
use partwise::run::{Algorithm, Amount, Machine, Progress, Settings, StartFrom, factorize};
use partwise::sketch::SketchKind;

const EXACT: [Algorithm; 3] = [Algorithm::Hals, Algorithm::Mu, Algorithm::Bpp];

#[test]
fn exact_methods_never_raise_the_error() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        for algorithm in EXACT {
            for nodes in [1, 3] {
                let result = run(&matrix, nodes, 1, &settings(algorithm, 5, 100));
                for pair in result.report.trace.windows(2) {
                    let (before, after) = (pair[0].relative_error, pair[1].relative_error);
                    // Evaluation itself rounds.
                    assert!(after <= before * (1.0 + 1e-12), "{name} {algorithm:?}: {before} {after}");
                }
                assert!(
                    result.report.trace[100].relative_error < 0.9 * result.report.trace[1].relative_error
                );
            }
        }
    }
}

#[test]
fn exact_methods_agree_on_any_number_of_ranks() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        for algorithm in EXACT {
            let alone = run(&matrix, 1, 1, &settings(algorithm, 4, 50)).factors;
            for nodes in [2, 5] {
                let other = run(&matrix, nodes, 1, &settings(algorithm, 4, 50)).factors;
                let largest = alone.u.iter().copied().fold(0.0, f64::max);
                let apart = alone.u.iter().zip(&other.u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(apart <= 1e-9 * largest, "{name} {algorithm:?}, {nodes} ranks: {apart}");
            }
        }
    }
}

#[test]
fn every_sketch_gives_the_same_error_on_any_number_of_ranks() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        for sketch in SketchKind::ALL {
            let settings = Settings {
                sketch,
                sketch_cols: Some(Amount::Share(0.5)),
                sketch_rows: Some(Amount::Share(0.5)),
                ..settings(Algorithm::Dsanls, 5, 50)
            };
            let alone = run(&matrix, 1, 1, &settings);
            assert!(
                alone.report.relative_error < 0.75 * alone.report.trace[0].relative_error,
                "{name} {sketch:?}"
            );
            for (nodes, threads) in [(1, 2), (2, 1), (5, 1)] {
                let other = run(&matrix, nodes, threads, &settings);
                let apart = alone
                    .factors
                    .u
                    .iter()
                    .zip(&other.factors.u)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                let largest = alone.factors.u.iter().copied().fold(0.0, f64::max);
                assert!(apart <= 1e-9 * largest, "{name} {sketch:?}, {nodes} ranks: {apart} of {largest}");
            }
        }
    }
}

/// Eq. `eq:extra_con`, and that it is not met by itself.
#[test]
fn the_bound_holds() {
    for (name, matrix) in matrices::<f64>(20, 12) {
        let mut squares = 0.0;
        matrix.for_each_stored(|_, _, value| squares += value * value);
        let upper = (2.0 * squares.sqrt()).sqrt();
        // From a tiny V the first step makes U huge.
        let free = settings(Algorithm::Hals, 3, 1);
        let mut start = run(&matrix, 1, 1, &free).factors;
        start.v.iter_mut().for_each(|value| *value *= 1e-4);
        for algorithm in [Algorithm::Hals, Algorithm::Dsanls] {
            let largest = |bound: bool| {
                // A vanishing penalty keeps what is not bounded from being balanced.
                let l1_u = if bound { 0.0 } else { 1e-12 };
                let settings = Settings { algorithm, bound, l1_u, alpha: 0.0, ..free.clone() };
                let result = factorize(
                    matrix.clone(),
                    Machine::new(2, 1),
                    &settings,
                    Some(StartFrom::Factors(&start)),
                    &mut |_: &Progress| false,
                )
                .unwrap();
                result.factors.u.into_iter().fold(0.0, f64::max)
            };
            assert!(largest(false) > upper, "{name}: {} {upper}", largest(false));
            assert!(largest(true) <= upper * (1.0 + 1e-12), "{name}");
        }
    }
}
