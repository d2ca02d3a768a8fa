//! Warnings are printed on stderr, kept in `run.json` and shown in the report.

use crate::common::*;

/// Runs a command that must warn, and returns the warnings.
#[track_caller]
fn warned(desk: &Desk, words: &str, out: &str) -> Vec<String> {
    let output = desk.output(&format!("{words} --out {out}"));
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let record = desk.json(&format!("{out}/run.json"));
    let page = desk.read(&format!("{out}/report.html"));
    let warnings =
        record["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap().to_string());
    let warnings: Vec<String> = warnings.collect();
    for warning in &warnings {
        assert!(stderr.contains(&format!("warning: {warning}\n")), "{warning} in {stderr}");
        assert!(page.contains(warning), "{warning} on the page");
    }
    assert_eq!(stderr.matches("warning: ").count(), warnings.len(), "{stderr}");
    warnings
}

/// 40 x 12, with one column that dominates.
fn dominated() -> Vec<f64> {
    (0..40 * 12)
        .map(|place| if place % 12 == 4 { 100.0 } else { 1.0 } + (place * 7 % 5) as f64 / 10.0)
        .collect()
}

#[test]
fn factors_that_are_zero_are_a_warning() {
    let desk = Desk::with_digits();
    let zero = "factorize digits.npy --rank 4";
    let said = warned(&desk, &format!("{zero} --l1-u 20 --l1-v 20"), "all");
    assert_eq!(said, ["every component is 0, so the result is meaningless; lower --l1-u 20, --l1-v 20"]);
    assert_eq!(warned(&desk, zero, "none"), [""; 0]);
    let quiet = desk.output(&format!("{zero} --l1-u 20 --l1-v 20 --quiet --out quiet"));
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{quiet:?}");
    assert_eq!(desk.json("quiet/run.json")["warnings"].as_array().unwrap().len(), 1);
    // A component of a given start that remains 0.
    std::fs::create_dir(desk.path("start")).unwrap();
    desk.write("m.csv", "1,2,3\n2,1,2\n3,3,3\n");
    for name in ["start/U.npy", "start/V.npy"] {
        desk.write_factor(name, &(3, 2, vec![1.0, 0.0, 2.0, 0.0, 1.0, 0.0]));
    }
    let said = warned(&desk, "factorize m.csv --rank 2 --algorithm mu --init-from start", "one");
    assert_eq!(said, ["1 of 2 components is 0; try another start, or a smaller --rank"]);
}

#[test]
fn a_row_or_column_that_dominates_is_a_warning() {
    let desk = Desk::new();
    desk.write("m.csv", table_bytes(12, &dominated(), ","));
    let names: String = (1..=12).map(|number| format!("gene {number}\n")).collect();
    desk.write("names.txt", names);
    desk.run("convert m.csv m.npy");
    let expected = "accounts for 99.8% of the squared norm of the matrix";
    for (options, out, column) in [
        ("m.csv --col-labels names.txt", "named", "column 5 (gene 5) "),
        ("m.npy --transpose", "turned", "row 5 "),
    ] {
        let said = warned(&desk, &format!("factorize {options} --rank 2"), out);
        assert!(said.len() == 1 && said[0].starts_with(&format!("{column}{expected}")), "{said:?}");
    }
    // Among few columns, only one with more than 99% counts as dominant.
    let few = |largest: f64| {
        (0..40 * 8).map(|place| if place % 8 == 7 { largest } else { 1.0 }).collect::<Vec<_>>()
    };
    desk.write("few.csv", table_bytes(8, &few(40.0), ","));
    let said = warned(&desk, "factorize few.csv --rank 2", "few");
    assert!(said.len() == 1 && said[0].starts_with("column 8 accounts for 99.6% of"), "{said:?}");
    desk.write("fewer.csv", table_bytes(8, &few(20.0), ","));
    assert_eq!(warned(&desk, "factorize fewer.csv --rank 2", "fewer"), [""; 0]);
    let said = warned(&desk, "simulate m.npy --rank 2 --parties 4 --protocol syn-sd --rounds 2", "s");
    assert!(said.len() == 1 && said[0].starts_with(&format!("column 5 {expected}")), "{said:?}");
}
