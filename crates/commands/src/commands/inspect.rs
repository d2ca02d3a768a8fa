//! `partwise inspect`: describes a matrix and the memory that factorizing it needs.

use std::fmt::Write;

use anyhow::Result;
use partwise::Precision;
use partwise::io::stream::Stream;
use partwise::io::{self, Assumption, ImageShape, Unchecked};
use partwise::matrix::{Dominant, Matrix, Summary};
use partwise::run::{Algorithm, Layout, MatrixSize, Workload};
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::context::Context;
use crate::input::{self, size, warn_assumptions};
use crate::machine;

/// The findings about a matrix.
struct Findings {
    summary: Summary,
    format: String,
    storage: &'static str,
    image: Option<ImageShape>,
    row_labels: Option<Vec<String>>,
    col_labels: Option<Vec<String>>,
    assumptions: Vec<Assumption>,
    /// The memory of runs in single precision, the default.
    bytes_hals: u64,
    bytes_dsanls: u64,
}

pub fn run(args: &InspectArgs, context: &Context) -> Result<()> {
    if args.rank == 0 {
        anyhow::bail!("--rank: 0 is too few; give 1 or more");
    }
    let findings = look(args, machine::available_memory())?;
    warn_assumptions(context.console, &args.file, &findings.assumptions);
    context.console.answer(&if args.json {
        format!("{:#}", in_json(args, &findings)?)
    } else {
        in_words(args, &findings)?
    })
}

/// Reads the matrix as a whole, or block by block if it does not fit in memory and its format allows that.
fn look(args: &InspectArgs, memory: u64) -> Result<Findings> {
    // f64 represents every entry of every format, so the range is that of the file.
    let options = input::options(&args.read, None, memory);
    let input = match io::read_to_inspect(&args.file, &options, args.read.transpose)? {
        Unchecked::Whole(input) => input,
        Unchecked::Streamed(stream) => return look_through(args, &stream, memory),
    };
    let size = MatrixSize::of(&input.matrix);
    Ok(Findings {
        summary: Summary::of(&input.matrix),
        storage: storage(matches!(input.matrix, Matrix::Sparse(_))),
        bytes_hals: needed(args, size, Algorithm::Hals),
        bytes_dsanls: needed(args, size, Algorithm::Dsanls),
        format: input.format,
        image: input.image,
        row_labels: input.row_labels,
        col_labels: input.col_labels,
        assumptions: input.assumptions,
    })
}

fn look_through(args: &InspectArgs, stream: &Stream, memory: u64) -> Result<Findings> {
    let size = MatrixSize::of_stream(stream);
    Ok(Findings {
        summary: stream.summary(memory.saturating_sub(stream.bytes_kept()))?,
        storage: storage(stream.is_sparse()),
        bytes_hals: needed(args, size, Algorithm::Hals),
        bytes_dsanls: needed(args, size, Algorithm::Dsanls),
        format: stream.format().to_string(),
        image: None,
        row_labels: None,
        col_labels: None,
        assumptions: Vec::new(),
    })
}

/// The memory of a factorization in one process, in f32.
fn needed(args: &InspectArgs, size: MatrixSize, algorithm: Algorithm) -> u64 {
    let workload =
        Workload { size, algorithm, access: algorithm.access(), rank: args.rank, precision: Precision::F32 };
    workload.footprint(&Layout::Workers(1)).most()
}

fn storage(sparse: bool) -> &'static str {
    if sparse { "sparse" } else { "dense" }
}

fn in_json(args: &InspectArgs, findings: &Findings) -> Result<Value> {
    let mut value = serde_json::to_value(&findings.summary)?;
    value["format"] = json!(findings.format);
    value["storage"] = json!(findings.storage);
    value["image"] = json!(findings.image);
    value["row_labels"] = json!(findings.row_labels.is_some());
    value["col_labels"] = json!(findings.col_labels.is_some());
    value["assumptions"] = json!(findings.assumptions);
    value["rank"] = json!(args.rank);
    value["bytes_hals"] = json!(findings.bytes_hals);
    value["bytes_dsanls"] = json!(findings.bytes_dsanls);
    Ok(value)
}

fn in_words(args: &InspectArgs, findings: &Findings) -> Result<String> {
    let Findings { summary, format, storage, row_labels, col_labels, bytes_hals, bytes_dsanls, .. } =
        findings;
    let Summary { rows, cols, nonzeros, density, min, max, mean, empty_rows, empty_cols, .. } = summary;
    let mut text = String::new();
    writeln!(text, "{}", args.file.display())?;
    writeln!(text, "  format      {format}, {storage}")?;
    let transposed = if args.read.transpose { " (transposed)" } else { "" };
    writeln!(text, "  shape       {rows} x {cols}{transposed}")?;
    writeln!(text, "  nonzeros    {nonzeros} ({:.4}%)", 100.0 * density)?;
    if min <= max {
        writeln!(text, "  range       {min} to {max}, mean {mean:.6}")?;
    } else {
        writeln!(text, "  range       no finite entries")?;
    }
    if let Some([row, col]) = summary.first_unusable {
        let Summary { nan, negative, infinite, .. } = summary;
        let first = format!("the first at row {}, column {} (counted from 1)", row + 1, col + 1);
        writeln!(text, "  unusable    {nan} NaN, {negative} negative, {infinite} infinite; {first}")?;
    }
    for (what, found, labels) in
        [("row", summary.dominant_row, row_labels), ("column", summary.dominant_col, col_labels)]
    {
        if let Some(Dominant { index, share }) = found {
            let name = labels.as_ref().map(|labels| format!(" ({})", labels[index])).unwrap_or_default();
            writeln!(
                text,
                "  dominant    {what} {}{name} accounts for {:.1}% of the squared norm of the matrix",
                index + 1,
                100.0 * share
            )?;
        }
    }
    writeln!(text, "  empty       {empty_rows} rows, {empty_cols} columns")?;
    let named = |labels: &Option<Vec<String>>| if labels.is_some() { "named" } else { "not named" };
    writeln!(text, "  labels      rows {}, columns {}", named(row_labels), named(col_labels))?;
    let (hals, dsanls) = (size(*bytes_hals), size(*bytes_dsanls));
    writeln!(
        text,
        "  memory      {hals} for hals, {dsanls} for dsanls ({} components, f32, one process)",
        args.rank
    )?;
    Ok(text)
}
