//! `partwise factorize`: from a file to factors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use partwise::Real;
use partwise::io::{self, Input};
use partwise::matrix::Matrix;
use partwise::run::{Algorithm, Factorization, Factors, Report, Settings, Stop, factorize, memory_needed};
use serde_json::{Value, json};

use crate::args::{FactorizeArgs, PrecisionArg};
use crate::progress::Display;
use crate::{folder, input, machine, output};

pub fn run(args: &FactorizeArgs) -> Result<()> {
    match args.precision {
        PrecisionArg::F32 => run_in::<f32>(args),
        PrecisionArg::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &FactorizeArgs) -> Result<()> {
    let settings = args.settings();
    // What is wrong whatever the matrix is said before it is read.
    settings.check(usize::MAX, usize::MAX)?;
    let threads = threads(args)?;
    output::check_folder(&args.out, args.force)?;
    let start = args.init_from.as_deref().map(folder::read::<T>).transpose()?.map(|folder| folder.factors);
    let stop = stop_on_ctrl_c()?;
    let hash = std::thread::spawn({
        let file = args.file.clone();
        move || input::sha256(&file)
    });
    let input = input::read::<T>(&args.file, &args.read, Some(&args.labels))?;
    let Input { matrix, row_labels, col_labels, format, image, .. } = input;
    let (m, n, stored) = (matrix.rows(), matrix.cols(), matrix.stored());
    settings.check(m, n)?;
    if let Some(start) = &start {
        start.check(m, n, settings.rank).context("--init-from")?;
    }
    let needed = memory_needed(&matrix, settings.algorithm, settings.rank, args.nodes, T::PRECISION);
    input::check_memory("the factorization", needed.saturating_sub(matrix.bytes()))?;
    let talk = !args.quiet && !args.json;
    if talk {
        introduce(args, &matrix, &format, threads, &settings);
    }
    if settings.rank > m.min(n) && !args.quiet {
        eprintln!(
            "warning: rank {} is above the smaller side of the matrix ({}), so that components cannot all matter",
            settings.rank,
            m.min(n)
        );
    }

    let mut display = Display::new(&settings, args.quiet, args.json);
    let mut result = factorize(matrix, args.nodes, threads, &settings, start.as_ref(), &mut |progress| {
        display.show(progress, &settings);
        stop.load(Ordering::Relaxed) > 0
    })?;
    display.finish();
    // Components of given factors keep their places, so that they can be compared.
    if start.is_none() {
        result.factors.order_by_energy();
    }
    if args.normalize {
        result.factors.normalize();
    }

    let hash = hash.join().map_err(|_| anyhow::anyhow!("hashing {} failed", args.file.display()))??;
    let mut record = record::<T>(args, &settings, &result, threads, (m, n, stored, &format, hash))?;
    if let Some(shape) = image {
        record["image"] = json!(shape);
    }
    write(args, &result, &record, row_labels.as_deref(), col_labels.as_deref())?;
    if args.json {
        let mut line = json!({ "event": "result" });
        if let (Some(line), Value::Object(record)) = (line.as_object_mut(), record) {
            line.extend(record);
        }
        println!("{line}");
    } else if talk {
        conclude(args, &result.report, &result.errors);
    }
    Ok(())
}

fn threads(args: &FactorizeArgs) -> Result<usize> {
    if args.nodes == 0 {
        anyhow::bail!("--nodes: 0 nodes can compute nothing; give 1 or more");
    }
    if args.threads == Some(0) {
        anyhow::bail!("--threads: 0 threads can compute nothing; give 1 or more");
    }
    Ok(args.threads.unwrap_or((machine::cores() / args.nodes).max(1)))
}

/// The first Ctrl-C ends the run after its iteration, and what there is is saved; the second ends the program.
fn stop_on_ctrl_c() -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    let flag = asked.clone();
    ctrlc::set_handler(move || {
        if flag.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("stopping after this iteration, then saving; once more ends without saving");
        } else {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(asked)
}

fn introduce<T: Real>(
    args: &FactorizeArgs,
    matrix: &Matrix<T>,
    format: &str,
    threads: usize,
    settings: &Settings,
) {
    let (m, n) = (matrix.rows(), matrix.cols());
    println!("{}: {m} x {n}, {format}, {} in memory", args.file.display(), input::size(matrix.bytes()));
    let method = match settings.algorithm {
        Algorithm::Hals => "hals".to_string(),
        Algorithm::Dsanls => {
            let (cols, rows) = settings.sketch_sizes(m, n);
            format!("dsanls, sketched to {cols} of {n} columns and {rows} of {m} rows")
        }
    };
    println!("{method}, rank {}, nodes {}, threads a node {threads}", settings.rank, args.nodes);
}

fn conclude(args: &FactorizeArgs, report: &Report, errors: &[f64]) {
    if !report.redrawn.is_empty() {
        println!("{} dead components were redrawn; run.json says which and when", report.redrawn.len());
    }
    if errors.len() > 1 {
        println!("best of {} runs, with seed {}", errors.len(), report.seed);
    }
    let why = match report.stopped_by {
        Stop::Iterations => "all iterations done",
        Stop::Tolerance => "the error hardly fell any more",
        Stop::TargetError => "the wanted error was reached",
        Stop::TimeLimit => "the time was up",
        Stop::Interrupted => "stopped by the user",
    };
    println!(
        "relative error {:.6} after {} iterations and {:.2} s ({why})",
        report.relative_error, report.iterations, report.seconds
    );
    println!("written to {}", args.out.display());
}

/// `run.json`: everything needed to run it again, and how it went.
fn record<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    result: &Factorization<T>,
    threads: usize,
    (m, n, stored, format, hash): (usize, usize, usize, &str, String),
) -> Result<Value> {
    let report = &result.report;
    let (sketch_cols, sketch_rows) = settings.sketch_sizes(m, n);
    let sketched = settings.algorithm == Algorithm::Dsanls;
    let name = args.file.file_name().map(|name| name.to_string_lossy().into_owned());
    let bytes = input::bytes(&args.file);
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "algorithm": settings.algorithm,
        "rank": settings.rank,
        "iterations": report.iterations,
        "relative_error": report.relative_error,
        "seconds": report.seconds,
        "stopped_by": report.stopped_by,
        "seed": report.seed,
        "first_seed": settings.seed,
        "restarts": settings.restarts,
        "errors_of_restarts": result.errors,
        "redrawn": report.redrawn,
        "max_iterations": settings.iterations,
        "tolerance": settings.tolerance,
        "target_error": settings.target_error,
        "time_limit": settings.time_limit,
        "sketch": sketched.then_some(settings.sketch),
        "sketch_cols": sketched.then_some(sketch_cols),
        "sketch_rows": sketched.then_some(sketch_rows),
        "alpha": sketched.then_some(settings.alpha),
        "beta": sketched.then_some(settings.beta),
        "step": sketched.then_some(settings.step),
        "init_from": args.init_from,
        "normalize": args.normalize,
        "transpose": args.read.transpose,
        "precision": T::PRECISION,
        "nodes": args.nodes,
        "threads": threads,
        "trace_every": settings.trace_every,
        "phases": report.phases,
        "bytes_sent": report.bytes_sent,
        "bytes_evaluate": report.bytes_evaluate,
        "input": {
            "name": name, "bytes": bytes, "sha256": hash, "format": format, "rows": m, "cols": n, "stored": stored,
        },
    }))
}

fn write<T: Real>(
    args: &FactorizeArgs,
    result: &Factorization<T>,
    record: &Value,
    row_labels: Option<&[String]>,
    col_labels: Option<&[String]>,
) -> Result<()> {
    let Factors { rows, cols, k, u, v } = &result.factors;
    let staging = output::Staging::new(&args.out)?;
    staging.write("U.npy", |file| io::npy::write(file, *rows, *k, u))?;
    staging.write("V.npy", |file| io::npy::write(file, *cols, *k, v))?;
    for (name, labels) in [("rows.txt", row_labels), ("columns.txt", col_labels)] {
        if let Some(labels) = labels {
            staging.write(name, |file| io::labels::write(file, labels))?;
        }
    }
    if args.tsv {
        staging.write("U.tsv", |file| io::tsv::write_factor(file, row_labels, *rows, *k, u))?;
        staging.write("V.tsv", |file| io::tsv::write_factor(file, col_labels, *cols, *k, v))?;
    }
    staging.write("trace.csv", |file| {
        writeln!(file, "iteration,seconds,relative_error,bytes_sent")?;
        for line in &result.report.trace {
            writeln!(
                file,
                "{},{:.6},{:.9},{}",
                line.iteration, line.seconds, line.relative_error, line.bytes_sent
            )?;
        }
        Ok(())
    })?;
    staging.write("run.json", |file| writeln!(file, "{record:#}"))?;
    staging.commit()
}
