//! `partwise split`, and the errors under `mpirun` without MPI support.

use partwise_commands::launch::{Launched, launched_in};

use crate::common::*;

/// The parts together are the matrix.
#[test]
fn parts_are_the_rows_and_columns_of_the_matrix() {
    let desk = Desk::new();
    let (rows, cols) = (7, 5);
    let values: Vec<f64> = (0..rows * cols).map(|place| (place * 13 % 7) as f64).collect();
    desk.write("dense.npy", npy_bytes("<f8", "(7, 5)", &f64_bytes(&values)));
    desk.write("bytes.npy", npy_bytes("|u1", "(7, 5)", &values.iter().map(|&x| x as u8).collect::<Vec<_>>()));
    desk.write("sparse.npz", npz_bytes(rows, cols, &values));
    for file in ["dense.npy", "bytes.npy", "sparse.npz"] {
        let said = desk.run(&format!("split {file} --nodes 3 --out {file}.parts"));
        assert!(said.starts_with("7 x 5, 3 parts of rows and of columns"), "{said}");
        let record = desk.json(&format!("{file}.parts/split.json"));
        let part = |kind: &str, rank: usize| {
            let name = record[kind][rank][0].as_str().unwrap();
            desk.run(&format!("convert {file}.parts/{name} {file}{kind}{rank}.csv"));
            let text = desk.read(&format!("{file}{kind}{rank}.csv"));
            let line = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<f64>>();
            text.lines().map(line).collect::<Vec<_>>()
        };
        let by_rows: Vec<f64> = (0..3).flat_map(|rank| part("row_parts", rank)).flatten().collect();
        assert_eq!(by_rows, values, "{file}");
        let columns: Vec<Vec<Vec<f64>>> = (0..3).map(|rank| part("col_parts", rank)).collect();
        let by_cols: Vec<f64> =
            (0..rows).flat_map(|row| columns.iter().flat_map(move |part| part[row].clone())).collect();
        assert_eq!(by_cols, values, "{file}");
        assert_eq!(record["nodes"], 3);
    }
    // Bytes remain bytes.
    assert!(desk.bytes("bytes.npy.parts/rows-0.npy").windows(3).any(|word| word == b"|u1"));
}

#[test]
fn matrices_that_cannot_be_split_are_refused() {
    let desk = Desk::with_digits();
    desk.write("m.csv", "1,2\n3,4\n");
    assert_says(&desk.refused("split m.csv --nodes 2 --out x"), &["m.csv", "partwise convert"]);
    assert_says(&desk.refused("split digits.npy --nodes 0 --out x"), &["--nodes", "give 1 or more"]);
    assert_says(&desk.refused("split digits.npy --nodes 2 --out m.csv"), &["m.csv already exists"]);
    assert_says(&desk.refused("split none.npy --nodes 2 --out x"), &["none.npy", "check the path"]);
    assert_says(
        &desk.refused("factorize digits.npy --rank 2 --nodes 4 --grid 3x1 --out x"),
        &["--grid", "3x1 needs 3 processes, but there are 4"],
    );
    assert_says(
        &desk.refused("factorize digits.npy --rank 2 --nodes 4 --grid 2x2 --algorithm dsanls --out x"),
        &["--grid", "dsanls does not use it"],
    );
    assert_says(&desk.refused("factorize digits.npy --rank 2 --grid 2 --out x"), &["--grid", "such as 2x3"]);
}

#[test]
fn a_grid_within_one_process_gives_the_same_error() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 5 --iterations 30 --quiet";
    desk.run(&format!("{common} --out one"));
    desk.run(&format!("{common} --nodes 6 --grid 3x2 --out six"));
    let record = desk.json("six/run.json");
    assert_eq!(record["grid"], "3x2");
    assert_eq!(record["ranks"].as_array().unwrap().len(), 6);
    let error = |name: &str| desk.json(name)["relative_error"].as_f64().unwrap();
    assert!((error("one/run.json") - error("six/run.json")).abs() < 1e-5);
}

/// Started by `mpirun` without MPI support: process 0 prints the error, the others nothing.
#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_several_ranks_are_refused() {
    let desk = Desk::with_digits();
    let words = "factorize digits.npy --rank 2 --out x";
    for names in [["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"], ["PMI_RANK", "PMI_SIZE"]] {
        let mut command = desk.command(words);
        command.env(names[0], "0").env(names[1], "2");
        assert_says(&desk.refused_command(command, words), &["2 processes", "--features mpi", "--nodes 2"]);
        let output = desk.command(words).env(names[0], "1").env(names[1], "2").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stderr.is_empty() && output.stdout.is_empty());
    }
}

#[test]
fn launchers_are_known_by_their_names() {
    let with = |pairs: &'static [(&str, &str)]| {
        launched_in(&|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()))
    };
    assert_eq!(with(&[]), None);
    let open_mpi = &[
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "8"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ("PMIX_RANK", "3"),
    ];
    assert_eq!(with(open_mpi), Some(Launched { rank: 3, size: 8, local: 4 }));
    assert_eq!(with(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some(Launched { rank: 0, size: 2, local: 1 }));
    let slurm = with(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "6"), ("SLURM_NTASKS_PER_NODE", "2")]);
    assert_eq!(slurm, Some(Launched { rank: 1, size: 6, local: 2 }));
    // A batch script itself is one process, whatever its job requested.
    assert_eq!(with(&[("SLURM_NTASKS", "6"), ("SLURM_PROCID", "0")]), None);
}
