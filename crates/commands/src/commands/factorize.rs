//! `partwise factorize`: from a file to factors, in one process or as one process of an MPI job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use partwise::comm::Comm;
use partwise::error::Error;
use partwise::io::ImageShape;
use partwise::matrix::{Dominants, Shape};
use partwise::partition::Access;
use partwise::pipeline::{self, Facts, MissingEntries, Opened, Planned, RunPlan, Source, Start};
use partwise::run::{Directive, Monitor, Progress, Settings, Snapshot, headline};
use partwise::wording::many;
use partwise::{Precision, Real};

use super::cluster::{Agreed, Team, same_file};
use crate::args::FactorizeArgs;
use crate::checkpoint::{self, Checkpoint};
use crate::context::Context;
use crate::folder::{self, Folder, Names};
use crate::parts::{self, PartReader, PartedInput};
use crate::progress::Display;
use crate::report::{self, Kept};
use crate::results::Results;
use crate::warnings::Warnings;
use crate::{input, interrupt, output, request};

pub fn run(args: &FactorizeArgs, context: &Context, comm: Option<&dyn Comm>) -> Result<()> {
    let team = Team::new(comm);
    match args.precision {
        Precision::F32 => run_in::<f32>(args, context, team),
        Precision::F64 => run_in::<f64>(args, context, team),
    }
}

fn run_in<T: Real>(args: &FactorizeArgs, context: &Context, team: Team<'_>) -> Result<()> {
    // Errors that do not depend on the matrix are reported before it is read.
    let request = team.agree(prepare(args, team))?;
    let given = team.agree(args.init_from.as_deref().map(folder::read::<T>).transpose())?;
    let parted = team.comm().map(|comm| open_parts(args, team, comm)).transpose()?;
    let stop = interrupt::stop_after_iteration(context, args.quiet || team.comm().is_some())?;
    let hash = team.is_chief().then(|| hash_in_background(args, parted.as_ref()));

    let reader = parted.as_ref().map(|input| PartReader { input, transpose: args.read.transpose });
    let file = request::file(args, &team);
    let source = match (team.comm(), &reader) {
        (Some(comm), Some(reader)) => Source::Part { comm, reader, file },
        _ => Source::File(file),
    };
    let opened = pipeline::open::<T>(source, request).map_err(|error| team.failed(error))?;
    let found = team.agree(Found::of(args, &opened))?;
    let sha256 = hashed(args, team, hash)?;
    let checkpoint = Checkpoint::new(&context.outputs, args, sha256.clone());
    let start = team.agree(start(args, team, opened.facts(), given, &checkpoint))?;
    let planned = pipeline::plan(opened, start).map_err(|error| team.failed(error))?;

    let mut warnings = Warnings::new(context.console, args.quiet);
    let announce = introduce(args, context, team, &planned, &found.place, &checkpoint);
    warn(&mut warnings, args, &planned, found.dominant);
    let settings = Settings::clone(&planned.plan().settings);
    let (quiet, json) = (args.quiet || !team.is_chief(), args.json && team.is_chief());
    let display = Display::new(context.console, &settings, quiet, json);
    let mut watch = Watch { display, settings, stop, checkpoint, announce };
    let nobody = &mut |_: &Progress| false;
    let monitor: &mut dyn Monitor<T> = if team.is_chief() { &mut watch } else { nobody };
    let finished = pipeline::run(planned, monitor).map_err(|error| explain::<T>(error, args, team))?;
    watch.display.finish();

    let Found { image, frames, .. } = found;
    let stopped_by = finished.result.report.stopped_by;
    let peaks = team.peak_memory()?;
    let results =
        Results { args, context, checkpoint: &watch.checkpoint, warnings, image, frames, sha256, peaks };
    team.agree(if team.is_chief() { results.write(finished) } else { Ok(()) })?;
    interrupt::ended(stopped_by)
}

/// Checks what can be wrong before any file is read.
fn prepare(args: &FactorizeArgs, team: Team<'_>) -> Result<pipeline::Request> {
    let request = request::request(args, &team)?;
    if team.is_chief() {
        output::check_folder(&args.out, args.force)?;
        checkpoint::check(args)?;
    }
    Ok(request)
}

/// Opens the file that all processes of a job share, or the folder of their parts.
fn open_parts(args: &FactorizeArgs, team: Team<'_>, comm: &dyn Comm) -> Result<PartedInput> {
    let input = team.agree(parts::open(&args.file, comm.size()))?;
    let print = team.agree(input.fingerprint())?;
    team.agree(same_file(comm, &print, &args.file))?;
    let mask = match &args.known.missing {
        Some(MissingEntries::Mask(path)) => Some(path),
        _ => None,
    };
    for path in mask.into_iter().chain(&args.known.weights) {
        let print = team.agree(PartedInput::File(path.clone()).fingerprint())?;
        team.agree(same_file(comm, &print, path))?;
    }
    Ok(input)
}

/// Only process 0 reads the whole file, without keeping it.
fn hash_in_background(args: &FactorizeArgs, parted: Option<&PartedInput>) -> JoinHandle<Result<String>> {
    let file = args.file.clone();
    match parted {
        None => std::thread::spawn(move || Ok(input::sha256(&file)?)),
        Some(parted) => parted.hash_in_background(),
    }
}

/// The hash of the input, on every process.
fn hashed(args: &FactorizeArgs, team: Team<'_>, hash: Option<JoinHandle<Result<String>>>) -> Result<String> {
    let hash =
        hash.map(|thread| thread.join().map_err(|_| anyhow!("hashing {} failed", args.file.display()))?);
    team.share(team.agree(hash.transpose())?.unwrap_or_default())
}

/// What is taken from a matrix before the run consumes it.
struct Found<T> {
    /// Where the matrix is, in words.
    place: String,
    /// The image size of a row or column.
    image: Option<ImageShape>,
    /// Original images for the page.
    frames: Option<Kept<T>>,
    /// The row and the column that dominate.
    dominant: Dominants,
}

impl<T: Real> Found<T> {
    fn of(args: &FactorizeArgs, opened: &Opened<'_, T>) -> Result<Self> {
        let Facts { rows, cols, image, .. } = *opened.facts();
        let image = input::picture(&args.shape, Shape { rows, cols }, image, args.read.images, args.records)?;
        let frames = opened.matrix().and_then(|matrix| report::kept(matrix, image));
        let place = match (opened.matrix(), opened.streamed()) {
            (Some(matrix), _) => format!("{} in memory", input::size(matrix.bytes())),
            (None, Some(streamed)) => format!(
                "streamed by {}, {} blocks of up to {}",
                if streamed.stream().by_columns() { "columns" } else { "rows" },
                streamed.blocks(),
                input::size(streamed.block_bytes())
            ),
            (None, None) if opened.facts().unknown.is_some() => {
                format!("{} known entries in memory", opened.facts().stored)
            }
            (None, None) => "one part per process".into(),
        };
        Ok(Found { place, image, frames, dominant: opened.dominant() })
    }
}

/// The starting point of the run: the factors of an earlier run, in the order of this matrix, or its own
/// checkpoint.
fn start<T: Real>(
    args: &FactorizeArgs,
    team: Team<'_>,
    facts: &Facts,
    given: Option<Folder<T>>,
    checkpoint: &Checkpoint,
) -> Result<Start<T>> {
    let shape = facts.shape();
    let mut start = Start::default();
    if let (Some(mut folder), Some(dir)) = (given, &args.init_from) {
        let names = Names { rows: facts.row_labels.as_deref(), cols: facts.col_labels.as_deref() };
        folder.match_names(dir, &args.file, names)?;
        folder.check(dir, &args.file, shape, Some(args.rank))?;
        start.factors = Some(folder.factors);
    }
    if args.resume {
        start.snapshot = checkpoint.read::<T>()?;
    }
    if team.is_chief() {
        let entries = (shape.rows as u64 + shape.cols as u64).saturating_mul(args.rank as u64);
        output::check_room(&args.out, entries.saturating_mul(T::PRECISION.bytes()))?;
    }
    Ok(start)
}

/// Prints what was read, and returns a closure that prints the method once the run has started.
fn introduce<T: Real>(
    args: &FactorizeArgs,
    context: &Context,
    team: Team<'_>,
    planned: &Planned<'_, T>,
    place: &str,
    checkpoint: &Checkpoint,
) -> Option<Announce> {
    if args.quiet || args.json || !team.is_chief() {
        return None;
    }
    let Facts { name, rows, cols, format, .. } = planned.facts();
    let console = context.console;
    console.tell(&format!("{name}: {rows} x {cols}, {format}, {place}"));
    if let Some(iteration) = planned.resumed_from() {
        console.tell(&format!("resuming from iteration {iteration} in {}", checkpoint.path().display()));
    }
    let plan = planned.plan().clone();
    let workers = workers(&plan, team);
    let components = many(plan.settings.rank, "component");
    Some(Box::new(move |method| {
        let described = plan.describe(method);
        console.tell(&format!("{}, {components}, {workers}", headline(&described)));
    }))
}

/// The workers or processes and their threads, in words.
fn workers(plan: &RunPlan, team: Team<'_>) -> String {
    let nodes = plan.machine.nodes;
    let threads = many(plan.machine.threads, "thread");
    if team.comm().is_none() {
        return if nodes == 1 { threads } else { format!("{nodes} workers with {threads} each") };
    }
    let arranged = match plan.settings.access() {
        Access::Whole => format!(" as {}", plan.grid),
        Access::Sampled | Access::Lines => String::new(),
    };
    let processes = if nodes == 1 { "1 MPI process".into() } else { format!("{nodes} MPI processes") };
    format!("{processes}{arranged} with {threads} each")
}

/// Prints what a user should know before the run starts.
fn warn<T: Real>(
    warnings: &mut Warnings,
    args: &FactorizeArgs,
    planned: &Planned<'_, T>,
    dominant: Dominants,
) {
    let Facts { unknown, assumptions, row_labels, col_labels, .. } = planned.facts();
    warnings.rank(&planned.plan().settings, planned.facts().shape());
    warnings.unknown(*unknown);
    warnings.assumptions(&args.file, assumptions);
    warnings.dominant(dominant, Names { rows: row_labels.as_deref(), cols: col_labels.as_deref() });
}

/// Shows progress, listens for Ctrl-C and saves checkpoints.
struct Watch {
    display: Display,
    settings: Settings,
    stop: Arc<AtomicUsize>,
    checkpoint: Checkpoint,
    /// Prints the description of the method.
    announce: Option<Announce>,
}

type Announce = Box<dyn Fn(&str) + Send>;

impl<T: Real> Monitor<T> for Watch {
    fn started(&mut self, plan: &str) {
        if let Some(announce) = &self.announce {
            announce(plan);
        }
    }

    fn progress(&mut self, progress: &Progress) -> Directive {
        self.display.show(progress, &self.settings);
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

/// The message for an overflow, with the advice that applies to this run.
fn explain<T: Real>(error: Error, args: &FactorizeArgs, team: Team<'_>) -> anyhow::Error {
    let Error::Diverged { iteration } = error else { return team.failed(error) };
    let precision = match T::PRECISION {
        Precision::F32 => "use --precision f64 or ",
        Precision::F64 => "",
    };
    let alpha = if args.algorithm.uses("alpha") { ", or raise --alpha" } else { "" };
    let sentence = format!(
        "{}: the factors overflowed {} at iteration {iteration}; {precision}rescale the matrix{alpha}",
        args.file.display(),
        match T::PRECISION {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    );
    match team.comm() {
        None => anyhow!(sentence),
        // The error has the same iteration on every process.
        Some(_) => Agreed(sentence).into(),
    }
}
