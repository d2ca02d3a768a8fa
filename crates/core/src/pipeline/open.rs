//! The first step: reads or opens the matrix and checks it.

use super::observe::observe;
use super::part::{self, RankPart};
use super::request::Request;
use super::source::{FileSource, MissingEntries, SharedMatrix, Source};
use crate::Real;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::io::stream::Stream;
use crate::io::{self, Assumption, ImageShape, Input, ReadOptions};
use crate::matrix::{Dominants, Holdout, Matrix, Observed, Shape, range_problem};
use crate::objective::Loss;
use crate::run::{Demand, MatrixSize, RunSettings, Streamed, no_value_at_zero};
use crate::wording::Wording;

/// What is known about a matrix in addition to its entries.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The file, or the name of the matrix in errors.
    pub name: String,
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries.
    pub stored: usize,
    /// The format of the file in words.
    pub format: String,
    /// Names of the rows.
    pub row_labels: Option<Vec<String>>,
    /// Names of the columns.
    pub col_labels: Option<Vec<String>>,
    /// The image size of a row or a column.
    pub image: Option<ImageShape>,
    /// The numbers of rows and columns without a known entry, if entries are missing or weighted.
    pub unknown: Option<(usize, usize)>,
    /// The assumptions made for an ambiguous text table.
    pub assumptions: Vec<Assumption>,
}

impl Facts {
    /// The numbers of rows and columns.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows, cols: self.cols }
    }

    pub(super) fn new(name: String, shape: Shape, stored: usize, format: String) -> Self {
        let Shape { rows, cols } = shape;
        Facts {
            name,
            rows,
            cols,
            stored,
            format,
            row_labels: None,
            col_labels: None,
            image: None,
            unknown: None,
            assumptions: Vec::new(),
        }
    }
}

/// A matrix, opened for a request with suitable settings.
pub struct Opened<'a, T> {
    pub(super) facts: Facts,
    pub(super) size: MatrixSize,
    pub(super) request: Request,
    pub(super) settings: RunSettings,
    pub(super) data: Data<'a, T>,
}

/// The location of the matrix.
pub(super) enum Data<'a, T> {
    Whole(Matrix<T>),
    Observed(Observed<T>),
    Shared(&'a (dyn SharedMatrix<T> + Sync)),
    Streamed(Box<Streamed>),
    Part(RankPart<'a, T>),
}

impl<T: Real> Opened<'_, T> {
    /// What is known about the matrix.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The matrix, if all of it is in memory.
    pub fn matrix(&self) -> Option<&Matrix<T>> {
        if let Data::Whole(matrix) = &self.data { Some(matrix) } else { None }
    }

    /// The matrix without the request, if all of it is in memory.
    pub fn into_matrix(self, cancel: &Cancel) -> Option<Matrix<T>> {
        match self.data {
            Data::Whole(matrix) => Some(matrix),
            Data::Shared(shared) => Some(shared.matrix(cancel)),
            Data::Observed(_) | Data::Streamed(_) | Data::Part(_) => None,
        }
    }

    /// The matrix, if it stays in its file.
    pub fn streamed(&self) -> Option<&Streamed> {
        if let Data::Streamed(streamed) = &self.data { Some(streamed) } else { None }
    }

    /// The row and the column that dominate the matrix.
    pub fn dominant(&self) -> Dominants {
        match &self.data {
            Data::Whole(matrix) => {
                let (rows, cols) = matrix.squared_norms();
                Dominants::among(&rows, &cols)
            }
            Data::Shared(shared) => {
                let (stored, transposed) = shared.stored();
                let (majors, minors) = stored.squared_norms();
                match transposed {
                    true => Dominants::among(&minors, &majors),
                    false => Dominants::among(&majors, &minors),
                }
            }
            // Weighted entries are not compared.
            Data::Observed(_) => Dominants::default(),
            Data::Streamed(streamed) => streamed.dominant(),
            Data::Part(part) if part.squares.is_empty() => Dominants::default(),
            Data::Part(part) => {
                let (rows, cols) = part.squares.split_at(self.facts.rows);
                Dominants::among(rows, cols)
            }
        }
    }
}

/// Opens a matrix for a request, checking settings, entries and memory. Every rank calls this.
pub fn open<T: Real>(source: Source<'_, T>, request: Request) -> Result<Opened<'_, T>> {
    match source {
        Source::File(file) => open_file(file, request),
        Source::Matrix(matrix) => {
            let facts = facts_of("matrix", &matrix, false);
            let refuse = |problem| Error::parameter("matrix", problem);
            let (size, settings) = admit(&request, &facts, &matrix, &refuse)?;
            Ok(Opened { facts, size, request, settings, data: Data::Whole(matrix) })
        }
        Source::Observed(observed) => {
            let shape = Shape { rows: observed.rows(), cols: observed.cols() };
            let facts = Facts::new("matrix".into(), shape, 0, "in memory".into());
            let refuse = |problem| Error::parameter("matrix", problem);
            admit_observed(observed, facts, request, &refuse)
        }
        Source::Shared(shared, name) => {
            let (stored, transposed) = shared.stored();
            let facts = facts_of(name, &stored, transposed);
            let refuse = |problem| Error::parameter(name, problem);
            let (size, settings) = admit(&request, &facts, &stored, &refuse)?;
            Ok(Opened { facts, size, request, settings, data: Data::Shared(shared) })
        }
        Source::Part { comm, reader, file } => part::open(comm, reader, file, request),
    }
}

fn facts_of<T: Real>(name: &str, matrix: &Matrix<T>, transposed: bool) -> Facts {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
    Facts::new(name.into(), Shape { rows, cols }, matrix.stored(), "in memory".into())
}

/// The size of a matrix in memory and the settings for it, if its entries and the available memory allow the run;
/// `refuse` creates the error for its entries.
fn admit<T: Real>(
    request: &Request,
    facts: &Facts,
    matrix: &Matrix<T>,
    refuse: &dyn Fn(Wording) -> Error,
) -> Result<(MatrixSize, RunSettings)> {
    let size = MatrixSize { rows: facts.rows, cols: facts.cols, ..MatrixSize::of(matrix) };
    let settings = request.settings.for_matrix(size.rows, size.cols)?;
    if let Some(problem) = range_problem::<T>(matrix.largest()) {
        return Err(refuse(problem));
    }
    if settings.loss == Loss::Is
        && let Some(row) = matrix.first_row_with_zero()
    {
        return Err(no_value_at_zero(row));
    }
    let needed = request.in_memory::<T>(size, settings.algorithm).most();
    let available = request.resources.memory();
    if request.resources.memory.is_some() && needed > available {
        let cure = request.resources.advice.unstreamable.into();
        let what = format!("{}: the factorization", facts.name);
        return Err(Error::Memory { what, needed, available, cure });
    }
    request.check_available("the factorization", needed.saturating_sub(matrix.bytes()))?;
    Ok((size, settings))
}

fn open_file<'a, T: Real>(file: FileSource, request: Request) -> Result<Opened<'a, T>> {
    let (limited, memory) = (request.resources.memory.is_some(), request.resources.memory());
    let stream = if limited { Stream::open(&file.path, file.transpose, memory)? } else { None };
    let holdout = request.settings.holdout;
    let known = file.missing.is_none() && file.weights.is_none() && holdout.is_none();
    if let Some(stream) = stream
        && request.in_memory::<T>(MatrixSize::of_stream(&stream), request.settings.algorithm).most() > memory
    {
        if !known {
            let problem = Wording::new(
                "entries that are missing, held out or weighted need the matrix in memory; raise ",
            )
            .field("memory");
            return Err(Error::parameter(file.what_hides(), problem));
        }
        return open_stream(&file, stream, request);
    }
    let ReadFile { matrix, facts, observed } = read_file(&file, &request)?;
    let refuse = |problem| Error::format(&file.path, "entries", problem);
    if let Some(observed) = observed {
        drop(matrix);
        return admit_observed(observed, facts, request, &refuse);
    }
    // It may have turned out that every entry is known.
    let request = if known { request } else { request.with_all_entries()? };
    let (size, settings) = admit(&request, &facts, &matrix, &refuse)?;
    Ok(Opened { facts, size, request, settings, data: Data::Whole(matrix) })
}

/// A file as a whole.
pub(super) struct ReadFile<T> {
    /// The matrix, with NaN for what is missing.
    pub matrix: Matrix<T>,
    /// What is known about it.
    pub facts: Facts,
    /// Its entries, if some are missing, held out, or count more than others.
    pub observed: Option<Observed<T>>,
}

/// Reads a whole file, and the files that say which of its entries count.
pub(super) fn read_file<T: Real>(file: &FileSource, request: &Request) -> Result<ReadFile<T>> {
    let (limited, memory) = (request.resources.memory.is_some(), request.resources.memory());
    let input = read::<T>(file, memory).map_err(|error| match error {
        Error::Memory { what, needed, available, .. } if limited => {
            Error::Memory { what, needed, available, cure: request.resources.advice.unstreamable.into() }
        }
        error => error,
    })?;
    let Input { matrix, row_labels, col_labels, format, image, assumptions, .. } = input;
    let name = file.path.display().to_string();
    let facts = Facts::new(name, matrix.shape(), matrix.stored(), format);
    let facts = Facts { row_labels, col_labels, image, assumptions, ..facts };
    let cancel = &request.resources.machine.cancel;
    let mut observed = match file.missing.is_some() || file.weights.is_some() {
        true => observe(&matrix, file, memory, cancel)?,
        false => None,
    };
    if let Some(share) = request.settings.holdout {
        let holdout = Holdout { share, seed: request.settings.seed };
        observed = Some(Observed::hold_out(&matrix, observed.as_ref(), holdout, cancel)?);
    }
    Ok(ReadFile { matrix, facts, observed })
}

/// Opens weighted entries if they and the available memory allow the run.
fn admit_observed<'a, T: Real>(
    observed: Observed<T>,
    facts: Facts,
    request: Request,
    refuse: &dyn Fn(Wording) -> Error,
) -> Result<Opened<'a, T>> {
    let (facts, settings) = check_observed(&observed, facts, &request, refuse)?;
    let size = MatrixSize::of_observed(&observed);
    request.check_available("the factorization", request.in_memory::<T>(size, settings.algorithm).most())?;
    Ok(Opened { facts, size, request, settings, data: Data::Observed(observed) })
}

/// What is known about weighted entries, and the settings for them, if the loss has a value for all of them.
pub(super) fn check_observed<T: Real>(
    observed: &Observed<T>,
    facts: Facts,
    request: &Request,
    refuse: &dyn Fn(Wording) -> Error,
) -> Result<(Facts, RunSettings)> {
    let facts =
        Facts { stored: observed.values().stored(), unknown: Some(observed.unknown_lines()), ..facts };
    let settings = request.settings.for_matrix(observed.rows(), observed.cols())?;
    if settings.loss == Loss::Is && observed.is_weighted() {
        return Err(Error::parameter(
            "weights",
            "the Itakura-Saito divergence does not support weights; use kl or frobenius",
        ));
    }
    let largest = observed.values().values().iter().fold(0.0, |most: f64, value| most.max(value.to_f64()));
    if let Some(problem) = range_problem::<T>(largest) {
        return Err(refuse(problem));
    }
    Ok((facts, settings))
}

/// Reads a whole file; label files replace the labels of the file.
fn read<T: Real>(file: &FileSource, memory: u64) -> Result<Input<T>> {
    let missing_as_nan = file.missing.as_ref().is_some_and(MissingEntries::allow_nan);
    let mut input = io::read::<T>(&file.path, &ReadOptions { memory, missing_as_nan, ..file.options })?;
    if file.transpose {
        input = input.into_transpose();
    }
    let (row_labels, col_labels) = file.labels(input.matrix.shape())?;
    input.row_labels = row_labels.or(input.row_labels);
    input.col_labels = col_labels.or(input.col_labels);
    Ok(input)
}

/// Scans the file of a streamed matrix.
fn open_stream<'a, T: Real>(file: &FileSource, stream: Stream, request: Request) -> Result<Opened<'a, T>> {
    let settings = request.settings.for_matrix(stream.rows(), stream.cols())?;
    let machine = &request.resources.machine;
    let alone = Wording::new(
        "a matrix that is streamed from its file is factorized in one process; leave it out, or raise ",
    )
    .field("memory");
    if machine.nodes > 1 {
        return Err(Error::parameter("nodes", alone));
    }
    if !machine.networks.is_empty() {
        return Err(Error::parameter("network", alone));
    }
    let size = MatrixSize::of_stream(&stream);
    let (row_labels, col_labels) = file.labels(size.shape())?;
    let labels = row_labels.iter().chain(&col_labels).flatten();
    let demand = Demand {
        copies: request.resources.copies,
        ratios: settings.loss != Loss::Frobenius,
        kept: labels.map(|label| (size_of::<String>() + label.capacity() + 16) as u64).sum(),
        ..Demand::new(request.resources.memory(), settings.rank, machine.threads)
    };
    let stored = stream.stored();
    let streamed = Streamed::new::<T>(stream, &demand)?;
    if let Some(problem) = range_problem::<T>(streamed.largest()) {
        return Err(Error::format(&file.path, "entries", problem));
    }
    // The side of whole lines is not sketched.
    let settings = settings.with(|settings| *settings = streamed.adjusted(settings.clone()))?;
    let name = file.path.display().to_string();
    let facts = Facts::new(name, size.shape(), stored, streamed.stream().format().to_string());
    let facts = Facts { row_labels, col_labels, ..facts };
    Ok(Opened { facts, size, request, settings, data: Data::Streamed(Box::new(streamed)) })
}
