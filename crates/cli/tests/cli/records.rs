//! `run.json`: its keys are those of version 0.1, whose folders remain readable; a later version's is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../core/src/run/record/data/", $name))
    };
}

/// Command lines, and the records that version 0.1 wrote for them.
const RUNS: [(&str, &str); 4] = [
    (
        "factorize records.csv -k 2 --transpose --records columns --iterations 5",
        sample!("factorize-0.1.json"),
    ),
    (
        "factorize digits.npy -k 4 --algorithm dsanls --sketch count --sketch-cols 20 --nodes 2 --network 1Gbit/s,100us \
         --iterations 6 --restarts 2 --seed 7 --image-shape 8x8",
        sample!("factorize-dsanls-0.1.json"),
    ),
    (
        "simulate records.csv --parties 5 --protocol asyn-ssd-v -k 2 --rounds 3 --lose 5@4 --speeds 1,2 --records columns \
         --transpose --accept-that-going-on-shows-the-leaver --accept-that-few-records-show-in-sums",
        sample!("simulate-0.1.json"),
    ),
    (
        "simulate records.csv --parties 4 --protocol syn-sd -k 2 --rounds 3 --record --accept-that-few-records-show-in-sums",
        sample!("simulate-recorded-0.1.json"),
    ),
];

/// 24 records of 6 features, of three kinds.
fn desk() -> Desk {
    let desk = Desk::with_digits();
    let mut table = "name,a,b,c,d,e,f\n".to_string();
    for record in 0..24 {
        let value = |feature: usize| {
            let noise = (record * 7919 + feature * 104_729) % 1000;
            noise as f64 / 1000.0 + if record % 3 == feature % 3 { 3.0 } else { 0.0 }
        };
        let values: Vec<String> = (0..6).map(|feature| format!("{:.3}", value(feature))).collect();
        table += &format!("r{record},{}\n", values.join(","));
    }
    desk.write("records.csv", table);
    desk
}

/// The path of every key, with `[]` for the items of a list.
fn keys(value: &Value) -> BTreeSet<String> {
    let within = |name: String, value: &Value| {
        let below = keys(value).into_iter().map(|key| format!("{name}.{key}")).collect::<Vec<_>>();
        below.into_iter().chain([name])
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| within(key.clone(), value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| within("[]".into(), item)).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn a_run_writes_the_keys_of_0_1_and_the_format() {
    for (words, sample) in RUNS {
        let desk = desk();
        desk.run(&format!("{words} --quiet --no-report --out r"));
        let record = desk.json("r/run.json");
        assert_eq!(record["format_version"], 1);
        let mut expected = keys(&serde_json::from_str(sample).unwrap());
        expected.insert("format_version".into());
        if words.starts_with("factorize") {
            expected.extend(["loss".into(), "loss_name".into()]);
        }
        assert_eq!(keys(&record), expected, "{words}");
    }
}

#[test]
fn folders_of_0_1_are_read() {
    for (words, sample) in RUNS {
        let desk = desk();
        desk.run(&format!("{words} --quiet --no-report --out r"));
        // A table with another size than the frames.
        desk.write("r/run.json", sample);
        let said = desk.run("report r");
        assert!(said.contains("r/report.html"), "{said}");
        let page = desk.read("r/report.html");
        assert!(page.contains("All parameters and the input"), "{page}");
        if words.starts_with("factorize") {
            let file = words.split_whitespace().nth(1).unwrap();
            assert_eq!(desk.json("r/run.json")["rank"], desk.factor("r/U.npy").1);
            let new = desk.run(&format!("evaluate r {file}"));
            assert!(new.starts_with("relative error 0."), "{new}");
            // The row labels come first.
            let top = desk.run("top r");
            let first = top.lines().nth(2).unwrap().trim_start();
            let side = if first.starts_with("samples") { "rows" } else { "columns" };
            assert_eq!(desk.json("r/run.json")["records"], side);
        }
    }
}

#[test]
fn a_record_of_a_later_program_is_refused() {
    let desk = desk();
    for (words, commands) in [
        (
            RUNS[0].0,
            vec!["evaluate r records.csv", "transform r records.csv --out W.npy", "top r", "report r"],
        ),
        (RUNS[3].0, vec!["report r", "audit r"]),
    ] {
        desk.run(&format!("{words} --quiet --no-report --force --out r"));
        let mut record = desk.json("r/run.json");
        record["format_version"] = 99.into();
        record["version"] = "9.0.0".into();
        desk.write("r/run.json", record.to_string());
        for words in commands {
            assert_says(
                &desk.refused(words),
                &["r/run.json", "Partwise 9.0.0", "format 99", "update Partwise"],
            );
        }
        // Unknown keys are ignored.
        record["format_version"] = 1.into();
        record["colour"] = "blue".into();
        desk.write("r/run.json", record.to_string());
        desk.run("report r");
    }
}
