//! `partwise factorize`: from a file to factors.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow, bail};
use partwise::comm::{Comm, Network};
use partwise::error::Error;
use partwise::io::{self, ImageShape};
use partwise::matrix::Matrix;
use partwise::run::{
    Algorithm, Directive, Factorization, Factors, Machine, Monitor, Plan, Progress, RankReport, Report,
    Settings, Snapshot, StartFrom, Stop, TraceLine, factorize, factorize_streamed, memory_needed,
};
use partwise::{Precision, Real};
use serde_json::{Value, json};

use super::cluster::{self, note_grid};
use crate::args::FactorizeArgs;
use crate::checkpoint::{self, Checkpoint};
use crate::choose::{self, Choice, Entries};
use crate::data::{self, Data, Given};
use crate::progress::Display;
use crate::report::{self, Kept};
use crate::warnings::{self, Warnings};
use crate::{folder, input, interrupt, machine, output, say};

pub fn run(args: &FactorizeArgs, comm: Option<&dyn Comm>) -> Result<()> {
    match (args.precision, comm) {
        (Precision::F32, None) => run_in::<f32>(args),
        (Precision::F64, None) => run_in::<f64>(args),
        (Precision::F32, Some(comm)) => cluster::run::<f32>(args, comm),
        (Precision::F64, Some(comm)) => cluster::run::<f64>(args, comm),
    }
}

fn run_in<T: Real>(args: &FactorizeArgs) -> Result<()> {
    let settings = args.settings();
    // What is wrong whatever the matrix is said before it is read.
    settings.check(usize::MAX, usize::MAX)?;
    let threads = threads(args, args.nodes)?;
    settings.grid(args.grid, (1, 1), args.nodes)?;
    output::check_folder(&args.out, args.force)?;
    checkpoint::check(args)?;
    let mut start = args.init_from.as_deref().map(folder::read::<T>).transpose()?;
    let stop = interrupt::stop_after_iteration(args.quiet)?;
    let hash = std::thread::spawn({
        let file = args.file.clone();
        move || input::sha256(&file)
    });
    let given = data::open::<T>(args, &settings, threads)?;
    let Given { data, rows: m, cols: n, stored, row_labels, col_labels, format, image, assumptions } = given;
    let image = input::picture(&args.shape, (m, n), image, args.read.images, args.records)?;
    let mut settings = match &data {
        Data::Whole(_) => settings,
        Data::Streamed(streamed) => streamed.adjusted(settings),
    };
    let mut choice = None;
    if let (Data::Whole(matrix), true) = (&data, choose::is_open(args, &settings, args.nodes)) {
        let entries = match matrix {
            Matrix::Sparse(_) => Entries::Sparse(stored),
            Matrix::Dense(dense) => Entries::of(dense.values()),
        };
        choice = choose::choose(args, &settings, (m, n, entries), (args.nodes, T::PRECISION), false)?;
        if let Some(choice) = &choice {
            choice.apply(&mut settings);
            let needed = memory_needed(matrix, settings.algorithm, settings.rank, args.nodes, T::PRECISION);
            input::check_memory("the factorization", needed.saturating_sub(matrix.bytes()))?;
        }
    }
    let settings = settings;
    let streamed = matches!(data, Data::Streamed(_));
    choose::check_samples(args, &Plan::of(m, n, stored, settings.rank), streamed)?;
    if let (Some(start), Some(dir)) = (&mut start, &args.init_from) {
        start.match_names(dir, &args.file, (row_labels.as_deref(), col_labels.as_deref()))?;
        start.check(dir, &args.file, (m, n), Some(settings.rank))?;
    }
    let start = start.map(|folder| folder.factors);
    let entries = (m as u64 + n as u64).saturating_mul(settings.rank as u64);
    output::check_room(&args.out, entries.saturating_mul(T::PRECISION.bytes()))?;
    let talk = !args.quiet && !args.json;
    if talk {
        say::tell(&format!("{}: {m} x {n}, {format}, {}", args.file.display(), data.words()));
    }
    let mut warnings = Warnings::new(args.quiet);
    warnings.rank(&settings, (m, n));
    warnings.assumptions(&args.file, &assumptions);
    let dominant = match &data {
        Data::Whole(matrix) => warnings::dominant_of(matrix),
        Data::Streamed(streamed) => streamed.dominant(),
    };
    let labels = (row_labels, col_labels);
    warnings.dominant(dominant, &labels);

    let hash = hash.join().map_err(|_| anyhow!("hashing {} failed", args.file.display()))??;
    let mut watch = Watch {
        display: Display::new(&settings, args.quiet, args.json),
        settings: &settings,
        stop,
        checkpoint: Checkpoint::new(args, hash.clone()),
        announce: talk.then(|| {
            let (choice, rank, nodes) = (choice.clone(), settings.rank, args.nodes);
            Box::new(move |plan: &str| {
                let plan = method(plan, choice.as_ref());
                say::tell(&format!("{plan}, rank {rank}, nodes {nodes}, threads a node {threads}"));
            }) as Announce
        }),
    };
    let snapshot = if args.resume { watch.checkpoint.read::<T>()? } else { None };
    if talk {
        tell_resumed(snapshot.as_ref(), &watch.checkpoint);
    }
    let from = snapshot.as_ref().map(StartFrom::Snapshot).or(start.as_ref().map(StartFrom::Factors));
    let networks = args.network.clone();
    let machine = Machine { grid: args.grid, networks, ..Machine::new(args.nodes, threads) };
    let grid = settings.grid(args.grid, (m, n), args.nodes)?;
    let frames = match &data {
        Data::Whole(matrix) => report::kept(matrix, image),
        Data::Streamed(_) => None,
    };
    let (result, streamed) = match data {
        Data::Whole(matrix) => (factorize(matrix, machine, &settings, from, &mut watch), Value::Null),
        Data::Streamed(streamed) => {
            let result = factorize_streamed(&streamed, threads, &settings, from, &mut watch);
            (result, data::record(&streamed))
        }
    };
    let result = result.map_err(|error| explain::<T>(error, args))?;
    watch.display.finish();
    let stopped_by = result.report.stopped_by;
    let ending = Ending {
        args,
        settings: &settings,
        threads,
        facts: (m, n, stored, &format, hash),
        labels,
        image,
        frames,
        given: start.is_some(),
        choice: choice.as_ref(),
        checkpoint: &watch.checkpoint,
        warnings,
    };
    ending.write(result, |record| {
        note_grid(record, &settings, grid);
        record["streamed"] = streamed;
    })?;
    interrupt::ended(stopped_by)
}

/// What is left to do with a result.
pub(super) struct Ending<'a, T> {
    pub args: &'a FactorizeArgs,
    pub settings: &'a Settings,
    pub threads: usize,
    /// Sizes, stored entries, format and hash of the input.
    pub facts: (usize, usize, usize, &'a str, String),
    pub labels: input::Labels,
    /// How a row or column is a picture.
    pub image: Option<ImageShape>,
    /// Pictures as they were.
    pub frames: Option<Kept<T>>,
    /// Whether the run began from given factors.
    pub given: bool,
    /// What `auto` chose for the network.
    pub choice: Option<&'a Choice>,
    pub checkpoint: &'a Checkpoint,
    /// What was warned of so far.
    pub warnings: Warnings,
}

impl<T: Real> Ending<'_, T> {
    /// Puts the factors in order, writes all, and says so; `note` adds to `run.json`.
    pub fn write(self, mut result: Factorization<T>, note: impl FnOnce(&mut Value)) -> Result<()> {
        let Ending {
            args,
            settings,
            threads,
            facts,
            labels,
            image,
            frames,
            given,
            choice,
            checkpoint,
            mut warnings,
        } = self;
        warnings.zero(&result.factors, settings);
        // Components of given factors keep their places, so that they can be compared.
        if !given {
            result.factors.order_by_energy();
        }
        let mut record = record::<T>(args, settings, &result, threads, facts, choice)?;
        note(&mut record);
        record["warnings"] = json!(warnings.into_sentences());
        if let Some(shape) = image {
            record["image"] = json!(shape);
        }
        record["records"] = args.records.map_or_else(|| json!(folder::samples(&record)), |side| json!(side));
        if let Some(frames) = &frames {
            record["frames"] = json!(frames.numbers);
        }
        write(args, &result, &record, &labels, frames.as_ref())?;
        let Factorization { factors, report, errors } = result;
        // The page is made from the files: there is room for one of both.
        drop((factors, labels, frames));
        report::after_run(&args.out, !args.no_report);
        let clock = args.network.first().filter(|_| record["clock"] == "virtual");
        let unfinished = matches!(report.stopped_by, Stop::Interrupted | Stop::TimeLimit);
        if checkpoint.active() && !unfinished {
            checkpoint.remove();
        }
        if args.json {
            let mut line = json!({ "event": "result" });
            if let (Some(line), Value::Object(record)) = (line.as_object_mut(), record) {
                line.extend(record);
            }
            say::answer(&line.to_string())?;
        } else if !args.quiet {
            conclude(args, &report, &errors, clock);
        }
        Ok(())
    }
}

pub(super) fn tell_resumed<T: Real>(snapshot: Option<&Snapshot<T>>, checkpoint: &Checkpoint) {
    if let Some(snapshot) = snapshot {
        say::tell(&format!(
            "going on from iteration {} in {}",
            snapshot.iteration(),
            checkpoint.path().display()
        ));
    }
}

/// Shows progress, listens for Ctrl-C and saves.
pub(super) struct Watch<'a> {
    pub display: Display,
    pub settings: &'a Settings,
    pub stop: Arc<AtomicUsize>,
    pub checkpoint: Checkpoint,
    /// Says what the method does.
    pub announce: Option<Announce>,
}

pub(super) type Announce = Box<dyn Fn(&str) + Send>;

impl<T: Real> Monitor<T> for Watch<'_> {
    fn started(&mut self, plan: &str) {
        if let Some(announce) = &self.announce {
            announce(plan);
        }
    }

    fn progress(&mut self, progress: &Progress) -> Directive {
        self.display.show(progress, self.settings);
        Directive {
            stop: self.stop.load(Ordering::Relaxed) > 0,
            save: self.checkpoint.due(progress),
            save_if_stopped: self.checkpoint.active(),
        }
    }

    fn snapshot(&mut self, snapshot: Snapshot<T>) -> partwise::Result<()> {
        self.checkpoint.save(&snapshot)
    }
}

/// An overflow with what can be done about it in this run.
pub(super) fn explain<T: Real>(error: Error, args: &FactorizeArgs) -> anyhow::Error {
    let Error::Diverged { iteration } = error else { return error.into() };
    let precision = match T::PRECISION {
        Precision::F32 => "use --precision f64 or ",
        Precision::F64 => "",
    };
    let alpha = match args.algorithm {
        Algorithm::Dsanls => ", or raise --alpha",
        Algorithm::Auto | Algorithm::Hals | Algorithm::Mu | Algorithm::Bpp => "",
    };
    anyhow!(
        "{}: the factors grew beyond what {} can hold at iteration {iteration}; {precision}rescale the matrix{alpha}",
        args.file.display(),
        match T::PRECISION {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    )
}

/// In-process ranks at most: each has a channel to every other.
const MOST_NODES: usize = 1024;

/// Threads of all ranks at most, well below what systems allow a process.
const MOST_THREADS: usize = 4096;

/// Threads of each of so many ranks on this machine.
pub(super) fn threads(args: &FactorizeArgs, nodes: usize) -> Result<usize> {
    if nodes == 0 {
        bail!("--nodes: 0 nodes can compute nothing; give 1 or more");
    }
    if nodes > MOST_NODES {
        bail!("--nodes: {nodes} nodes are too many for one process; give at most {MOST_NODES}");
    }
    let cores = if args.network.is_empty() { machine::cores() } else { 1 };
    let threads = args.threads.unwrap_or((cores / nodes).max(1));
    if threads == 0 {
        bail!("--threads: 0 threads can compute nothing; give 1 or more");
    }
    if threads.saturating_mul(nodes) > MOST_THREADS {
        bail!(
            "--threads: {threads} on each of {nodes} nodes are too many for one process; give at most {}",
            MOST_THREADS / nodes
        );
    }
    Ok(threads)
}

/// The plan that a run reports, with the reason for it where `auto` chose by the network.
pub(super) fn method(plan: &str, choice: Option<&Choice>) -> String {
    match choice {
        None => plan.to_string(),
        Some(Choice { algorithm: Algorithm::Dsanls, why, .. }) => format!("auto: {plan} ({why})"),
        Some(Choice { why, .. }) => format!("{plan} ({why})"),
    }
}

fn conclude(args: &FactorizeArgs, outcome: &Report, errors: &[f64], clock: Option<&Network>) {
    if !outcome.redrawn.is_empty() {
        let times = match outcome.redrawn.len() {
            1 => "a component died 1 time and was".to_string(),
            count => format!("components died {count} times and were"),
        };
        say::tell(&format!("{times} redrawn; run.json says which and when"));
    }
    if errors.len() > 1 {
        say::tell(&format!("best of {} runs, with seed {}", errors.len(), outcome.seed));
    }
    let clock = clock.map_or(String::new(), |network| format!(" on the virtual clock, on {network}"));
    let why = match outcome.stopped_by {
        Stop::Iterations => "all iterations done",
        Stop::Tolerance => "the error hardly fell any more",
        Stop::TargetError => "the wanted error was reached",
        Stop::TimeLimit => "the time was up",
        Stop::Interrupted => "stopped by the user",
    };
    say::tell(&format!(
        "relative error {:.6} after {} iterations and {:.2} s{clock} ({why})",
        outcome.relative_error, outcome.iterations, outcome.seconds
    ));
    table(&outcome.ranks);
    say::tell(&report::where_it_is(&args.out));
}

/// Where each rank's time went, if there are several.
fn table(ranks: &[RankReport]) {
    if ranks.len() < 2 {
        return;
    }
    say::tell("seconds by rank:  product    solve   sketch  gather  scatter   reduce     all   MiB sent");
    for (rank, report) in ranks.iter().enumerate() {
        let RankReport { seconds, phases, method, .. } = report;
        say::tell(&format!(
            "{rank:>15} {:>9.2} {:>8.2} {:>8.2} {:>7.2} {:>8.2} {:>8.2} {seconds:>7.2} {:>10.1}",
            phases.product,
            phases.solve,
            phases.sketch,
            method.all_gather.seconds,
            method.reduce_scatter.seconds,
            method.all_reduce.seconds,
            method.bytes() as f64 / (1 << 20) as f64
        ));
    }
}

/// `run.json`: everything needed to run it again, and how it went.
fn record<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    result: &Factorization<T>,
    threads: usize,
    (m, n, stored, format, hash): (usize, usize, usize, &str, String),
    choice: Option<&Choice>,
) -> Result<Value> {
    let report = &result.report;
    let (sketch_cols, sketch_rows) = settings.sketch_sizes(m, n);
    let sketched = settings.algorithm == Algorithm::Dsanls;
    // Not as a path to serde, which takes UTF-8 alone.
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    let name = args.file.file_name().map(|name| name.to_string_lossy().into_owned());
    let bytes = input::bytes(&args.file);
    let mut record = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "algorithm": args.algorithm,
        "rank": settings.rank,
        "iterations": report.iterations,
        "relative_error": report.relative_error,
        "seconds": report.seconds,
        "stopped_by": report.stopped_by,
        "seed": report.seed,
        "first_seed": settings.seed,
        "errors_of_restarts": result.errors,
        "redrawn": report.redrawn,
        "max_iterations": settings.iterations,
        "sketch_cols": sketch_cols,
        "sketch_rows": sketch_rows,
        "trace_every": report.trace_every,
        "init_from": text(&args.init_from),
        "transpose": args.read.transpose,
        "header": args.read.header,
        "row_names": args.read.row_names,
        "row_labels": text(&args.labels.row_labels),
        "col_labels": text(&args.labels.col_labels),
        "precision": T::PRECISION,
        "nodes": args.nodes,
        "threads": threads,
        "memory": args.memory,
        "network": (!args.network.is_empty()).then(|| args.network.iter().map(Network::to_string).collect::<Vec<_>>()),
        "clock": if args.network.is_empty() { "real" } else { "virtual" },
        "normalize": settings.normalization(),
        "tsv": args.tsv,
        "phases": report.phases,
        "bytes_sent": report.bytes_sent,
        "bytes_evaluate": report.bytes_evaluate,
        "ranks": report.ranks,
        "input": {
            "name": name, "bytes": bytes, "sha256": hash, "format": format, "rows": m, "cols": n, "stored": stored,
        },
    });
    record["plan"] = json!(method(&report.plan, choice));
    // Every other parameter under its own name; those of the sketch only where there was one.
    if let (Some(record), Value::Object(rest)) = (record.as_object_mut(), serde_json::to_value(settings)?) {
        for (name, value) in rest {
            record.entry(name).or_insert(value);
        }
        for name in ["sketch", "sketch_cols", "sketch_rows", "solver", "alpha", "beta", "step"] {
            if !sketched {
                record[name] = Value::Null;
            }
        }
    }
    Ok(record)
}

fn write<T: Real>(
    args: &FactorizeArgs,
    result: &Factorization<T>,
    record: &Value,
    (row_labels, col_labels): &input::Labels,
    frames: Option<&Kept<T>>,
) -> Result<()> {
    let (row_labels, col_labels) = (row_labels.as_deref(), col_labels.as_deref());
    let Factors { rows, cols, k, u, v } = &result.factors;
    let staging = output::Staging::from_results(args.init_from.as_deref(), &args.out)?;
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
    if let Some(Kept { numbers, size, values }) = frames {
        staging.write("frames.npy", |file| io::npy::write(file, numbers.len(), *size, values))?;
    }
    staging.write("trace.csv", |file| {
        let seconds = if record["clock"] == "virtual" { "virtual_seconds" } else { "seconds" };
        let others = result.report.trace.first().map_or(0, |line| line.elsewhere.len());
        let others: String = (2..others + 2).map(|network| format!(",{seconds}_{network}")).collect();
        writeln!(file, "iteration,{seconds},relative_error,bytes_sent{others}")?;
        for line in &result.report.trace {
            let TraceLine { iteration, seconds, relative_error, bytes_sent, elsewhere } = line;
            let others: String = elsewhere.iter().map(|seconds| format!(",{seconds:.6}")).collect();
            writeln!(file, "{iteration},{seconds:.6},{relative_error:.9},{bytes_sent}{others}")?;
        }
        Ok(())
    })?;
    staging.write("run.json", |file| writeln!(file, "{record:#}"))?;
    staging.commit()
}
