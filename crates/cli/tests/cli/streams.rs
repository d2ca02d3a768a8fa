//! Output on stdout and stderr, and closed pipes.

use std::process::Stdio;

use crate::common::*;

#[test]
fn quiet_is_silent() {
    let desk = Desk::with_digits();
    desk.write("m.csv", "1,2\n3,4\n");
    for words in [
        "factorize digits.npy --rank 4 --quiet --out a",
        "factorize m.csv --rank 5 --iterations 3 -q --out b",
        "factorize digits.npy --rank 4 --quiet --algorithm dsanls --nodes 2 --restarts 2 --out c",
    ] {
        let output = desk.output(words);
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

#[test]
fn json_is_a_value_a_line() {
    let desk = Desk::with_digits();
    let output = desk.output("factorize digits.npy --rank 4 --json --out r");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let lines: Vec<serde_json::Value> = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "result");
    let record = desk.json("r/run.json");
    for (key, value) in record.as_object().unwrap() {
        assert_eq!(&last[key], value, "{key}");
    }
}

/// One line every few seconds, as text on stderr or as JSON on stdout.
#[test]
fn progress_of_a_long_run() {
    let desk = Desk::with_digits();
    let common =
        "factorize digits.npy --rank 4 --threads 1 --tolerance 0 --iterations 100000000 --time-limit 3.8";
    let spawn = |options: &str| {
        desk.command(&format!("{common} {options}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let (words, json) = (spawn("--out words"), spawn("--out json --json"));
    let output = words.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("iteration ") && stderr.contains(", error 0."), "{stderr}");
    assert!(stderr.lines().next().unwrap().ends_with(" s left at most"), "{stderr}");
    let output = json.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let first: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["restart"]), (&"progress".into(), &0.into()));
    for key in ["iteration", "relative_error", "seconds"] {
        assert!(first[key].as_f64().unwrap() > 0.0, "{key}");
    }
}

#[test]
fn a_reader_who_has_left() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 4 --out r");
    for words in [
        "top r",
        "top r --json",
        "inspect digits.npy",
        "inspect digits.npy --json",
        "evaluate r digits.npy",
        "--help",
        "factorize --help",
        "transform r digits.npy --out W.npy",
        "factorize digits.npy --rank 4 --out s",
        "factorize digits.npy --rank 80 --iterations 5 --json --out t",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = desk.command(words);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.is_empty() || stderr.starts_with("warning: "), "{words}: {stderr}");
    }
    assert!(desk.path("s/run.json").exists() && desk.path("t/run.json").exists());
    // A closed stderr is no reason to fail either.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = desk.command("inspect none.npy").stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_is_lost_is_an_error() {
    let desk = Desk::with_digits();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = desk.command("inspect digits.npy").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_says(&refusal(&output, "inspect"), &["cannot write to stdout", "No space left"]);
}
