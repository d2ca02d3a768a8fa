//! `partwise transform`: fits new rows or columns to fixed factors.

use anyhow::{Result, bail};
use partwise::run::Side;
use partwise::solver::Penalty;
use partwise::threads::Threads;
use partwise::{Precision, io};

use crate::args::TransformArgs;
use crate::context::Context;
use crate::folder::{self, Names};
use crate::input::KnownInput;
use crate::{input, machine, output};

pub fn run(args: &TransformArgs, context: &Context) -> Result<()> {
    match args.out.extension().and_then(|extension| extension.to_str()) {
        Some("npy" | "tsv") => {}
        _ => bail!("{} ends in neither .npy nor .tsv; choose one of them for --out", args.out.display()),
    }
    output::check_file(&args.out, "--out", args.force)?;
    let record = folder::record(&args.dir)?;
    // In f64 whatever the precision of the run, because the fit is exact.
    let mut folder = folder::read::<f64>(&args.dir)?;
    let KnownInput { input, observed } =
        input::read_for::<f64>(&args.file, &args.read, &args.known, &record)?;
    input::warn_assumptions(context.console, &args.file, &input.assumptions);
    let (labels, names) = match args.side {
        Side::Rows => (input.row_labels, Names { rows: None, cols: input.col_labels.as_deref() }),
        Side::Columns => (input.col_labels, Names { rows: input.row_labels.as_deref(), cols: None }),
    };
    folder.match_names(&args.dir, &args.file, names)?;
    let k = folder.factors.k;
    let (m, n) = (input.matrix.rows(), input.matrix.cols());
    let (count, length, expected, what) = match args.side {
        Side::Rows => (m, n, folder.factors.cols, "columns"),
        Side::Columns => (n, m, folder.factors.rows, "rows"),
    };
    if length != expected {
        bail!(
            "{} has {length} {what}, but the factors in {} belong to a matrix with {expected}; use data with the same \
             {what}, or try --side or --transpose",
            args.file.display(),
            args.dir.display()
        );
    }
    // The products, the fit, and a copy of it while it is assembled.
    input::check_memory("the fit", (count as u64).saturating_mul(k as u64).saturating_mul(24))?;
    output::check_room(
        &args.out,
        (count as u64).saturating_mul(k as u64).saturating_mul(record.precision.bytes()),
    )?;
    let threads = Threads::new(machine::cores())?;
    let fitted = match observed {
        Some(observed) => {
            folder.factors.transform_observed(record.loss, &observed, args.side, Penalty::NONE, &threads)?
        }
        None => folder.factors.transform_by(
            record.loss,
            input.matrix,
            args.side,
            Penalty::NONE,
            None,
            &threads,
        )?,
    };
    write(args, context, record.precision, labels.as_deref(), &fitted, k)
}

/// Writes the fitted rows of k weights, and says so.
fn write(
    args: &TransformArgs,
    context: &Context,
    precision: Precision,
    labels: Option<&[String]>,
    fitted: &[f64],
    k: usize,
) -> Result<()> {
    let tsv = args.out.extension().is_some_and(|extension| extension == "tsv");
    let rows = fitted.len() / k;
    context.outputs.write_from(Some(&args.dir), &args.out, "--out", |file| match (tsv, precision) {
        (true, _) => io::tsv::write_factor(file, labels, rows, k, fitted),
        (false, Precision::F64) => io::npy::write(file, rows, k, fitted),
        (false, Precision::F32) => {
            let narrow: Vec<f32> = fitted.iter().map(|&value| value as f32).collect();
            io::npy::write(file, rows, k, &narrow)
        }
    })?;
    let what = match args.side {
        Side::Rows => "rows",
        Side::Columns => "columns",
    };
    context
        .console
        .answer(&format!("{rows} {what} fitted to {k} components, written to {}", args.out.display()))
}
