//! `auto`: the same answer on any number of ranks, samples included; sooner than HALS; a good start stays.

use crate::common::{matrices, run, settings};
use partwise::Real;
use partwise::grid::Grid;
use partwise::run::{
    Algorithm, Directive, Factorization, Machine, Monitor, Plan, Progress, Settings, StartFrom, factorize,
};

fn apart<T: Real>(one: &Factorization<T>, other: &Factorization<T>) -> f64 {
    let pairs = [(&one.factors.u, &other.factors.u), (&one.factors.v, &other.factors.v)];
    let worst = |(a, b): (&Vec<T>, &Vec<T>)| {
        let largest = b.iter().fold(0.0, |max, x| x.to_f64().max(max));
        a.iter().zip(b).map(|(a, b)| (*a - *b).to_f64().abs()).fold(0.0, f64::max) / largest
    };
    pairs.into_iter().map(worst).fold(0.0, f64::max)
}

#[test]
fn the_same_factors_on_any_number_of_ranks_and_threads() {
    for (rows, cols) in [(401, 30), (30, 401)] {
        for (name, matrix) in matrices::<f64>(rows, cols) {
            for settings in [
                settings(Algorithm::Auto, 3, 30),
                Settings { l1_u: 0.001, l2_v: 0.01, bound: true, ..settings(Algorithm::Auto, 2, 20) },
            ] {
                let alone = run(&matrix, 1, 1, &settings);
                assert_eq!(alone.factors, run(&matrix, 1, 3, &settings).factors, "{name}");
                for (rows, cols) in [(2, 1), (1, 3), (2, 2)] {
                    let grid = Some(Grid { rows, cols });
                    let machine = Machine { grid, ..Machine::new(rows * cols, 1) };
                    let other =
                        factorize(matrix.clone(), machine, &settings, None, &mut |_: &Progress| false)
                            .unwrap();
                    let apart = apart(&other, &alone);
                    assert!(apart <= 1e-9, "{name} on {rows} x {cols}: {apart}");
                }
            }
        }
    }
}

/// Which local optimum is found is chance for a single start.
#[test]
fn sooner_than_hals() {
    for (name, matrix) in matrices::<f32>(401, 60) {
        let median = |algorithm| {
            let after = |seed| {
                let settings = Settings { seed, ..settings(algorithm, 3, 20) };
                run(&matrix, 1, 1, &settings).report.relative_error
            };
            let mut errors: Vec<f64> = (0..9).map(after).collect();
            errors.sort_by(f64::total_cmp);
            errors[4]
        };
        let (auto, hals) = (median(Algorithm::Auto), median(Algorithm::Hals));
        assert!(auto <= hals * 1.001, "{name}: {auto} after 20 iterations, {hals} with HALS");
    }
}

#[test]
fn a_start_that_is_good_stays() {
    let (name, matrix) = matrices::<f32>(401, 60).remove(0);
    let done = run(&matrix, 1, 1, &settings(Algorithm::Auto, 3, 300));
    let machine = Machine::new(1, 1);
    let from = Some(StartFrom::Factors(&done.factors));
    let once = settings(Algorithm::Auto, 3, 1);
    let more = factorize(matrix, machine, &once, from, &mut |_: &Progress| false).unwrap();
    let (before, after) = (done.report.relative_error, more.report.relative_error);
    assert!(after <= before * (1.0 + 1e-5), "{name}: {before} became {after}");
}

/// Notes what it is told.
#[derive(Default)]
struct Told {
    plans: Vec<String>,
    iterations: usize,
}

impl<T> Monitor<T> for Told {
    fn started(&mut self, plan: &str) {
        assert_eq!(self.iterations, 0, "a plan is told before any progress");
        self.plans.push(plan.into());
    }

    fn progress(&mut self, _: &Progress) -> Directive {
        self.iterations += 1;
        Directive::default()
    }
}

/// Only the first iteration shows whether a start on samples pays.
#[test]
fn the_reported_plan_is_the_one_that_ran() {
    let (_, matrix) = matrices::<f32>(401, 60).remove(0);
    let done = run(&matrix, 1, 1, &settings(Algorithm::Auto, 3, 300));
    for (from, restarts, sampled) in [(None, 2, true), (Some(StartFrom::Factors(&done.factors)), 1, false)] {
        let settings = Settings { restarts, ..settings(Algorithm::Auto, 3, 2) };
        let mut told = Told::default();
        let result = factorize(matrix.clone(), Machine::new(1, 1), &settings, from, &mut told).unwrap();
        assert_eq!(told.plans, [result.report.plan.as_str()]);
        assert_eq!(told.plans[0].contains("warm-started"), sampled, "{:?}", told.plans);
    }
}

#[test]
fn decisions_follow_the_counts() {
    let words = |rows, cols, stored, k| Plan::of(rows, cols, stored, k).to_string();
    let dense = words(70_000, 784, 70_000 * 784, 20);
    assert!(dense.contains("3 sweeps of U and 3 of V") && dense.contains("of 70000 rows"), "{dense}");
    assert!(words(784, 70_000, 70_000 * 784, 20).contains("of 70000 columns"));
    let sparse = words(326_186, 326_186, 1_615_400, 100);
    assert!(sparse.contains("1 sweeps of U and 1 of V") && !sparse.contains("sample"), "{sparse}");
    assert!(!words(300, 200, 60_000, 20).contains("sample"));
    let penalized = |u, v| Plan::of(300, 200, 60_000, 20).penalized(u, v).to_string().contains("accelerated");
    assert!(
        penalized(true, true)
            && penalized(false, false)
            && !penalized(true, false)
            && !penalized(false, true)
    );
}
