//! Folders without results, and results of other matrices.

use crate::common::*;

#[test]
fn no_result_there() {
    let desk = Desk::with_digits();
    std::fs::create_dir(desk.path("empty")).unwrap();
    for (dir, expected) in [
        ("none", ["none is not a folder", "result folder of `partwise factorize`"]),
        ("digits.npy", ["digits.npy is not a folder", "result folder of `partwise factorize`"]),
        ("empty", ["empty has no U.npy", "result folder of `partwise factorize`"]),
    ] {
        for words in [
            format!("evaluate {dir} digits.npy"),
            format!("transform {dir} digits.npy --out W.npy"),
            format!("top {dir}"),
            format!("factorize digits.npy --rank 2 --init-from {dir} --out r"),
        ] {
            assert_says(&desk.refused(&words), &expected);
        }
    }
}

#[test]
fn damaged_results() {
    let desk = Desk::with_digits();
    std::fs::create_dir(desk.path("r")).unwrap();
    let good = (2, 2, vec![1.0; 4]);
    let npy = |shape: &str, values: &[f64]| npy_bytes("<f8", shape, &f64_bytes(values));
    let cases: [(&str, &str, Vec<u8>, [&str; 2]); 8] = [
        ("U.npy", "top r", npy("(2, 3)", &[1.0; 6]), ["U.npy has 3 columns but V.npy has 2", "again"]),
        ("U.npy", "top r", npy("(2, 2)", &[1.0, -1.0, 1.0, 1.0]), ["U.npy: row 1, column 2", "is -1"]),
        ("V.npy", "top r", npy("(2, 2)", &[1.0, f64::NAN, 1.0, 1.0]), ["V.npy: row 1, column 2", "is NaN"]),
        ("U.npy", "top r", npy("(0, 2)", &[]), ["U.npy", "empty"]),
        ("U.npy", "top r", npy("(2,)", &[1.0; 2]), ["U.npy", "1 dimension"]),
        ("U.npy", "top r", b"text".to_vec(), ["U.npy", "NumPy"]),
        ("rows.txt", "top r", b"one\n".to_vec(), ["rows.txt", "1 labels, but the matrix needs 2"]),
        ("run.json", "evaluate r digits.npy", b"{".to_vec(), ["run.json", "factorize again"]),
    ];
    for (name, words, bytes, expected) in cases {
        desk.write_factor("r/U.npy", &good);
        desk.write_factor("r/V.npy", &good);
        desk.write(format!("r/{name}"), bytes);
        assert_says(&desk.refused(words), &expected);
        std::fs::remove_file(desk.path(format!("r/{name}"))).unwrap();
    }
    // No components at all.
    for name in ["U.npy", "V.npy"] {
        desk.write(format!("r/{name}"), npy("(2, 0)", &[]));
    }
    for words in ["top r", "evaluate r digits.npy", "transform r digits.npy --out W.npy"] {
        assert_says(&desk.refused(words), &["empty"]);
    }
}

#[test]
fn results_of_another_matrix() {
    let desk = Desk::with_digits();
    desk.write("m.csv", "1,2,3\n4,5,6\n");
    desk.run("factorize m.csv --rank 2 --out r");
    for (words, expected) in [
        ("evaluate r digits.npy", ["digits.npy is 1797 x 64", "factors in r belong to a 2 x 3 matrix"]),
        ("evaluate r m.csv --transpose", ["m.csv is 3 x 2", "--transpose"]),
        ("transform r digits.npy --out W.npy", ["digits.npy has 64 columns", "a matrix with 3"]),
        (
            "transform r digits.npy --side columns --out W.npy",
            ["digits.npy has 1797 rows", "a matrix with 2"],
        ),
        ("factorize digits.npy --rank 2 --init-from r --out s", ["1797 x 64", "in r are of a 2 x 3 matrix"]),
        ("factorize m.csv --rank 1 --init-from r --out s", ["have 2 components", "give --rank 2"]),
        ("factorize m.csv --rank 2 --transpose --init-from r --out s", ["m.csv is 3 x 2", "--transpose"]),
    ] {
        assert_says(&desk.refused(words), &expected);
    }
}
