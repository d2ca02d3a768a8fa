//! Fuzzing on the stable toolchain: `smoke SECONDS [TARGET] [SEED]` runs every target, or one, for so long on random
//! changes of its seeds. A panic, an allocation beyond the limit or an input that takes too long ends it; the input
//! is in the file then named.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use partwise_fuzz::mutate::{Dice, mutant};
use partwise_fuzz::{TARGETS, Target};

/// No single allocation may pass this, where readers are given 64 MiB.
const LARGEST: usize = 300 << 20;

const SLOWEST: Duration = Duration::from_secs(10);

struct Guard;

// SAFETY: the system's allocator does the work; all that is added ends the process.
unsafe impl GlobalAlloc for Guard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller's promise, handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static GUARD: Guard = Guard;

fn check(size: usize) {
    if size > LARGEST {
        eprintln!("an allocation of {size} bytes; the input is still in the scratch file");
        std::process::abort();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).expect("give the seconds for a target");
    let only = arguments.next();
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let chosen = |target: &&Target| only.as_ref().is_none_or(|name| name == target.name || name == "all");
    for target in TARGETS.iter().filter(chosen) {
        fuzz(target, Duration::from_secs(seconds), seed);
    }
}

fn fuzz(target: &Target, time: Duration, seed: u64) {
    let seeds = (target.seeds)();
    seeds.iter().for_each(|seed| (target.run)(seed));
    let mut dice = Dice(seed);
    let (begin, mut runs) = (Instant::now(), 0u64);
    while begin.elapsed() < time {
        let bytes = mutant(&seeds, &mut dice);
        let start = Instant::now();
        let outcome = catch_unwind(|| (target.run)(&bytes));
        runs += 1;
        if outcome.is_err() || start.elapsed() > SLOWEST {
            let path = std::env::temp_dir().join(format!("partwise-fuzz-found-{}", target.name));
            std::fs::write(&path, &bytes).expect("the finding can be written");
            eprintln!(
                "{}: run {runs} took {:?}; its input is {}",
                target.name,
                start.elapsed(),
                path.display()
            );
            std::process::exit(1);
        }
    }
    println!("{}: {runs} runs in {:.0} s, nothing found", target.name, begin.elapsed().as_secs_f64());
}
