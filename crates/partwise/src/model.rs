//! The result of a factorization.

use std::fs;
use std::path::{Path, PathBuf};

use partwise_core::Error as CoreError;
use partwise_core::cancel::Cancel;
use partwise_core::io::{ImageShape, ImageSide, labels, npy};
use partwise_core::pipeline::{self, Facts, FileSource, Finished, MissingEntries, solve_rows};
use partwise_core::run::record::{
    FactorizationRecord, InputRecord, MethodRecord, RUN_FILE, ReadingRecord, RunKind, RunRecord,
};
use partwise_core::run::{Factorization, Factors, Report, Settings, Side, TraceLine, write_trace};
use partwise_core::solver::Penalty;
use partwise_core::threads::Threads;
use partwise_core::{Precision, machine};

use crate::error::{Error, Result};
use crate::fit::{Source, replace};
use crate::matrix::{Float, Matrix, Observed, factor};
use crate::options::{Missing, Stop};
use crate::read::Reader;

pub use partwise_core::run::HeldOutError;

/// A factorization M ≈ U Vᵀ: its factors, how the run went, and the fit of new data.
///
/// ```
/// use partwise::{Matrix, Nmf};
///
/// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
/// let model = Nmf::new(2).fit(&m)?;
/// assert_eq!((model.u().rows(), model.v().rows(), model.components()), (3, 3, 2));
/// assert!(model.relative_error() < 0.5);
/// // Components are ordered by how much of M they carry.
/// assert!(model.energies().is_sorted_by(|a, b| a >= b));
///
/// let w = model.transform(&Matrix::from_rows(&[[2.0, 0.0, 1.0]])?)?;
/// assert_eq!((w.rows(), w.cols()), (1, 2));
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    u: Matrix<'static>,
    v: Matrix<'static>,
    report: Report,
    errors: Vec<f64>,
    record: FactorizationRecord,
    /// The penalties of (U, V), scaled for this matrix.
    terms: (Penalty, Penalty),
}

/// A point of the error curve.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TracePoint {
    /// Iterations done.
    pub iteration: usize,
    /// Seconds of computing so far, without evaluating errors; on the first modelled network, if there is
    /// one.
    pub seconds: f64,
    /// ‖M − U Vᵀ‖ / ‖M‖.
    pub relative_error: f64,
    /// The loss, penalties not counted in.
    pub loss: f64,
    /// The error on entries that are hidden from the run, if there are any.
    pub held_out: Option<HeldOutError>,
    /// Bytes that each worker has sent so far.
    pub bytes_sent: u64,
}

impl Model {
    pub(crate) fn new<T: Float>(finished: Finished<T>) -> Self {
        let record = FactorizationRecord {
            input: InputRecord {
                name: (finished.facts.format != "in memory").then(|| finished.facts.name.clone()),
                ..pipeline::record(&finished).input
            },
            image: finished.facts.image,
            ..pipeline::record(&finished)
        };
        let Finished { facts, plan, result, .. } = finished;
        let Facts { rows, cols, row_labels, col_labels, .. } = facts;
        let Factorization { factors, report, errors } = result;
        let terms = plan.settings.terms(rows, cols, f64::INFINITY);
        let (mut u, mut v) = (factor(rows, factors.k, factors.u), factor(cols, factors.k, factors.v));
        (u.row_labels, v.row_labels) = (row_labels, col_labels);
        Model { u, v, report, errors, record, terms }
    }

    /// Copies the names of rows and columns, and their image size, from the matrix.
    pub(crate) fn name_rows(&mut self, matrix: &Matrix<'_>) {
        (self.u.row_labels, self.v.row_labels) = (matrix.row_labels.clone(), matrix.col_labels.clone());
        self.record.image = matrix.image;
    }

    /// Takes what the source and the builder say of rows, columns and entries.
    pub(crate) fn describe(
        &mut self,
        reading: ReadingRecord,
        records: Option<Side>,
        image: Option<ImageShape>,
    ) -> Result<()> {
        (self.record.reading, self.record.records) = (reading, records);
        let Some(shape) = image else { return Ok(()) };
        let ImageShape { width, height, channels, images } = shape;
        let size = (width as usize).saturating_mul(height as usize).saturating_mul(channels.into());
        let (what, length) = match images {
            ImageSide::Rows => ("row", self.v.rows()),
            ImageSide::Columns => ("column", self.u.rows()),
        };
        if size != length {
            let problem =
                format!("{width} x {height} x {channels} is {size} numbers, but a {what} has {length}");
            return Err(Error::of_parameter("image_shape", problem));
        }
        self.record.image = Some(shape);
        Ok(())
    }

    /// Returns U, m x k: the weight of each component in each row of M. Its row labels are those of M's rows.
    pub fn u(&self) -> &Matrix<'static> {
        &self.u
    }

    /// Returns V, n x k: the weight of each column of M in each component. Its row labels are those of M's
    /// columns.
    pub fn v(&self) -> &Matrix<'static> {
        &self.v
    }

    /// Returns U and V, and drops the rest.
    pub fn into_factors(self) -> (Matrix<'static>, Matrix<'static>) {
        (self.u, self.v)
    }

    /// Returns the number of components, k.
    pub fn components(&self) -> usize {
        self.u.cols()
    }

    /// ‖M − U Vᵀ‖ / ‖M‖ in Frobenius norms, over the known entries. With another loss than least squares: the loss over that of
    /// the best constant model.
    pub fn relative_error(&self) -> f64 {
        self.report.relative_error
    }

    /// The loss that was minimized, penalties not counted in; nothing of a folder by an early version that does not say it.
    ///
    /// ```
    /// use partwise::options::Loss;
    /// use partwise::{Matrix, Nmf};
    ///
    /// let counts = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
    /// let model = Nmf::new(2).loss(Loss::Kl).fit(&counts)?;
    /// assert!(model.loss().unwrap() > 0.0);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn loss(&self) -> Option<f64> {
        self.report.loss
    }

    /// The error on the entries that [`Nmf::holdout`](crate::Nmf::holdout) hid from the run, if it hid any.
    pub fn held_out(&self) -> Option<HeldOutError> {
        self.report.held_out
    }

    /// Returns the relative error of each restart.
    pub fn errors_of_restarts(&self) -> &[f64] {
        &self.errors
    }

    /// Iterations done.
    pub fn iterations(&self) -> usize {
        self.report.iterations
    }

    /// Returns the seconds of computing.
    pub fn seconds(&self) -> f64 {
        self.report.seconds
    }

    /// Returns why the run ended.
    pub fn stopped_by(&self) -> Stop {
        self.report.stopped_by
    }

    /// Returns a description of what the method did.
    pub fn plan(&self) -> &str {
        &self.record.summary.plan
    }

    /// Returns the error curve.
    pub fn trace(&self) -> Vec<TracePoint> {
        let point = |line: &TraceLine| {
            let &TraceLine { iteration, seconds, relative_error, loss, held_out, bytes_sent, .. } = line;
            TracePoint { iteration, seconds, relative_error, loss, held_out, bytes_sent }
        };
        self.report.trace.iter().map(point).collect()
    }

    /// Returns ‖U_j‖ ‖V_j‖ for each component j: its contribution to M.
    pub fn energies(&self) -> Vec<f64> {
        let norms = |factor: &Matrix<'_>| -> Vec<f64> {
            let square = |row, col| factor.get(row, col).powi(2);
            let of = |col| (0..factor.rows()).map(|row| square(row, col)).sum::<f64>().sqrt();
            (0..factor.cols()).map(of).collect()
        };
        norms(&self.u).iter().zip(norms(&self.v)).map(|(u, v)| u * v).collect()
    }

    /// Returns the entry of U Vᵀ at a row and a column, counted from 0.
    ///
    /// # Panics
    /// If M has no such row or column.
    pub fn predict(&self, row: usize, col: usize) -> f64 {
        (0..self.components()).map(|j| self.u.get(row, j) * self.v.get(col, j)).sum()
    }

    /// Returns the rows of U that fit new rows of M best, exactly, with V fixed and including penalties of U.
    ///
    /// ```
    /// use partwise::{Matrix, Nmf};
    ///
    /// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
    /// let model = Nmf::new(2).exact_rows(true).fit(&m)?;
    /// let again = model.transform(&m)?;
    /// for row in 0..3 {
    ///     assert!((again.get(row, 0) - model.u().get(row, 0)).abs() < 1e-4);
    /// }
    /// let wrong = model.transform(&Matrix::from_rows(&[[1.0, 2.0]])?).unwrap_err();
    /// assert_eq!(wrong.parameter(), Some("matrix"));
    /// # Ok::<(), partwise::Error>(())
    /// ```
    ///
    /// Unknown entries of new rows have no influence; a file is read as a whole. A matrix, or a file, of which nothing is said has
    /// the missing entries that were said of M: NaN, those that are not stored, or zeros.
    ///
    /// ```
    /// # use partwise::options::Missing;
    /// # use partwise::{Matrix, Nmf};
    /// # let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 5.0]])?;
    /// # let model = Nmf::new(2).fit(&m)?;
    /// let row = Matrix::from_rows(&[[5.0, f64::NAN, 0.0]])?;
    /// let w = model.transform(&row.observed().missing(Missing::Nan))?;
    /// assert_eq!((w.rows(), w.cols()), (1, 2));
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn transform<'a>(&self, new_rows: impl Into<Source<'a>>) -> Result<Matrix<'static>> {
        self.solve_source(new_rows.into(), Side::Rows)
    }

    /// Returns the rows of V that fit new columns of M best, exactly, with U fixed and including penalties of
    /// V.
    pub fn transform_columns<'a>(&self, new_columns: impl Into<Source<'a>>) -> Result<Matrix<'static>> {
        self.solve_source(new_columns.into(), Side::Columns)
    }

    fn solve_source(&self, source: Source<'_>, side: Side) -> Result<Matrix<'static>> {
        let (matrix, observed) = match source {
            Source::Matrix(matrix) => (matrix, None),
            Source::Observed(observed) => (observed.matrix(), Some(observed)),
            Source::File(reader) => {
                let FileSource { missing, weights, .. } = reader.source();
                let said = missing.is_some() || weights.is_some();
                let read = match self.missing().filter(|_| !said) {
                    Some(missing) => ReadEntries::of(&reader.clone().missing(missing))?,
                    None => ReadEntries::of(reader)?,
                };
                let observed = said.then(|| read.observed());
                return self.solve_in(&read.matrix, observed.as_ref(), side);
            }
        };
        self.solve_in(matrix, observed, side)
    }

    /// Which entries of M were unknown, if that is known of new rows too.
    fn missing(&self) -> Option<Missing> {
        Missing::of(&self.record.reading.missing.as_deref()?.into())
    }

    fn solve_in(
        &self,
        matrix: &Matrix<'_>,
        observed: Option<&Observed<'_>>,
        side: Side,
    ) -> Result<Matrix<'static>> {
        // A dense matrix stores every entry.
        let missing = self.missing().filter(|&missing| missing != Missing::Unstored || matrix.is_sparse());
        let as_in_the_run = missing.map(|missing| matrix.observed().missing(missing));
        let observed = observed.or(as_in_the_run.as_ref());
        match self.record.machine.precision {
            Precision::F32 => self.solve::<f32>(matrix, observed, side),
            Precision::F64 => self.solve::<f64>(matrix, observed, side),
        }
    }

    fn solve<T: Float>(
        &self,
        matrix: &Matrix<'_>,
        observed: Option<&Observed<'_>>,
        side: Side,
    ) -> Result<Matrix<'static>> {
        let (fixed, terms, rows, labels) = match side {
            Side::Rows => (&self.v, self.terms.0, matrix.rows(), &matrix.row_labels),
            Side::Columns => (&self.u, self.terms.1, matrix.cols(), &matrix.col_labels),
        };
        let k = self.components();
        let factors = Factors { rows: 0, cols: fixed.rows(), k, u: Vec::new(), v: fixed.to_vec::<T>() };
        let threads = Threads::new(machine::cores())?;
        // As for the rows of the run, a bound is not enforced.
        let terms = Penalty { upper: f64::INFINITY, ..terms };
        let loss = self.record.method.loss_name.unwrap_or_default();
        let cancel = Cancel::default();
        let solved = cancel.scope(|| -> Result<Vec<T>> {
            let known = observed.map(|observed| observed.observe::<T>(&cancel)).transpose()?.flatten();
            let solved = match (known, side) {
                (Some(known), Side::Rows) => {
                    factors.transform_observed(loss, &known, Side::Rows, terms, &threads)
                }
                (Some(known), Side::Columns) => {
                    let known = known.transpose_until(&cancel);
                    factors.transform_observed(loss, &known, Side::Rows, terms, &threads)
                }
                (None, Side::Rows) => solve_rows(&matrix.lend::<T>(), &factors, loss, terms, None, &threads),
                (None, Side::Columns) => {
                    let turned = matrix.clone().into_transpose();
                    solve_rows(&turned.lend::<T>(), &factors, loss, terms, None, &threads)
                }
            };
            Ok(solved?)
        })?;
        let mut solved = factor(rows, k, solved);
        solved.row_labels = labels.clone();
        Ok(solved)
    }

    /// Writes a result folder as `partwise factorize` does: `U.npy`, `V.npy`, `trace.csv`, `run.json`, and
    /// labels. The other commands of the program and [`Model::read`] can read it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("result");
    /// use partwise::{Matrix, Model, Nmf};
    ///
    /// let m = Matrix::from_rows(&[[5.0, 3.0, 0.0], [4.0, 0.0, 1.0]])?;
    /// let model = Nmf::new(1).fit(&m)?;
    /// model.write(&folder)?;
    /// let read = Model::read(&folder)?;
    /// assert_eq!((read.u(), read.relative_error()), (model.u(), model.relative_error()));
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(CoreError::io(folder))?;
        for (name, labels_name, factor) in [("U.npy", "rows.txt", &self.u), ("V.npy", "columns.txt", &self.v)]
        {
            replace(&folder.join(name), |mut file| match factor.as_slice::<f32>() {
                Some(entries) => npy::write(&mut file, factor.rows(), factor.cols(), entries),
                None => npy::write(&mut file, factor.rows(), factor.cols(), &factor.to_vec::<f64>()),
            })?;
            let names = folder.join(labels_name);
            match factor.row_labels() {
                Some(of_rows) => replace(&names, |file| labels::write(file, of_rows))?,
                None if names.exists() => fs::remove_file(&names).map_err(CoreError::io(&names))?,
                None => {}
            }
        }
        let record =
            RunRecord::new(self.relative_error(), RunKind::Factorization(Box::new(self.record.clone())));
        let clock = if record.has_virtual_clock() { "virtual_seconds" } else { "seconds" };
        replace(&folder.join("trace.csv"), |file| write_trace(file, &self.report.trace, clock))?;
        replace(&folder.join(RUN_FILE), |mut file| {
            record.write(&mut file)?;
            file.flush()
        })?;
        Ok(())
    }

    /// Reads a folder written by [`Model::write`] or `partwise factorize`, without the error curve in
    /// `trace.csv`.
    pub fn read(folder: impl AsRef<Path>) -> Result<Model> {
        let folder = folder.as_ref();
        let RunRecord { relative_error, kind, .. } = RunRecord::read(folder)?;
        let RunKind::Factorization(record) = kind else {
            let here = folder.display();
            return Err(Error::data(format!(
                "{here}: it is not the result of a factorization; give the folder of one"
            )));
        };
        let memory = machine::available_memory();
        let factor_of = |name: &str| match record.machine.precision {
            Precision::F32 => {
                npy::read_array(&folder.join(name), memory).map(|(m, k, all)| factor::<f32>(m, k, all))
            }
            Precision::F64 => {
                npy::read_array(&folder.join(name), memory).map(|(m, k, all)| factor::<f64>(m, k, all))
            }
        };
        let (mut u, mut v) = (factor_of("U.npy")?, factor_of("V.npy")?);
        if u.cols() != v.cols() {
            let (here, of_u, of_v) = (folder.display(), u.cols(), v.cols());
            let problem = format!("{here}: U.npy has {of_u} columns but V.npy has {of_v}; factorize again");
            return Err(Error::data(problem));
        }
        for (name, factor) in [("rows.txt", &mut u), ("columns.txt", &mut v)] {
            let path = folder.join(name);
            if path.exists() {
                factor.row_labels = Some(labels::read(&path, factor.rows())?);
            }
        }
        let &MethodRecord { rank, l1_u, l1_v, l2_u, l2_v, .. } = &record.method;
        let penalized = Settings { l1_u, l1_v, l2_u, l2_v, ..Settings::new(rank) };
        let terms = penalized.terms(u.rows(), v.rows(), f64::INFINITY);
        let report = report_of(&record, relative_error);
        let errors = record.summary.errors_of_restarts.clone();
        Ok(Model { u, v, report, errors, record: *record, terms })
    }
}

/// A matrix from a file, with what other files say of its entries.
struct ReadEntries {
    matrix: Matrix<'static>,
    missing: Option<Missing>,
    mask: Option<Matrix<'static>>,
    weights: Option<Matrix<'static>>,
}

impl ReadEntries {
    fn of(reader: &Reader) -> Result<Self> {
        let FileSource { missing, weights, transpose, .. } = reader.source();
        let other = |path: &PathBuf| Reader::new(path).transpose(*transpose).read();
        let mask = match missing {
            Some(MissingEntries::Mask(path)) => Some(other(path)?),
            _ => None,
        };
        let missing = missing.as_ref().and_then(Missing::of);
        let weights = weights.as_ref().map(other).transpose()?;
        Ok(ReadEntries { matrix: reader.read()?, missing, mask, weights })
    }

    fn observed(&self) -> Observed<'_> {
        let observed = self.matrix.observed();
        let observed = self.missing.into_iter().fold(observed, Observed::missing);
        let observed = self.mask.iter().fold(observed, Observed::mask);
        self.weights.iter().fold(observed, Observed::weights)
    }
}

/// The report of a run that was read from a folder, without its curve.
fn report_of(record: &FactorizationRecord, relative_error: f64) -> Report {
    let summary = &record.summary;
    Report {
        plan: summary.plan.clone(),
        seed: summary.seed,
        iterations: summary.iterations,
        relative_error,
        loss: summary.loss,
        held_out: summary.held_out,
        seconds: summary.seconds,
        stopped_by: summary.stopped_by,
        trace_every: record.method.trace_every,
        redrawn: summary.redrawn.clone(),
        phases: summary.phases,
        bytes_sent: summary.bytes_sent,
        bytes_evaluate: summary.bytes_evaluate,
        ranks: summary.ranks.iter().map(|rank| rank.report).collect(),
        trace: Vec::new(),
    }
}
