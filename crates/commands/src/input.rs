//! Reads matrices as the arguments specify.

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;
use partwise::Real;
use partwise::cancel::Cancel;
use partwise::error::{Error, Result, human_bytes};
use partwise::io::{self, Assumption, ImageShape, ImageSide, Input, ReadOptions};
use partwise::matrix::{Matrix, Observed, Shape, range_problem};
use partwise::pipeline::{FileSource, MissingEntries, observe};
use partwise::run::Side;
pub use partwise_secure::digest::sha256;

use crate::args::{KnownArgs, LabelArgs, Picture, ReadArgs, ShapeArgs};
use crate::console::Console;
use crate::{folder, machine};

/// Reads a matrix and applies `--transpose` and the label files.
pub fn read<T: Real>(path: &Path, args: &ReadArgs, labels: Option<&LabelArgs>) -> Result<Input<T>> {
    let mut input = io::read::<T>(path, &options(args, None, machine::available_memory()))?;
    if let Some(file) = labels.and_then(|labels| labels.row_labels.as_ref()) {
        input.row_labels = Some(io::labels::read(file, input.matrix.rows())?);
    }
    if let Some(file) = labels.and_then(|labels| labels.col_labels.as_ref()) {
        input.col_labels = Some(io::labels::read(file, input.matrix.cols())?);
    }
    if args.transpose {
        input = input.into_transpose();
    }
    Ok(input)
}

/// A matrix for the factors of a run, and its known entries if some are missing or weighted.
pub struct KnownInput<T> {
    /// The matrix as it was read, with NaN for missing entries.
    pub input: Input<T>,
    /// Its known entries with their weights.
    pub observed: Option<Observed<T>>,
}

/// Reads a matrix for the factors of a run, with the missing entries of the arguments or else of the run.
pub fn read_for<T: Real>(
    path: &Path,
    args: &ReadArgs,
    known: &KnownArgs,
    record: &folder::Record,
) -> Result<KnownInput<T>> {
    let missing = known.missing.clone().or(record.missing.clone());
    let transpose = record.transpose != args.transpose;
    let memory = machine::available_memory();
    let missing_as_nan = missing.as_ref().is_some_and(MissingEntries::allow_nan);
    let options = ReadOptions { missing_as_nan, ..options(args, record.images, memory) };
    let mut input = io::read::<T>(path, &options)?;
    if transpose {
        input = input.into_transpose();
    }
    let file = FileSource { missing, weights: known.weights.clone(), transpose, ..FileSource::new(path) };
    let observed = match file.missing.is_some() || file.weights.is_some() {
        true => observe(&input.matrix, &file, memory, &Cancel::default())?,
        false => None,
    };
    Ok(KnownInput { input, observed })
}

/// The options for reading a file; images are on the recorded side unless the arguments say otherwise.
pub fn options(args: &ReadArgs, recorded: Option<ImageSide>, memory: u64) -> ReadOptions {
    let images = args.images.or(recorded).unwrap_or_default();
    ReadOptions { memory, header: args.header, row_names: args.row_names, images, missing_as_nan: false }
}

/// Warns about the assumptions made for an ambiguous table, and names the options that change them.
pub fn warn_assumptions(console: Console, path: &Path, assumptions: &[Assumption]) {
    assumed(path, assumptions).for_each(|sentence| console.warn(&format!("warning: {sentence}")));
}

/// The assumptions made for a table, one sentence each.
pub fn assumed(path: &Path, assumptions: &[Assumption]) -> impl Iterator<Item = String> {
    assumptions.iter().map(|assumption| {
        let words = match assumption {
            Assumption::FirstColumnIsData { shown } => format!(
                "column 1 ({shown}) looks like identifiers but is read as data; use --row-names yes if it contains \
                 names, or --row-names no to confirm"
            ),
            Assumption::FirstLineIsData { shown } => format!(
                "line 1 ({shown}) looks like a header but is read as data; use --header yes if it contains names, or \
                 --header no to confirm"
            ),
            Assumption::RecordsAreRows => "the lines look like (row, column, value) triples but are read as \
             rows of a dense matrix; save triples as Matrix Market (.mtx), or use --row-names no to confirm"
                .to_string(),
        };
        format!("{}: {words}", path.display())
    })
}

/// Refuses a matrix whose products would underflow or overflow, which would not show as an error.
pub fn check_range<T: Real>(path: &Path, matrix: &Matrix<T>) -> Result<()> {
    range_problem::<T>(matrix.largest())
        .map_or(Ok(()), |problem| Err(Error::format(path, "entries", problem)))
}

/// How to show rows or columns of a matrix as pictures: the samples as specified by `--image-shape`, or the
/// images as they were read.
pub fn picture(
    args: &ShapeArgs,
    shape: Shape,
    read: Option<ImageShape>,
    side: Option<ImageSide>,
    samples: Option<Side>,
) -> anyhow::Result<Option<ImageShape>> {
    let Some(Picture { width, height, channels }) = args.image_shape else { return Ok(read) };
    let Shape { rows: m, cols: n } = shape;
    let size = (width as usize).saturating_mul(height as usize).saturating_mul(channels.into());
    let fits = (size == n && samples != Some(Side::Columns), size == m && samples != Some(Side::Rows));
    let images = match fits {
        (true, true) => side.unwrap_or(ImageSide::Rows),
        (true, false) => ImageSide::Rows,
        (false, true) => ImageSide::Columns,
        (false, false) => bail!(
            "--image-shape: {width} x {height} x {channels} gives {size} values, but a row of this {m} x {n} matrix \
             has {n} and a column {m}; use the size of a sample, or change --records"
        ),
    };
    Ok(Some(ImageShape { width, height, channels, images }))
}

/// The advice for work that is too large for this machine.
pub const TOO_LARGE: &str = "use a smaller --rank, --precision f32, --memory or a machine with more memory";

/// Refuses work that does not fit the available memory, before it starts.
pub fn check_memory(what: &str, needed: u64) -> Result<()> {
    let available = machine::available_memory();
    if needed > available {
        return Err(Error::Memory { what: what.into(), needed, available, cure: TOO_LARGE.into() });
    }
    Ok(())
}

/// The number of each record's person, from a file with one name per record. People are numbered in order of
/// first occurrence.
pub fn people(path: &Path, records: usize) -> anyhow::Result<Vec<usize>> {
    let names = io::labels::read(path, records)?;
    if let Some(line) = names.iter().position(|name| name.trim().is_empty()) {
        bail!(
            "--person: {}, line {}: the name is missing; give the name of each record's person",
            path.display(),
            line + 1
        );
    }
    let mut numbers = HashMap::new();
    Ok(names
        .iter()
        .map(|name| {
            let next = numbers.len();
            *numbers.entry(name.trim()).or_insert(next)
        })
        .collect())
}

/// The size of a file, or of the images of a folder together.
pub fn bytes(path: &Path) -> Option<u64> {
    let length = |path: &Path| Some(std::fs::metadata(path).ok()?.len());
    if !path.is_dir() {
        return length(path);
    }
    io::images::files(path).ok()?.iter().map(|file| length(file)).sum()
}

/// A size for people, such as `12.3 MiB`.
pub fn size(bytes: u64) -> String {
    human_bytes(bytes)
}
