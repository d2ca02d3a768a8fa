//! Each way to stop, and how it is recorded.

use crate::common::*;

#[track_caller]
fn stops(options: &str, expected: &str) -> serde_json::Value {
    let desk = Desk::with_digits();
    desk.run(&format!("factorize digits.npy --rank 8 {options} --out r"));
    let record = desk.json("r/run.json");
    assert_eq!(record["stopped_by"], expected, "{options}");
    record
}

#[test]
fn by_iterations() {
    assert_eq!(stops("--iterations 9", "iterations")["iterations"], 9);
    assert_eq!(stops("--iterations 9 --algorithm dsanls --nodes 2", "iterations")["iterations"], 9);
}

#[test]
fn by_tolerance() {
    let default = stops("", "tolerance");
    assert_eq!(default["tolerance"], 1e-5);
    let loose = stops("--tolerance 1e-2", "tolerance");
    assert!(loose["iterations"].as_u64() < default["iterations"].as_u64());
    stops("--algorithm dsanls --tolerance 1e-2", "tolerance");
}

#[test]
fn by_target_error() {
    for algorithm in ["hals", "dsanls"] {
        let record = stops(&format!("--target-error 0.45 --algorithm {algorithm}"), "target-error");
        assert!(record["relative_error"].as_f64().unwrap() <= 0.45);
    }
}

#[test]
fn by_time() {
    for nodes in ["1", "2"] {
        let record = stops(
            &format!("--time-limit 0.2s --iterations 1000000000 --tolerance 0 --nodes {nodes}"),
            "time-limit",
        );
        let seconds = record["seconds"].as_f64().unwrap();
        assert!((0.2..2.0).contains(&seconds), "{seconds}");
    }
    // The limit is for all restarts together.
    let record = stops(
        "--time-limit 0.2 --iterations 1000000000 --tolerance 0 --restarts 50 --algorithm dsanls",
        "time-limit",
    );
    assert_eq!(record["errors_of_restarts"].as_array().unwrap().len(), 1);
}
