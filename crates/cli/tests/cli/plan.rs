//! `plan`, `calibrate`, and modelled networks.

use crate::common::*;

const CLUSTER: &str =
    "plan --rows 1e9 --cols 1e7 --nonzeros 1e12 --rank 100 --nodes 1024 --network 100Gbit/s,5us";

/// Runs the program with an empty home folder, so that the user's constants do not matter.
fn at_home(desk: &Desk, words: &str) -> std::process::Output {
    desk.command(words).env("XDG_CONFIG_HOME", desk.path("config")).output().unwrap()
}

fn answer(desk: &Desk, words: &str) -> String {
    let output = at_home(desk, words);
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(desk: &Desk, words: &str) -> String {
    let mut command = desk.command(words);
    command.env("XDG_CONFIG_HOME", desk.path("config"));
    desk.refused_command(command, words)
}

#[test]
fn a_plan_prints_every_estimate() {
    let desk = Desk::new();
    let text = answer(&desk, CLUSTER);
    for words in [
        "1000000000 x 10000000, 1000000000000 nonzeros, rank 100, f32, on 1024 nodes, 100Gbit/s,5us",
        "by built-in constants (`partwise calibrate` measures this machine)",
        "memory/process",
        "sent/iteration",
        "seconds/iteration",
        "best  ",
        "bottleneck  ",
        "512 nodes",
        "2048 nodes",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&answer(&desk, &format!("{CLUSTER} --json"))).unwrap();
    for key in ["best", "half", "twice"] {
        let best = &json[key];
        assert!(best["seconds"].as_f64().unwrap() > 0.0, "{json}");
        assert!(best["bytes_sent"].as_u64().unwrap() > 0, "{json}");
        let parts = best["parts"].as_object().unwrap();
        let sum: f64 = parts.values().map(|seconds| seconds.as_f64().unwrap()).sum();
        assert!((sum / best["seconds"].as_f64().unwrap() - 1.0).abs() < 1e-9);
        assert!(parts.contains_key(best["bottleneck"].as_str().unwrap()));
    }
    assert_eq!(json["methods"].as_array().unwrap().len(), 3);
    assert_eq!(json["half"]["nodes"], 512);
    assert_eq!(json["constants"], serde_json::Value::Null);
    assert_eq!(json["network"], "100Gbit/s,5us");
}

#[test]
fn plans_that_cannot_be() {
    let desk = Desk::new();
    for (words, expected) in [
        (format!("{CLUSTER} --memory 64GiB"), ["--memory", "more processes do not help", "machines with"]),
        (
            "plan --rows 1e6 --cols 1e6 --rank 10 --nodes 2 --memory 16GiB".into(),
            ["--memory", "a process needs", "processes, which need"],
        ),
        (
            "plan --rows 3 --cols 4 --rank 2 --nodes 20".into(),
            ["--nodes", "entries of the matrix", "at most 12"],
        ),
        (
            "plan --rows 3 --cols 4 --rank 2 --nodes 4 --grid 3x2".into(),
            ["--grid", "3x2 needs 6 processes", "product is 4"],
        ),
        ("plan --rows 3 --cols 4 --nonzeros 13 --rank 2 --nodes 2".into(), ["--nonzeros", "13", "12"]),
        ("plan --rows 0 --cols 4 --rank 2 --nodes 2".into(), ["--rows", "0 is too few", "1 or more"]),
        ("plan --rows 1.5 --cols 4 --rank 2 --nodes 2".into(), ["'--rows <M>'", "'1.5'", "such as"]),
        ("plan --rows -3 --cols 4 --rank 2 --nodes 2".into(), ["'--rows <M>'", "'-3'", "such as"]),
        ("plan --rows 1e99 --cols 4 --rank 2 --nodes 2".into(), ["'--rows <M>'", "'1e99'", "such as"]),
        (
            "plan --rows 3 --cols 4 --rank 2 --nodes 2 --network fast".into(),
            ["'--network <NETWORK>'", "'fast'", "1Gbit/s,100us"],
        ),
        (
            "plan --rows 3 --cols 4 --rank 2 --nodes 2 --constants none.json".into(),
            ["none.json", "No such file", "partwise calibrate"],
        ),
        (
            "factorize digits.npy --rank 2 --out r --network 1Gbit/s".into(),
            ["'--network <NETWORK>'", "'1Gbit/s'", "1Gbit/s,100us"],
        ),
    ] {
        assert_says(&refused(&desk, &words), &expected);
    }
    desk.write("bad.json", "{\"ks\":[1]}");
    let said = refused(&desk, "plan --rows 3 --cols 4 --rank 2 --nodes 2 --constants bad.json");
    assert_says(&said, &["bad.json", "does not contain measured constants", "partwise calibrate"]);
}

#[test]
fn constants_are_kept_where_plans_find_them() {
    let desk = Desk::new();
    let text = answer(&desk, "calibrate --quick --threads 1");
    assert_says(
        &text,
        &["1 rank of 1 thread", "dense product", "sparse product", "sweep", "GB/s", "calibration.json"],
    );
    let plan = "plan --rows 1e5 --cols 1e4 --rank 10 --nodes 4";
    assert_says(&answer(&desk, plan), &["config/partwise/calibration.json", "10Gbit/s,20us (assumed"]);
    assert_says(&refused(&desk, "calibrate --quick"), &["calibration.json", "already exists", "--force"]);
    answer(&desk, "calibrate --quick --threads 2 --force");
    let json: serde_json::Value =
        serde_json::from_str(&answer(&desk, "calibrate --quick --threads 1 --json --out mine.json")).unwrap();
    assert_eq!(json, desk.json("mine.json"));
    assert_says(&answer(&desk, &format!("{plan} --constants mine.json")), &["constants of mine.json"]);
    assert_says(
        &refused(&desk, "calibrate --quick --threads 0 --out other.json"),
        &["--threads", "0 is too few"],
    );
    assert_says(&refused(&desk, "calibrate --quick --out none/mine.json"), &["none/mine.json"]);
}

#[test]
fn a_modelled_network_gives_virtual_seconds() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 8 --algorithm hals --iterations 5 --tolerance 0 --nodes 5";
    let text = answer(&desk, &format!("{common} --out r --network 1Mbit/s,10ms --network unlimited"));
    assert_says(&text, &["workers with 1 thread each", "s on the virtual clock of 1Mbit/s,10ms"]);
    let trace = desk.read("r/trace.csv");
    assert!(
        trace.starts_with(
            "iteration,virtual_seconds,relative_error,bytes_sent,loss,virtual_seconds_2\n0,0.000000,"
        ),
        "{trace}"
    );
    let record = desk.json("r/run.json");
    assert_eq!(record["clock"], "virtual");
    assert_eq!(record["network"], serde_json::json!(["1Mbit/s,10ms", "unlimited"]));
    // Two Gram matrices, a number, rows of a factor and products: at least 8 collectives of 3 messages per
    // iteration.
    assert!(record["seconds"].as_f64().unwrap() > 5.0 * 3.0 * 0.01);
    answer(&desk, &format!("{common} --out real"));
    assert_eq!(desk.bytes("r/U.npy"), desk.bytes("real/U.npy"));
    assert_eq!(desk.json("real/run.json")["clock"], "real");
    assert!(desk.read("real/trace.csv").starts_with("iteration,seconds,"));

    let said = refused(&desk, "factorize digits.npy --rank 8 --out s --memory 300KiB --network unlimited");
    assert_says(&said, &["--network", "in one process"]);
}

#[test]
fn auto_chooses_by_the_network_and_reports_it() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 8 --iterations 5 --tolerance 0 --nodes 4 --quiet";
    let plan = |out: &str, options: &str| {
        answer(&desk, &format!("{common} --out {out} {options}"));
        let record = desk.json(&format!("{out}/run.json"));
        assert_eq!(record["algorithm"], "auto");
        (record["plan"].as_str().unwrap().to_string(), record["sketch"].clone(), record["grid"].clone())
    };
    let (text, sketch, grid) = plan("exact", "--network unlimited --samples yes");
    assert!(
        text.starts_with("auto: accelerated HALS") && text.contains("on unlimited by built-in constants"),
        "{text}"
    );
    assert!(sketch.is_null() && grid == "4x1");
    // Without a network, the exact method.
    let (text, ..) = plan("plain", "");
    assert!(!text.contains("constants"), "{text}");
    assert_eq!(desk.bytes("exact/U.npy"), desk.bytes("plain/U.npy"));
    // The same command gives the same result.
    plan("again", "--network unlimited --samples yes");
    assert_eq!(desk.bytes("exact/V.npy"), desk.bytes("again/V.npy"));
    // No sample is used if sending it takes long.
    let (text, ..) = plan("slow", "--network 1kbit/s,100us");
    assert!(text.starts_with("auto: accelerated HALS") && !text.contains("warm-started"), "{text}");
    plan("without", "--samples no");
    assert_eq!(desk.bytes("slow/U.npy"), desk.bytes("without/U.npy"));
    assert_ne!(desk.bytes("slow/U.npy"), desk.bytes("plain/U.npy"));
}

/// A run that starts on samples is exact, whatever the network, and does not use sketch sizes.
#[test]
fn auto_is_exact_when_it_must_start_on_samples() {
    const SIDE: usize = 1600;
    let desk = Desk::new();
    let values: Vec<u8> = (0..SIDE * SIDE).map(|i| 1 + (i * 7919 % 997 % 50) as u8).collect();
    desk.write("m.npy", npy_bytes("|u1", "(1600, 1600)", &values));
    let common =
        "factorize m.npy --rank 2 --iterations 3 --tolerance 0 --nodes 16 --network 1bit/s,0s --no-report";
    let sketched = answer(&desk, &format!("{common} --sketch-cols 2 --sketch-rows 2 --out sketched"));
    assert_says(&sketched, &["auto: dsanls"]);
    let said =
        refused(&desk, &format!("{common} --samples yes --sketch-cols 2 --sketch-rows 2 --out refused"));
    assert_says(&said, &["--sketch-cols", "auto does not use it"]);
    let text = answer(&desk, &format!("{common} --samples yes --out exact"));
    assert_says(&text, &["auto: accelerated HALS", "warm-started on a"]);
    assert!(desk.json("exact/run.json")["sketch"].is_null());
}

/// Where communication dominates, `auto` equals `dsanls` to the bit.
#[test]
fn auto_is_sketched_on_a_slow_network() {
    const SIDE: usize = 1600;
    let desk = Desk::new();
    let values: Vec<f64> =
        (0..SIDE * SIDE).map(|i| f64::from(u8::from(i * 7919 % 997 < 3)) * (1 + i % 5) as f64).collect();
    desk.write("m.npz", npz_bytes(SIDE, SIDE, &values));
    let common =
        "factorize m.npz --rank 2 --iterations 12 --tolerance 0 --nodes 16 --sketch-cols 2 --sketch-rows 2";
    let text = answer(&desk, &format!("{common} --network 1bit/s,0s --out auto"));
    assert_says(&text, &["auto: dsanls, sketched to 2 of 1600 columns"]);
    let record = desk.json("auto/run.json");
    assert_says(record["plan"].as_str().unwrap(), &["on 1bit/s,0ns by built-in constants"]);
    assert_eq!((&record["algorithm"], &record["sketch"]), (&"auto".into(), &"subsample".into()));
    assert!(record["grid"].is_null());
    answer(&desk, &format!("{common} --algorithm dsanls --out dsanls"));
    assert_eq!(desk.bytes("auto/U.npy"), desk.bytes("dsanls/U.npy"));
}
