//! Arguments that are refused before anything is read or written.

use crate::common::*;

#[test]
fn parameters_out_of_range() {
    let desk = Desk::with_digits();
    for (options, expected) in [
        ("--rank 0", ["--rank", "0 is too few", "give 1 or more"]),
        ("--rank 3 --nodes 0", ["--nodes", "0 is too few", "give 1 or more"]),
        ("--rank 3 --nodes 5000", ["--nodes", "5000 workers are too many", "give at most 1024"]),
        ("--rank 3 --threads 0", ["--threads", "0 is too few", "give 1 or more"]),
        ("--rank 3 --threads 2000 --nodes 4", ["--threads", "too many", "give at most 1024"]),
        ("--rank 3 --iterations 0", ["--iterations", "0 is too few", "give 1 or more"]),
        ("--rank 3 --restarts 0", ["--restarts", "0 is too few", "give 1 or more"]),
        ("--rank 3 --trace-every 0", ["--trace-every", "0 is too few", "give 1 or more"]),
        ("--rank 3 --alpha NaN", ["--alpha", "NaN is out of range", "0 or more"]),
        ("--rank 3 --alpha -1", ["--alpha", "-1 is out of range", "0 or more"]),
        ("--rank 3 --beta inf", ["--beta", "inf is out of range", "0 or more"]),
        ("--rank 3 --tolerance NaN", ["--tolerance", "NaN is out of range", "0 or more"]),
        ("--rank 3 --tolerance -1e-3", ["--tolerance", "-0.001 is out of range", "0 or more"]),
        ("--rank 3 --target-error NaN", ["--target-error", "NaN is out of range", "0 or more"]),
        ("--rank 3 --time-limit 1e308h", ["--time-limit", "inf is out of range", "0 or more"]),
        ("--rank 3 --alpha 0 --beta 0", ["--alpha and --beta", "cannot both be 0", "give one"]),
        ("--rank 3 --sketch-cols 65", ["--sketch-cols", "the matrix has 64 columns", "give 1 to 64"]),
        ("--rank 3 --sketch-rows 1798", ["--sketch-rows", "the matrix has 1797 rows", "give 1 to 1797"]),
        (
            "--rank 3 --sketch-rows 65 --transpose",
            ["--sketch-rows", "the matrix has 64 rows", "give 1 to 64"],
        ),
    ] {
        let said = desk.refused(&format!("factorize digits.npy --out r --algorithm dsanls {options}"));
        assert_says(&said, &expected);
    }
    assert_says(&desk.refused("inspect digits.npy --rank 0"), &["--rank", "0 is too few", "give 1 or more"]);
}

/// Errors of clap: its message on one line, with a pointer to the help of the command.
#[test]
fn values_that_do_not_parse() {
    let desk = Desk::with_digits();
    let whole = "give a whole number";
    for (options, expected) in [
        ("--rank x", ["'--rank <K>'", "'x'", whole]),
        ("--rank -3", ["'--rank <K>'", "'-3'", whole]),
        ("--rank 2.5", ["'--rank <K>'", "'2.5'", whole]),
        ("--rank 99999999999999999999", ["'--rank <K>'", "9999", whole]),
        ("--rank", ["'--rank <K>'", "a value is required", "none"]),
        ("--rank 3 --seed -1", ["'--seed <N>'", "'-1'", "from 0 to 18446744073709551615"]),
        ("--rank 3 --alpha x", ["'--alpha <X>'", "'x'", "give a number such as"]),
        ("--rank 3 --sketch-cols 0", ["'--sketch-cols <AMOUNT>'", "0 is too few", "above 0"]),
        ("--rank 3 --sketch-cols 0.0", ["'--sketch-cols <AMOUNT>'", "0.0 is not a share", "up to 1.0"]),
        ("--rank 3 --sketch-rows 1.5", ["'--sketch-rows <AMOUNT>'", "1.5 is not a share", "up to 1.0"]),
        ("--rank 3 --sketch-rows -5", ["'--sketch-rows <AMOUNT>'", "-5 is not a share", "up to 1.0"]),
        ("--rank 3 --sketch-rows 101%", ["'--sketch-rows <AMOUNT>'", "101% is not a share", "up to 1.0"]),
        ("--rank 3 --time-limit soon", ["'--time-limit <TIME>'", "'soon'", "s, m or h"]),
        ("--rank 3 --time-limit -5", ["'--time-limit <TIME>'", "'-5'", "s, m or h"]),
        ("--rank 3 --algorithm svd", ["'--algorithm", "'svd'", "hals, mu, bpp, dsanls"]),
        ("--rank 3 --precision f16", ["'--precision", "'f16'", "f32, f64"]),
        ("--rank 3 --sketch gauss", ["'--sketch", "'gauss'", "subsample"]),
        ("--rank 3 --step big", ["'--step", "'big'", "unit-free, absolute"]),
        ("--rank 3 --rnak 4", ["'--rnak'", "unexpected", "did you mean --rank?"]),
        ("--rank 3 --rank 4", ["'--rank <K>'", "multiple times", ""]),
        ("--rank 3 --json --quiet", ["'--json'", "'--quiet'", "cannot be used"]),
        ("", ["required", "--rank <K>", ""]),
    ] {
        let said = desk.refused(&format!("factorize digits.npy --out r {options}"));
        assert_says(&said, &expected);
        assert!(said.ends_with("; see `partwise factorize --help`"), "{said}");
    }
    assert_says(&desk.refused("factorize --rank 3"), &["<FILE>", "--out <DIR>"]);
    assert_says(
        &desk.refused("factorise"),
        &["'factorise'", "did you mean factorize?", "see `partwise --help`"],
    );
    assert_says(&desk.refused("top r --count 0"), &["--count", "give 1 or more"]);
    assert_says(&desk.refused("top"), &["<DIR>", "see `partwise top --help`"]);
    assert_says(&desk.refused("--nonsense"), &["'--nonsense'", "see `partwise --help`"]);
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let desk = Desk::new();
    let (file, out) = (OsStr::from_bytes(b"m\xff.csv"), OsStr::from_bytes(b"r\xff"));
    desk.write(file, "1,2\n3,4\n");
    let run = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(desk.command("factorize --rank 1 --out").arg(out).arg(file));
    run(desk.command("factorize --rank 1 --out again --init-from").arg(out).arg(file));
    run(desk.command("evaluate").arg(out).arg(file));
    run(desk.command("transform --out").arg(OsStr::from_bytes(b"\xfe.npy")).arg(out).arg(file));
    run(desk.command("top").arg(out));
    run(desk.command("inspect").arg(file));
    for argument in [&b"\xff"[..], b"none\xff.npy", b"x\xff.txt"] {
        let mut command = desk.command("factorize --out x --rank 1");
        command.arg(OsStr::from_bytes(argument));
        assert_says(&desk.refused_command(command, "not UTF-8"), &["No such file"]);
    }
    for words in ["factorize m.csv --out x --rank", "factorize m.csv --out x --rank 1 --algorithm", ""] {
        let mut command = desk.command(words);
        command.arg(OsStr::from_bytes(b"\xff"));
        assert_says(&desk.refused_command(command, words), &["--help`"]);
    }
    // An error is one line even if a name has several.
    let mut command = desk.command("inspect");
    command.arg("two\nlines.npy");
    assert_says(&desk.refused_command(command, "two lines"), &["two lines.npy"]);
}
