//! Reads a matrix and prints it, so that other programs can compare: shape, entries row by row, labels, format.
//!
//! `dump FILE [--f32] [--time]`; with `--time` only the shape, the sum and the seconds taken.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

extern crate partwise_core as partwise;

use partwise::Real;
use partwise::io::{self, ImageSide, Presence, ReadOptions};
use partwise::matrix::Matrix;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("dump: give a file");
        std::process::exit(2);
    };
    let outcome = if flag("--f32") {
        dump::<f32>(path.as_ref(), flag("--time"))
    } else {
        dump::<f64>(path.as_ref(), flag("--time"))
    };
    if let Err(error) = outcome {
        eprintln!("{error}");
        std::process::exit(2);
    }
}

fn dump<T: Real>(path: &Path, time: bool) -> Result<(), Box<dyn std::error::Error>> {
    let options = ReadOptions {
        memory: 4 << 30,
        header: Presence::Auto,
        row_names: Presence::Auto,
        images: ImageSide::Columns,
        missing_as_nan: false,
    };
    let start = Instant::now();
    let input = io::read::<T>(path, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let (rows, cols) = (input.matrix.rows(), input.matrix.cols());
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if time {
        let mut sum = 0.0;
        input.matrix.for_each_stored(|_, _, value| sum += value);
        writeln!(out, "{rows} {cols} {sum} {seconds:.3}")?;
        return Ok(());
    }
    writeln!(out, "{rows} {cols}")?;
    let mut line = vec![0.0; cols];
    for row in 0..rows {
        match &input.matrix {
            Matrix::Dense(dense) => {
                line.iter_mut().enumerate().for_each(|(col, value)| *value = dense.get(row, col).to_f64());
            }
            Matrix::Sparse(csr) => {
                line.fill(0.0);
                let (indices, values) = csr.row(row);
                indices.iter().zip(values).for_each(|(&col, value)| line[col as usize] = value.to_f64());
            }
        }
        let words: Vec<String> = line.iter().map(|value| format!("{value:e}")).collect();
        writeln!(out, "{}", words.join(" "))?;
    }
    for labels in [&input.row_labels, &input.col_labels] {
        match labels {
            Some(labels) => writeln!(out, "{}", labels.join("|"))?,
            None => writeln!(out, "-")?,
        }
    }
    writeln!(out, "{}", input.format)?;
    Ok(())
}
