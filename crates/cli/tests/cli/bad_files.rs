//! Matrices that are refused with one sentence, leaving no files.

use std::time::{Duration, Instant};

use crate::common::*;

/// Expects every command that reads a matrix to refuse `name` with these bytes.
#[track_caller]
fn refused(name: &str, bytes: impl AsRef<[u8]>, expected: &[&str]) {
    let desk = Desk::new();
    desk.write(name, bytes);
    assert_says(&desk.refused(&format!("inspect {name}")), expected);
    refused_as_matrix(&desk, name, expected);
}

/// Expects every command that computes with a matrix to refuse `name`.
#[track_caller]
fn refused_as_matrix(desk: &Desk, name: &str, expected: &[&str]) {
    std::fs::create_dir(desk.path("made")).unwrap();
    desk.write_factor("made/U.npy", &(2, 1, vec![1.0; 2]));
    desk.write_factor("made/V.npy", &(2, 1, vec![1.0; 2]));
    let begin = Instant::now();
    for words in [
        format!("factorize {name} --rank 1 --out r"),
        format!("convert {name} out.npy"),
        format!("evaluate made {name}"),
        format!("transform made {name} --out W.npy"),
    ] {
        let sentence = desk.refused(&words);
        assert!(sentence.contains(name), "{words}: {sentence}");
        assert_says(&sentence, expected);
        assert!(sentence.contains("; ") || sentence.contains(": "), "{sentence}");
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{name} takes {:?}", begin.elapsed());
}

#[test]
fn entries_are_named_by_position() {
    for (value, said, cure) in [
        (-0.5, "is -0.5", "shift, clip or remove"),
        (f64::NAN, "is NaN", "--missing nan"),
        (f64::INFINITY, "is inf", "replace or remove infinite values"),
        (f64::NEG_INFINITY, "is -inf", "shift, clip or remove"),
    ] {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, value];
        for (name, bytes) in [
            ("m.npy", npy_bytes("<f8", "(2, 3)", &f64_bytes(&values))),
            ("m.npz", npz_bytes(2, 3, &values)),
            ("m.mtx", mtx_bytes(2, 3, &values)),
            ("m.csv", table_bytes(3, &values, ",")),
            ("m.tsv.gz", gzip(&table_bytes(3, &values, "\t"))),
        ] {
            let desk = Desk::new();
            desk.write(name, bytes);
            refused_as_matrix(&desk, name, &["row 2, column 3 (counted from 1)", said, cure]);
            let kind = if value.is_nan() {
                "nan"
            } else if value.is_infinite() {
                "infinite"
            } else {
                "negative"
            };
            let summary: serde_json::Value =
                serde_json::from_str(&desk.run(&format!("inspect {name} --json"))).unwrap();
            for count in ["nan", "infinite", "negative"] {
                assert_eq!(summary[count], u64::from(count == kind), "{name}: {count}");
            }
            assert_eq!(summary["first_unusable"], serde_json::json!([1, 2]), "{name}");
            let least = if value == -0.5 { value } else { 1.0 };
            assert_eq!((&summary["min"], &summary["max"]), (&least.into(), &5.0.into()), "{name}");
        }
    }
}

/// Products of such entries overflow or underflow, and the error would be meaningless.
#[test]
fn entries_beyond_the_arithmetic() {
    let desk = Desk::new();
    let factorize = "factorize m.csv --rank 1 --iterations 2 --out r";
    for (entry, expected) in [
        ("1e300", ["m.csv: row 2, column 2", "is 1e300", "--precision f64, or rescale"]),
        ("1e30", ["m.csv, entries", "the largest is 1.00e30", "--precision f64, or rescale"]),
        ("1e-30", ["m.csv, entries", "the largest is 1.00e-30", "--precision f64, or rescale"]),
        ("1e-60", ["m.csv, entries", "below the range of f32", "--precision f64, or rescale"]),
    ] {
        desk.write("m.csv", format!("0,0\n0,{entry}\n"));
        assert_says(&desk.refused(factorize), &expected);
    }
    for entry in ["1.00e-300", "1.00e300"] {
        desk.write("m.csv", format!("0,0\n0,{entry}\n"));
        let said = desk.refused(&format!("{factorize} --precision f64"));
        assert_says(&said, &["m.csv, entries", &format!("the largest is {entry}"), "; rescale the matrix"]);
    }
    for (entry, precision) in [("1e-14", "f32"), ("1e14", "f32"), ("1e-99", "f64"), ("1e99", "f64")] {
        desk.write("m.csv", format!("1{0},2{0}\n2{0},4{0}\n", entry.trim_start_matches('1')));
        desk.run(&format!("{factorize} --precision {precision} --force"));
        let error = desk.json("r/run.json")["relative_error"].as_f64().unwrap();
        assert!(error < 1e-6, "{entry}: {error}");
    }
}

#[test]
fn truncated_files() {
    let values = [1.0, 2.0, 3.0, 4.0];
    let cut = |bytes: Vec<u8>, by: usize| bytes[..bytes.len() - by].to_vec();
    refused("m.npy", cut(npy_bytes("<f8", "(2, 2)", &f64_bytes(&values)), 1), &["fewer bytes", "again"]);
    refused("m.npy", &npy_bytes("<f8", "(2, 2)", &f64_bytes(&values))[..30], &["header", "again"]);
    refused("m.npz", cut(npz_bytes(2, 2, &values), 40), &["truncated or damaged", "again"]);
    refused("m.mtx", cut(mtx_bytes(2, 2, &values), 6), &["only 3 entries", "announce 4", "again"]);
    refused("m.csv.gz", cut(gzip(&table_bytes(2, &values, ",")), 9), &["truncated or damaged", "again"]);
    refused("m.npy", [], &["the file is empty", "again"]);
    refused(
        "m.mtx",
        "%%MatrixMarket matrix coordinate real general\n",
        &["line 1", "before the line of sizes"],
    );
}

#[test]
fn mislabelled_files() {
    let npy = npy_bytes("<f8", "(1, 1)", &f64_bytes(&[1.0]));
    refused("m.npz", &npy, &["this is a NumPy array", "rename it to .npy"]);
    refused("m.csv", &npy, &["this is a NumPy array", "rename"]);
    refused("m.npy", npz_bytes(1, 1, &[1.0]), &["zip archive", ".npz"]);
    refused("m.npy", gzip(&npy), &["gzip", "add .gz"]);
    refused("m.npy.gz", &npy, &["not gzip", "remove .gz"]);
    refused("m.npy", "1,2\n", &["text instead of a NumPy signature", "correct the name"]);
    refused("m.mtx", "1,2\n", &["line 1", "banner", "correct the file or its name"]);
    refused("m.txt", "1 2\n", &["unknown file type", ".npy, .npz, .mtx, .csv, .tsv, .bin and .h5ad"]);
    refused("m", "1 2\n", &["unknown file type"]);
    refused("m.gz", gzip(b"1 2\n"), &["unknown file type"]);
}

#[test]
fn arrays_that_are_no_matrix() {
    refused("m.npy", npy_bytes("<f8", "(2, 2, 1)", &[0; 32]), &["3 dimensions (2 x 2 x 1)", "reshape"]);
    refused("m.npy", npy_bytes("<f8", "(4,)", &[0; 32]), &["1 dimension", "reshape"]);
    refused("m.npy", npy_bytes("<c16", "(1, 2)", &[0; 32]), &["complex", "convert"]);
    refused("m.npy", npy_bytes("<U2", "(2, 2)", &[0; 32]), &["text", "convert"]);
    refused("m.npy", npy_bytes("|O", "(2, 2)", &[0; 32]), &["objects", "convert"]);
    let complex = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n";
    refused("m.mtx", complex, &["line 1", "complex", "real parts or magnitudes"]);
}

#[test]
fn matrix_market_that_disagrees_with_itself() {
    let coordinate = |text: &str| format!("%%MatrixMarket matrix coordinate real general\n{text}");
    for (text, expected) in [
        ("2 2 1\n3 1 1\n", ["line 3", "row 3 is outside 1 to 2", "correct"]),
        ("2 2 1\n1 0 1\n", ["line 3", "column 0 is outside 1 to 2", "correct"]),
        ("2 2 3\n1 1 1.5\n2 2 1.5\n", ["line 4", "only 2 entries, but the sizes announce 3", "correct"]),
        ("2 2 1\n1 1 1\n2 2 1\n", ["line 4", "more entries, but the sizes announce 1", "correct"]),
        ("2 2 1\n1 x 1\n", ["line 3", "\"x\" is not a column number", "correct"]),
        ("2 2 1\n1 1 one\n", ["line 3", "\"one\" is not a number", "correct"]),
        ("two 2 1\n1 1 1\n", ["line 2", "three sizes", "correct"]),
    ] {
        refused("m.mtx", coordinate(text), &expected);
    }
    let array = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n";
    refused("m.mtx", array, &["only 3", "announce 4"]);
}

#[test]
fn absurd_sizes_cost_nothing() {
    for shape in ["(4000000000, 4000000000)", "(18446744073709551615, 2)", "(99999999999999999999, 2)"] {
        refused("m.npy", npy_bytes("<f8", shape, &[0; 64]), &["again"]);
    }
    let mtx = |sizes: &str| format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n1 1 1\n");
    refused("m.mtx", mtx("2 2 900000000000"), &["900000000000 entries", "more than the file can contain"]);
    refused("m.mtx", mtx("99999999999999999999 2 1"), &["line 2", "three sizes"]);
    let array = "%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n";
    refused("m.mtx", array, &["more than the file can contain"]);
}

#[test]
fn a_matrix_beyond_the_memory_is_refused_with_its_need() {
    let mtx = "%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 1 1\n";
    refused("m.mtx", mtx, &["1000000000000 x 1000000000000", "needs 14.6 TiB of memory", "available;"]);
    let desk = Desk::with_digits();
    desk.write("s.csv", "1,2\n3,4\n");
    for (file, rank) in
        [("digits.npy", "100000000"), ("digits.npy", "18446744073709551615"), ("s.csv", "3000000")]
    {
        let said = desk.refused(&format!("factorize {file} --rank {rank} --out r"));
        assert_says(&said, &["the factorization needs", "iB of memory", "is available", "a smaller --rank"]);
    }
}

#[test]
fn tables_with_gaps() {
    refused("m.csv", "1,2\n3\n", &["line 2: 1 cells, but line 1 has 2", "complete or remove"]);
    refused("m.csv", "a,b\n1,2\n3,4,5\n", &["line 3: 3 cells, but line 2 has 2", "complete or remove"]);
    refused("m.csv", "1,2\n3,\n", &["m.csv, line 2, column 2: the cell is empty", "--missing nan"]);
    refused("m.csv", "1,2\n3,x\n", &["line 2, column 2", "\"x\" is not a number", "correct it"]);
    refused("m.tsv", "1,2\n3,4\n", &["m.tsv", "tabs"]);
}

#[test]
fn nothing_to_factorize() {
    refused("m.npy", npy_bytes("<f8", "(0, 3)", &[]), &["empty (0 x 3)", "give one with rows and columns"]);
    refused("m.npy", npy_bytes("|u1", "(2, 3)", &[0; 6]), &["every entry is 0", "check the file"]);
    refused("m.npz", npz_bytes(2, 3, &[0.0; 6]), &["every entry is 0"]);
    refused("m.mtx", mtx_bytes(2, 3, &[0.0; 6]), &["every entry is 0"]);
    refused("m.csv", "a,b\n", &["empty"]);
    refused("m.csv", "0,0\n0,0\n", &["every entry is 0"]);
}

#[test]
fn no_file_there() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("folder.npy")).unwrap();
    desk.write("file", "");
    for (name, expected) in [
        ("none.npy", ["No such file", "check the path"]),
        ("none", ["No such file", "check the path"]),
        ("folder.npy", ["no JPEG or PNG images in a folder", "give a folder"]),
        ("file/m.npy", ["Not a directory", "check the path"]),
        ("/dev/null", ["this is a pipe or a device", "save its data as a file"]),
    ] {
        let said = desk.refused(&format!("factorize {name} --rank 1 --out r"));
        assert!(said.starts_with(name), "{said}");
        assert_says(&said, &expected);
        assert_eq!(said.matches("(os error").count(), usize::from(expected[1] == "check the path"), "{said}");
    }
}

/// Truncated and changed bytes everywhere in each format: refused or read, but never a panic.
#[test]
fn no_bytes_make_it_panic() {
    let desk = Desk::new();
    let values = [1.0, 2.0, 3.0, 4.0];
    for (name, bytes) in [
        ("m.npy", npy_bytes("<f8", "(2, 2)", &f64_bytes(&values))),
        ("m.npz", npz_bytes(2, 2, &values)),
        ("m.mtx", mtx_bytes(2, 2, &values)),
        ("m.csv", table_bytes(2, &values, ",")),
    ] {
        for step in 0..24 {
            let place = step * bytes.len() / 24;
            let mut changed = bytes.clone();
            changed[place] ^= 0x41;
            for bytes in [&bytes[..place], &changed] {
                desk.write(name, bytes);
                let output = desk.output(&format!("inspect {name}"));
                if !output.status.success() {
                    refusal(&output, &format!("{name} at {place}"));
                }
            }
        }
    }
}
