//! `evaluate`, `transform` and `top` on what `factorize` wrote.

use crate::common::*;

fn error(desk: &Desk, words: &str) -> f64 {
    let answer: serde_json::Value = serde_json::from_str(&desk.run(&format!("{words} --json"))).unwrap();
    answer["relative_error"].as_f64().unwrap()
}

#[test]
fn evaluate_agrees_with_the_record() {
    let desk = Desk::with_digits();
    for options in [
        "",
        "--precision f64",
        "--normalize",
        "--transpose",
        "--algorithm dsanls --nodes 3",
        "--rank 80 --iterations 300",
    ] {
        let rank = if options.contains("--rank") { "" } else { "--rank 10" };
        desk.run(&format!("factorize digits.npy {rank} --out r --force --quiet {options}"));
        let recorded = desk.json("r/run.json")["relative_error"].as_f64().unwrap();
        let found = error(&desk, "evaluate r digits.npy");
        assert!((found - recorded).abs() < 1e-5, "{options}: {found} {recorded}");
        assert!(desk.run("evaluate r digits.npy").starts_with("relative error 0."));
    }
}

#[test]
fn transform_fits_at_least_as_well() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 10 --iterations 30 --precision f64 --out r");
    let before = error(&desk, "evaluate r digits.npy");
    for (side, fitted, kept, shape) in
        [("rows", "U.npy", "V.npy", (1797, 10)), ("columns", "V.npy", "U.npy", (64, 10))]
    {
        let said = desk.run(&format!("transform r digits.npy --side {side} --out W.npy --force"));
        assert!(said.contains(&format!("{} {side} fitted to 10 components", shape.0)), "{said}");
        let (rows, k, values) = desk.factor("W.npy");
        assert_eq!((rows, k), shape);
        assert!(values.iter().all(|value| *value >= 0.0));
        let _ = std::fs::create_dir(desk.path(side));
        std::fs::copy(desk.path("W.npy"), desk.path(side).join(fitted)).unwrap();
        std::fs::copy(desk.path("r").join(kept), desk.path(side).join(kept)).unwrap();
        let after = error(&desk, &format!("evaluate {side} digits.npy"));
        assert!(after <= before + 1e-12, "{side}: {after} {before}");
        assert!(after > before - 0.01, "{side}: {after} {before}");
    }
}

#[test]
fn transform_of_new_rows_with_labels() {
    let desk = Desk::new();
    desk.write("m.csv", "a,b,c\n1,0,2\n3,1,0\n0,2,1\n2,2,2\n");
    desk.write("new.csv", "name,a,b,c\nx,2,0,4\n");
    desk.run("factorize m.csv --rank 2 --out r");
    desk.run("transform r new.csv --out W.tsv");
    let table = desk.read("W.tsv");
    assert!(table.starts_with("label\tcomponent_1\tcomponent_2\nx\t"), "{table}");
    assert_eq!(table.lines().count(), 2);
    // Twice a row of M has twice its weights; f32 as the run was.
    desk.write("one.csv", "1,0,2\n");
    desk.run("transform r one.csv --out one.npy");
    desk.run("transform r new.csv --out two.npy");
    let (one, two) = (desk.factor("one.npy"), desk.factor("two.npy"));
    for (a, b) in one.2.iter().zip(&two.2) {
        assert!((2.0 * a - b).abs() < 1e-6, "{a} {b}");
    }
    assert!(String::from_utf8_lossy(&desk.bytes("one.npy")[..128]).contains("'<f4'"));
    // A transposed run takes its new data transposed too.
    desk.run("factorize m.csv --transpose --rank 2 --out t");
    desk.run("transform t m.csv --out all.npy");
    assert_eq!(desk.factor("all.npy").0, 3);
}

#[test]
fn top_lists_the_strongest() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 3 --out r --quiet");
    let text = desk.run("top r --count 4");
    assert_eq!(text.lines().count(), 9);
    assert!(text.starts_with("component 1 ("), "{text}");
    assert!(text.contains("  rows     row ") && text.contains("  columns  column "), "{text}");
    let listing: serde_json::Value = serde_json::from_str(&desk.run("top r --json")).unwrap();
    let (_, k, u) = desk.factor("r/U.npy");
    let mut shares = 0.0;
    for (place, component) in listing.as_array().unwrap().iter().enumerate() {
        assert_eq!(component["component"], place + 1);
        shares += component["share"].as_f64().unwrap();
        let rows = component["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 10);
        assert!(rows.is_sorted_by(|a, b| a["weight"].as_f64() >= b["weight"].as_f64()));
        let strongest = u.iter().skip(place).step_by(k).fold(0.0, |max: f64, &value| max.max(value));
        assert_eq!(rows[0]["weight"], strongest);
        assert!(rows[0]["label"].is_null());
    }
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn factors_made_by_hand() {
    let desk = Desk::new();
    desk.write("m.csv", "1,2\n2,4\n");
    std::fs::create_dir(desk.path("r")).unwrap();
    desk.write_factor("r/U.npy", &(2, 1, vec![1.0, 2.0]));
    desk.write_factor("r/V.npy", &(2, 1, vec![1.0, 2.0]));
    assert_eq!(desk.run("evaluate r m.csv"), "relative error 0.000000000\n");
    assert!(desk.run("top r").contains("row 2 2.0000, row 1 1.0000"));
}
