//! Runs a factorization: from a builder and a matrix to a model.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use partwise_core::Error as CoreError;
use partwise_core::cancel::Cancel;
use partwise_core::matrix::{Holdout, Observed as CoreObserved, ObservedRow};
use partwise_core::pipeline::{
    self, FileSource, Finished, MissingEntries, SharedMatrix, Source as CoreSource, Start,
};
use partwise_core::run::record::ReadingRecord;
use partwise_core::run::{Directive, Factors, Monitor, Progress as CoreProgress, Settings, Snapshot};

use crate::error::{Error, Result};
use crate::matrix::{Float, Lent, Matrix, Observed};
use crate::model::Model;
use crate::nmf::{self, Nmf};
use crate::observe::{Observer, Progress};
use crate::options::Every;
use crate::read::Reader;

/// What [`Nmf::fit`] takes: a matrix in memory, what is known of one, or a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A matrix in memory.
    Matrix(&'a Matrix<'a>),
    /// A matrix in memory of which not every entry is known, or counts once.
    Observed(&'a Observed<'a>),
    /// A file.
    File(&'a Reader),
}

impl<'a> From<&'a Matrix<'a>> for Source<'a> {
    fn from(matrix: &'a Matrix<'a>) -> Self {
        Source::Matrix(matrix)
    }
}

impl<'a> From<&'a Observed<'a>> for Source<'a> {
    fn from(observed: &'a Observed<'a>) -> Self {
        Source::Observed(observed)
    }
}

impl<'a> From<&'a Reader> for Source<'a> {
    fn from(reader: &'a Reader) -> Self {
        Source::File(reader)
    }
}

/// Entries in memory, in the type that is computed in.
pub(crate) enum Entries<T> {
    /// All of a matrix.
    All(Lent<T>),
    /// The known ones.
    Known(CoreObserved<T>),
}

impl<T: Float> Entries<T> {
    /// The entries of a matrix, checked; `observed` says what is known of them.
    pub fn of(matrix: &Matrix<'_>, observed: Option<&Observed<'_>>, cancel: &Cancel) -> Result<Self> {
        if let Some(known) = observed.map(|observed| observed.observe(cancel)).transpose()?.flatten() {
            return Ok(Entries::Known(known));
        }
        let lent = matrix.lend::<T>();
        lent.check(matrix)?;
        Ok(Entries::All(lent))
    }
}

pub(crate) fn fit<T: Float>(nmf: &Nmf, source: Source<'_>, observer: &mut dyn Observer) -> Result<Model> {
    let incomplete = match &source {
        Source::Matrix(_) => false,
        Source::Observed(_) => true,
        Source::File(reader) => reader.source().missing.is_some() || reader.source().weights.is_some(),
    };
    let reading = reading(&source);
    // What is wrong with the parameters is said before anything is read.
    nmf.request(incomplete)?;
    let cancel = nmf.cancel.0.clone();
    let mut model = cancel.scope(|| match source {
        Source::Matrix(matrix) => fit_entries::<T>(nmf, matrix, None, observer),
        Source::Observed(observed) => fit_entries::<T>(nmf, observed.matrix(), Some(observed), observer),
        Source::File(reader) => {
            let start = start::<T>(nmf)?;
            let file = reader.source().clone();
            let note = if nmf.checkpoint.is_some() { fingerprint_of_source(&file)? } else { String::new() };
            let opened = pipeline::open(CoreSource::File(file), nmf.request(incomplete)?)?;
            Ok(Model::new(run(nmf, opened, start, &note, observer)?))
        }
    })?;
    model.describe(reading, nmf.records, nmf.image_shape)?;
    Ok(model)
}

/// What the record of a run says of its source.
fn reading(source: &Source<'_>) -> ReadingRecord {
    let name = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    match source {
        Source::Matrix(_) => ReadingRecord::default(),
        Source::Observed(observed) => {
            let missing = observed.says_missing().map(|missing| missing.entries().to_string());
            ReadingRecord { missing, ..ReadingRecord::default() }
        }
        Source::File(reader) => {
            let FileSource { options, transpose, row_labels, col_labels, missing, weights, .. } =
                reader.source();
            ReadingRecord {
                transpose: *transpose,
                header: options.header,
                row_names: options.row_names,
                row_labels: name(row_labels),
                col_labels: name(col_labels),
                missing: missing.as_ref().map(ToString::to_string),
                weights: name(weights),
            }
        }
    }
}

/// Factorizes what is in memory.
fn fit_entries<T: Float>(
    nmf: &Nmf,
    matrix: &Matrix<'_>,
    observed: Option<&Observed<'_>>,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let (start, cancel) = (start::<T>(nmf)?, &nmf.cancel.0);
    let mut entries = Entries::<T>::of(matrix, observed, cancel)?;
    let note = if nmf.checkpoint.is_some() { fingerprint(&entries) } else { String::new() };
    let request = nmf.request(matches!(entries, Entries::Known(_)))?;
    if let Some(share) = nmf.settings.holdout {
        let holdout = Holdout { share, seed: nmf.settings.seed };
        let known = if let Entries::Known(known) = &entries { Some(known) } else { None };
        entries = Entries::Known(matrix.hold_out(known, holdout, cancel)?);
    }
    let finished = match entries {
        Entries::All(lent) => {
            let opened = pipeline::open(CoreSource::Shared(&lent, "matrix"), request)?;
            run(nmf, opened, start, &note, observer)?
        }
        Entries::Known(known) => {
            let opened = pipeline::open(CoreSource::Observed(known), request)?;
            run(nmf, opened, start, &note, observer)?
        }
    };
    let mut model = Model::new(finished);
    model.name_rows(matrix);
    Ok(model)
}

fn run<T: Float>(
    nmf: &Nmf,
    opened: pipeline::Opened<'_, T>,
    mut start: Start<T>,
    input: &str,
    observer: &mut dyn Observer,
) -> Result<Finished<T>> {
    start.snapshot = saved(nmf, input)?;
    let planned = pipeline::plan(opened, start)?;
    let settings = Settings::clone(&planned.plan().settings);
    let checkpoint = nmf.checkpoint.as_ref();
    let mut watch = Watch { observer, settings, checkpoint, input, last: Instant::now() };
    Ok(pipeline::run(planned, &mut watch)?)
}

/// The given starting factors, if any.
fn start<T: Float>(nmf: &Nmf) -> Result<Start<T>> {
    let Some(nmf::Start { u, v }) = &nmf.start else { return Ok(Start::default()) };
    if u.cols() != v.cols() {
        let problem = format!("U has {} columns, but V has {}; give the same number", u.cols(), v.cols());
        return Err(Error::of_parameter("start", problem));
    }
    let (rows, cols, k) = (u.rows(), v.rows(), u.cols());
    let factors = Factors { rows, cols, k, u: u.to_vec(), v: v.to_vec() };
    Ok(Start { factors: Some(factors), snapshot: None })
}

/// The checkpoint of an earlier run of the same matrix, if the run is to be resumed.
fn saved<T: Float>(nmf: &Nmf, input: &str) -> Result<Option<Snapshot<T>>> {
    let Some(checkpoint) = nmf.checkpoint.as_ref().filter(|_| nmf.resume) else { return Ok(None) };
    if !checkpoint.path.exists() {
        return Ok(None);
    }
    let (snapshot, note) = Snapshot::read(&checkpoint.path)?;
    if note != input {
        let problem = format!(
            "{} belongs to another matrix; use the same matrix, or start over without resume",
            checkpoint.path.display()
        );
        return Err(Error::of_parameter("resume", problem));
    }
    Ok(Some(snapshot))
}

/// Notifies the observer, and saves checkpoints.
struct Watch<'a> {
    observer: &'a mut dyn Observer,
    settings: Settings,
    checkpoint: Option<&'a nmf::Checkpoint>,
    input: &'a str,
    last: Instant,
}

impl<T: Float> Monitor<T> for Watch<'_> {
    fn started(&mut self, plan: &str) {
        self.observer.started(plan);
    }

    fn progress(&mut self, progress: &CoreProgress) -> Directive {
        let &CoreProgress { restart, iteration, relative_error, seconds } = progress;
        let Settings { restarts, iterations: max_iterations, .. } = self.settings;
        let told = Progress { restart, restarts, iteration, max_iterations, relative_error, seconds };
        let stop = self.observer.progress(&told).is_break();
        let save = self.checkpoint.is_some_and(|checkpoint| match checkpoint.every {
            Every::Iterations(count) => iteration.is_multiple_of(count),
            Every::Seconds(seconds) => self.last.elapsed().as_secs_f64() >= seconds,
        });
        Directive { stop, save, save_if_stopped: self.checkpoint.is_some() }
    }

    fn snapshot(&mut self, snapshot: Snapshot<T>) -> partwise_core::Result<()> {
        self.last = Instant::now();
        let Some(checkpoint) = self.checkpoint else { return Ok(()) };
        replace(&checkpoint.path, |file| snapshot.write(file, self.input))
    }
}

/// Replaces a file atomically.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> partwise_core::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = Path::new(&name);
    let written = File::create(part).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()
    });
    written.and_then(|()| fs::rename(part, path)).map_err(|error| {
        // The temporary file is useless now; failing to remove it is not an error of its own.
        let _ = fs::remove_file(part);
        CoreError::io(path)(error)
    })
}

/// Distinguishes a matrix from others of the same size.
fn fingerprint<T: Float>(entries: &Entries<T>) -> String {
    let mut hash = Fnv::default();
    let transposed = match entries {
        Entries::All(lent) => {
            let (matrix, transposed) = SharedMatrix::stored(lent);
            matrix.for_each_stored(|row, col, value| {
                [row as u64, col as u64, value.to_bits()].into_iter().for_each(|word| hash.add(word));
            });
            transposed
        }
        Entries::Known(known) => {
            for row in 0..known.rows() {
                let ObservedRow { cols, values, weights, .. } = known.row(row);
                for (place, (&col, value)) in cols.iter().zip(values).enumerate() {
                    let weight = weights.map_or(1.0, |weights| weights[place].to_f64());
                    [row as u64, col.into(), value.to_f64().to_bits(), weight.to_bits()]
                        .into_iter()
                        .for_each(|word| hash.add(word));
                }
            }
            false
        }
    };
    format!("{:016x} {transposed}", hash.0)
}

/// Tells a file, and how it is read, from others.
fn fingerprint_of_source(file: &FileSource) -> Result<String> {
    let mut note = fingerprint_of_file(&file.path)?;
    note += &format!(" {:?} {}", file.options, file.transpose);
    match &file.missing {
        Some(MissingEntries::Mask(mask)) => note += &format!(" mask {}", fingerprint_of_file(mask)?),
        Some(missing) => note += &format!(" missing {missing}"),
        None => {}
    }
    if let Some(weights) = &file.weights {
        note += &format!(" weights {}", fingerprint_of_file(weights)?);
    }
    Ok(note)
}

fn fingerprint_of_file(path: &Path) -> Result<String> {
    use std::io::BufRead;
    let mut hash = Fnv::default();
    if path.is_dir() {
        return Err(Error::of_parameter(
            "checkpoint",
            "runs on folders of images cannot be saved; read them first",
        ));
    }
    let file = File::open(path).map_err(CoreError::io(path))?;
    let mut file = std::io::BufReader::with_capacity(1 << 16, file);
    loop {
        let bytes = file.fill_buf().map_err(CoreError::io(path))?;
        let length = bytes.len();
        if length == 0 {
            return Ok(format!("{:016x}", hash.0));
        }
        bytes.iter().for_each(|&byte| hash.add(byte.into()));
        file.consume(length);
    }
}

/// The FNV hash, on words. It detects matrices that were mixed up, not deliberate collisions.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
