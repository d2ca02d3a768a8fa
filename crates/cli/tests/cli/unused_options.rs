//! Options that a command would ignore are refused, with a list of the methods that use them.

use std::path::Path;

use partwise_experiment::{Experiment, Scope};

use crate::common::*;

#[test]
fn options_that_the_method_ignores_are_refused() {
    let desk = Desk::with_digits();
    let mut said = String::new();
    for options in [
        "--beta 1",
        "--alpha 0.1",
        "--solver pcd",
        "--sketch subsample",
        "--sketch gaussian --algorithm hals",
        "--sketch-cols 5 --network 1Gbit/s,1ms",
        "--sketch-rows 5 --nodes 2",
        "--step absolute --algorithm bpp",
        "--bound --algorithm mu",
        "--samples no --algorithm hals",
        "--grid 1x1 --algorithm dsanls",
        "--reduction ordered --nodes 2",
        "--init random --init-from elsewhere",
        "--header no",
        "--row-names yes",
        "--images rows",
        "--samples yes --rank 23",
    ] {
        let rank = if options.contains("--rank") { "" } else { "--rank 3" };
        let words = format!("factorize digits.npy --out r {rank} {options}");
        said.push_str(&format!("{options}\n  {}\n", desk.refused(&words)));
    }
    insta::assert_snapshot!("factorize", said);
}

#[test]
fn options_that_the_protocol_ignores_are_refused() {
    let desk = Desk::with_digits();
    let mut said = String::new();
    for options in [
        "pooled --sketch gaussian",
        "pooled --alpha 1",
        "pooled --inner 1",
        "syn-sd --rho 10",
        "syn-sd --sketch-records 5",
        "syn-ssd-u --sketch-records 5",
        "syn-ssd-v --sketch-features 5",
        "asyn-sd --tolerance 1e-3",
        "dsanls-limited --sketch-records 10%",
    ] {
        let words = format!("simulate digits.npy --rank 3 --parties 4 --out r --protocol {options}");
        said.push_str(&format!("{options}\n  {}\n", desk.refused(&words)));
    }
    insta::assert_snapshot!("simulate", said);
    // The asynchronous protocols have no tolerance.
    desk.run("simulate digits.npy --rank 3 --parties 4 --rounds 1 --protocol asyn-sd --tolerance 0 --out r");
    assert_says(&desk.refused("report r --records rows"), &["--records", "several parties"]);
}

#[test]
fn options_that_other_commands_ignore_are_refused() {
    let desk = Desk::with_digits();
    assert_says(
        &desk.refused("convert digits.npy d.csv --uncompressed"),
        &["--uncompressed", "d.csv", ".npz"],
    );
    assert_says(&desk.refused("inspect digits.npy --header yes"), &["--header", "digits.npy", ".csv"]);
    assert_says(&desk.refused("evaluate r digits.npy --row-names no"), &["--row-names", "digits.npy"]);
    assert_says(
        &desk.refused("transform r digits.npy --images rows --out W.npy"),
        &["--images", "digits.npy"],
    );
}

/// Every method uses the arguments that experiments give: the only error is the missing file.
#[test]
fn experiments_give_no_option_that_is_ignored() {
    let desk = Desk::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut seen = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let experiment = Experiment::read(&entry.unwrap().path()).unwrap();
        let scope = Scope { quick: false, cores: 2 };
        for run in experiment.runs(scope) {
            // Once for each method of each experiment, in its first panel.
            if !seen.insert((experiment.title.clone(), run.method)) {
                continue;
            }
            let words = experiment.arguments(&run, Path::new("none.npy"), scope, None).join(" ");
            assert_says(&desk.refused(&format!("{words} --out x")), &["none.npy: No such file"]);
        }
    }
}

/// Every method that supports the bound sqrt(2 ||M||) keeps it, even if it starts with larger entries of U.
#[test]
fn methods_that_take_a_bound_keep_it() {
    let desk = Desk::new();
    desk.write("m.csv", "1,0,0,1\n0,1,0,0\n0,0,1,0\n");
    let start: Vec<f64> = (0..12).map(|place| 1.0 + f64::from(place % 5)).collect();
    std::fs::create_dir(desk.path("start")).unwrap();
    desk.write_factor("start/U.npy", &(3, 3, start[..9].iter().map(|value| 100.0 * value).collect()));
    desk.write_factor("start/V.npy", &(4, 3, start.iter().map(|value| value / 100.0).collect()));
    for method in ["auto", "hals", "dsanls"] {
        desk.run(&format!(
            "factorize m.csv --rank 3 --bound --init-from start --algorithm {method} --out {method}"
        ));
        let largest = |name: &str| desk.factor(&format!("{method}/{name}")).2.into_iter().fold(0.0, f64::max);
        assert!(largest("U.npy").max(largest("V.npy")) <= 2.0 + 1e-6, "{method}");
    }
}

#[test]
fn options_of_other_programs_get_a_hint() {
    let desk = Desk::new();
    let mut said = String::new();
    for option in ["--beta-loss kl", "--max-iter 5", "--n_components 3", "--alpha-W 1", "--rnak 3"] {
        said.push_str(&format!("{option}\n  {}\n", desk.refused(&format!("factorize M.npy {option}"))));
    }
    insta::assert_snapshot!("foreign", said);
}
