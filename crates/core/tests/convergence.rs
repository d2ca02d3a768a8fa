//! Theorem `theorem:pgd`: with a diminishing step DSANLS goes to a stationary point of the unsketched problem.

mod common;

use common::settings;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise::run::{Algorithm, Amount, Factors, Settings, Step, factorize};

const M: usize = 40;
const N: usize = 30;
const K: usize = 4;

/// Rank 4 with noise. With `tail` the rows of V have Pareto-distributed sizes with an infinite variance: a few columns
/// carry most of M, and most samples miss them.
fn entries(tail: bool) -> Vec<f64> {
    let mut rng = stream(5, Purpose::StartU, 0, 0);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| uniform(&mut rng)).collect() };
    let (u, v, noise, sizes) = (draw(M * K), draw(N * K), draw(M * N), draw(N));
    (0..M * N)
        .map(|i| {
            let (row, col) = (i / N, i % N);
            let model: f64 = (0..K).map(|l| u[row * K + l].powi(2) * v[col * K + l].powi(2)).sum();
            let size = if tail { sizes[col].powf(-1.0 / 1.5) } else { 1.0 };
            size * (model + 0.3 * noise[i])
        })
        .collect()
}

/// ‖(∇_U, ∇_V)‖ of ‖M − U Vᵀ‖², where an entry at 0 may only grow; relative to the size of M.
fn projected_gradient(matrix: &[f64], factors: &Factors<f64>) -> f64 {
    let at = |row: usize, col: usize| {
        let model: f64 = (0..K).map(|l| factors.u[row * K + l] * factors.v[col * K + l]).sum();
        model - matrix[row * N + col]
    };
    let mut squares = 0.0;
    let mut add = |value: f64, gradient: f64| {
        squares += (if value > 0.0 { gradient } else { gradient.min(0.0) }).powi(2);
    };
    for l in 0..K {
        for row in 0..M {
            let gradient: f64 = (0..N).map(|col| 2.0 * at(row, col) * factors.v[col * K + l]).sum();
            add(factors.u[row * K + l], gradient);
        }
        for col in 0..N {
            let gradient: f64 = (0..M).map(|row| 2.0 * at(row, col) * factors.u[row * K + l]).sum();
            add(factors.v[col * K + l], gradient);
        }
    }
    squares.sqrt() / matrix.iter().map(|x| x * x).sum::<f64>()
}

fn run(matrix: &[f64], settings: &Settings) -> (f64, f64) {
    let dense = Dense::new(M, N, Order::RowMajor, Values::Real(matrix.to_vec()));
    let result = factorize(Matrix::Dense(dense), 2, 1, settings, None, &mut |_| false).unwrap();
    (projected_gradient(matrix, &result.factors), result.report.relative_error)
}

#[test]
fn a_long_run_drives_the_projected_gradient_towards_zero() {
    for tail in [false, true] {
        let matrix = entries(tail);
        for step in [Step::UnitFree, Step::Absolute] {
            let at = |iterations: usize| {
                let sketched = Settings {
                    sketch_cols: Some(Amount::Share(0.4)),
                    sketch_rows: Some(Amount::Share(0.4)),
                    step,
                    // In units of the data: the Gram diagonals are of the size of 1 to 10 here.
                    beta: if step == Step::Absolute { 0.1 } else { Settings::BETA },
                    trace_every: Some(iterations),
                    ..settings(Algorithm::Dsanls, K, iterations)
                };
                run(&matrix, &sketched)
            };
            let [early, late, end] = [100, 3_000, 100_000].map(at);
            println!("tail {tail}, {step:?}: {early:?} {late:?} {end:?}");
            assert!(late.0 < 0.5 * early.0, "tail {tail}, {step:?}: {early:?} {late:?}");
            // Steps that fall as 1/t leave noise that falls as 1/sqrt(t): at best a
            // factor of 32 from 100 to 100,000.
            assert!(
                end.0 < 0.5 * late.0 && end.0 < 0.2 * early.0,
                "tail {tail}, {step:?}: {early:?} {late:?} {end:?}"
            );
            let exact = run(&matrix, &settings(Algorithm::Hals, K, 5_000));
            assert!(end.1 < 1.02 * exact.1, "tail {tail}, {step:?}: {end:?} against {exact:?}");
        }
    }
}

/// With S = I and no damping the proximal step is HALS.
#[test]
fn without_sketch_and_damping_dsanls_is_hals() {
    let matrix = entries(false);
    let all = Some(Amount::Share(1.0));
    // α = 0 makes the first step undamped; β is as small as it can be.
    let proximal = Settings {
        alpha: 0.0,
        beta: f64::MIN_POSITIVE,
        sketch_cols: all,
        sketch_rows: all,
        ..settings(Algorithm::Dsanls, K, 30)
    };
    let (a, b) = (run(&matrix, &proximal), run(&matrix, &settings(Algorithm::Hals, K, 30)));
    assert!((a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12, "{a:?} {b:?}");
}
