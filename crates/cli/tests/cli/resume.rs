//! A killed run resumes from its checkpoint to the same bits.

use std::time::Duration;

use crate::common::*;

const RUN: &str = "factorize digits.npy --rank 6 --iterations 400 --tolerance 0 --quiet --out";

/// Kills a run with SIGKILL after some time; false if it finished before.
fn killed(desk: &Desk, words: &str, after: Duration) -> bool {
    let mut child = desk.command(words).spawn().unwrap();
    std::thread::sleep(after);
    let done = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    child.wait().unwrap();
    !done
}

#[test]
fn a_run_killed_at_any_time_resumes_to_the_same_bits() {
    let desk = Desk::with_digits();
    for (method, resumed) in [
        ("--algorithm hals --threads 1", "--algorithm hals --threads 2"),
        ("--algorithm dsanls --nodes 2", "--algorithm dsanls --nodes 3"),
        ("--algorithm mu --restarts 3", "--algorithm mu --restarts 3"),
    ] {
        desk.run(&format!("{RUN} straight {method} --force"));
        let mut kills = 0;
        for milliseconds in [15, 40, 80, 120, 25, 60, 200, 30] {
            let words = format!("{RUN} killed {method} --checkpoint-every 3 --resume");
            kills += killed(&desk, &words, Duration::from_millis(milliseconds)) as usize;
            if desk.path("killed").exists() {
                break;
            }
        }
        assert!(kills >= 2, "{method}: {kills} kills");
        // The last kill may happen before the result is written, or before its checkpoint is removed.
        if !desk.path("killed").exists() || desk.path("killed.checkpoint").exists() {
            desk.run(&format!("{RUN} killed {resumed} --checkpoint-every 50 --resume --force"));
        }
        for name in ["U.npy", "V.npy"] {
            let (straight, killed) = (format!("straight/{name}"), format!("killed/{name}"));
            assert!(desk.bytes(&straight) == desk.bytes(&killed), "{method}: {name}");
        }
        let record = desk.json("killed/run.json");
        assert_eq!(record["iterations"], desk.json("straight/run.json")["iterations"]);
        assert!(!desk.path("killed.checkpoint").exists(), "a run that is done needs no checkpoint");
        std::fs::remove_dir_all(desk.path("killed")).unwrap();
    }
}

#[test]
fn a_time_limit_leaves_a_checkpoint_to_resume() {
    let desk = Desk::with_digits();
    desk.run(&format!("{RUN} straight --threads 1"));
    desk.run(&format!("{RUN} part --threads 1 --time-limit 0.005 --checkpoint-every 1h"));
    assert_eq!(desk.json("part/run.json")["stopped_by"], "time-limit");
    desk.run(&format!("{RUN} part --threads 1 --checkpoint-every 1h --resume --force"));
    assert_eq!(desk.bytes("part/U.npy"), desk.bytes("straight/U.npy"));
    // The error curve continues without a break.
    let trace = desk.read("part/trace.csv");
    assert_eq!(trace.lines().count(), 402);
}

#[test]
fn checkpoints_of_other_runs_and_damaged_ones_are_refused() {
    let desk = Desk::with_digits();
    desk.write("other.csv", "1,2\n3,4\n5,6\n");
    desk.run(&format!("{RUN} r --time-limit 0 --checkpoint-every 10"));
    std::fs::remove_dir_all(desk.path("r")).unwrap();
    let asked = |words: &str| desk.refused(words);
    assert_says(&asked(&format!("{RUN} r --checkpoint-every 10")), &["r.checkpoint", "--resume", "--force"]);
    assert_says(&asked(&format!("{RUN} r --resume --seed 5")), &["--resume", "seed = 0, not 5"]);
    assert_says(&asked(&format!("{RUN} r --resume --precision f64")), &["r.checkpoint", "--precision"]);
    let other = RUN.replace("digits.npy", "other.csv");
    assert_says(&asked(&format!("{other} r --resume")), &["r.checkpoint", "another input"]);
    assert_says(
        &asked(&format!("{RUN} r --resume --transpose")),
        &["r.checkpoint", "--transpose", "start over"],
    );
    let bytes = desk.bytes("r.checkpoint");
    desk.write("r.checkpoint", &bytes[..bytes.len() - 9]);
    assert_says(&asked(&format!("{RUN} r --resume")), &["r.checkpoint", "truncated", "start over"]);
    desk.write("r.checkpoint", b"hello");
    assert_says(&asked(&format!("{RUN} r --resume")), &["r.checkpoint", "not a checkpoint", "start over"]);
    assert_says(&asked(&format!("{RUN} r --checkpoint-every 0")), &["--checkpoint-every", "0 is too few"]);
}
