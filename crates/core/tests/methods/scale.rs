//! The scale of components: exact methods stay balanced, results have the requested scale, and exact solves do not
//! depend on it.

use crate::common::{matrices, run, settings};
use partwise::Real;
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise::run::{
    Algorithm, Factors, Machine, Normalize, Progress, Settings, Side, StartFrom, error_of, factorize,
};
use partwise::solver::Penalty;
use partwise::threads::Threads;

/// One of 200 random matrices: exact and noisy low rank, sparse, counts, one dominating column, duplicate columns, and
/// more components than the true rank. `largest` bounds its sides.
fn random_matrix<T: Real>(seed: u64, largest: (usize, usize)) -> (String, Matrix<T>, usize) {
    let mut rng = stream(seed, Purpose::StartU, 0, 0);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| uniform(&mut rng)).collect() };
    let sizes = draw(3);
    let between = |share: f64, low: usize, high: usize| low + (share * (high - low) as f64) as usize;
    let (m, n) = (between(sizes[0], 20, largest.0), between(sizes[1], 10, largest.1));
    let truth = between(sizes[2], 2, 10);
    let (u, v, noise) = (draw(m * truth), draw(n * truth), draw(m * n));
    let model =
        |row: usize, col: usize| -> f64 { (0..truth).map(|l| u[row * truth + l] * v[col * truth + l]).sum() };
    let kinds = [
        "exact",
        "noisy",
        "sparse",
        "counts",
        "dominating column",
        "duplicate columns",
        "rank above the truth",
    ];
    let kind = kinds[seed as usize % kinds.len()];
    let entry = |row: usize, col: usize| -> f64 {
        let chance = noise[row * n + col];
        match kind {
            "noisy" => model(row, col) * (1.0 + 0.1 * chance),
            "sparse" => {
                if chance < 0.15 {
                    model(row, col)
                } else {
                    0.0
                }
            }
            "counts" => (3.0 * model(row, col) * chance).floor(),
            "dominating column" => {
                if col == 1 {
                    1e4 * model(row, col)
                } else {
                    model(row, col) + 0.1 * chance
                }
            }
            "duplicate columns" => model(row, col / 2 * 2),
            _ => model(row, col),
        }
    };
    let k = match kind {
        "rank above the truth" => truth + 3,
        _ => truth.saturating_sub(seed as usize / 7 % 3).max(1),
    };
    let values: Vec<f64> = (0..m * n).map(|place| entry(place / n, place % n)).collect();
    let matrix = if kind == "sparse" {
        let (mut offsets, mut indices, mut stored) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(n) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                indices.push(col as u32);
                stored.push(T::from_f64(value));
            }
            offsets.push(indices.len());
        }
        Matrix::Sparse(Csr::new(m, n, offsets, indices, stored))
    } else {
        let values = values.into_iter().map(T::from_f64).collect::<Vec<T>>();
        Matrix::Dense(Dense::new(m, n, Order::RowMajor, Values::Real(values.into())))
    };
    (format!("{kind}, seed {seed}, {m} x {n}, k = {k}"), matrix, k)
}

fn one() -> Threads {
    Threads::new(1).unwrap()
}

fn norms<T: Real>(factor: &[T], k: usize) -> Vec<f64> {
    let square = |j: usize| factor.iter().skip(j).step_by(k).map(|x| x.to_f64().powi(2)).sum::<f64>();
    (0..k).map(|j| square(j).sqrt()).collect()
}

/// Whether every live component's norms have a ratio of at most `most`.
fn balanced<T: Real>(factors: &Factors<T>, most: f64) -> bool {
    let pairs = norms(&factors.u, factors.k).into_iter().zip(norms(&factors.v, factors.k));
    pairs.filter(|(u, v)| u * v > 0.0).all(|(u, v)| u / v <= most && v / u <= most)
}

fn check_long_run<T: Real>(seed: u64, largest: (usize, usize), slack: f64) {
    let (name, matrix, k) = random_matrix::<T>(seed, largest);
    for algorithm in [Algorithm::Auto, Algorithm::Hals] {
        let settings = Settings { algorithm, iterations: 3000, tolerance: 0.0, seed, ..Settings::new(k) };
        let place = format!("{name}, {algorithm:?}, {:?}", T::PRECISION);
        let own = Settings { normalize: Some(Normalize::None), ..settings.clone() };
        let ended = run(&matrix, 1, 1, &own).factors;
        assert!(
            balanced(&ended, 4.0 * (1.0 + 1e-5)),
            "{place}: {:?} {:?}",
            norms(&ended.u, k),
            norms(&ended.v, k)
        );
        let result = run(&matrix, 1, 1, &settings);
        let finite = |factor: &[T]| factor.iter().all(|value| value.to_f64().is_finite());
        assert!(finite(&result.factors.u) && finite(&result.factors.v), "{place}");
        assert!(balanced(&result.factors, 1.0 + 1e-5), "{place}");
        let last = result.report.trace.last().unwrap().relative_error;
        // As Python returns it: U solved exactly for V.
        let mut solved = result.factors.clone();
        solved.u =
            solved.transform(matrix.clone(), Side::Rows, Penalty::NONE, Some(&solved.u), &one()).unwrap();
        for (what, factors) in [("written", &result.factors), ("solved", &solved)] {
            let error = error_of(matrix.clone(), factors, &one()).unwrap();
            assert!(error <= 1.001 * last + slack, "{place}, {what}: {error}, the run's {last}");
        }
    }
}

fn long_runs(seeds: std::ops::Range<u64>, largest: (usize, usize)) {
    for seed in seeds {
        check_long_run::<f32>(seed, largest, 1e-6);
        check_long_run::<f64>(seed, largest, 1e-11);
    }
}

#[test]
fn long_runs_stay_balanced_and_return_what_they_reached() {
    long_runs(0..20, (200, 60));
}

#[test]
#[ignore = "minutes; part of make test-all"]
fn many_long_runs_stay_balanced_and_return_what_they_reached() {
    long_runs(20..200, (500, 100));
}

/// Step by step the same model, whatever the scale of the start: rescaling by powers of two changes no digit.
#[test]
fn every_exact_method_is_balanced_after_an_iteration() {
    for (name, matrix) in matrices::<f32>(300, 17) {
        for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Mu, Algorithm::Bpp] {
            let settings = Settings { normalize: Some(Normalize::None), ..settings(algorithm, 4, 30) };
            for nodes in [1, 3] {
                let result = run(&matrix, nodes, 1, &settings);
                assert!(balanced(&result.factors, 4.0 * (1.0 + 1e-5)), "{name} {algorithm:?}");
            }
        }
    }
}

#[test]
fn penalties_and_bounds_keep_their_own_scale_and_refuse_another() {
    let (_, matrix) = matrices::<f64>(60, 40).remove(1);
    let free = settings(Algorithm::Hals, 4, 20);
    let penalized = Settings { l1_u: 0.05, l2_v: 0.01, ..free.clone() };
    let bounded = Settings { bound: true, ..free.clone() };
    for own in [penalized, bounded] {
        let kept = run(&matrix, 1, 1, &own);
        let explicit = run(&matrix, 1, 1, &Settings { normalize: Some(Normalize::None), ..own.clone() });
        assert_eq!(kept.factors, explicit.factors);
        for how in [Normalize::Balanced, Normalize::U, Normalize::V, Normalize::SumU, Normalize::SumV] {
            let refused = Settings { normalize: Some(how), ..own.clone() }.check(60, 40);
            assert!(matches!(refused, Err(partwise::Error::Parameter { name, .. }) if name == "normalize"));
        }
    }
}

/// U Vᵀ of the fit to `factors`, with U solved for V.
fn refit<T: Real>(matrix: &Matrix<T>, factors: &Factors<T>) -> Vec<f64> {
    let u = factors.transform(matrix.clone(), Side::Rows, Penalty::NONE, None, &one()).unwrap();
    model(&Factors { u, ..factors.clone() })
}

fn model<T: Real>(factors: &Factors<T>) -> Vec<f64> {
    let &Factors { rows, cols, k, ref u, ref v } = factors;
    let entry = |i: usize, j: usize| (0..k).map(|l| u[i * k + l].to_f64() * v[j * k + l].to_f64()).sum();
    (0..rows * cols).map(|place| entry(place / cols, place % cols)).collect()
}

fn exact_solves_ignore_scale<T: Real>() {
    for (name, matrix) in matrices::<T>(67, 41) {
        let start = run(&matrix, 1, 1, &settings(Algorithm::Hals, 4, 40)).factors;
        let mut scaled = start.clone();
        for row in scaled.v.chunks_exact_mut(4) {
            for (value, scale) in row.iter_mut().zip([1e12, 1e-12, 1.0, 1e6]) {
                *value = T::from_f64(value.to_f64() * scale);
            }
        }
        let bpp = settings(Algorithm::Bpp, 4, 1);
        let step = |start: &Factors<T>| {
            let quiet = &mut |_: &Progress| false;
            let from = Some(StartFrom::Factors(start));
            model(&factorize(matrix.clone(), Machine::new(1, 1), &bpp, from, quiet).unwrap().factors)
        };
        for (what, before, after) in [
            ("transform", refit(&matrix, &start), refit(&matrix, &scaled)),
            ("bpp", step(&start), step(&scaled)),
        ] {
            let size = before.iter().fold(0f64, |most, value| most.max(*value));
            for (a, b) in before.iter().zip(&after) {
                assert!((a - b).abs() <= 1e-6 * size, "{name} {what}: {a} {b}");
            }
        }
        // A component of zeros has weight 0 and does no harm.
        let mut dead = scaled.clone();
        dead.v.iter_mut().skip(1).step_by(4).for_each(|value| *value = T::ZERO);
        let u = dead.transform(matrix.clone(), Side::Rows, Penalty::NONE, None, &one()).unwrap();
        assert!(u.iter().skip(1).step_by(4).all(|&value| value == T::ZERO), "{name}");
        assert!(u.iter().all(|value| value.to_f64().is_finite()), "{name}");
    }
}

#[test]
fn exact_solves_do_not_depend_on_the_scale_of_components() {
    exact_solves_ignore_scale::<f32>();
    exact_solves_ignore_scale::<f64>();
}

/// The model after two iterations of a method from a start whose components of V are multiplied by `scale`.
fn from_scaled<T: Real>(
    settings: &Settings,
    start: &Factors<f64>,
    matrix: &Matrix<T>,
    scale: f64,
) -> Vec<f64> {
    let of = |values: &[f64], scale: f64| values.iter().map(|value| T::from_f64(value * scale)).collect();
    let &Factors { rows, cols, k, ref u, ref v } = start;
    let start = Factors { rows, cols, k, u: of(u, 1.0), v: of(v, scale) };
    let (from, quiet) = (Some(StartFrom::Factors(&start)), &mut |_: &Progress| false);
    model(&factorize(matrix.clone(), Machine::new(2, 1), settings, from, quiet).unwrap().factors)
}

/// Where penalties forbid to balance components, their Gram matrix would be zero or infinite in `f32`.
#[test]
fn penalized_exact_steps_in_f32_are_those_in_f64_at_extreme_scales() {
    for ((_, narrow), (name, wide)) in matrices::<f32>(67, 41).into_iter().zip(matrices::<f64>(67, 41)) {
        let start = run(&wide, 1, 1, &settings(Algorithm::Hals, 4, 40)).factors;
        let bpp = settings(Algorithm::Bpp, 4, 2);
        let small = Settings { l1_v: 0.01, l2_v: 0.01, ..bpp.clone() };
        let large = Settings { l1_u: 0.01, l2_u: 0.01, ..bpp };
        for (settings, scale) in [(small, 1e-25), (large, 1e20)] {
            let expected = from_scaled(&settings, &start, &wide, scale);
            let size = expected.iter().fold(0f64, |most, value| most.max(*value));
            assert!(size > 0.0, "{name} {scale}");
            for (a, b) in expected.iter().zip(from_scaled(&settings, &start, &narrow, scale)) {
                assert!((a - b).abs() <= 1e-3 * size, "{name} {scale}: {a} {b}");
            }
        }
    }
}

/// A component that is zero in U has any scale in V, also one whose square is beyond `f32`.
#[test]
fn a_given_component_that_is_zero_in_one_factor_may_have_any_scale_in_the_other() {
    let (_, matrix) = matrices::<f32>(30, 20).remove(1);
    let mut start = run(&matrix, 1, 1, &settings(Algorithm::Hals, 3, 30)).factors;
    start.u.iter_mut().skip(1).step_by(3).for_each(|value| *value = 0.0);
    start.v.iter_mut().skip(1).step_by(3).for_each(|value| *value = 1e20);
    for algorithm in [Algorithm::Auto, Algorithm::Hals, Algorithm::Bpp] {
        let (from, quiet) = (Some(StartFrom::Factors(&start)), &mut |_: &Progress| false);
        let done = factorize(matrix.clone(), Machine::new(1, 1), &settings(algorithm, 3, 10), from, quiet);
        assert!(done.unwrap().report.relative_error < 1.0, "{algorithm:?}");
    }
}

/// The penalty of a component is that of its own scale: the objective of the solution is no larger than that of others.
#[test]
fn penalized_fits_are_optimal_at_any_scale() {
    let (_, matrix) = matrices::<f64>(30, 20).remove(1);
    let mut factors = run(&matrix, 1, 1, &settings(Algorithm::Hals, 3, 30)).factors;
    for row in factors.v.chunks_exact_mut(3) {
        row[0] *= 1e5;
        row[1] *= 1e-5;
    }
    let terms = Penalty { l1: 0.3, l2: 0.2, upper: f64::INFINITY };
    let u = factors.transform(matrix.clone(), Side::Rows, terms, None, &one()).unwrap();
    let Matrix::Dense(dense) = &matrix else { unreachable!() };
    for (row, x) in u.chunks(3).enumerate() {
        for j in 0..3 {
            let residual =
                |col: usize| dense.get(row, col) - (0..3).map(|l| x[l] * factors.v[col * 3 + l]).sum::<f64>();
            let pull: f64 = (0..20).map(|col| residual(col) * factors.v[col * 3 + j]).sum();
            let size: f64 =
                (0..20).map(|col| dense.get(row, col) * factors.v[col * 3 + j]).sum::<f64>() + 0.3;
            let gradient = 0.3 + 0.2 * x[j] - pull;
            assert!(gradient >= -1e-7 * size, "{row} {j}: {gradient}");
            assert!(x[j] == 0.0 || gradient <= 1e-7 * size, "{row} {j}: {gradient}");
        }
    }
}

/// DSANLS depends on the scale of its damping and is not rescaled during a run; its result has the same bits on any
/// number of processes, whatever its scale.
#[test]
fn normalized_results_of_dsanls_have_the_same_bits_on_any_number_of_processes() {
    use Normalize::*;
    for (name, matrix) in matrices::<f32>(67, 41) {
        for how in [Balanced, None, U, V, SumU, SumV] {
            let settings = Settings { normalize: Some(how), ..settings(Algorithm::Dsanls, 4, 12) };
            let alone = run(&matrix, 1, 2, &settings).factors;
            for nodes in [2, 5] {
                assert!(run(&matrix, nodes, 1, &settings).factors == alone, "{name} {how:?} {nodes}");
            }
        }
    }
}

#[test]
fn entries_that_no_factorization_can_take_are_refused() {
    let settings = settings(Algorithm::Auto, 2, 3);
    for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for nodes in [1, 2] {
            let mut values = vec![1.0; 20];
            values[13] = bad;
            let dense = |order| Matrix::Dense(Dense::new(5, 4, order, Values::Real(values.clone().into())));
            let sparse = Csr::new(5, 4, vec![0, 1, 1, 2, 3, 4], vec![0, 1, 2, 3], vec![1.0, 2.0, bad, 1.0]);
            for matrix in [dense(Order::RowMajor), dense(Order::ColMajor), Matrix::Sparse(sparse)] {
                let quiet = &mut |_: &Progress| false;
                let refused = factorize(matrix, Machine::new(nodes, 1), &settings, Option::None, quiet);
                let Err(partwise::Error::Parameter { name, problem }) = refused else {
                    panic!("{bad} was accepted");
                };
                assert!(name == "matrix" && problem.to_string().contains("row 4"), "{problem}");
            }
            for (side, place) in [(Side::Rows, "row 4"), (Side::Columns, "column 2")] {
                let factors = Factors { rows: 5, cols: 4, k: 1, u: vec![1.0; 5], v: vec![1.0; 4] };
                let fitted =
                    factors.transform(dense(Order::RowMajor), side, Penalty::NONE, Option::None, &one());
                let message = fitted.unwrap_err().to_string();
                assert!(message.contains(place), "{message}");
            }
        }
    }
    let zero = Matrix::Dense(Dense::new(5, 4, Order::RowMajor, Values::Real(vec![0f32; 20].into())));
    assert!(factorize(zero, Machine::new(1, 1), &settings, Option::None, &mut |_: &Progress| false).is_err());
}
