//! Each kernel against its floor, in one run: `make bench-kernels`.
//!
//! Criterion times both; then they take turns, and the ratio of their best times is printed. For arithmetic the
//! floor is faer's product of the same flops in its best shape, for memory a plain copy.

mod cases;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;

/// A kernel and what it is held against; both do the same work when called again.
pub struct Case {
    /// The kernel and its sizes.
    pub name: String,
    /// What the floor is.
    pub floor_name: &'static str,
    /// How much of the floor the kernel needs: their ratio is divided by it.
    pub work: f64,
    /// The kernel.
    pub kernel: Box<dyn FnMut()>,
    /// The floor.
    pub floor: Box<dyn FnMut()>,
}

/// Times that kernel and floor take turns.
const TURNS: usize = 9;

fn once(work: &mut dyn FnMut()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn main() {
    // Without `--bench` Cargo only tests that the benchmarks run.
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10)
        .without_plots()
        .configure_from_args();
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut table = String::new();
    for build in cases::ALL {
        for mut case in build(!measuring) {
            if !case.name.contains(&wanted) {
                continue;
            }
            let mut group = criterion.benchmark_group(&case.name);
            group.bench_function("kernel", |bencher| bencher.iter(|| black_box(&mut case.kernel)()));
            group.bench_function("floor", |bencher| bencher.iter(|| black_box(&mut case.floor)()));
            group.finish();
            if measuring {
                let turns = (0..TURNS).map(|_| (once(&mut case.kernel), once(&mut case.floor)));
                let (kernel, floor) =
                    turns.reduce(|best, turn| (best.0.min(turn.0), best.1.min(turn.1))).unwrap_or_default();
                let (kernel, floor) = (kernel.as_secs_f64(), floor.as_secs_f64() * case.work);
                table += &format!(
                    "| {} | {:.2} | {:.2} | {:.2} | {} |\n",
                    case.name,
                    kernel * 1e3,
                    floor * 1e3,
                    kernel / floor,
                    case.floor_name
                );
            }
        }
    }
    criterion.final_summary();
    if measuring {
        println!("| kernel | ms | floor, ms | ratio | floor |\n|---|---|---|---|---|\n{table}");
    }
}
