//! `evaluate`, `transform` and `top` on results of `factorize`.

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
        "--normalize u",
        "--normalize sum-v",
        "--normalize none",
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
    // Twice a row of M has twice its weights, in f32 like the run.
    desk.write("one.csv", "1,0,2\n");
    desk.run("transform r one.csv --out one.npy");
    desk.run("transform r new.csv --out two.npy");
    let (one, two) = (desk.factor("one.npy"), desk.factor("two.npy"));
    for (a, b) in one.2.iter().zip(&two.2) {
        assert!((2.0 * a - b).abs() < 1e-6, "{a} {b}");
    }
    assert!(String::from_utf8_lossy(&desk.bytes("one.npy")[..128]).contains("'<f4'"));
    // After a transposed run, new data is transposed too.
    desk.run("factorize m.csv --transpose --rank 2 --out t");
    desk.run("transform t m.csv --out all.npy");
    assert_eq!(desk.factor("all.npy").0, 3);
}

#[test]
fn top_lists_the_strongest() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 3 --out r --quiet");
    let text = desk.run("top r --count 4");
    assert_eq!(text.lines().count(), 10);
    assert!(text.starts_with("energy: the component's share of the sum of ‖U_j‖ ‖V_j‖"), "{text}");
    assert!(text.contains("\ncomponent 1 ("), "{text}");
    assert!(text.contains("  samples   row ") && text.contains("  features  column "), "{text}");
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

/// A genes x samples table: its rows are the features.
#[test]
fn samples_are_on_the_side_that_the_run_chose() {
    let desk = Desk::new();
    desk.write("genes.csv", "gene,cell 1,cell 2,cell 3\nBRCA1,1,0,2\nTP53,3,1,0\n");
    let page = |folder: &str| desk.read(&format!("{folder}/report.html"));
    desk.run("factorize genes.csv --rank 1 --out default");
    desk.run("factorize genes.csv --rank 1 --records columns --out columns");
    assert_eq!(
        (desk.json("default/run.json")["records"].clone(), desk.json("columns/run.json")["records"].clone()),
        ("rows".into(), "columns".into())
    );
    assert!(page("default").contains("(rows are samples)") && page("default").contains("2 × 3"));
    let columns = page("columns");
    assert!(columns.contains("(columns are samples)") && columns.contains("V.argmax(1)"), "{columns}");
    assert!(
        columns.contains("<span class=\"term\">TP53</span>") && columns.contains("cell 1 ("),
        "{columns}"
    );
    let top = desk.run("top columns --count 1");
    assert!(top.contains("\n  features  TP53 ") && top.contains("\n  samples   cell 1 "), "{top}");
    let shape = "factorize genes.csv --rank 1 --records rows --image-shape 2x1 --out x";
    assert_says(&desk.refused(shape), &["--image-shape", "a row of this 2 x 3 matrix has 3", "--records"]);
    // The page can show the other side as samples; without the option it follows the run.
    desk.run("report columns --records rows");
    assert!(page("columns").contains("(rows are samples)"));
    desk.run("report columns");
    assert_eq!(page("columns"), columns);
    assert_says(
        &desk.refused("factorize genes.csv --rank 1 --records cells --out x"),
        &["--records", "rows"],
    );
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

/// A table with these columns of a matrix, in this order, with column names and row names.
fn table(rows: &[usize], cols: &[usize]) -> String {
    let value = |row: usize, col: usize| (3 * row + 5 * col + row * col * col) % 11;
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let header =
        line(std::iter::once("name".to_string()).chain(cols.iter().map(|col| format!("c{col}"))).collect());
    let rows = rows.iter().map(|&row| {
        let cells = cols.iter().map(|&col| value(row, col).to_string());
        line(std::iter::once(format!("r{row}")).chain(cells).collect())
    });
    header + &rows.collect::<String>()
}

#[test]
fn columns_and_rows_are_matched_by_name() {
    let desk = Desk::new();
    let (rows, cols): (Vec<usize>, Vec<usize>) = ((0..9).collect(), (0..6).collect());
    let reversed = |numbers: &[usize]| numbers.iter().rev().copied().collect::<Vec<_>>();
    desk.write("m.csv", table(&rows, &cols));
    desk.write("turned.csv", table(&reversed(&rows), &reversed(&cols)));
    for (transpose, out) in [("", "r"), ("--transpose", "t")] {
        desk.run(&format!(
            "factorize m.csv {transpose} --rank 3 --precision f64 --iterations 30 --out {out}"
        ));
        let here = error(&desk, &format!("evaluate {out} m.csv"));
        let there = error(&desk, &format!("evaluate {out} turned.csv"));
        assert!((here - there).abs() < 1e-12, "{here} {there}");
        for side in ["rows", "columns"] {
            desk.run(&format!("transform {out} m.csv --side {side} --out here.npy --force"));
            desk.run(&format!("transform {out} turned.csv --side {side} --out there.npy --force"));
            let ((count, k, here), (_, _, there)) = (desk.factor("here.npy"), desk.factor("there.npy"));
            for row in 0..count {
                for j in 0..k {
                    let (a, b) = (here[row * k + j], there[(count - 1 - row) * k + j]);
                    assert!((a - b).abs() < 1e-9, "{out} {side}: {a} {b}");
                }
            }
        }
    }
    // A start with rows in another order is the same start.
    desk.run(
        "factorize m.csv --init-from r --rank 3 --precision f64 --iterations 1 --algorithm hals --out a",
    );
    desk.run(
        "factorize turned.csv --init-from r --rank 3 --precision f64 --iterations 1 --algorithm hals --out b",
    );
    let error_of = |dir: &str| desk.json(&format!("{dir}/run.json"))["relative_error"].as_f64().unwrap();
    assert!((error_of("a") - error_of("b")).abs() < 1e-9, "{} {}", error_of("a"), error_of("b"));
}

#[test]
fn other_names_are_refused() {
    let desk = Desk::new();
    desk.write("m.csv", table(&[0, 1, 2, 3], &[0, 1, 2]));
    desk.run("factorize m.csv --rank 2 --out r");
    let commands = |file: &str| {
        [
            format!("evaluate r {file}"),
            format!("transform r {file} --out W.npy"),
            format!("factorize {file} --rank 2 --init-from r --out b"),
        ]
    };
    for (cols, expected) in [
        (&[0, 5, 4][..], &["new.csv", "columns", "in r", "\"c1\" is missing and \"c5\" is unexpected; "][..]),
        (&[2, 0], &["\"c1\" is missing; "]),
        (&[2, 0, 7, 1], &["\"c7\" is unexpected; "]),
        (&[0, 1, 2, 2], &["\"c2\" occurs more than once; "]),
    ] {
        desk.write("new.csv", table(&[0, 1, 2, 3], cols));
        for words in commands("new.csv") {
            assert_says(&desk.refused(&words), expected);
        }
    }
    desk.write("new.csv", table(&[3, 1, 2, 4], &[0, 1, 2]));
    assert_says(&desk.refused("evaluate r new.csv"), &["rows", "\"r0\" is missing and \"r4\" is unexpected"]);
    let said = desk.refused("transform r new.csv --side columns --out W.npy");
    assert_says(&said, &["rows", "\"r0\" is missing and \"r4\" is unexpected"]);
    // New rows have names of their own.
    desk.run("transform r new.csv --out W.npy");
}

#[test]
fn names_on_one_side_or_twice_keep_the_order() {
    let desk = Desk::new();
    desk.write("m.csv", "a,a,b\n1,2,3\n3,1,0\n2,2,5\n");
    desk.write("unnamed.csv", "1,2,3\n3,1,0\n2,2,5\n");
    desk.write("turned.csv", "b,a,a\n3,1,2\n0,3,1\n5,2,2\n");
    desk.run("factorize m.csv --rank 2 --out r");
    assert_eq!(error(&desk, "evaluate r m.csv"), error(&desk, "evaluate r unnamed.csv"));
    assert_says(&desk.refused("evaluate r turned.csv"), &["\"a\" occurs more than once; rename one"]);
}
