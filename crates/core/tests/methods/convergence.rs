//! Theorem `theorem:pgd`: with a diminishing step DSANLS goes to a stationary point of the unsketched problem.

use crate::common::settings;
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise::run::{
    Algorithm, Amount, Factors, Machine, Progress, Settings, SketchedSolver, Step, factorize,
};
use partwise::sketch::SketchKind;

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

/// On one rank, since others give the same (`ranks`, `descent`), and 100,000 times two ranks would wait for each other.
fn run(matrix: &[f64], settings: &Settings) -> (f64, f64) {
    let dense = Dense::new(M, N, Order::RowMajor, Values::Real(matrix.to_vec().into()));
    let result =
        factorize(Matrix::Dense(dense), Machine::new(1, 1), settings, None, &mut |_: &Progress| false)
            .unwrap();
    (projected_gradient(matrix, &result.factors), result.report.relative_error)
}

/// The projected gradient and the error after 100, 3,000 and 100,000 iterations.
fn long_run(
    matrix: &[f64],
    sketch: SketchKind,
    solver: SketchedSolver,
    step: Step,
    bound: bool,
) -> [(f64, f64); 3] {
    [100, 3_000, 100_000].map(|iterations| {
        let (alpha, beta) = match (step, solver) {
            (Step::UnitFree, _) => solver.damping(),
            // In units of the data: the Gram diagonals are of the size of 1 to 10 here, their sums below 40.
            (Step::Absolute, SketchedSolver::Pcd) => (0.1, 0.1),
            (Step::Absolute, SketchedSolver::Pgd) => (40.0, 0.05),
        };
        let sketched = Settings {
            sketch,
            sketch_cols: Some(Amount::Share(0.4)),
            sketch_rows: Some(Amount::Share(0.4)),
            solver,
            step,
            alpha,
            beta,
            bound,
            trace_every: Some(iterations),
            ..settings(Algorithm::Dsanls, K, iterations)
        };
        run(matrix, &sketched)
    })
}

fn check(tail: bool, sketch: SketchKind, solver: SketchedSolver, step: Step, bound: bool) {
    let matrix = entries(tail);
    let [early, late, end] = long_run(&matrix, sketch, solver, step, bound);
    let exact = run(&matrix, &settings(Algorithm::Hals, K, 5_000));
    let what = format!(
        "{sketch:?} {solver:?} {step:?}, tail {tail}, bound {bound}: {early:?} {late:?} {end:?} {exact:?}"
    );
    println!("{what}");
    assert!(late.0 < 0.5 * early.0, "{what}");
    // Steps that fall as 1/t leave noise that falls as 1/sqrt(t): at best a factor of 32 from 100 to 100,000.
    assert!(end.0 < 0.5 * late.0 && end.0 < 0.2 * early.0, "{what}");
    assert!(end.1 < 1.02 * exact.1, "{what}");
}

#[test]
fn coordinate_descent_with_subsampling_converges() {
    for tail in [false, true] {
        for step in [Step::UnitFree, Step::Absolute] {
            check(tail, SketchKind::Subsample, SketchedSolver::Pcd, step, false);
        }
    }
}

#[test]
fn coordinate_descent_with_the_other_sketches_converges() {
    for sketch in SketchKind::ALL.into_iter().filter(|&sketch| sketch != SketchKind::Subsample) {
        check(false, sketch, SketchedSolver::Pcd, Step::UnitFree, true);
    }
}

#[test]
fn gradient_descent_converges() {
    for sketch in SketchKind::ALL {
        check(false, sketch, SketchedSolver::Pgd, Step::UnitFree, false);
    }
    check(false, SketchKind::Subsample, SketchedSolver::Pgd, Step::Absolute, true);
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
