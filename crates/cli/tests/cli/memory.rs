//! `--memory`: matrices that are streamed from their files within a memory budget.

use std::io::Write;
use std::time::Duration;

use crate::common::*;

const MIB: u64 = 1 << 20;

/// Reproducible numbers in (0, 1).
fn draws(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// 40 MiB: 5120 x 2048 of rank 3 and noise, in C order.
fn write_dense(desk: &Desk, name: &str) {
    let (rows, cols) = (5120, 2048);
    let mut draw = draws(1);
    let (u, v): (Vec<f32>, Vec<f32>) =
        ((0..rows * 3).map(|_| draw()).collect(), (0..cols * 3).map(|_| draw()).collect());
    let mut file = std::io::BufWriter::new(std::fs::File::create(desk.path(name)).unwrap());
    file.write_all(&npy_bytes("<f4", &format!("({rows}, {cols})"), &[])).unwrap();
    for u in u.chunks(3) {
        for v in v.chunks(3) {
            let entry = u[0] * v[0] + u[1] * v[1] + u[2] * v[2] + 0.3 * draw();
            file.write_all(&entry.to_le_bytes()).unwrap();
        }
    }
    file.flush().unwrap();
}

/// 24 MiB as a file, twice that in memory: 24,000 x 3000 with 130 entries a row.
fn write_sparse(desk: &Desk, name: &str) {
    let (rows, cols, each) = (24_000i32, 3000i32, 130);
    let mut draw = draws(2);
    let mut bytes = vec![1u8];
    let put = |bytes: &mut Vec<u8>, number: i32| bytes.extend(number.to_le_bytes());
    [rows, cols, rows * each].iter().for_each(|&size| put(&mut bytes, size));
    (0..=rows).for_each(|row| put(&mut bytes, row * each));
    for row in 0..rows {
        // Distinct columns, ascending: odd ones anywhere, even ones near a place that depends on the row's kind.
        let home = row % 3 * 1000;
        let wide: Vec<i32> = (0..30).map(|place| place * 100 + 2 * (draw() * 50.0) as i32 + 1).collect();
        let near: Vec<i32> = (0..100).map(|place| home + place * 10 + 2 * (draw() * 5.0) as i32).collect();
        let mut places: Vec<i32> = wide.into_iter().chain(near).collect();
        places.sort_unstable();
        places.iter().for_each(|&place| put(&mut bytes, place));
    }
    for _ in 0..rows * each {
        bytes.extend((1.0 + draw()).to_le_bytes());
    }
    desk.write(name, bytes);
}

/// Runs to the end, and returns the peak memory, if the system reports it.
fn peak(desk: &Desk, words: &str) -> Option<u64> {
    let mut child = desk.command(words).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = kib.map(|kib| kib * 1024).or(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{words}");
    peak
}

fn assert_streams(desk: &Desk, file: &str, memory: u64, options: &str, lines: &str) {
    let run = format!("factorize {file} --rank 3 --iterations 4 --tolerance 0 --quiet --force {options}");
    let run = if options.contains("--algorithm") { run } else { format!("{run} --algorithm hals") };
    desk.run(&format!("{run} --out whole"));
    let peak = peak(desk, &format!("{run} --memory {}MiB --out streamed", memory / MIB));
    if let Some(peak) = peak {
        assert!(peak <= memory + memory / 4, "{file}: {peak} bytes with {memory}");
    }
    let (whole, streamed) = (desk.json("whole/run.json"), desk.json("streamed/run.json"));
    assert!(whole["streamed"].is_null() && whole["memory"].is_null());
    assert_eq!(streamed["memory"], memory);
    let how = &streamed["streamed"];
    assert_eq!(how["lines"], lines, "{file}");
    let passes = if lines == "rows" { 6 } else { 7 };
    assert_eq!(how["passes"], passes, "{file}");
    let least = passes * desk.path(file).metadata().unwrap().len() * 9 / 10;
    assert!(how["bytes_read"].as_u64().unwrap() >= least, "{file}: {how}");
    assert!(how["blocks"].as_u64().unwrap() >= 3, "{file}: {how}");
    for key in ["input", "iterations", "seed", "threads", "trace_every"] {
        assert_eq!(whole[key], streamed[key], "{file}: {key}");
    }
    let error = |record: &serde_json::Value| record["relative_error"].as_f64().unwrap();
    assert!((error(&whole) - error(&streamed)).abs() <= 1e-5 * error(&whole), "{file}");
    for name in ["U.npy", "V.npy"] {
        let (a, b) = (desk.bytes(&format!("whole/{name}")), desk.bytes(&format!("streamed/{name}")));
        assert!(a == b, "{file}: {name}");
    }
}

#[test]
fn a_dense_file_larger_than_the_memory() {
    let desk = Desk::new();
    write_dense(&desk, "M.npy");
    assert_streams(&desk, "M.npy", 24 * MIB, "", "rows");
    assert_streams(&desk, "M.npy", 24 * MIB, "--transpose --threads 1 --l2-u 0.01", "columns");
}

#[test]
fn a_sparse_file_larger_than_the_memory() {
    let desk = Desk::new();
    write_sparse(&desk, "M.bin");
    assert_streams(&desk, "M.bin", 20 * MIB, "", "rows");
    desk.run("convert M.bin M.npz --uncompressed");
    assert_streams(&desk, "M.npz", 20 * MIB, "--algorithm mu", "rows");
    desk.run("factorize M.bin --transpose --rank 3 --iterations 1 --seed 5 --quiet --out start");
    assert_streams(&desk, "M.npz", 20 * MIB, "--transpose --init-from start", "columns");
    // A compressed file would have to be in memory.
    desk.run("convert M.bin C.npz");
    let run = "factorize C.npz --rank 3 --out r --memory 20MiB";
    assert_says(&desk.refused(run), &["C.npz", "partwise convert IN OUT.npy", "--uncompressed"]);
}

#[test]
fn a_matrix_that_fits_is_read_whole() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 3 --iterations 9 --memory 1GiB --out r");
    assert!(desk.json("r/run.json")["streamed"].is_null());
    desk.run("convert digits.npy digits.csv");
    desk.run("factorize digits.csv --rank 3 --iterations 9 --memory 1g --out t");
}

#[test]
fn too_little_memory_is_reported_with_the_need() {
    let desk = Desk::with_digits();
    let refused = |file: &str, memory: &str| {
        desk.refused(&format!("factorize {file} --rank 3 --out r --memory {memory}"))
    };
    assert_says(&refused("digits.npy", "1KiB"), &["digits.npy", "needs", "MiB", "raise --memory", "--rank"]);
    desk.run("convert digits.npy digits.csv");
    desk.run("convert digits.npy digits.npy.gz");
    desk.run("convert digits.npy digits.npz");
    for file in ["digits.csv", "digits.npy.gz", "digits.npz"] {
        assert_says(&refused(file, "10KiB"), &[file, "partwise convert IN OUT.npy", "--uncompressed"]);
    }
    for bad in ["0", "-1", "x", "2GB/s", "nan", "1e400"] {
        assert_says(
            &desk.refused(&format!("factorize digits.npy --rank 3 --out r --memory={bad}")),
            &["--memory"],
        );
    }
}

#[test]
fn options_that_exclude_streaming_are_refused() {
    let desk = Desk::new();
    write_dense(&desk, "M.npy");
    let refused = |options: &str| {
        desk.refused(&format!("factorize M.npy --rank 3 --out r --quiet --memory 24MiB {options}"))
    };
    assert_says(&refused("--nodes 2"), &["--nodes", "in one process", "--memory"]);
    assert_says(&refused("--init nndsvd"), &["--init", "--memory"]);
    assert_says(&refused("--algorithm dsanls --sketch srht"), &["--sketch", "subsample"]);
    assert_says(&refused("--algorithm dsanls --sketch-cols 10%"), &["--sketch-cols", "whole lines"]);
    desk.run("factorize M.npy --rank 3 --out s --quiet --memory 24MiB --algorithm dsanls --sketch-rows 20% --iterations 20");
    let record = desk.json("s/run.json");
    assert_eq!(record["sketch_cols"], 2048);
    assert_eq!(record["sketch_rows"], 1024);
    assert!(record["relative_error"].as_f64().unwrap() < 0.25, "{record}");
}

/// The position of a bad entry is reported as it is when a file is read as a whole.
#[test]
fn bad_entries_are_found_in_the_first_pass() {
    let desk = Desk::new();
    write_dense(&desk, "M.npy");
    let mut bytes = desk.bytes("M.npy");
    let begin = bytes.len() - 5120 * 2048 * 4;
    for (value, words) in [(f32::NAN, "NaN"), (-2.5, "-2.5"), (f32::INFINITY, "inf")] {
        bytes[begin + (3000 * 2048 + 77) * 4..][..4].copy_from_slice(&value.to_le_bytes());
        desk.write("M.npy", &bytes);
        for options in ["", "--transpose"] {
            let run = format!("factorize M.npy --rank 3 --out r --quiet {options}");
            let sentence = desk.refused(&format!("{run} --memory 24MiB"));
            assert_says(&sentence, &["M.npy: row 3001, column 78", words]);
            assert_eq!(sentence, desk.refused(&run));
        }
    }
}
