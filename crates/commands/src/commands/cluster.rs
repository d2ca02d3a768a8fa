//! `partwise factorize` as one rank of an MPI job: each rank reads its own part, rank 0 talks and writes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use partwise::Real;
use partwise::comm::{Comm, Numbers, Reduction, gather_all};
use partwise::error::Error;
use partwise::grid::{Factor, Grid, Placement};
use partwise::matrix::{Dominant, Matrix};
use partwise::partition::{Access, Block, Shard};
use partwise::run::{Algorithm, Factors, Monitor, Plan, Progress, Settings, StartFrom, factorize_on};
use serde_json::{Value, json};

use super::factorize::{self, Announce, Ending, Watch};
use crate::args::FactorizeArgs;
use crate::checkpoint::{self, Checkpoint};
use crate::choose::{self, Choice, Entries};
use crate::parts::{self, Source};
use crate::progress::Display;
use crate::warnings::Warnings;
use crate::{folder, input, interrupt, launch, machine, output, say};

/// An error that every rank knows of: rank 0 says it, and nobody waits for anybody.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Agreed(pub String);

/// Time that the process manager gets to end a rank whose peers are gone, before that rank speaks for itself.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a rank has read.
struct Input<T> {
    shard: Shard<T>,
    format: String,
    /// The largest entry that this rank has.
    largest: f64,
    /// The squared norms of all rows and then of all columns of M.
    squares: Vec<f64>,
}

pub fn run<T: Real>(args: &FactorizeArgs, comm: &dyn Comm) -> Result<()> {
    let chief = comm.rank() == 0;
    let mut settings = args.settings();
    let threads = agree(comm, prepare(args, &settings, comm, chief))?;
    let source = agree(comm, parts::open(&args.file, comm.size()))?;
    let print = agree(comm, source.fingerprint())?;
    agree(comm, same_file(comm, &print, &args.file))?;
    let stop = interrupt::stop_after_iteration(true)?;
    // Rank 0 alone reads all of the file, without keeping it.
    let hash = chief.then(|| source.hash_in_background());

    let mut input = read_all::<T>(args, &settings, comm, &source)?;
    let choice = agree(comm, choose::<T>(args, &settings, comm, &input.shard))?;
    if let Some(choice) = &choice {
        choice.apply(&mut settings);
        if settings.algorithm == Algorithm::Dsanls {
            // It needs other parts of the matrix.
            drop(input);
            input = read_all::<T>(args, &settings, comm, &source)?;
        }
    }
    let Input { shard, format, largest, squares } = input;
    let place = shard.place;
    let (m, n) = (place.rows, place.cols);
    let mut largest = [largest];
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut largest))?;
    agree(comm, input::check_largest::<T>(&args.file, largest[0]).map_err(Into::into))?;

    let auto = Plan::of(m, n, shard.stored, settings.rank);
    agree(comm, choose::check_samples(args, &auto, false))?;
    let image = agree(comm, input::picture(&args.shape, (m, n), None, args.read.images, args.records))?;
    let hash =
        hash.map(|thread| thread.join().map_err(|_| anyhow!("hashing {} failed", args.file.display()))?);
    let hash = agree(comm, hash.transpose())?.unwrap_or_default();
    let hash = String::from_utf8_lossy(&comm.broadcast(hash.into_bytes())?).into_owned();
    let mut watch = Watch {
        display: Display::new(&settings, args.quiet || !chief, args.json && chief),
        settings: &settings,
        stop,
        checkpoint: Checkpoint::new(args, hash.clone()),
        announce: None,
    };
    let (start, labels, snapshot) = agree(comm, beside(args, &settings, &watch.checkpoint, (m, n), chief))?;
    let talk = chief && !args.quiet && !args.json;
    if talk {
        watch.announce = Some(introduce(args, &shard, &format, choice.clone(), (comm.size(), threads)));
        factorize::tell_resumed(snapshot.as_ref(), &watch.checkpoint);
    }
    let mut warnings = Warnings::new(args.quiet);
    warnings.rank(&settings, (m, n));
    let (rows, cols) = squares.split_at(m);
    warnings.dominant((Dominant::among(rows), Dominant::among(cols)), &labels);

    let from = snapshot.as_ref().map(StartFrom::Snapshot).or(start.as_ref().map(StartFrom::Factors));
    let monitor: &mut dyn Monitor<T> = if chief { &mut watch } else { &mut |_: &Progress| false };
    let result = factorize_on(comm, &shard, threads, &settings, from, monitor);
    let result = result.map_err(|error| match error {
        // The error is the same number on every rank.
        diverged @ Error::Diverged { .. } => {
            Agreed(factorize::explain::<T>(diverged, args).to_string()).into()
        }
        error => local(comm, error),
    })?;
    watch.display.finish();
    let (stored, stopped_by) = (shard.stored, result.report.stopped_by);
    drop(shard);
    let peaks = gather_all(comm, &[machine::peak_memory()])?;
    let ending = Ending {
        args,
        settings: &settings,
        threads,
        facts: (m, n, stored, &format, hash),
        labels,
        image,
        frames: None,
        given: start.is_some(),
        choice: choice.as_ref(),
        checkpoint: &watch.checkpoint,
        warnings,
    };
    let note = |record: &mut Value| note_ranks(record, comm.size(), place.grid, &settings, args, &peaks);
    agree(comm, if chief { ending.write(result, note) } else { Ok(()) })?;
    interrupt::ended(stopped_by)
}

/// What can be wrong before any file is read.
fn prepare(args: &FactorizeArgs, settings: &Settings, comm: &dyn Comm, chief: bool) -> Result<usize> {
    settings.check(usize::MAX, usize::MAX)?;
    if args.nodes > 1 {
        bail!(
            "--nodes: these are ranks within one process, and mpirun has started {} already; leave it out",
            comm.size()
        );
    }
    if args.network.len() > 1 {
        bail!("--network: the ranks of MPI are on one network, and clocks are real; give one at most");
    }
    if args.memory.is_some() {
        bail!("--memory: ranks of MPI hold their parts of the matrix; leave it out, or add nodes");
    }
    settings.grid(args.grid, (1, 1), comm.size())?;
    let local = launch::launched().map_or(1, |launched| launched.local);
    let threads = factorize::threads(args, local)?;
    if chief {
        output::check_folder(&args.out, args.force)?;
        checkpoint::check(args)?;
    }
    Ok(threads)
}

/// Refuses to begin if a rank sees another file under that name.
pub fn same_file(comm: &dyn Comm, print: &[u8], path: &Path) -> Result<()> {
    let prints = comm.all_gather(print)?;
    match prints.iter().position(|print| *print != prints[0]) {
        None => Ok(()),
        Some(rank) => bail!(
            "{}: rank {rank} sees another file there than rank 0; put it on a file system that all machines share, or copy \
             the same file to each",
            path.display()
        ),
    }
}

/// Reads this rank's part of the matrix.
fn read<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    comm: &dyn Comm,
    source: &Source,
) -> Result<Input<T>> {
    let place = |m: usize, n: usize| -> partwise::Result<Placement> {
        settings.check(m, n)?;
        let grid = settings.grid(args.grid, (m, n), comm.size())?;
        let access = settings.algorithm.access();
        Ok(Placement { rows: m, cols: n, grid, rank: comm.rank(), access })
    };
    let (place, mut blocks, format) = source.read::<T>(&args.read, &place)?;
    let stored = blocks[0].stored();
    let largest = blocks.iter().map(Matrix::largest).fold(0.0, f64::max);
    // The first blocks of all ranks together are M.
    let (own_rows, own_cols) = place.block(Factor::U);
    let (of_rows, of_cols) = blocks[0].squared_norms();
    let mut squares = vec![0.0; place.rows + place.cols];
    squares[own_rows].copy_from_slice(&of_rows);
    squares[place.rows..][own_cols].copy_from_slice(&of_cols);
    let columns = (blocks.len() > 1).then(|| blocks.remove(1));
    // The factors gathered whole, for the result and for checkpoints, and the other's rows during a step.
    let (m, n) = (place.rows as u64, place.cols as u64);
    let factors = (m + n).saturating_mul(settings.rank as u64).saturating_mul(3 * T::PRECISION.bytes());
    input::check_memory("a rank's work on its part", factors)?;
    Ok(Input { shard: Shard::new(place, stored, blocks.remove(0), columns), format, largest, squares })
}

/// The same, once all ranks have read theirs, with the entries of all.
fn read_all<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    comm: &dyn Comm,
    source: &Source,
) -> Result<Input<T>> {
    let mut input = agree(comm, read::<T>(args, settings, comm, source))?;
    let mut totals = [input.shard.stored as f64];
    comm.all_reduce(Reduction::Sum, Numbers::F64(&mut totals))?;
    input.shard.stored = totals[0] as usize;
    comm.all_reduce(Reduction::Sum, Numbers::F64(&mut input.squares))?;
    Ok(input)
}

/// What `auto` chooses, by rank 0's constants: those of other machines may differ.
fn choose<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    comm: &dyn Comm,
    shard: &Shard<T>,
) -> Result<Option<Choice>> {
    if !choose::is_open(args, settings, comm.size()) {
        return Ok(None);
    }
    let entries = match &shard.by_rows {
        Block::Dense(block) => Entries::of(&block.values),
        _ => Entries::Sparse(shard.stored),
    };
    let sizes = (shard.rows, shard.cols, entries);
    let chosen = match comm.rank() {
        0 => choose::choose(args, settings, sizes, (comm.size(), T::PRECISION), true),
        _ => Ok(None),
    };
    let chosen = agree(comm, chosen)?;
    let word = chosen.as_ref().map_or(Vec::new(), |choice| {
        let sketched = u8::from(choice.algorithm == Algorithm::Dsanls);
        [&[sketched, u8::from(choice.samples)], choice.why.as_bytes()].concat()
    });
    let word = comm.broadcast(word)?;
    Ok(word.split_first_chunk().map(|(&[sketched, samples], why)| Choice {
        algorithm: if sketched == 1 { Algorithm::Dsanls } else { Algorithm::Auto },
        samples: samples == 1,
        why: String::from_utf8_lossy(why).into_owned(),
    }))
}

type Beside<T> = (Option<Factors<T>>, input::Labels, Option<partwise::run::Snapshot<T>>);

/// Given factors, labels and the checkpoint: what else a run begins with.
fn beside<T: Real>(
    args: &FactorizeArgs,
    settings: &Settings,
    checkpoint: &Checkpoint,
    (m, n): (usize, usize),
    chief: bool,
) -> Result<Beside<T>> {
    // Every rank puts given factors into the order of the labels, and rank 0 writes these.
    let needed = chief || args.init_from.is_some();
    let labels = if needed { input::labels(&args.read, &args.labels, (m, n))? } else { (None, None) };
    let mut start = None;
    if let Some(dir) = &args.init_from {
        let mut folder = folder::read::<T>(dir)?;
        folder.match_names(dir, &args.file, (labels.0.as_deref(), labels.1.as_deref()))?;
        folder.check(dir, &args.file, (m, n), Some(settings.rank))?;
        start = Some(folder.factors);
    }
    let snapshot = if args.resume { checkpoint.read::<T>()? } else { None };
    if let Some(snapshot) = &snapshot {
        snapshot.check(settings, m, n)?;
    }
    if chief {
        let entries = (m as u64 + n as u64).saturating_mul(settings.rank as u64);
        output::check_room(&args.out, entries.saturating_mul(T::PRECISION.bytes()))?;
    }
    Ok((start, labels, snapshot))
}

/// Says what was read, and returns what says how it is computed once the run has a plan.
fn introduce<T: Real>(
    args: &FactorizeArgs,
    shard: &Shard<T>,
    format: &str,
    choice: Option<Choice>,
    (size, threads): (usize, usize),
) -> Announce {
    let Placement { rows, cols, grid, access, .. } = shard.place;
    say::tell(&format!("{}: {rows} x {cols}, {format}, each rank with its own part", args.file.display()));
    let arranged = if access == Access::Whole { format!(" as {grid}") } else { String::new() };
    let rank = args.rank;
    Box::new(move |plan| {
        let method = factorize::method(plan, choice.as_ref());
        say::tell(&format!("{method}, rank {rank}, MPI ranks {size}{arranged}, threads a rank {threads}"));
    })
}

/// What `run.json` says of the ranks beside what every run's does.
fn note_ranks(
    record: &mut Value,
    size: usize,
    grid: Grid,
    settings: &Settings,
    args: &FactorizeArgs,
    peaks: &[u64],
) {
    record["transport"] = json!("mpi");
    record["clock"] = json!("real");
    record["nodes"] = json!(size);
    record["reduction"] = json!(args.reduction);
    note_grid(record, settings, grid);
    for (rank, &peak) in peaks.iter().enumerate() {
        record["ranks"][rank]["peak_memory"] = json!(peak);
    }
}

/// How the ranks of an exact method stood.
pub fn note_grid(record: &mut Value, settings: &Settings, grid: Grid) {
    let exact = settings.algorithm.access() == Access::Whole;
    record["grid"] = if exact { json!(grid.to_string()) } else { Value::Null };
}

/// The result where all ranks have one; else the first rank's error, on every rank.
pub fn agree<R>(comm: &dyn Comm, result: Result<R>) -> Result<R> {
    let own = result.as_ref().err().map_or(String::new(), ToString::to_string);
    let all = comm.all_gather(own.as_bytes()).map_err(|error| local(comm, error))?;
    match (all.iter().find(|message| !message.is_empty()), result) {
        (None, Ok(value)) => Ok(value),
        (Some(message), _) => Err(Agreed(String::from_utf8_lossy(message).into_owned()).into()),
        (None, Err(error)) => Err(error),
    }
}

/// An error of this rank alone. One that another rank's end has caused is not worth a word unless that rank's message
/// never came: the process manager ends this rank meanwhile.
pub fn local(comm: &dyn Comm, error: Error) -> anyhow::Error {
    if let Error::Transport { .. } | Error::RankLost { .. } = error {
        std::thread::sleep(PATIENCE);
    }
    match error {
        error @ (Error::Transport { .. } | Error::RankLost { .. } | Error::Protocol { .. }) => error.into(),
        error => anyhow!("rank {}: {error}", comm.rank()),
    }
}
