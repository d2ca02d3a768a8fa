//! Creates `report.html` from the folder of a run.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use partwise::error::Error;
use partwise::io::ImageShape;
use partwise::matrix::Matrix;
use partwise::run::record::{FactorizationRecord, FederationRecord, RunKind, RunRecord, SimulationRecord};
use partwise::run::{Factors, Side};
use partwise::{Real, io};
use partwise_report::picture::Shape;
use partwise_report::{Factor, Frames, GENERATOR, Point, Run, SampleFactor, Samples, page};
use partwise_secure::factors;
use serde_json::Value;

use crate::args::Picture;
use crate::context::Context;
use crate::folder::{self, Folder};
use crate::machine::available_memory;
use crate::{flags, output};

/// The name of the page in the folder.
pub const NAME: &str = "report.html";

/// Choices for the page that are not in the record of the run.
#[derive(Default)]
pub struct View {
    pub shape: Option<Picture>,
    pub records: Option<Side>,
}

/// Writes the page after a run if it is `wanted`. Results remain whether or not this succeeds.
pub fn after_run(context: &Context, dir: &Path, wanted: bool) {
    if !wanted {
        return;
    }
    if let Err(error) = write(context, dir, &View::default()) {
        context.console.warn(&format!(
            "warning: the results were written, but {NAME} was not: {}",
            flags::words(&error)
        ));
    }
}

/// Where the results are, in words.
pub fn where_it_is(dir: &Path) -> String {
    let page = dir.join(NAME);
    let shows = if page.exists() { format!("; {} shows it", page.display()) } else { String::new() };
    format!("written to {}{shows}", dir.display())
}

/// Creates the page of the run in a folder.
pub fn write(context: &Context, dir: &Path, view: &View) -> Result<()> {
    let html = page(&read(dir, view)?);
    context.outputs.write_into(dir, NAME, output::DIR, |file| file.write_all(html.as_bytes()))
}

/// Whether Partwise wrote this page.
pub fn is_ours(page: &Path) -> bool {
    std::fs::read(page).is_ok_and(|text| String::from_utf8_lossy(&text).contains(GENERATOR))
}

fn read(dir: &Path, view: &View) -> Result<Run> {
    let record = RunRecord::read_if_there(dir)?;
    let audit = read_json(&dir.join(output::AUDIT))?;
    let individuals = read_json(&dir.join(output::INDIVIDUALS))?;
    let trace = trace(&dir.join("trace.csv"))?;
    let secure = record.as_ref().is_some_and(|record| record.protocol().is_some());
    if secure && view.records.is_some() {
        bail!(
            "--records: {} is the result of several parties and already knows which side the records are on; leave it \
             out",
            dir.display()
        );
    }
    let mut run = match record.as_ref().map(|record| &record.kind) {
        None => of_one(dir, None, view.records)?,
        Some(RunKind::Factorization(of)) => of_one(dir, Some(of), view.records)?,
        Some(RunKind::Simulation(of)) => of_parties(dir, of)?,
        Some(RunKind::Federation(of)) => of_federation(dir, of)?,
    };
    run.record = record;
    (run.audit, run.individuals, run.trace) = (audit, individuals, trace);
    if let Some(Picture { width, height, channels }) = view.shape {
        let shape = Shape { width: width as usize, height: height as usize, channels: channels.into() };
        if shape.size() != run.features.rows {
            bail!(
                "--image-shape: {width} x {height} x {channels} gives {} values, but a sample in {} has {}; use the \
                 size of a sample, or change --records",
                shape.size(),
                dir.display(),
                run.features.rows
            );
        }
        run.shape = Some(shape);
    }
    Ok(run)
}

/// A JSON file of the folder, if it exists.
fn read_json(path: &Path) -> Result<Option<Value>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read(path).map_err(Error::io(path))?;
    let value = serde_json::from_slice(&text);
    value
        .map(Some)
        .map_err(|error| anyhow!("{}: not the record of a run ({error}); run it again", path.display()))
}

/// Reads a result of `factorize`: one side of M has the samples, the other the features.
fn of_one(dir: &Path, record: Option<&FactorizationRecord>, records: Option<Side>) -> Result<Run> {
    let side = records.or(record.map(FactorizationRecord::samples)).unwrap_or(Side::Rows);
    let ((weights, labels), (features, feature_labels)) = sides(folder::read::<f32>(dir)?, side);
    let image = record.and_then(|record| record.image).filter(|image| Side::from(image.images) == side);
    let shape = image.map(shape).filter(|shape| shape.size() == features.rows);
    let numbers = record.map_or(&[][..], |record| &record.frames);
    let frames = shape.map(|shape| frames(dir, numbers, shape, weights.rows)).transpose()?.flatten();
    let samples = vec![Samples { party: None, weights, labels }];
    Ok(Run { shape, frames, feature_labels, ..bare(side, features, samples) })
}

/// A run without optional parts.
fn bare(side: Side, features: Factor, samples: Vec<Samples>) -> Run {
    Run {
        sample_factor: sample_factor(side),
        record: None,
        features,
        samples,
        audit: None,
        individuals: None,
        trace: Vec::new(),
        feature_labels: None,
        shape: None,
        frames: None,
    }
}

fn sample_factor(samples: Side) -> SampleFactor {
    match samples {
        Side::Rows => SampleFactor::U,
        Side::Columns => SampleFactor::V,
    }
}

/// A factor and the names of its rows.
type Named = (Factor, Option<Vec<String>>);

/// The factors of the samples and of the features, given the side of the samples.
fn sides(folder: Folder<f32>, samples: Side) -> (Named, Named) {
    let Folder { factors: Factors { rows, cols, k, u, v }, row_labels, col_labels } = folder;
    let u = (Factor { rows, k, values: u }, row_labels);
    let v = (Factor { rows: cols, k, values: v }, col_labels);
    factors::by_side(samples, u, v)
}

fn read_factor(path: &Path) -> Result<Factor> {
    let (rows, k, values) = io::npy::read_array::<f32>(path, available_memory())?;
    Ok(Factor { rows, k, values })
}

/// Reads a result of `party join`, with the party's records, or of `coordinator run`, which has none.
fn of_federation(dir: &Path, record: &FederationRecord) -> Result<Run> {
    let side = record.shared_factor.records();
    if record.party().is_none() {
        return Ok(bare(side, read_factor(&dir.join(record.shared_factor.file()))?, Vec::new()));
    }
    let ((weights, labels), (features, feature_labels)) = sides(folder::read::<f32>(dir)?, side);
    let samples = vec![Samples { party: None, weights, labels }];
    Ok(Run { feature_labels, ..bare(side, features, samples) })
}

/// Reads a result of several parties: one factor is common to all, and each party has its own second one.
fn of_parties(dir: &Path, record: &SimulationRecord) -> Result<Run> {
    let mut features = None;
    let mut samples = Vec::new();
    for (party, number) in record.parties.iter().zip(1..) {
        let folder = dir.join(format!("{}{number}", output::PARTY));
        if !folder.is_dir() {
            continue;
        }
        let name = party.name.clone().unwrap_or_else(|| format!("party {number}"));
        let shared = read_factor(&folder.join(record.shared_factor.file()))?;
        let weights = read_factor(&folder.join(record.shared_factor.own_file()))?;
        // Factors with other features or components than those of the first party belong to another run.
        let differs = |first: &Factor| (first.rows, first.k) != (shared.rows, shared.k);
        if shared.k != weights.k || shared.k == 0 || features.as_ref().is_some_and(differs) {
            bail!("{}: U.npy and V.npy come from different runs; run it again", folder.display());
        }
        features.get_or_insert(shared);
        samples.push(Samples { party: Some(name), weights, labels: None });
    }
    let Some(features) = features else {
        bail!("{} has no {}1; give a result folder of `partwise simulate`", dir.display(), output::PARTY);
    };
    let labels = dir.join("features.txt");
    let feature_labels = if labels.exists() { Some(io::labels::read(&labels, features.rows)?) } else { None };
    let shape = record.image.map(shape).filter(|shape| shape.size() == features.rows);
    Ok(Run { feature_labels, shape, ..bare(record.shared_factor.records(), features, samples) })
}

/// The image size of a sample, for the page.
fn shape(image: ImageShape) -> Shape {
    let ImageShape { width, height, channels, .. } = image;
    Shape { width: width as usize, height: height as usize, channels: channels.into() }
}

/// Original images that were kept.
fn frames(dir: &Path, numbers: &[usize], shape: Shape, samples: usize) -> Result<Option<Frames>> {
    let path = dir.join("frames.npy");
    if numbers.is_empty() || !path.exists() {
        return Ok(None);
    }
    let (count, size, values) = io::npy::read_array::<f32>(&path, available_memory())?;
    if (count, size) != (numbers.len(), shape.size()) || numbers.iter().any(|&number| number >= samples) {
        bail!("{}: the pictures do not match run.json; run it again", path.display());
    }
    Ok(Some(Frames { numbers: numbers.to_vec(), values }))
}

/// Reads the error curve, if it exists. The first column is the step, whatever its name.
fn trace(path: &Path) -> Result<Vec<Point>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let numbers: Vec<f64> = line.split(',').filter_map(|cell| cell.trim().parse().ok()).collect();
        let &[step, seconds, error, ..] = numbers.as_slice() else {
            bail!("{}, line {}: not a line of an error curve; run it again", path.display(), index + 1);
        };
        points.push(Point { step, seconds, error });
    }
    Ok(points)
}

/// Original images of a matrix.
pub struct Kept<T> {
    pub numbers: Vec<usize>,
    pub size: usize,
    pub values: Vec<T>,
}

/// Selects a few evenly spaced images of a matrix to keep, with their numbers.
pub fn kept<T: Real>(matrix: &Matrix<T>, shape: Option<io::ImageShape>) -> Option<Kept<T>> {
    const FRAMES: usize = 4;
    const MOST: usize = 16 << 20;
    let columns = shape?.images == io::ImageSide::Columns;
    let (samples, size) =
        if columns { (matrix.cols(), matrix.rows()) } else { (matrix.rows(), matrix.cols()) };
    let count = FRAMES.min(samples);
    if count == 0 || size.saturating_mul(count) > MOST {
        return None;
    }
    let numbers: Vec<usize> = (0..count).map(|place| (2 * place + 1) * samples / (2 * count)).collect();
    let mut values = vec![T::ZERO; size * count];
    for (&number, values) in numbers.iter().zip(values.chunks_exact_mut(size)) {
        let one = number..number + 1;
        let part = if columns { matrix.part(0..size, one) } else { matrix.part(one, 0..size) };
        part.for_each_stored(|row, col, value| values[if columns { row } else { col }] = T::from_f64(value));
    }
    Some(Kept { numbers, size, values })
}
