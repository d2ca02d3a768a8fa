//! `partwise inspect`: what a matrix is, and what factorizing it takes.

use std::fmt::Write;

use anyhow::Result;
use partwise::matrix::{Matrix, Summary};
use partwise::run::{Algorithm, memory_needed};
use partwise::{Precision, Real};
use serde_json::json;

use crate::args::InspectArgs;
use crate::input::{read, size, warn_assumptions};
use crate::say;

pub fn run(args: &InspectArgs) -> Result<()> {
    if args.rank == 0 {
        anyhow::bail!("--rank: 0 is too few; give 1 or more");
    }
    // f64 holds every entry of every format, so that the range shown is the file's own.
    let input = read::<f64>(&args.file, &args.read, None)?;
    warn_assumptions(&args.file, &input.assumptions);
    let summary = Summary::of(&input.matrix);
    let storage = match input.matrix {
        Matrix::Dense(_) => "dense",
        Matrix::Sparse(_) => "sparse",
    };
    let needs = |algorithm| memory_of::<f64>(&input.matrix, algorithm, args.rank);
    let (exact, sketched) = (needs(Algorithm::Hals), needs(Algorithm::Dsanls));
    if args.json {
        let mut value = serde_json::to_value(&summary)?;
        value["format"] = json!(input.format);
        value["storage"] = json!(storage);
        value["image"] = json!(input.image);
        value["row_labels"] = json!(input.row_labels.is_some());
        value["col_labels"] = json!(input.col_labels.is_some());
        value["assumptions"] = json!(input.assumptions);
        value["rank"] = json!(args.rank);
        value["bytes_hals"] = json!(exact);
        value["bytes_dsanls"] = json!(sketched);
        return say::answer(&format!("{value:#}"));
    }
    let Summary { rows, cols, nonzeros, density, min, max, mean, empty_rows, empty_cols, .. } = summary;
    let mut text = String::new();
    writeln!(text, "{}", args.file.display())?;
    writeln!(text, "  format      {}, {storage}", input.format)?;
    writeln!(
        text,
        "  shape       {rows} x {cols}{}",
        if args.read.transpose { " (transposed)" } else { "" }
    )?;
    writeln!(text, "  nonzeros    {nonzeros} ({:.4}%)", 100.0 * density)?;
    writeln!(text, "  range       {min} to {max}, mean {mean:.6}")?;
    writeln!(text, "  empty       {empty_rows} rows, {empty_cols} columns")?;
    let named = |labels: &Option<Vec<String>>| if labels.is_some() { "named" } else { "not named" };
    writeln!(text, "  labels      rows {}, columns {}", named(&input.row_labels), named(&input.col_labels))?;
    writeln!(
        text,
        "  memory      {} for hals, {} for dsanls (rank {}, f32, one node)",
        size(exact),
        size(sketched),
        args.rank
    )?;
    say::answer(&text)
}

/// What a run in single precision, the default, would take.
fn memory_of<T: Real>(matrix: &Matrix<T>, algorithm: Algorithm, rank: usize) -> u64 {
    memory_needed(matrix, algorithm, rank, 1, Precision::F32)
}
