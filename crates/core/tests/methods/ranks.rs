//! The same seed gives the same result for any number of ranks and threads.

use crate::common::{matrices, run, settings};
use partwise::run::{Algorithm, Amount, Factorization, Machine, Progress, Settings, StartFrom, factorize};
use partwise::{Precision, Real};

const SHAPES: [(usize, usize); 4] = [(67, 41), (150, 9), (3, 40), (4, 4)];
const RANKS: [(usize, usize); 6] = [(1, 2), (2, 1), (2, 2), (3, 1), (5, 1), (7, 1)];

fn dsanls_bits<T: Real>() {
    for (rows, cols) in SHAPES {
        for (name, matrix) in matrices::<T>(rows, cols) {
            for (sketch_cols, sketch_rows) in [(0.4, 0.5), (1.0, 0.3), (0.3, 1.0), (1.0, 1.0)] {
                let settings = Settings {
                    sketch_cols: Some(Amount::Share(sketch_cols)),
                    sketch_rows: Some(Amount::Share(sketch_rows)),
                    trace_every: Some(5),
                    ..settings(Algorithm::Dsanls, 6, 25)
                };
                let alone = run(&matrix, 1, 1, &settings);
                assert!(alone.report.relative_error < 1.0);
                for (nodes, threads) in RANKS {
                    let other = run(&matrix, nodes, threads, &settings);
                    let place = format!("{name} {rows} x {cols}, {nodes} ranks, {threads} threads");
                    assert!(other.factors == alone.factors, "{place}");
                    let errors = |f: &Factorization<T>| -> Vec<f64> {
                        f.report.trace.iter().map(|line| line.relative_error).collect()
                    };
                    assert_eq!(errors(&other), errors(&alone), "{place}");
                }
            }
        }
    }
}

#[test]
fn dsanls_with_subsampling_gives_the_same_bits_in_f32() {
    dsanls_bits::<f32>();
}

#[test]
fn dsanls_with_subsampling_gives_the_same_bits_in_f64() {
    dsanls_bits::<f64>();
}

fn hals_agrees<T: Real>() {
    for (rows, cols) in SHAPES {
        for (name, matrix) in matrices::<T>(rows, cols) {
            let settings = settings(Algorithm::Hals, 4, 50);
            let alone = run(&matrix, 1, 1, &settings);
            for (nodes, threads) in RANKS {
                let other = run(&matrix, nodes, threads, &settings);
                let place = format!("{name} {rows} x {cols}, {nodes} ranks, {threads} threads");
                let difference = other.report.relative_error - alone.report.relative_error;
                // The second term is for a 3 x 40 matrix, which 4 components fit to rounding.
                let allowed = 1e-5 * alone.report.relative_error + 1e-7;
                assert!(difference.abs() <= allowed, "{place}: {difference}");
                if T::PRECISION == Precision::F64 {
                    for (a, b) in [(&other.factors.u, &alone.factors.u), (&other.factors.v, &alone.factors.v)]
                    {
                        let largest = b.iter().fold(0.0, |max, x| x.to_f64().max(max));
                        let apart =
                            a.iter().zip(b).map(|(a, b)| (*a - *b).to_f64().abs()).fold(0.0, f64::max);
                        assert!(apart <= 1e-9 * largest, "{place}: {apart} of {largest}");
                    }
                }
            }
        }
    }
}

#[test]
fn hals_gives_the_same_error_in_f32() {
    hals_agrees::<f32>();
}

#[test]
fn hals_gives_the_same_factors_in_f64() {
    hals_agrees::<f64>();
}

/// Sec. 3.3: what a step communicates is k x d, whatever m and n are.
#[test]
fn bytes_reduced_depend_on_k_and_d_alone() {
    let bytes = |rows: usize, cols: usize, k: usize, d: usize| {
        let (_, matrix) = matrices::<f32>(rows, cols).remove(0);
        let settings = Settings {
            sketch_cols: Some(Amount::Count(d)),
            sketch_rows: Some(Amount::Count(d)),
            ..settings(Algorithm::Dsanls, k, 10)
        };
        run(&matrix, 3, 1, &settings).report.bytes_sent
    };
    for (rows, cols) in [(60, 40), (130, 50), (50, 300)] {
        for (k, d) in [(3, 10), (3, 20), (5, 20)] {
            assert_eq!(
                bytes(rows, cols, k, d),
                10 * 2 * (k * d * 4) as u64,
                "{rows} x {cols}, k = {k}, d = {d}"
            );
        }
    }
}

#[test]
fn the_start_has_the_mean_of_the_matrix_and_empty_rows_stay_zero() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        let mut sum = 0.0;
        matrix.for_each_stored(|_, _, value| sum += value);
        // One DSANLS iteration with an enormous weight moves nothing: the factors are the start.
        let settings = Settings { alpha: 1e15, ..settings(Algorithm::Dsanls, 7, 1) };
        let factors = run(&matrix, 2, 1, &settings).factors;
        let column_sums =
            |factor: &[f64]| -> Vec<f64> { (0..7).map(|j| factor.iter().skip(j).step_by(7).sum()).collect() };
        let total: f64 =
            column_sums(&factors.u).iter().zip(column_sums(&factors.v)).map(|(u, v)| u * v).sum();
        assert!((total / sum - 1.0).abs() < 1e-9, "{name}: {total} {sum}");
        assert!(factors.u[2 * 7..3 * 7].iter().all(|&x| x == 0.0), "{name}");
        assert!(factors.v[3 * 7..4 * 7].iter().all(|&x| x == 0.0), "{name}");
        assert!(factors.u[..2 * 7].iter().all(|&x| x > 0.0), "{name}");
    }
}

#[test]
fn restarts_keep_the_best_and_a_rank_above_the_size_works() {
    let (_, matrix) = matrices::<f64>(20, 12).remove(1);
    let best = run(&matrix, 2, 1, &Settings { restarts: 4, ..settings(Algorithm::Hals, 3, 20) });
    assert_eq!(best.errors.len(), 4);
    let least = best.errors.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(best.report.relative_error, least);
    assert_eq!(best.report.seed, 3 + best.errors.iter().position(|&error| error == least).unwrap() as u64);
    let wide = run(&matrix, 3, 1, &settings(Algorithm::Hals, 30, 30));
    assert!(wide.report.relative_error < 0.2);
}

#[test]
fn a_component_of_v_that_is_dead_is_redrawn_alike_on_any_number_of_ranks() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        for algorithm in [Algorithm::Hals, Algorithm::Dsanls] {
            let settings = Settings { trace_every: Some(2), ..settings(algorithm, 5, 30) };
            let mut start = run(&matrix, 1, 1, &settings).factors;
            for factor in [&mut start.u, &mut start.v] {
                factor.iter_mut().skip(2).step_by(5).for_each(|value| *value = 0.0);
            }
            let from = |nodes| {
                factorize(
                    matrix.clone(),
                    Machine::new(nodes, 1),
                    &settings,
                    Some(StartFrom::Factors(&start)),
                    &mut |_: &Progress| false,
                )
                .unwrap()
            };
            let (alone, three) = (from(1), from(3));
            assert_eq!(alone.report.redrawn.first().map(|redrawn| redrawn.component), Some(2), "{name}");
            assert_eq!(alone.report.redrawn, three.report.redrawn, "{name}");
            assert!(alone.report.redrawn.len() <= 3, "{name}");
            assert!(alone.factors.v.iter().skip(2).step_by(5).any(|&value| value > 0.0), "{name}");
            // The column of the empty third column of M stays zero.
            assert_eq!(alone.factors.v[3 * 5 + 2], 0.0, "{name}");
            // A redrawn component makes the error no worse than four components have it.
            let four = run(&matrix, 1, 1, &Settings { rank: 4, ..settings.clone() });
            assert!(alone.report.relative_error <= 1.02 * four.report.relative_error, "{name} {algorithm:?}");
        }
    }
}
