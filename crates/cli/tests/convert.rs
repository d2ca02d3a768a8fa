//! `partwise convert`: what it writes and what it refuses.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

fn convert(folder: &TempDir, arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("partwise").unwrap().current_dir(folder).arg("convert").args(arguments).assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Expects exit code 2, one line with `words`, and no new file.
fn refused(folder: &TempDir, arguments: &[&str], words: &str) {
    let before = names(folder.path());
    let outcome = convert(folder, arguments).code(2);
    let said = text(&outcome.get_output().stderr);
    assert!(said.starts_with("error: ") && said.matches('\n').count() == 1, "{said}");
    assert!(said.contains(words), "{said} does not say {words:?}");
    assert_eq!(names(folder.path()), before, "something was left behind");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.csv"), ",a,b\nx,1,0\ny,0.1,3\nz,0,5\n").unwrap();
    folder
}

#[test]
fn through_every_format_and_back() {
    let folder = folder();
    let table = "1,0\n0.1,3\n0,5\n";
    let mut last = "m.csv".to_string();
    for next in ["a.npy", "b.npz", "c.mtx.gz", "d.bin", "e.npz.gz", "f.bin.gz", "g.npy.gz", "h.tsv", "i.csv"]
    {
        convert(&folder, &[&last, next]).success();
        last = next.to_string();
    }
    assert_eq!(fs::read_to_string(folder.path().join("i.csv")).unwrap(), table);
    convert(&folder, &["m.csv", "t.tsv", "--transpose"]).success();
    assert_eq!(
        fs::read_to_string(folder.path().join("t.tsv")).unwrap(),
        "\tx\ty\tz\na\t1\t0.1\t0\nb\t0\t3\t5\n"
    );
}

#[test]
fn lost_or_ambiguous_names_are_reported() {
    let folder = folder();
    let outcome = convert(&folder, &["m.csv", "m.mtx"]).success();
    let said = text(&outcome.get_output().stderr);
    assert_eq!(said, "note: m.mtx: the format cannot store row and column names, so they are dropped\n");
    let said = text(&outcome.get_output().stdout);
    assert_eq!(said, "3 x 2, comma-separated table, header, row names, written to m.mtx\n");
    fs::write(folder.path().join("years.txt"), "2001\n2002\n").unwrap();
    let outcome = convert(&folder, &["m.mtx", "years.csv", "--col-labels", "years.txt"]).success();
    let said = text(&outcome.get_output().stderr);
    assert!(said.ends_with("read the table with --header yes --row-names no\n"), "{said}");
}

#[test]
fn precision() {
    let folder = folder();
    convert(&folder, &["m.csv", "m.npy", "--precision", "f32"]).success();
    convert(&folder, &["m.npy", "wide.csv"]).success();
    assert!(fs::read_to_string(folder.path().join("wide.csv")).unwrap().contains("0.10000000149011612"));
    convert(&folder, &["m.npy", "narrow.csv", "--precision", "f32"]).success();
    assert!(fs::read_to_string(folder.path().join("narrow.csv")).unwrap().contains("\n0.1,3\n"));
    fs::write(folder.path().join("large.csv"), "1,1e300\n").unwrap();
    refused(&folder, &["large.csv", "l.npy", "--precision", "f32"], "the range of f32");
}

#[test]
fn refusals() {
    let folder = folder();
    fs::write(folder.path().join("bad.csv"), "1,2\n3\n").unwrap();
    fs::write(folder.path().join("negative.csv"), "1,-2\n").unwrap();
    fs::write(folder.path().join("bad.bin"), [0, 1, 0, 0, 0, 1, 0, 0, 0, 7]).unwrap();
    let huge = "%%MatrixMarket matrix coordinate real general\n4000000 4000000 1\n1 1 1\n";
    fs::write(folder.path().join("huge.mtx"), huge).unwrap();
    for (arguments, words) in [
        (&["none.csv", "o.npy"][..], "none.csv"),
        (&["m.csv", "o.txt"], "Partwise writes .npy, .npz, .mtx, .csv, .tsv and .bin"),
        (&["m.csv", "o.zip"], "Partwise writes"),
        (&["m.csv", "o.h5ad"], "Partwise writes"),
        (&["m.txt", "o.npy"], "m.txt"),
        (&["m.csv", "m.csv"], "already exists; choose another OUT, or replace it with --force"),
        (&["m.csv", "none/o.npy"], "create this folder first, or choose another OUT"),
        (&["bad.csv", "o.npy"], "line 2: 1 cells"),
        (&["negative.csv", "o.npy"], "row 1, column 2 (counted from 1) is -2"),
        (&["bad.bin", "o.npy"], "length: 10 bytes, where the sizes need 13 with float32 and 17 with float64"),
        (&["huge.mtx", "o.npy"], "of memory"),
        (&["huge.mtx", "o.csv.gz"], "of memory"),
        (&["m.csv"], "OUT"),
    ] {
        refused(&folder, arguments, words);
    }
    convert(&folder, &["m.csv", "m.csv", "--force"]).success();
}
