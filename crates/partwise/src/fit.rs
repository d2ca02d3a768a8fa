//! Runs a factorization: from a builder and a matrix to a model.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use partwise_core::Error as CoreError;
use partwise_core::pipeline::{self, Finished, Source as CoreSource, Start};
use partwise_core::run::{Directive, Factors, Monitor, Progress as CoreProgress, Settings, Snapshot};

use crate::error::{Error, Result};
use crate::matrix::{Float, Matrix};
use crate::model::Model;
use crate::nmf::{self, Nmf};
use crate::observe::{Observer, Progress};
use crate::options::Every;
use crate::read::Reader;

/// The inputs of [`Nmf::fit`]: a matrix in memory, or a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A matrix in memory.
    Matrix(&'a Matrix<'a>),
    /// A file.
    File(&'a Reader),
}

impl<'a> From<&'a Matrix<'a>> for Source<'a> {
    fn from(matrix: &'a Matrix<'a>) -> Self {
        Source::Matrix(matrix)
    }
}

impl<'a> From<&'a Reader> for Source<'a> {
    fn from(reader: &'a Reader) -> Self {
        Source::File(reader)
    }
}

pub(crate) fn fit<T: Float>(nmf: &Nmf, source: Source<'_>, observer: &mut dyn Observer) -> Result<Model> {
    let request = nmf.request()?;
    let cancel = nmf.cancel.0.clone();
    cancel.scope(|| {
        let start = start::<T>(nmf)?;
        match source {
            Source::Matrix(matrix) => {
                let lent = matrix.lend::<T>();
                lent.check(matrix)?;
                let opened = pipeline::open(CoreSource::Shared(&lent, "matrix"), request)?;
                let finished = run(nmf, opened, start, &fingerprint(&lent), observer)?;
                let mut model = Model::new(finished);
                model.name_rows(matrix);
                Ok(model)
            }
            Source::File(reader) => {
                let file = reader.source();
                let note =
                    if nmf.checkpoint.is_some() { fingerprint_of_file(&file.path)? } else { String::new() };
                let note = format!("{note} {:?} {}", file.options, file.transpose);
                let opened = pipeline::open(CoreSource::File(file), request)?;
                Ok(Model::new(run(nmf, opened, start, &note, observer)?))
            }
        }
    })
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
fn fingerprint<T: Float>(lent: &crate::matrix::Lent<T>) -> String {
    let mut hash = Fnv::default();
    let (matrix, transposed) = partwise_core::pipeline::SharedMatrix::stored(lent);
    matrix.for_each_stored(|row, col, value| {
        [row as u64, col as u64, value.to_bits()].into_iter().for_each(|word| hash.add(word));
    });
    format!("{:016x} {transposed}", hash.0)
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
