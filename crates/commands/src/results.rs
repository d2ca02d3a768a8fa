//! Writes the results of a factorization: factors, labels, the error curve, `run.json`, the page and the final
//! messages.

use std::path::PathBuf;

use anyhow::Result;
use partwise::Real;
use partwise::comm::Network;
use partwise::io::{self, ImageShape};
use partwise::pipeline::{self, Facts, Finished};
use partwise::run::record::{
    Clock, FactorizationRecord, RUN_FILE, ReadingRecord, RunKind, RunRecord, SumOrder, Transport,
};
use partwise::run::{self, Factorization, Factors, RankReport, Report, Stop};
use partwise::wording::many;
use serde_json::json;

use crate::args::FactorizeArgs;
use crate::checkpoint::Checkpoint;
use crate::console::Console;
use crate::context::Context;
use crate::input;
use crate::launch::Sums;
use crate::report::{self, Kept};
use crate::warnings::Warnings;

/// What is known about a run in addition to its result.
pub struct Results<'a, T> {
    pub args: &'a FactorizeArgs,
    pub context: &'a Context,
    pub checkpoint: &'a Checkpoint,
    /// The warnings so far.
    pub warnings: Warnings,
    /// The image size of a row or column.
    pub image: Option<ImageShape>,
    /// Original images for the page.
    pub frames: Option<Kept<T>>,
    /// The hash of the input.
    pub sha256: String,
    /// The peak memory of each process of an MPI job.
    pub peaks: Option<Vec<u64>>,
}

impl<T: Real> Results<'_, T> {
    /// Writes everything and prints the final messages.
    pub fn write(mut self, finished: Finished<T>) -> Result<()> {
        self.warnings.zero(&finished.result.factors, &finished.plan.settings);
        let mut record = self.record(&finished);
        let Results { args, context, checkpoint, warnings, frames, .. } = self;
        record.summary.warnings = warnings.into_sentences();
        let clock = args.network.first().filter(|_| record.summary.clock == Clock::Virtual);
        let error = finished.result.report.relative_error;
        let record = RunRecord::new(error, RunKind::Factorization(Box::new(record)));
        write_files(args, context, &finished, &record, frames.as_ref())?;
        // The page is made from the files, so the factors are freed first.
        let Finished { result: Factorization { factors, report, errors }, facts, .. } = finished;
        drop((factors, facts, frames));
        report::after_run(context, &args.out, !args.no_report);
        let unfinished = matches!(report.stopped_by, Stop::Interrupted | Stop::TimeLimit);
        if checkpoint.active() && !unfinished {
            checkpoint.remove();
        }
        if args.json {
            let mut line = json!({ "event": "result" });
            if let Some(line) = line.as_object_mut() {
                line.extend(record.to_map());
            }
            context.console.answer(&line.to_string())?;
        } else if !args.quiet {
            conclude(args, context.console, &report, &errors, clock);
        }
        Ok(())
    }

    /// The content of `run.json`: the outcome, and everything needed to repeat the run.
    fn record(&self, finished: &Finished<T>) -> FactorizationRecord {
        let args = self.args;
        let mut record = pipeline::record(finished);
        // Lossy, because serde only serializes paths in UTF-8.
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        record.method.init_from = text(&args.init_from);
        record.reading = ReadingRecord {
            transpose: args.read.transpose,
            header: args.read.header,
            row_names: args.read.row_names,
            row_labels: text(&args.labels.row_labels),
            col_labels: text(&args.labels.col_labels),
            missing: args.known.missing.as_ref().map(ToString::to_string),
            weights: text(&args.known.weights),
        };
        record.input.name = args.file.file_name().map(|name| name.to_string_lossy().into_owned());
        record.input.bytes = input::bytes(&args.file);
        record.input.sha256 = self.sha256.clone();
        record.tsv = args.tsv;
        record.image = self.image;
        record.records = args.records.or_else(|| Some(record.samples()));
        record.frames = self.frames.as_ref().map_or(Vec::new(), |frames| frames.numbers.clone());
        // Recorded even where it only influenced `auto`.
        let networks: Vec<String> = args.network.iter().map(Network::to_string).collect();
        record.machine.network = Some(networks).filter(|networks| !networks.is_empty());
        if let Some(peaks) = &self.peaks {
            record.machine.transport = Some(Transport::Mpi);
            record.machine.reduction = Some(match args.reduction {
                Sums::Native => SumOrder::Native,
                Sums::Ordered => SumOrder::Ordered,
            });
            for (rank, &peak) in record.summary.ranks.iter_mut().zip(peaks) {
                rank.peak_memory = Some(peak);
            }
        }
        record
    }
}

/// Writes all files of the folder, or none.
fn write_files<T: Real>(
    args: &FactorizeArgs,
    context: &Context,
    finished: &Finished<T>,
    record: &RunRecord,
    frames: Option<&Kept<T>>,
) -> Result<()> {
    let Facts { row_labels, col_labels, .. } = &finished.facts;
    let (row_labels, col_labels) = (row_labels.as_deref(), col_labels.as_deref());
    let Factors { rows, cols, k, u, v } = &finished.result.factors;
    let staging = context.outputs.folder_from(args.init_from.as_deref(), &args.out)?;
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
    let clock = if record.has_virtual_clock() { "virtual_seconds" } else { "seconds" };
    staging.write("trace.csv", |file| run::write_trace(file, &finished.result.report.trace, clock))?;
    staging.write(RUN_FILE, |file| record.write(file))?;
    staging.commit()
}

fn conclude(
    args: &FactorizeArgs,
    console: Console,
    outcome: &Report,
    errors: &[f64],
    clock: Option<&Network>,
) {
    if !outcome.redrawn.is_empty() {
        let times = match outcome.redrawn.len() {
            1 => "1 dead component was".to_string(),
            count => format!("{count} dead components were"),
        };
        console.tell(&format!("{times} redrawn; run.json lists them"));
    }
    if errors.len() > 1 {
        console.tell(&format!("best of {} runs: seed {}", errors.len(), outcome.seed));
    }
    let clock = clock.map_or(String::new(), |network| format!(" on the virtual clock of {network}"));
    let why = match outcome.stopped_by {
        Stop::Iterations => "maximum number of iterations".to_string(),
        Stop::Tolerance => format!("converged, relative change below {:e}", args.tolerance),
        Stop::TargetError => "target error reached".into(),
        Stop::TimeLimit => "time limit reached".into(),
        Stop::Interrupted => "interrupted".into(),
    };
    console.tell(&format!(
        "relative error {:.6} after {} and {:.2} s{clock} ({why})",
        outcome.relative_error,
        many(outcome.iterations, "iteration"),
        outcome.seconds
    ));
    if let Some(held) = outcome.held_out {
        console.tell(&format!("held-out entries: loss {:.6e}, RMSE {:.6}", held.loss, held.rmse));
    }
    table(console, &outcome.ranks);
    console.tell(&report::where_it_is(&args.out));
}

/// Prints the time that each process spent in each phase, if there are several processes.
fn table(console: Console, ranks: &[RankReport]) {
    if ranks.len() < 2 {
        return;
    }
    console.tell("seconds/process:  product    solve   sketch  gather  scatter   reduce     all   MiB sent");
    for (rank, report) in ranks.iter().enumerate() {
        let RankReport { seconds, phases, method, .. } = report;
        console.tell(&format!(
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
