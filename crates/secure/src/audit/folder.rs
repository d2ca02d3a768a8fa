//! The folder that a recorded simulation left, and its audit: for the program and for Python.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use partwise::cancel::Cancel;
use partwise::error::Error as CoreError;
use partwise::io::{self, ImageSide, Presence, ReadOptions};
use partwise::matrix::Matrix;
use partwise::run::Side;
use partwise::{Precision, Real, machine};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Audit, Evidence, Limits, Transcript, audit};
use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::factors;
use crate::protocol::Settings;

/// What was said.
pub const TRANSCRIPT: &str = "transcript.bin";

/// The folder of a party's results begins so; its number follows.
pub const PARTY: &str = "party-";

const RUN: &str = "run.json";

/// What `run.json` keeps, so that the data can be found again and dealt out as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// The matrix.
    pub path: PathBuf,
    /// How it was read.
    pub header: Presence,
    /// How it was read.
    pub row_names: Presence,
    /// How it was read.
    pub images: Option<ImageSide>,
    /// The records of each party.
    pub dealt: Vec<Vec<usize>>,
    /// Those of nobody, by the party whose kind they are.
    pub held_out: Vec<Vec<usize>>,
}

/// What is to be audited, and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The folder of the run.
    pub dir: &'a Path,
    /// The matrix, if it is not where the run found it.
    pub data: Option<&'a Path>,
    /// How many parties collude, if not as the run had it.
    pub colluders: Option<usize>,
    /// How much is computed.
    pub limits: Limits,
    /// Stops it wherever it is.
    pub cancel: &'a Cancel,
}

fn wrong(problem: String) -> Error {
    Error::Folder { problem }
}

/// Refuses what is no folder of a recorded simulation.
pub fn check(dir: &Path) -> Result<()> {
    read_run(dir).map(drop)
}

/// Runs all attacks on a recorded simulation.
pub fn audit_folder(request: &Request<'_>) -> Result<Audit> {
    let run = read_run(request.dir)?;
    match serde_json::from_value(run["precision"].clone()) {
        Ok(Precision::F64) => audit_in::<f64>(request, &run),
        _ => audit_in::<f32>(request, &run),
    }
}

fn audit_in<T: Real>(request: &Request<'_>, run: &Value) -> Result<Audit> {
    let dir = request.dir;
    let damaged = |what: &str, problem: String| {
        wrong(format!("{}: {what} {problem}; simulate again with --record", dir.join(RUN).display()))
    };
    let unreadable = |what, error: serde_json::Error| damaged(what, format!("cannot be read ({error})"));
    let recorded: Recorded =
        serde_json::from_value(run["recorded"].clone()).map_err(|error| unreadable("`recorded`", error))?;
    let mut settings: Settings =
        serde_json::from_value(run.clone()).map_err(|error| unreadable("the settings", error))?;
    settings.colluders = request.colluders.unwrap_or(settings.colluders);
    let Recorded { dealt, held_out, .. } = &recorded;
    let Files { transcript, matrix, u } = read_files::<T>(request, &recorded, run, settings.rank)?;
    if dealt.len() < 2 || held_out.len() != dealt.len() {
        return Err(damaged("`recorded`", format!("has records of {} parties", dealt.len())));
    }
    if dealt.iter().chain(held_out).flatten().any(|&row| row >= matrix.rows()) {
        return Err(damaged("`recorded`", "names records that there are not".into()));
    }
    let evidence =
        Evidence { transcript: &transcript, settings: &settings, matrix: &matrix, dealt, held_out, u: &u };
    audit(&evidence, &request.limits, request.cancel)
}

/// `run.json` of a simulation that was recorded.
fn read_run(dir: &Path) -> Result<Value> {
    const CURE: &str = "give a folder that `partwise simulate --record` wrote, or a party's ledger";
    if !dir.is_dir() {
        return Err(wrong(format!("{} is not a folder; {CURE}", dir.display())));
    }
    let path = dir.join(RUN);
    let text = std::fs::read(&path).map_err(|error| wrong(format!("{}: {error}; {CURE}", path.display())))?;
    let run: Value = serde_json::from_slice(&text)
        .map_err(|error| wrong(format!("{}: not the JSON of a run ({error}); {CURE}", path.display())))?;
    if !run["recorded"].is_object() || !dir.join(TRANSCRIPT).exists() {
        let audited = dir.join("audit.json").exists();
        let dir = dir.display();
        return Err(wrong(match audited {
            true => format!(
                "{dir} has been audited while it ran, and its messages were not kept; see {dir}/audit.json or its report, or \
                 simulate again with --record"
            ),
            false => {
                format!(
                    "{dir} has no transcript of what was said; simulate again with --record, or with --audit"
                )
            }
        }));
    }
    Ok(run)
}

/// What the run left, and its data.
struct Files<T> {
    transcript: Transcript,
    matrix: Matrix<T>,
    u: Vec<T>,
}

fn read_files<T: Real>(
    request: &Request<'_>,
    recorded: &Recorded,
    run: &Value,
    rank: usize,
) -> Result<Files<T>> {
    let (dir, run, recorded) = (request.dir.to_path_buf(), run.clone(), recorded.clone());
    let data = request.data.map_or_else(|| recorded.path.clone(), Path::to_path_buf);
    request.cancel.wait_for(move || {
        let transcript = read_transcript(&dir.join(TRANSCRIPT))?;
        let matrix = read_data::<T>(&data, &recorded, &run)?;
        let u = read_shared::<T>(&dir, &run, (matrix.cols(), rank))?;
        Ok(Files { transcript, matrix, u })
    })
}

fn read_transcript(path: &Path) -> Result<Transcript> {
    let file = std::fs::File::open(path).map_err(CoreError::io(path))?;
    Transcript::read(&mut BufReader::new(file))
        .map_err(|problem| wrong(format!("{}: {problem}; simulate again with --record", path.display())))
}

/// The matrix, with a row a record, if it is still the one that the run had.
fn read_data<T: Real>(path: &Path, recorded: &Recorded, run: &Value) -> Result<Matrix<T>> {
    if !path.exists() {
        return Err(wrong(format!(
            "{} is not there, but the audit needs the records; give the matrix with --data",
            path.display()
        )));
    }
    if run["input"]["sha256"] != sha256(path)?.as_str() {
        return Err(wrong(format!(
            "{} is not the matrix of this run; give that with --data",
            path.display()
        )));
    }
    let &Recorded { header, row_names, images, .. } = recorded;
    let (memory, images) = (machine::available_memory(), images.unwrap_or_default());
    let matrix = io::read::<T>(path, &ReadOptions { memory, header, row_names, images })?.matrix;
    let transpose = run["transpose"].as_bool().unwrap_or(false);
    let columns = matches!(serde_json::from_value(run["records"].clone()), Ok(Side::Columns));
    Ok(if transpose != columns { matrix.into_transpose() } else { matrix })
}

/// The factor of the features, which all parties that stayed have.
fn read_shared<T: Real>(dir: &Path, run: &Value, (features, rank): (usize, usize)) -> Result<Vec<T>> {
    let [shared, _] = factors::files(run);
    let mut parties = (1..=255).map(|number| dir.join(format!("{PARTY}{number}/{shared}")));
    let Some(path) = parties.find(|path| path.exists()) else {
        return Err(wrong(format!(
            "{} has no party's {shared}; simulate again with --record",
            dir.display()
        )));
    };
    let (rows, cols, u) = io::npy::read_array::<T>(&path, machine::available_memory())?;
    if (rows, cols) != (features, rank) {
        return Err(wrong(format!(
            "{} is {rows} x {cols}, not {features} x {rank}; simulate again with --record",
            path.display()
        )));
    }
    Ok(u)
}
