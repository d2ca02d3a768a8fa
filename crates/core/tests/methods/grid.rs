//! The exact methods on a process grid (MPI-FAUN).

use crate::common::{matrices, run, settings};
use partwise::Real;
use partwise::grid::{Factor, Grid, Placement};
use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::partition::Access;
use partwise::run::{Algorithm, Factorization, Init, Machine, Progress, Settings, factorize};

const GRIDS: [(usize, usize); 6] = [(1, 3), (3, 1), (2, 2), (2, 3), (3, 2), (4, 5)];

fn on_grid<T: Real>(
    matrix: &Matrix<T>,
    (rows, cols): (usize, usize),
    settings: &Settings,
) -> Factorization<T> {
    let machine = Machine { grid: Some(Grid { rows, cols }), ..Machine::new(rows * cols, 1) };
    factorize(matrix.clone(), machine, settings, None, &mut |_: &Progress| false).unwrap()
}

fn agrees(place: &str, other: &Factorization<f64>, alone: &Factorization<f64>) {
    let difference = other.report.relative_error - alone.report.relative_error;
    assert!(difference.abs() <= 1e-5 * alone.report.relative_error, "{place}: {difference}");
    for (a, b) in [(&other.factors.u, &alone.factors.u), (&other.factors.v, &alone.factors.v)] {
        let largest = b.iter().copied().fold(0.0, f64::max);
        let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart <= 1e-9 * largest, "{place}: {apart} of {largest}");
    }
}

#[test]
fn every_exact_method_gives_the_same_factors_on_every_grid() {
    for (name, matrix) in matrices::<f64>(67, 41) {
        for algorithm in [Algorithm::Hals, Algorithm::Mu, Algorithm::Bpp] {
            let settings = settings(algorithm, 4, 50);
            let alone = run(&matrix, 1, 1, &settings);
            for grid in GRIDS {
                agrees(&format!("{name} {algorithm:?} {grid:?}"), &on_grid(&matrix, grid, &settings), &alone);
            }
        }
    }
}

#[test]
fn starts_penalties_and_bounds_are_the_same_on_a_grid() {
    let (_, matrix) = matrices::<f64>(67, 41).remove(3);
    for settings in [
        Settings { init: Init::Nndsvda, ..settings(Algorithm::Hals, 3, 20) },
        Settings { l1_u: 0.01, l2_v: 0.02, ..settings(Algorithm::Hals, 4, 50) },
        Settings { bound: true, restarts: 2, ..settings(Algorithm::Hals, 4, 20) },
    ] {
        agrees("2 x 3", &on_grid(&matrix, (2, 3), &settings), &run(&matrix, 1, 1, &settings));
    }
}

#[test]
fn a_good_fit_is_evaluated_from_residuals_on_a_grid_too() {
    // Two components fit it exactly, and their error passes the limit below which residuals are summed.
    let entry = |row: usize, col: usize| ((row + 1) * (col + 2) + (24 - row) * (col * col % 7)) as f64;
    let values = (0..24 * 10).map(|place| entry(place / 10, place % 10)).collect();
    let matrix = Matrix::Dense(Dense::new(24, 10, Order::RowMajor, Values::Real(values)));
    let settings = settings(Algorithm::Hals, 2, 200);
    let (alone, grid) = (run(&matrix, 1, 1, &settings).report, on_grid(&matrix, (2, 2), &settings).report);
    assert!(alone.relative_error < 1e-2, "{}", alone.relative_error);
    for (one, other) in alone.trace.iter().zip(&grid.trace) {
        let apart = (one.relative_error - other.relative_error).abs();
        assert!(apart <= 1e-6 * one.relative_error + 1e-9, "{}: {apart}", one.iteration);
    }
}

/// A half step of U hands its rows of V (n k / p numbers on average) to the all-gather of a grid column and the products of
/// its block (m k / pr numbers) to the reduce-scatter of a grid row; V's likewise; Gram matrices are k² numbers of f64.
#[test]
fn bytes_per_collective_follow_from_the_grid() {
    const ITERATIONS: usize = 7;
    for (m, n) in [(48, 36), (67, 41)] {
        let (_, matrix) = matrices::<f32>(m, n).remove(1);
        for k in [3, 5] {
            for (rows, cols) in GRIDS {
                let report = on_grid(&matrix, (rows, cols), &settings(Algorithm::Hals, k, ITERATIONS)).report;
                assert_eq!(report.ranks.len(), rows * cols);
                for (rank, report) in report.ranks.iter().enumerate() {
                    let grid = Grid { rows, cols };
                    let place = Placement { rows: m, cols: n, grid, rank, access: Access::Whole };
                    let (block_rows, block_cols) = place.block(Factor::U);
                    let own = |factor| place.own(factor).len();
                    let words = |count: usize| (ITERATIONS * count * k * size_of::<f32>()) as u64;
                    // A group of one sends nothing.
                    let if_several = |size: usize, count: usize| if size > 1 { count } else { 0 };
                    let gathered = if_several(rows, own(Factor::V)) + if_several(cols, own(Factor::U));
                    assert_eq!(
                        report.method.all_gather.bytes,
                        words(gathered),
                        "{rows} x {cols}, rank {rank}"
                    );
                    let scattered = if_several(cols, block_rows.len()) + if_several(rows, block_cols.len());
                    assert_eq!(
                        report.method.reduce_scatter.bytes,
                        words(scattered),
                        "{rows} x {cols}, rank {rank}"
                    );
                    if (m * n).is_multiple_of(rows * cols)
                        && m.is_multiple_of(rows * cols)
                        && n.is_multiple_of(rows * cols)
                    {
                        let p = rows * cols;
                        let gathered = if_several(rows, n / p) + if_several(cols, m / p);
                        assert_eq!(report.method.all_gather.bytes, words(gathered));
                        let scattered = if_several(cols, cols * m / p) + if_several(rows, rows * n / p);
                        assert_eq!(report.method.reduce_scatter.bytes, words(scattered));
                    }
                    // Two Gram matrices per iteration and one before the first; one number for the error.
                    let reduced = (2 * ITERATIONS + 1) * k * k * 8 + ITERATIONS * 8;
                    assert_eq!(report.method.all_reduce.bytes, reduced as u64);
                    assert_eq!(report.method.broadcast.bytes + report.method.message.bytes, 0);
                }
            }
        }
    }
}

/// Sec. 3.3: k d numbers a sketched half step, in one all-reduce, on every rank.
#[test]
fn a_sketched_step_hands_k_times_d_numbers_to_one_all_reduce() {
    use partwise::run::Amount;
    let (_, matrix) = matrices::<f64>(60, 40).remove(0);
    let settings = Settings {
        sketch_cols: Some(Amount::Count(12)),
        sketch_rows: Some(Amount::Count(20)),
        ..settings(Algorithm::Dsanls, 5, 9)
    };
    for report in run(&matrix, 3, 1, &settings).report.ranks {
        assert_eq!(report.method.all_reduce.calls, 2 * 9);
        assert_eq!(report.method.all_reduce.bytes, 9 * 5 * (12 + 20) * 8);
        assert_eq!(report.method.bytes(), report.method.all_reduce.bytes);
    }
}
