//! Ctrl-C finishes the iteration and saves.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;

fn interrupt(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

fn wait(child: &mut Child) -> i32 {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if begin.elapsed() > Duration::from_secs(10) {
            let _ = child.kill();
            panic!("still running after 10 s");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_there_is_is_saved() {
    for (options, signal) in [
        ("", "-INT"),
        ("--algorithm dsanls --nodes 3 --trace-every 100000", "-INT"),
        ("--restarts 9", "-TERM"),
    ] {
        let desk = Desk::with_digits();
        let words =
            format!("factorize digits.npy --rank 8 --iterations 1000000000 --tolerance 0 --out r {options}");
        let mut child = desk.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The second line tells that it is about to iterate.
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(stdout.next().unwrap().unwrap().contains("1797 x 64"));
        stdout.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        interrupt(&child, signal);
        assert_eq!(wait(&mut child), 0, "{options}");
        let rest: Vec<String> = stdout.map(Result::unwrap).collect();
        assert!(rest.iter().any(|line| line.ends_with("(stopped by the user)")), "{rest:?}");
        let record = desk.json("r/run.json");
        assert_eq!(record["stopped_by"], "interrupted");
        assert!(record["iterations"].as_u64().unwrap() > 1);
        assert_eq!(record["errors_of_restarts"].as_array().unwrap().len(), 1);
        let trace = desk.read("r/trace.csv");
        let last = trace.lines().last().unwrap();
        assert!(last.starts_with(&format!("{},", record["iterations"])), "{last}");
        assert_eq!(desk.factor("r/U.npy").0, 1797);
        assert_eq!(std::fs::read_dir(desk.path("")).unwrap().count(), 2, "digits.npy and r");
    }
}
