//! The program under a real `mpirun`, with 2, 3 and 4 processes.
#![cfg(feature = "mpi")]

#[allow(dead_code)]
#[path = "cli/common.rs"]
mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::*;

/// Runs `mpirun -n RANKS partwise WORDS` in the folder.
fn mpirun(desk: &Desk, ranks: usize, words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("MPIRUN").unwrap_or("mpirun".into()));
    command.args(["-n", &ranks.to_string()]).arg(assert_cmd::cargo::cargo_bin!("partwise"));
    command.args(words.split_whitespace()).current_dir(desk.path("")).stdin(Stdio::null());
    // Settings that Open MPI needs for root and for machines with fewer cores than processes; other libraries
    // ignore them.
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        // Seconds after which both mpirun end a job that hangs.
        ("MPIEXEC_TIMEOUT", "300"),
    ]);
    // Limits concurrent jobs: the first job to end removes the folder of temporary files that Open MPI has per
    // user.
    command.env("TMPDIR", desk.path(""));
    command
}

fn run(desk: &Desk, ranks: usize, words: &str) -> String {
    let output = mpirun(desk, ranks, words).output().expect("mpirun; `make test` installs it");
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The line that Partwise prints when it refuses; mpirun may print more.
fn sentence(output: &Output, words: &str) -> String {
    assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert!(lines.len() == 1 && !stderr.contains("panicked"), "{words}: {stderr}");
    lines[0].to_string()
}

#[track_caller]
fn refused(desk: &Desk, ranks: usize, words: &str, expected: &[&str]) {
    let before = desk.snapshot();
    let output = mpirun(desk, ranks, words).output().unwrap();
    assert_says(&sentence(&output, words), expected);
    assert!(before == desk.snapshot(), "{words} changed a file");
}

fn same(desk: &Desk, one: &str, other: &str) {
    for name in ["U.npy", "V.npy"] {
        assert!(
            desk.bytes(&format!("{one}/{name}")) == desk.bytes(&format!("{other}/{name}")),
            "{name} of {other}"
        );
    }
}

fn error(desk: &Desk, out: &str) -> f64 {
    desk.json(&format!("{out}/run.json"))["relative_error"].as_f64().unwrap()
}

/// A sparse matrix whose sizes have no common divisor with the number of processes.
fn sparse() -> (usize, usize, Vec<f64>) {
    let (rows, cols) = (53, 37);
    let value = |place: usize| if place * 7 % 11 < 3 { ((place * 31) % 17 + 1) as f64 } else { 0.0 };
    (rows, cols, (0..rows * cols).map(value).collect())
}

#[test]
fn dsanls_gives_the_bits_of_one_process_on_2_3_and_4_ranks() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 8 --algorithm dsanls --iterations 25 --seed 5 --quiet";
    desk.run(&format!("{common} --nodes 2 --threads 1 --out alone"));
    for ranks in [2, 3, 4] {
        for reduction in ["ordered", "native"] {
            let out = format!("r{ranks}{reduction}");
            run(&desk, ranks, &format!("{common} --threads 1 --reduction {reduction} --out {out}"));
            same(&desk, "alone", &out);
        }
        let record = desk.json(&format!("r{ranks}ordered/run.json"));
        assert_eq!((&record["nodes"], &record["transport"]), (&ranks.into(), &"mpi".into()));
        assert_eq!(record["ranks"].as_array().unwrap().len(), ranks);
        assert_eq!(record["input"], desk.json("alone/run.json")["input"]);
        let csv = |out: &str| -> Vec<String> {
            let lines = desk.read(&format!("{out}/trace.csv"));
            lines.lines().map(|line| line.split(',').nth(2).unwrap().to_string()).collect()
        };
        assert_eq!(csv("alone"), csv(&format!("r{ranks}ordered")));
    }
}

#[test]
fn every_other_method_has_the_error_and_in_f64_the_factors_of_one_process() {
    let desk = Desk::with_digits();
    let (rows, cols, values) = sparse();
    desk.write("m.npz", npz_bytes(rows, cols, &values));
    for (file, method) in [
        ("digits.npy", "auto"),
        ("m.npz", "auto"),
        ("digits.npy", "hals"),
        ("m.npz", "hals"),
        ("m.npz", "mu"),
        ("m.npz", "bpp"),
        ("m.npz", "dsanls --sketch gaussian"),
        ("digits.npy", "dsanls --sketch count"),
    ] {
        let common = format!(
            "factorize {file} --rank 5 --algorithm {method} --iterations 50 --tolerance 0 --precision f64 --quiet --force"
        );
        desk.run(&format!("{common} --out alone"));
        for (ranks, more) in [(2, ""), (3, "--reduction ordered"), (4, "")] {
            run(&desk, ranks, &format!("{common} --threads 1 {more} --out many"));
            let place = format!("{file} {method} {ranks}");
            assert!(
                (error(&desk, "alone") - error(&desk, "many")).abs() < 1e-5 * error(&desk, "alone"),
                "{place}"
            );
            for name in ["U.npy", "V.npy"] {
                let (one, other) =
                    (desk.factor(&format!("alone/{name}")).2, desk.factor(&format!("many/{name}")).2);
                let largest = one.iter().copied().fold(0.0, f64::max);
                let apart = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(apart <= 1e-9 * largest, "{place} {name}: {apart} of {largest}");
            }
        }
    }
}

/// Complete rows and columns per process, with the results of in-process workers.
#[test]
fn losses_and_known_entries_have_the_results_of_workers() {
    let desk = Desk::new();
    let (rows, cols, values) = sparse();
    desk.write("m.npz", npz_bytes(rows, cols, &values));
    let npy = |values: &[f64]| npy_bytes("<f8", &format!("({rows}, {cols})"), &f64_bytes(values));
    let hidden: Vec<bool> = (0..rows * cols).map(|place| place * 13 % 7 == 2).collect();
    let gaps: Vec<f64> =
        values.iter().zip(&hidden).map(|(&value, &hidden)| if hidden { f64::NAN } else { value }).collect();
    desk.write("gaps.npy", npy(&gaps));
    desk.write("gaps.csv", table_bytes(cols, &gaps, ","));
    desk.write("positive.npy", npy(&values.iter().map(|value| value + 1.0).collect::<Vec<f64>>()));
    let mask: Vec<f64> = hidden.iter().map(|&hidden| f64::from(u8::from(hidden))).collect();
    desk.write("mask.npz", npz_bytes(rows, cols, &mask));
    let weights: Vec<f64> = (0..rows * cols).map(|place| (place % 5) as f64 / 2.0).collect();
    desk.write("weights.npy", npy(&weights));
    for words in [
        "m.npz --loss kl",
        "m.npz --loss kl --algorithm mu --l1-u 0.01",
        "positive.npy --loss is",
        "gaps.npy --missing nan",
        "gaps.csv --missing nan --loss kl",
        "m.npz --missing unstored",
        "m.npz --missing mask.npz --weights weights.npy --loss kl",
        "m.npz --weights weights.npy --algorithm bpp",
        "m.npz --holdout 20% --loss kl",
        "gaps.npy --missing nan --holdout 10% --transpose",
    ] {
        let common = format!(
            "factorize {words} --rank 3 --iterations 20 --tolerance 0 --precision f64 --seed 4 --quiet --force"
        );
        for ranks in [2, 3] {
            desk.run(&format!("{common} --nodes {ranks} --threads 1 --out workers"));
            run(&desk, ranks, &format!("{common} --threads 1 --reduction ordered --out many"));
            same(&desk, "workers", "many");
            let (one, other) = (desk.json("workers/run.json"), desk.json("many/run.json"));
            for key in ["relative_error", "loss", "loss_name", "heldout_loss", "heldout_rmse", "missing"] {
                assert_eq!(one[key], other[key], "{words} {ranks} {key}");
            }
        }
    }
    desk.write("far.npy", npy_bytes("<f8", "(2, 2)", &f64_bytes(&[1.0; 4])));
    for (words, expected) in [
        ("m.npz --loss is", &["--loss", "row 1 (counted from 1)"][..]),
        ("m.npz --missing far.npy", &["--missing", "it is 2 x 2, but the matrix is 53 x 37"]),
        ("gaps.npy", &["gaps.npy", "NaN"]),
        ("gaps.npy --missing nan --algorithm dsanls", &["--algorithm", "needs every entry"]),
        ("m.npz --holdout 0.00001", &["--holdout", "this share holds out no entry"]),
    ] {
        refused(&desk, 2, &format!("factorize {words} --rank 2 --out x"), expected);
    }
    desk.run("split m.npz --nodes 2 --out parts");
    refused(
        &desk,
        2,
        "factorize parts --missing unstored --rank 2 --out x",
        &["--missing", "the file that was split"],
    );
}

#[test]
fn every_format_is_read_in_parts() {
    let desk = Desk::new();
    let (rows, cols, values) = sparse();
    desk.write("m.npz", npz_bytes(rows, cols, &values));
    desk.write("m.mtx", mtx_bytes(rows, cols, &values));
    desk.write("m.npy", npy_bytes("<f8", &format!("({rows}, {cols})"), &f64_bytes(&values)));
    desk.run("convert m.npz sparse.bin");
    desk.run("convert m.npy dense.bin");
    for (name, packed) in [("m.npy", "p.npy.gz"), ("m.mtx", "p.mtx.gz")] {
        desk.write(packed, gzip(&desk.bytes(name)));
    }
    let common = "--rank 4 --algorithm dsanls --iterations 10 --seed 1 --quiet --force";
    for file in ["m.npz", "m.mtx", "m.npy", "sparse.bin", "dense.bin", "p.npy.gz", "p.mtx.gz"] {
        for turn in ["", "--transpose"] {
            desk.run(&format!("factorize {file} {common} {turn} --out alone"));
            run(&desk, 3, &format!("factorize {file} {common} {turn} --out many"));
            same(&desk, "alone", "many");
        }
    }
    desk.write("m.csv", table_bytes(cols, &values, ","));
    refused(&desk, 2, "factorize m.csv --rank 2 --out x", &["m.csv", "partwise convert"]);
}

/// Where messages dominate, `auto` reads again what DSANLS needs and then does the same as DSANLS.
#[test]
fn auto_chooses_by_the_network() {
    let desk = Desk::new();
    let values: Vec<f64> = (0..600 * 600).map(|place| (place * 37 % 101) as f64).collect();
    desk.write("m.csv", table_bytes(600, &values, ","));
    desk.run("convert m.csv m.npy");
    let common = "factorize m.npy --rank 1 --iterations 4 --tolerance 0 --sketch-cols 2 --sketch-rows 2";
    desk.run(&format!("{common} --algorithm dsanls --out dsanls"));
    run(&desk, 2, &format!("{common} --reduction ordered --network 1kbit/s,1us --out slow"));
    let plan = desk.json("slow/run.json")["plan"].to_string();
    assert!(plan.contains("auto: dsanls") && plan.contains("1kbit/s,1us"), "{plan}");
    same(&desk, "dsanls", "slow");
    run(&desk, 2, &format!("{common} --network unlimited --out fast"));
    let plan = desk.json("fast/run.json")["plan"].to_string();
    assert!(plan.contains("auto: accelerated HALS"), "{plan}");
}

#[test]
fn a_column_that_dominates_is_found_by_all_ranks_together() {
    let desk = Desk::new();
    let values: Vec<f64> = (0..60 * 40).map(|place| if place % 40 == 33 { 90.0 } else { 1.0 }).collect();
    desk.write("m.csv", table_bytes(40, &values, ","));
    desk.run("convert m.csv m.npy");
    for options in ["--algorithm hals --grid 2x2", "--algorithm dsanls"] {
        run(&desk, 4, &format!("factorize m.npy --rank 2 --iterations 3 {options} --force --out r"));
        let warnings = desk.json("r/run.json")["warnings"].to_string();
        assert!(warnings.contains("column 34 accounts for 99.5%"), "{options}: {warnings}");
    }
}

#[test]
fn grids_are_chosen_given_and_refused() {
    let desk = Desk::with_digits();
    run(&desk, 4, "factorize digits.npy --rank 4 --algorithm hals --iterations 5 --out chosen");
    assert_eq!(desk.json("chosen/run.json")["grid"], "4x1");
    let said =
        run(&desk, 4, "factorize digits.npy --rank 4 --algorithm hals --iterations 5 --grid 2x2 --out given");
    assert!(said.contains("4 MPI processes as 2x2") && said.contains("seconds/process"), "{said}");
    let record = desk.json("given/run.json");
    assert_eq!(record["grid"], "2x2");
    assert!((error(&desk, "chosen") - error(&desk, "given")).abs() < 1e-5);
    // 1797 rows of U and 64 of V over 4 ranks; all-gathers within grid rows and columns, 5 iterations of f32.
    let gathered: u64 =
        (0..4).map(|rank| record["ranks"][rank]["method"]["all_gather"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(gathered, 5 * 4 * 4 * (1797 + 64));
    refused(
        &desk,
        4,
        "factorize digits.npy --rank 4 --grid 2x3 --out x",
        &["--grid", "needs 6 processes, but there are 4"],
    );
    refused(
        &desk,
        2,
        "factorize digits.npy --rank 4 --algorithm dsanls --grid 2x1 --out x",
        &["--grid", "dsanls"],
    );
}

#[test]
fn a_folder_of_parts_gives_the_same_result_and_is_looked_at() {
    let desk = Desk::with_digits();
    let (rows, cols, values) = sparse();
    desk.write("m.npz", npz_bytes(rows, cols, &values));
    for (file, method) in
        [("digits.npy", "dsanls"), ("m.npz", "dsanls"), ("digits.npy", "hals"), ("m.npz", "hals")]
    {
        let common = format!("--rank 4 --iterations 10 --algorithm {method} --quiet --force");
        let grid = if method == "hals" { "--grid 2x2" } else { "" };
        let said = desk.run(&format!("split {file} --nodes 4 --out {file}.parts{method}"));
        assert!(said.contains("4 parts"), "{said}");
        run(&desk, 4, &format!("factorize {file} {common} {grid} --reduction ordered --out file"));
        run(
            &desk,
            4,
            &format!("factorize {file}.parts{method} {common} {grid} --reduction ordered --out parts"),
        );
        same(&desk, "file", "parts");
        let hash = |out: &str| desk.json(&format!("{out}/run.json"))["input"]["sha256"].clone();
        assert_eq!(hash("file"), hash("parts"));
    }
    let folder = "digits.npy.partsdsanls";
    let dsanls = format!("factorize {folder} --rank 4 --algorithm dsanls --out x");
    refused(&desk, 2, &dsanls, &["split for 4 processes, but 2 are running"]);
    refused(&desk, 4, &format!("{dsanls} --transpose"), &["--transpose"]);
    let part = desk.bytes(&format!("{folder}/rows-2.npy"));
    std::fs::remove_file(desk.path(format!("{folder}/rows-2.npy"))).unwrap();
    refused(&desk, 4, &dsanls, &["rows-2.npy", "missing"]);
    desk.write(format!("{folder}/rows-2.npy"), desk.bytes(&format!("{folder}/rows-1.npy")));
    refused(&desk, 4, &dsanls, &["rows-2.npy", "another split"]);
    desk.write(format!("{folder}/rows-2.npy"), part);
    desk.write(format!("{folder}/split.json"), "{");
    refused(&desk, 4, &dsanls, &["split.json", "split the matrix again"]);
    assert_says(&desk.refused("split digits.npy --nodes 0 --out y"), &["--nodes"]);
    assert_says(&desk.refused("split digits.npy --nodes 2 --out digits.npy"), &["digits.npy already exists"]);
}

#[test]
fn bad_input_is_one_sentence_from_rank_0() {
    let desk = Desk::with_digits();
    let negative: Vec<f64> = (0..12).map(|place| if place == 11 { -1.0 } else { 1.0 }).collect();
    desk.write("negative.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&negative)));
    desk.write("zero.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&[0.0; 12])));
    desk.write("short.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&negative[..10])));
    refused(&desk, 3, "factorize negative.npy --rank 2 --out x", &["negative.npy: row 4, column 3", "is -1"]);
    refused(&desk, 3, "factorize zero.npy --rank 2 --out x", &["zero.npy", "every entry is 0"]);
    refused(&desk, 3, "factorize short.npy --rank 2 --out x", &["short.npy", "fewer bytes"]);
    refused(&desk, 2, "factorize none.npy --rank 2 --out x", &["none.npy", "check the path"]);
    refused(&desk, 2, "factorize digits.npy --rank 0 --out x", &["--rank"]);
    refused(&desk, 2, "factorize digits.npy --rank 2 --nonsense --out x", &["--nonsense"]);
    refused(&desk, 2, "factorize digits.npy --rank 2 --nodes 2 --out x", &["--nodes", "leave it out"]);
    refused(&desk, 2, "factorize digits.npy --rank 2 --memory 1GiB --out x", &["--memory", "leave it out"]);
    refused(&desk, 2, "factorize digits.npy --rank 2 --out no/where", &["no"]);
    refused(&desk, 2, "convert digits.npy m.csv", &["without mpirun"]);
}

/// One party per process, and the coordinator: the synchronous methods give the same bits as one process, and each
/// party writes its own factors.
#[test]
fn parties_as_ranks_equal_parties_in_one_process() {
    let desk = Desk::with_digits();
    for (protocol, parties) in [
        ("pooled", 3),
        ("syn-sd --split first=0.5", 3),
        ("syn-ssd-u", 3),
        ("syn-ssd-v --aggregation plain", 3),
        ("syn-ssd-uv", 4),
        ("dsanls-limited", 3),
        ("asyn-sd", 6),
        ("asyn-ssd-v", 3),
    ] {
        let common = format!(
            "simulate digits.npy --rank 4 --rounds 4 --seed 2 --force --parties {parties} --protocol {protocol}"
        );
        desk.run(&format!("{common} --quiet --out alone"));
        let said = run(&desk, parties + 1, &format!("{common} --out ranks"));
        assert!(
            said.contains(&format!("{parties} parties with")) && !said.contains("simulated clock"),
            "{said}"
        );
        let (one, other) = (desk.json("alone/run.json"), desk.json("ranks/run.json"));
        assert_eq!((&other["transport"], &one["transport"]), (&"mpi".into(), &serde_json::Value::Null));
        assert_eq!((&one["input"], &one["groups"]), (&other["input"], &other["groups"]));
        for party in 1..=parties {
            assert!(desk.bytes(&format!("ranks/party-{party}/V.npy")) == desk.bytes("ranks/party-1/V.npy"));
            assert_eq!(other["parties"][party - 1]["records"], one["parties"][party - 1]["records"]);
            // What an asynchronous party computes while it waits depends on the clock.
            if !protocol.starts_with("asyn") {
                same(&desk, &format!("alone/party-{party}"), &format!("ranks/party-{party}"));
                assert_eq!(other["parties"][party - 1]["sent"], one["parties"][party - 1]["sent"]);
            }
        }
        let (alone, ranks) = (error(&desk, "alone"), error(&desk, "ranks"));
        // Its progress in a few rounds depends on the clock too; V, which is fitted last, is better than none with
        // any U.
        assert!(
            if protocol.starts_with("asyn") { ranks < 1.0 } else { ranks == alone },
            "{protocol} {ranks}"
        );
    }
}

/// The messages recorded by the processes join to those of one process, and the audit finds the same in them.
#[test]
fn an_audit_of_ranks_is_that_of_one_process() {
    let desk = Desk::with_digits();
    let common = "simulate digits.npy --rank 4 --rounds 4 --seed 2 --parties 3 --protocol syn-sd --holdout 300 --audit --record";
    desk.run(&format!("{common} --quiet --out alone"));
    let said = run(&desk, 4, &format!("{common} --out ranks"));
    assert_eq!(said.matches("what left the parties").count(), 1, "{said}");
    assert!(said.contains("Anyone who has the final U"), "{said}");
    let (alone, ranks) = (desk.json("alone/audit.json"), desk.json("ranks/audit.json"));
    assert_eq!(alone["left"], ranks["left"]);
    let of = |audit: &serde_json::Value| -> Vec<(String, f64)> {
        // The masks differ.
        let told = audit["findings"].as_array().unwrap().iter().filter(|finding| finding["on"] != "messages");
        let name = |finding: &serde_json::Value| {
            format!("{} {} {}", finding["attack"], finding["seat"], finding["on"])
        };
        told.map(|finding| (name(finding), finding["auc"].as_f64().unwrap())).collect()
    };
    assert!(of(&alone).len() > 10);
    for ((name, one), (other, several)) in of(&alone).into_iter().zip(of(&ranks)) {
        assert!(name == other && (one - several).abs() < 0.01, "{name} {one}, {other} {several}");
    }
    // A stored transcript can be audited later, in one process.
    std::fs::remove_file(desk.path("ranks/audit.json")).unwrap();
    desk.run("audit ranks --quiet");
    assert_eq!(desk.json("ranks/audit.json")["findings"], ranks["findings"]);
    let over = mpirun(&desk, 4, &format!("{common} --quiet --max-auc 0.5 --out over")).output().unwrap();
    assert_eq!(over.status.code(), Some(3), "{over:?}");
    assert!(String::from_utf8_lossy(&over.stderr).contains("--max-auc 0.5"), "{over:?}");
}

#[test]
fn ranks_refuse_what_one_process_refuses_in_one_sentence() {
    let desk = Desk::with_digits();
    let simulate = "simulate digits.npy --rank 4 --rounds 4 --out x --protocol";
    for (ranks, options, expected) in [
        (4, "syn-sd --parties 5", ["--parties", "need 6 processes, but there are 4"]),
        (3, "syn-sd --parties 2", ["each can compute the other's contribution", "--accept-that-two-parties"]),
        (4, "syn-sd --parties 3 --lose 2@3", ["--lose", "no party can leave"]),
        (4, "syn-sd --parties 3 --speeds 1,2", ["--speeds", "clocks are real"]),
        (4, "syn-sd --parties 3 --network 1Gbit/s,1ms", ["--network", "clocks are real"]),
        (4, "syn-sd", ["--parties", "missing"]),
        // The parties detect this after they have started.
        (4, "dsanls-limited --parties 3 --sketch-records 700", ["--sketch-records", "would reveal a record"]),
    ] {
        refused(&desk, ranks, &format!("{simulate} {options}"), &expected);
    }
    refused(&desk, 4, "simulate none.npy --rank 4 --out x --protocol syn-sd --parties 3", &["none.npy"]);
}

/// Processes that see different files under the same name: each runs in a folder of its own.
#[test]
fn different_files_on_different_ranks_are_refused() {
    let desk = Desk::with_digits();
    let program = assert_cmd::cargo::cargo_bin!("partwise");
    for rank in 0..2 {
        std::fs::create_dir(desk.path(format!("{rank}"))).unwrap();
        std::fs::copy(desk.path("digits.npy"), desk.path(format!("{rank}/digits.npy"))).unwrap();
    }
    let mut bytes = desk.bytes("digits.npy");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    desk.write("1/digits.npy", bytes);
    desk.write(
        "start.sh",
        format!(
            "cd ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} && exec {} factorize digits.npy --rank 2 --out x\n",
            program.display()
        ),
    );
    let mut command = mpirun(&desk, 2, "");
    let words: Vec<_> = command.get_args().map(|word| word.to_owned()).take(2).collect();
    let mut started = Command::new(command.get_program());
    started.args(words).args(["sh", "start.sh"]).current_dir(desk.path(""));
    started.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = started;
    assert_says(
        &sentence(&command.output().unwrap(), "start.sh"),
        &["digits.npy", "process 1 sees a different file"],
    );
}

#[test]
fn a_killed_process_ends_the_job_which_resumes_with_another_number() {
    let desk = Desk::with_digits();
    let common =
        "factorize digits.npy --rank 8 --algorithm dsanls --seed 2 --quiet --out result --checkpoint-every 5";
    let mut job = mpirun(&desk, 3, &format!("{common} --iterations 10000000 --tolerance 0"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let checkpoint = desk.path("result.checkpoint");
    let begin = Instant::now();
    while !checkpoint.exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
    let victim = ranks_of(&desk, "2");
    assert!(Command::new("kill").args(["-9", &victim]).status().unwrap().success());
    let killed = Instant::now();
    let status = job.wait().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert!(!status.success());
    assert!(!desk.path("result").exists());
    // Resuming with 2 processes, or with one, gives the result of the uninterrupted run.
    let saved = desk.bytes("result.checkpoint");
    let at: usize = {
        let text = String::from_utf8_lossy(&saved[..4096.min(saved.len())]).into_owned();
        let place = text.find("\"log\"").unwrap();
        let digits = &text[place + text[place..].find("\"iteration\":").unwrap() + 12..];
        digits[..digits.find(',').unwrap()].parse().unwrap()
    };
    let end = at + 7;
    let stop = format!("--iterations {end} --tolerance 0");
    run(&desk, 2, &format!("{common} {stop} --resume"));
    desk.run(&format!("{common} {stop}").replace("--out result", "--out whole"));
    same(&desk, "whole", "result");
    // A checkpoint with another k, and one of another matrix.
    desk.write("result.checkpoint", &saved);
    let other = format!("{common} {stop} --resume --force").replace("--rank 8", "--rank 7");
    refused(&desk, 2, &other, &["--resume", "rank = 8, not 7"]);
    let (rows, cols, values) = sparse();
    desk.write("m.npz", npz_bytes(rows, cols, &values));
    let other = format!("{common} {stop} --resume --force").replace("digits.npy", "m.npz");
    refused(&desk, 2, &other, &["result.checkpoint", "another input file"]);
}

/// The operating system's number of the process with this MPI number in this folder.
fn ranks_of(desk: &Desk, rank: &str) -> String {
    let folder = std::fs::canonicalize(desk.path("")).unwrap();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let (Ok(cwd), Ok(environment)) =
            (std::fs::read_link(path.join("cwd")), std::fs::read(path.join("environ")))
        else {
            continue;
        };
        let is_rank = environment.split(|&byte| byte == 0).any(|variable| {
            variable == format!("OMPI_COMM_WORLD_RANK={rank}").as_bytes()
                || variable == format!("PMI_RANK={rank}").as_bytes()
        });
        if cwd == folder && is_rank {
            return entry.file_name().into_string().unwrap();
        }
    }
    panic!("rank {rank} is not there");
}

/// If a single process cannot continue, here process 0 that cannot save, it ends all of them with its message.
#[test]
fn a_rank_that_fails_in_the_middle_ends_the_job() {
    let desk = Desk::with_digits();
    std::fs::create_dir(desk.path("out")).unwrap();
    let words = "factorize digits.npy --rank 8 --out out/result --checkpoint-every 5 --iterations 10000000 --tolerance 0 --quiet";
    let job = mpirun(&desk, 3, words).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !desk.path("out/result.checkpoint").exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::rename(desk.path("out"), desk.path("elsewhere")).unwrap();
    let failed = Instant::now();
    let output = job.wait_with_output().unwrap();
    assert!(failed.elapsed() < Duration::from_secs(10), "{:?}", failed.elapsed());
    assert_says(&sentence(&output, words), &["rank 0", "out/result.checkpoint"]);
    assert!(desk.path("elsewhere/result.checkpoint").exists());
}

/// No process ever holds the whole matrix: 96 MiB of f64, of which each of 4 processes needs a quarter once for
/// hals, and twice for dsanls (whole rows and whole columns).
#[test]
fn no_rank_holds_the_whole_matrix() {
    if !Path::new("/proc/self/status").exists() {
        return;
    }
    let desk = Desk::new();
    let (rows, cols) = (3072usize, 4096usize);
    let values: Vec<f64> = (0..rows * cols).map(|place| (place * 7919 % 1000) as f64).collect();
    desk.write("large.npy", npy_bytes("<f8", &format!("({rows}, {cols})"), &f64_bytes(&values)));
    desk.write("small.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&values[1..13])));
    let peak = |out: &str, rank: usize| {
        desk.json(&format!("{out}/run.json"))["ranks"][rank]["peak_memory"].as_u64().unwrap() as f64
    };
    let whole = (rows * cols * 8) as f64;
    // By columns, dsanls copies a block once; reading needs no additional memory that grows with the matrix.
    for (algorithm, share) in [("hals", 0.25), ("dsanls", 0.75)] {
        let common =
            format!("--rank 4 --iterations 2 --precision f64 --algorithm {algorithm} --threads 1 --quiet");
        run(&desk, 4, &format!("factorize large.npy {common} --out large{algorithm}"));
        run(&desk, 4, &format!("factorize small.npy {common} --out small{algorithm}"));
        for rank in 0..4 {
            let grown = peak(&format!("large{algorithm}"), rank) - peak(&format!("small{algorithm}"), rank);
            assert!(grown <= (share + 0.1) * whole, "{algorithm}, rank {rank}: {}", grown / whole);
        }
    }
}
