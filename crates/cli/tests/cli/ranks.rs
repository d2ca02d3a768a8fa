//! The result does not depend on the number of workers and threads.

use crate::common::*;

#[test]
fn dsanls_is_the_same_to_the_bit() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 8 --algorithm dsanls --iterations 25 --seed 5 --quiet";
    desk.run(&format!("{common} --out one --nodes 1 --threads 1"));
    for nodes in [1, 2, 3, 5] {
        for threads in [1, 2] {
            let out = format!("n{nodes}t{threads}");
            desk.run(&format!("{common} --nodes {nodes} --threads {threads} --out {out}"));
            for name in ["U.npy", "V.npy"] {
                let same = desk.bytes(&format!("one/{name}")) == desk.bytes(&format!("{out}/{name}"));
                assert!(same, "{name} with --nodes {nodes} --threads {threads}");
            }
        }
    }
    desk.run(&format!("{common} --out other --seed 6").replace("--seed 5 ", ""));
    assert_ne!(desk.bytes("one/U.npy"), desk.bytes("other/U.npy"));
}

#[test]
fn hals_has_the_same_error() {
    let desk = Desk::with_digits();
    let error = |nodes: usize| {
        desk.run(&format!("factorize digits.npy --rank 8 --iterations 30 --nodes {nodes} --out r{nodes}"));
        desk.json(&format!("r{nodes}/run.json"))["relative_error"].as_f64().unwrap()
    };
    let one = error(1);
    for nodes in [2, 3, 5] {
        assert!((error(nodes) - one).abs() < 1e-5, "{nodes}");
    }
}

#[test]
fn ranks_without_rows_or_columns() {
    let desk = Desk::new();
    desk.write("m.csv", "1,2\n3,4\n5,7\n");
    for algorithm in ["hals", "dsanls"] {
        for nodes in [1, 5] {
            desk.run(&format!(
                "factorize m.csv --rank 2 --iterations 20 --algorithm {algorithm} --nodes {nodes} --out {algorithm}{nodes}"
            ));
        }
        assert_eq!(desk.factor(&format!("{algorithm}5/U.npy")).0, 3);
    }
    assert_eq!(desk.bytes("dsanls1/U.npy"), desk.bytes("dsanls5/U.npy"));
}
