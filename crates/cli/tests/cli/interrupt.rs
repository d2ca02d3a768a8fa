//! Ctrl-C finishes the iteration and saves, or ends commands that have nothing to save; the exit code is 130.
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
fn an_interrupted_run_saves_its_result_and_exits_with_130() {
    for (options, signal) in [
        ("", "-INT"),
        ("--algorithm dsanls --nodes 3 --trace-every 100000", "-INT"),
        ("--restarts 9", "-TERM"),
    ] {
        let desk = Desk::with_digits();
        let words =
            format!("factorize digits.npy --rank 8 --iterations 1000000000 --tolerance 0 --out r {options}");
        let mut child = desk.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The second line says that iterations are about to start.
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(stdout.next().unwrap().unwrap().contains("1797 x 64"));
        stdout.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        interrupt(&child, signal);
        assert_eq!(wait(&mut child), 130, "{options}");
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

/// Simulations, conversions and similar commands save nothing before their end, and leave no files.
#[test]
fn commands_with_nothing_to_save_end_at_once() {
    let desk = Desk::with_digits();
    let experiment = "title = \"Long\"\nfigure = \"Fig. 0\"\ndraws = \"error-over-time\"\ncommand = \"simulate\"\nrank = 4\n\
         nodes = [4]\nlimits = { steps = 1000000 }\n[[method]]\nname = \"Syn-SD\"\narguments = [\"--protocol\", \"syn-sd\"]\n\
         [[panel]]\nname = \"DIGITS\"\ndata = \"digits.npy\"\n";
    desk.write("long.toml", experiment);
    for (words, signal, made) in [
        (
            "simulate digits.npy --rank 4 --parties 4 --protocol syn-sd --rounds 1000000 --tolerance 0 --out r",
            "-INT",
            0,
        ),
        (
            "simulate digits.npy --rank 4 --parties 4 --protocol syn-sd --rounds 1000000 --tolerance 0 --out r",
            "-TERM",
            0,
        ),
        ("calibrate --out constants.json", "-INT", 0),
        ("experiment long.toml --data . --out e --quiet", "-INT", 1),
    ] {
        let before = std::fs::read_dir(desk.path("")).unwrap().count();
        let mut command = desk.command(words);
        // A terminal interrupts the whole process group, and therefore also the runs of an experiment.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args([signal, "--", &group]).status().unwrap().success());
        assert_eq!(wait(&mut child), 130, "{words}");
        assert_eq!(std::fs::read_dir(desk.path("")).unwrap().count(), before + made, "{words}");
    }
}
