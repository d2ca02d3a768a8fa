//! Factorizes a file and prints the shapes of the factors and the relative error; `docs/rust.md` explains each line.
//!
//! `factorize FILE K`

use std::path::Path;

use partwise::io::ReadOptions;
use partwise::machine;
use partwise::pipeline::{self, FileSource, Finished, Request, Resources, Source, Start};
use partwise::run::{Machine, Progress, Settings};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, k] = arguments.as_slice() else {
        eprintln!("usage: factorize FILE K");
        std::process::exit(2);
    };
    let outcome = k.parse().map_err(|_| format!("{k} is not a number of components"));
    let outcome = outcome.and_then(|k| factorize(file.as_ref(), k).map_err(|error| error.to_string()));
    match outcome {
        Ok(Finished { result, .. }) => {
            let factors = &result.factors;
            println!("U: {} x {}, V: {} x {}", factors.rows, factors.k, factors.cols, factors.k);
            println!("relative error {:.6}", result.report.relative_error);
        }
        Err(message) => {
            eprintln!("error: {message}");
            std::process::exit(2);
        }
    }
}

fn factorize(file: &Path, k: usize) -> partwise::Result<Finished<f32>> {
    let settings = Settings { seed: 0, restarts: 1, ..Settings::new(k) }.checked()?;
    let resources = Resources::new(Machine::new(1, machine::cores()));
    let request = Request::new(settings, resources)?;

    let options = ReadOptions { memory: machine::available_memory(), ..ReadOptions::default() };
    let source =
        FileSource { path: file.into(), options, transpose: false, row_labels: None, col_labels: None };
    let opened = pipeline::open(Source::File(source), request)?;
    let planned = pipeline::plan(opened, Start::default())?;
    pipeline::run(planned, &mut |_: &Progress| false)
}
