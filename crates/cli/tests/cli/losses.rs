//! `--loss`, `--missing` and `--weights`: their effect on the results, and invalid combinations.

use crate::common::*;

/// 12 x 8 counts, some of which are 0.
fn counts() -> Vec<f64> {
    (0..12 * 8).map(|place: usize| ((place * 7919) % 13).saturating_sub(3) as f64).collect()
}

fn number(record: &serde_json::Value, key: &str) -> f64 {
    record[key].as_f64().unwrap_or_else(|| panic!("{key} in {record}"))
}

#[test]
fn every_loss_is_recorded_evaluated_and_shown() {
    let desk = Desk::new();
    desk.write("m.csv", table_bytes(8, &counts(), ","));
    let positive: Vec<f64> = counts().iter().map(|count| count + 1.0).collect();
    desk.write("positive.csv", table_bytes(8, &positive, ","));
    for (file, loss, tile) in [
        ("m.csv", "frobenius", "‖M − U Vᵀ‖ / ‖M‖"),
        ("m.csv", "kl", "Kullback-Leibler divergence / that of the best constant"),
        ("positive.csv", "is", "Itakura-Saito divergence / that of the best constant"),
    ] {
        desk.run(&format!("factorize {file} --rank 3 --loss {loss} --precision f64 --out {loss}"));
        let record = desk.json(&format!("{loss}/run.json"));
        assert_eq!(record["loss_name"], loss);
        let trace = desk.read(&format!("{loss}/trace.csv"));
        let last: Vec<f64> =
            trace.lines().last().unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
        assert!((last[4] - number(&record, "loss")).abs() <= 1e-9 * last[4], "{trace}");
        let answer: serde_json::Value =
            serde_json::from_str(&desk.run(&format!("evaluate {loss} {file} --json"))).unwrap();
        assert_eq!(answer["loss_name"], loss);
        for key in ["relative_error", "loss"] {
            let (got, want) = (number(&answer, key), number(&record, key));
            assert!((got - want).abs() <= 1e-9 * want, "{loss} {key}: {got} {want}");
        }
        assert!(desk.read(&format!("{loss}/report.html")).contains(tile), "{loss}");
        desk.run(&format!("top {loss}"));
        desk.run(&format!("transform {loss} {file} --out {loss}.npy"));
        assert_eq!(desk.factor(&format!("{loss}.npy")).0, 12);
    }
    assert_says(&desk.run("evaluate kl m.csv"), &["relative error 0.", ", kl "]);
}

#[test]
fn workers_and_resumed_runs_give_the_same_result() {
    let desk = Desk::new();
    desk.write("m.npz", npz_bytes(12, 8, &counts()));
    let common = "factorize m.npz --rank 3 --loss kl --precision f64 --tolerance 0 --seed 2";
    desk.run(&format!("{common} --iterations 20 --out one"));
    desk.run(&format!("{common} --iterations 20 --nodes 3 --out three"));
    let (one, three) = (desk.json("one/run.json"), desk.json("three/run.json"));
    assert!((number(&one, "relative_error") - number(&three, "relative_error")).abs() < 1e-9);
    desk.run(&format!("{common} --iterations 20 --checkpoint-every 8 --time-limit 0 --out resumed"));
    desk.run(&format!("{common} --iterations 20 --checkpoint-every 8 --resume --force --out resumed"));
    assert_eq!(desk.bytes("one/U.npy"), desk.bytes("resumed/U.npy"));
}

#[test]
fn a_divergence_from_a_file_larger_than_memory_is_that_in_memory() {
    let desk = Desk::new();
    let values: Vec<f64> = (0..4000 * 1500).map(|place: usize| (place * 7919 % 11) as f64).collect();
    desk.write("m.npy", npy_bytes("<f8", "(4000, 1500)", &f64_bytes(&values)));
    let common = "factorize m.npy --rank 2 --loss kl --algorithm mu --iterations 3 --tolerance 0 --quiet";
    desk.run(&format!("{common} --out whole"));
    let said = desk.run(&format!("{} --memory 22MiB --out streamed", common.replace("--quiet", "")));
    assert_says(&said, &["streamed by rows"]);
    let error = |out: &str| number(&desk.json(&format!("{out}/run.json")), "relative_error");
    let (whole, streamed) = (error("whole"), error("streamed"));
    assert!((whole - streamed).abs() <= 1e-5 * whole, "{whole} {streamed}");
}

#[test]
fn missing_values_are_left_out_in_every_format() {
    let desk = Desk::new();
    let values = counts();
    let mut gaps = values.clone();
    let hidden = [5, 17, 40, 77];
    hidden.iter().for_each(|&place| gaps[place] = f64::NAN);
    let mut mask = vec![0.0; values.len()];
    hidden.iter().for_each(|&place| mask[place] = 1.0);
    desk.write("nan.npy", npy_bytes("<f8", "(12, 8)", &f64_bytes(&gaps)));
    let table = String::from_utf8(table_bytes(8, &gaps, ",")).unwrap();
    desk.write("na.csv", table.replacen("NaN", "NA", 1).replacen("NaN", "", 1));
    desk.write("full.npy", npy_bytes("<f8", "(12, 8)", &f64_bytes(&values)));
    desk.write("mask.npz", npz_bytes(12, 8, &mask));
    desk.write("gaps.npz", npz_bytes(12, 8, &gaps));
    let known: Vec<f64> = mask.iter().map(|mask| 1.0 - mask).collect();
    desk.write("weights.npy", npy_bytes("<f8", "(12, 8)", &f64_bytes(&known)));
    for loss in ["frobenius", "kl"] {
        let common =
            format!("--rank 3 --loss {loss} --precision f64 --iterations 15 --tolerance 0 --force --out");
        let mut errors = Vec::new();
        for (place, options) in [
            "nan.npy --missing nan",
            "na.csv --missing nan --header no --row-names no",
            "full.npy --missing mask.npz",
            "full.npy --weights weights.npy",
            "gaps.npz --missing nan",
            "nan.npy --missing nan --nodes 3",
        ]
        .into_iter()
        .enumerate()
        {
            let out = format!("{loss}{place}");
            desk.run(&format!("factorize {options} {common} {out}"));
            errors.push(number(&desk.json(&format!("{out}/run.json")), "relative_error"));
        }
        assert!(errors.iter().all(|error| (error - errors[0]).abs() < 1e-8), "{errors:?}");
        // The record says which entries were missing.
        let answer = desk.run(&format!("evaluate {loss}0 nan.npy --json"));
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert!((number(&answer, "relative_error") - errors[0]).abs() < 1e-9);
        desk.run(&format!("transform {loss}0 nan.npy --out W.npy --force"));
    }
    assert_eq!(desk.json("kl0/run.json")["missing"], "nan");
}

#[test]
fn a_row_without_a_known_entry_is_a_warning() {
    let desk = Desk::new();
    desk.write("m.csv", "1,2,3\nNA,NA,\n3,1,2\n2,2,5\n");
    let output = desk.output("factorize m.csv --missing nan --rank 2 --out r");
    assert!(output.status.success(), "{output:?}");
    let said = "warning: 1 row has no known entry, and its row of U is 0";
    assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    assert_eq!(desk.factor("r/U.npy").2[2..4], [0.0, 0.0]);
}

#[test]
fn conflicting_options_are_refused_by_name() {
    let desk = Desk::new();
    desk.write("m.csv", table_bytes(8, &counts(), ","));
    desk.write("gaps.csv", "1,2\nNA,3\n");
    desk.write("gaps.npy", npy_bytes("<f8", "(2, 2)", &f64_bytes(&[1.0, f64::NAN, 2.0, 3.0])));
    desk.write("weights.csv", "1\n-1\n");
    desk.write("large.npy", npy_bytes("<f8", "(4000, 2000)", &f64_bytes(&vec![1.0; 8_000_000])));
    for (words, expected) in [
        ("m.csv --loss kl --algorithm bpp", &["--loss", "kl cannot be minimized by bpp"][..]),
        ("m.csv --loss kl --algorithm dsanls", &["--loss", "dsanls"]),
        ("m.csv --loss is", &["--loss", "row 1 (counted from 1)"]),
        ("m.csv --loss huber", &["'huber'", "frobenius, kl, is"]),
        ("large.npy --loss is --memory 24MiB", &["--loss", "in memory", "--memory"]),
        ("large.npy --loss kl --algorithm hals --memory 24MiB", &["--loss", "auto or mu", "--memory"]),
        ("large.npy --holdout 10% --memory 24MiB", &["--holdout", "in memory", "--memory"]),
        ("large.npy --missing nan --memory 24MiB", &["--missing", "in memory", "--memory"]),
        ("m.csv --missing unstored", &["--missing", "a dense matrix stores every entry"]),
        ("m.csv --missing gaps.csv", &["gaps.csv", "NA"]),
        ("m.csv --weights weights.csv", &["--weights", "it is 2 x 1, but the matrix is 12 x 8"]),
        ("gaps.csv --missing nan --weights weights.csv", &["--weights", "row 2", "-1"]),
        ("gaps.csv", &["gaps.csv, line 2, column 1", "\"NA\"", "--missing nan"]),
        ("gaps.npy", &["gaps.npy", "is NaN", "--missing nan"]),
        ("gaps.npy --missing nan --algorithm dsanls", &["--algorithm", "needs every entry"]),
    ] {
        assert_says(&desk.refused(&format!("factorize {words} --rank 1 --out r")), expected);
    }
}

#[test]
fn held_out_entries_are_evaluated_in_the_trace_and_at_the_end() {
    let desk = Desk::new();
    desk.write("m.csv", table_bytes(8, &counts(), ","));
    desk.write("m.npz", npz_bytes(12, 8, &counts()));
    for file in ["m.csv", "m.npz"] {
        for nodes in [1, 3] {
            let out = format!("{file}{nodes}");
            desk.run(&format!(
                "factorize {file} --holdout 20% --loss kl --rank 2 --precision f64 --iterations 9 --nodes {nodes} --out {out}"
            ));
        }
        let (one, three) = (desk.json(&format!("{file}1/run.json")), desk.json(&format!("{file}3/run.json")));
        for key in ["heldout_loss", "heldout_rmse"] {
            assert!((number(&one, key) - number(&three, key)).abs() < 1e-9, "{one}");
        }
        assert_eq!(one["holdout"], 0.2);
        let trace = desk.read(&format!("{file}1/trace.csv"));
        assert!(
            trace.starts_with("iteration,seconds,relative_error,bytes_sent,loss,heldout_loss,heldout_rmse\n")
        );
    }
    assert_says(&desk.refused("factorize m.csv --holdout 2 --rank 2 --out r"), &["--holdout", "below 1"]);
    assert_says(
        &desk.refused("factorize m.csv --holdout 0.001 --rank 2 --out r"),
        &["--holdout", "this share holds out no entry"],
    );
}
