//! Every format, and the labels that come with a matrix.

use crate::common::*;

const VALUES: [f64; 12] = [1.0, 0.0, 2.0, 0.5, 3.0, 0.0, 0.0, 1.0, 4.0, 2.0, 0.25, 8.0];

#[test]
fn every_format_is_the_same_matrix() {
    let desk = Desk::new();
    let files = [
        ("m.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&VALUES))),
        ("m.npz", npz_bytes(4, 3, &VALUES)),
        ("m.mtx", mtx_bytes(4, 3, &VALUES)),
        ("m.csv", table_bytes(3, &VALUES, ",")),
        ("m.tsv", table_bytes(3, &VALUES, "\t")),
    ];
    for (name, bytes) in files {
        for (name, bytes) in [(name.to_string(), bytes.clone()), (format!("{name}.gz"), gzip(&bytes))] {
            desk.write(&name, bytes);
            let summary: serde_json::Value =
                serde_json::from_str(&desk.run(&format!("inspect {name} --json"))).unwrap();
            for (key, value) in [
                ("rows", 4.0),
                ("cols", 3.0),
                ("nonzeros", 9.0),
                ("density", 0.75),
                ("min", 0.0),
                ("max", 8.0),
                ("empty_rows", 0.0),
                ("empty_cols", 0.0),
                ("rank", 20.0),
            ] {
                assert_eq!(summary[key].as_f64(), Some(value), "{name}: {key}");
            }
            let sparse = name.contains(".npz") || name.contains(".mtx");
            assert_eq!(summary["storage"], if sparse { "sparse" } else { "dense" });
            assert!(summary["bytes_hals"].as_u64().unwrap() > 0);
            assert!(summary["bytes_dsanls"].as_u64().unwrap() > 0);
            let out = name.replace('.', "_");
            desk.run(&format!(
                "factorize {name} --algorithm hals --rank 2 --iterations 20 --precision f64 --out {out}"
            ));
            let (one, this) = (desk.factor("m_npy/U.npy"), desk.factor(&format!("{out}/U.npy")));
            for (a, b) in one.2.iter().zip(&this.2) {
                assert!((a - b).abs() < 1e-9, "{name}: {a} {b}");
            }
        }
    }
}

#[test]
fn inspect_for_people() {
    let desk = Desk::new();
    desk.write("m.csv", "name,a,b,c\nx,1,0,2\ny,0,0,0\n");
    let text = desk.run("inspect m.csv --rank 3");
    for words in
        ["2 x 3", "2 (33.3333%)", "0 to 2", "1 rows, 1 columns", "rows named", "memory", "3 components"]
    {
        assert!(text.contains(words), "{text}");
    }
    assert!(desk.run("inspect m.csv --transpose").contains("3 x 2 (transposed)"));
    let header: Vec<String> = (1..=10).map(|col| format!("c{col}")).collect();
    let rows = "1,0,900,1,2,0,1,1,0,2\n1,1,700,NaN,0,-1,1,-2,inf,1\n";
    desk.write("m.csv", header.join(",") + "\n" + rows);
    let text = desk.run("inspect m.csv");
    for words in [
        "unusable    1 NaN, 2 negative, 1 infinite; the first at row 2, column 4 (counted from 1)\n",
        "dominant    column 3 (c3) accounts for 100.0% of the squared norm of the matrix\n",
        "range       -2 to 900",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn labels_of_a_table_travel() {
    let desk = Desk::new();
    desk.write("m.csv", "name,a,\"b, c\",d\nx,1,0,2\ny,3,1,0\n");
    desk.run("factorize m.csv --rank 2 --tsv --out r");
    assert_eq!(first_cells(&desk.read("r/U.tsv")), ["label", "x", "y"]);
    assert_eq!(first_cells(&desk.read("r/V.tsv")), ["label", "a", "b, c", "d"]);
    assert!(desk.read("r/U.tsv").starts_with("label\tcomponent_1\tcomponent_2\n"));
    assert_eq!(
        (desk.read("r/rows.txt"), desk.read("r/columns.txt")),
        ("x\ny\n".into(), "a\nb, c\nd\n".into())
    );
    let (_, _, u) = desk.factor("r/U.npy");
    let table: Vec<f64> = desk
        .read("r/U.tsv")
        .lines()
        .skip(1)
        .flat_map(|line| line.split('\t').skip(1).map(|cell| cell.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    assert!(u.iter().zip(&table).all(|(a, b)| (a - b).abs() <= 1e-6 * a.abs()), "{u:?} {table:?}");
    let top = desk.run("top r --count 1");
    assert!(top.lines().any(|line| line.starts_with("  samples   y ")), "{top}");

    desk.run("factorize m.csv --rank 2 --transpose --out t --tsv");
    assert_eq!(first_cells(&desk.read("t/U.tsv")), ["label", "a", "b, c", "d"]);
    assert_eq!(first_cells(&desk.read("t/V.tsv")), ["label", "x", "y"]);
}

#[test]
fn labels_of_their_own_files_travel() {
    let desk = Desk::new();
    desk.write("m.npy", npy_bytes("<f8", "(4, 3)", &f64_bytes(&VALUES)));
    desk.write("rows.txt", "r1\nr2\nr3\nr4\n");
    desk.write("cols.txt", gzip(b"c1\nc2\nc3\n"));
    std::fs::rename(desk.path("cols.txt"), desk.path("cols.txt.gz")).unwrap();
    let common = "factorize m.npy --rank 2 --tsv --row-labels rows.txt --col-labels cols.txt.gz";
    desk.run(&format!("{common} --out r"));
    assert_eq!(first_cells(&desk.read("r/U.tsv")), ["label", "r1", "r2", "r3", "r4"]);
    assert_eq!(first_cells(&desk.read("r/V.tsv")), ["label", "c1", "c2", "c3"]);
    desk.run(&format!("{common} --transpose --out t"));
    assert_eq!(first_cells(&desk.read("t/U.tsv")), ["label", "c1", "c2", "c3"]);
    assert_eq!(desk.read("t/columns.txt"), "r1\nr2\nr3\nr4\n");
    let listing: serde_json::Value = serde_json::from_str(&desk.run("top t --json --count 2")).unwrap();
    assert_eq!(listing.as_array().unwrap().len(), 2);
    let label = listing[0]["columns"][0]["label"].as_str().unwrap();
    let index = listing[0]["columns"][0]["index"].as_u64().unwrap();
    assert_eq!(label, format!("r{}", index + 1));
    let said = desk.refused("factorize m.npy --rank 2 --col-labels rows.txt --out x");
    assert_says(&said, &["rows.txt", "4 labels, but the matrix needs 3", "one per line"]);
    let said = desk.refused("factorize m.npy --rank 2 --row-labels none.txt --out x");
    assert_says(&said, &["none.txt", "No such file", "check the path"]);
}

/// What a command says on stderr.
fn warnings(desk: &Desk, words: &str) -> String {
    let output = desk.output(words);
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn assumptions_about_a_table_are_reported_with_the_option() {
    let desk = Desk::new();
    let rows = |ids: [usize; 6]| {
        ids.map(|id| format!("{id},{},{},{}\n", id % 3, id * id % 7, (id + 1) % 4)).concat()
    };
    desk.write("ids.csv", rows([1, 2, 3, 4, 5, 6]));
    desk.write("years.csv", "land,1990,1991\nPeru,1,2\nChad,3,4\n");
    desk.write("triples.csv", "user,item,rating\n1,10,5\n1,20,3\n2,10,4\n2,30,2\n3,20,5\n3,30,1\n");
    for (file, expected) in [
        (
            "ids.csv",
            "warning: ids.csv: column 1 (1, 2, 3, ...) looks like identifiers but is read as data; use --row-names yes",
        ),
        (
            "years.csv",
            "warning: years.csv: line 1 (1990, 1991) looks like a header but is read as data; use --header yes",
        ),
        (
            "triples.csv",
            "warning: triples.csv: the lines look like (row, column, value) triples but are read as rows",
        ),
    ] {
        desk.run(&format!("factorize {file} --rank 1 --quiet --out r --force"));
        for words in [
            format!("inspect {file}"),
            format!("inspect {file} --json"),
            format!("convert {file} out.npy --force"),
            format!("factorize {file} --rank 1 --out made --force"),
            format!("evaluate r {file}"),
            format!("transform r {file} --out W.npy --force"),
        ] {
            let said = warnings(&desk, &words);
            assert!(said.starts_with(expected) && said.matches("warning:").count() == 1, "{words}: {said}");
        }
        assert_eq!(warnings(&desk, &format!("factorize {file} --rank 1 --quiet --out made --force")), "");
    }
    assert_eq!(warnings(&desk, "inspect ids.csv --row-names yes"), "");
    assert_eq!(warnings(&desk, "inspect years.csv --header yes"), "");
    desk.run("factorize years.csv --header yes --rank 1 --out years");
    assert_eq!(desk.read("years/columns.txt"), "1990\n1991\n");
    let simulate = "simulate ids.csv --parties 3 --protocol pooled --rank 1 --rounds 2 --accept-that-few-records-show-in-sums \
                    --accept-that-pooled-sums-show-records --out s --force";
    assert!(warnings(&desk, simulate).contains("warning: ids.csv: column 1 (1, 2, 3, ...)"));
    let summary: serde_json::Value = serde_json::from_str(&desk.run("inspect ids.csv --json")).unwrap();
    assert_eq!(summary["assumptions"][0]["assumption"], "first_column_is_data");
}

#[test]
fn tables_written_by_convert_cause_no_warnings() {
    let desk = Desk::with_digits();
    for options in ["", "--transpose"] {
        desk.run(&format!("convert digits.npy m.csv {options} --force"));
        assert_eq!(warnings(&desk, "inspect m.csv"), "");
    }
}

fn first_cells(table: &str) -> Vec<&str> {
    table.lines().map(|line| line.split('\t').next().unwrap()).collect()
}
