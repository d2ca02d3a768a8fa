//! The folder that a recorded simulation left, and its audit: for the program and for Python.

use std::io::BufReader;
use std::path::Path;

use partwise::cancel::Cancel;
use partwise::error::Error as CoreError;
use partwise::io::{self, ReadOptions};
use partwise::matrix::Matrix;
use partwise::run::Side;
use partwise::run::record::{RUN_FILE, RecordedData, RunKind, RunRecord, SimulationRecord};
use partwise::wording::Wording;
use partwise::{Precision, Real, machine};

use super::{Audit, Evidence, Limits, Transcript, audit};
use crate::Plan;
use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::net::DEFAULT_WAN;
use crate::protocol::Settings;

/// The name of the file with the recorded messages.
pub const TRANSCRIPT: &str = "transcript.bin";

/// The folder of a party's results begins so; its number follows.
pub const PARTY: &str = "party-";

/// The folder to audit, and the parameters of the audit.
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
    /// Stops it at any point.
    pub cancel: &'a Cancel,
}

fn wrong(problem: impl Into<Wording>) -> Error {
    Error::Folder { problem: problem.into() }
}

/// What is wrong with a simulation that has to be done again, with its messages kept.
fn again(problem: String) -> Error {
    wrong(Wording::new(problem + "; simulate again with ").field("record"))
}

/// Refuses what is no folder of a recorded simulation.
pub fn check(dir: &Path) -> Result<()> {
    read_run(dir).map(drop)
}

/// Runs all attacks on a recorded simulation.
pub fn audit_folder(request: &Request<'_>) -> Result<Audit> {
    let recorded = read_run(request.dir)?;
    match recorded.run.precision {
        Precision::F64 => audit_in::<f64>(request, &recorded),
        Precision::F32 => audit_in::<f32>(request, &recorded),
    }
}

fn audit_in<T: Real>(request: &Request<'_>, recorded: &RecordedRun) -> Result<Audit> {
    let dir = request.dir;
    let damaged =
        |what: &str, problem: String| again(format!("{}: {what} {problem}", dir.join(RUN_FILE).display()));
    let mut settings: Settings = recorded
        .run
        .settings()
        .map_err(|error| damaged("the settings", format!("cannot be read ({error})")))?;
    let run = &recorded.run;
    let line = run.network.parse().unwrap_or(DEFAULT_WAN);
    let (slowness, cancel) = (run.speeds.clone(), request.cancel.clone());
    let mut plan = Plan { slowness, line, cancel, ..Plan::new(settings.clone()) };
    plan.settings.rounds = run.max_rounds;
    settings.colluders = request.colluders.unwrap_or(settings.colluders);
    let RecordedData { dealt, held_out, people, .. } = &recorded.data;
    let Files { transcript, matrix, u } = read_files::<T>(request, recorded, settings.rank)?;
    if dealt.len() < 2 || held_out.len() != dealt.len() {
        return Err(damaged("`recorded`", format!("has records of {} parties", dealt.len())));
    }
    if dealt.iter().chain(held_out).flatten().any(|&row| row >= matrix.rows()) {
        return Err(damaged("`recorded`", "names records that do not exist".into()));
    }
    if people.as_ref().is_some_and(|people| people.len() != matrix.rows()) {
        return Err(damaged("`recorded`", "names the people of another matrix".into()));
    }
    let (transcript, settings, matrix, u) = (&transcript, &settings, &matrix, &u[..]);
    let (people, plan) = (people.as_deref(), Some(&plan));
    let evidence = Evidence { transcript, settings, matrix, dealt, held_out, people, plan, u };
    audit(&evidence, &request.limits, request.cancel)
}

/// A simulation that was recorded.
#[derive(Clone)]
struct RecordedRun {
    run: SimulationRecord,
    data: RecordedData,
}

/// `run.json` of a simulation that was recorded.
fn read_run(dir: &Path) -> Result<RecordedRun> {
    let wrong_folder = |problem: String| {
        let cure = Wording::new("; give a folder that `partwise simulate ").field("record");
        wrong(Wording::new(problem).then(cure).text("` wrote, or a party's ledger"))
    };
    if !dir.is_dir() {
        return Err(wrong_folder(format!("{} is not a folder", dir.display())));
    }
    let path = dir.join(RUN_FILE);
    let text = std::fs::read(&path).map_err(|error| wrong_folder(format!("{}: {error}", path.display())))?;
    let record = RunRecord::parse(&path, &text).map_err(|error| match error {
        CoreError::DamagedRecord { path, problem } => {
            wrong_folder(format!("{}: not the record of a run ({problem})", path.display()))
        }
        error => error.into(),
    })?;
    let recorded = match record.kind {
        RunKind::Simulation(mut run) => run.recorded.take().map(|data| RecordedRun { run: *run, data }),
        RunKind::Factorization(_) | RunKind::Federation(_) => None,
    };
    let recorded = recorded.filter(|_| dir.join(TRANSCRIPT).exists());
    recorded.ok_or_else(|| {
        let audited = dir.join("audit.json").exists();
        let dir = dir.display();
        match audited {
            true => wrong(
                Wording::new(format!(
                    "{dir} was audited while it ran, and its messages were not kept; see {dir}/audit.json or the \
                     report, or simulate again with "
                ))
                .field("record"),
            ),
            false => wrong(
                Wording::new(format!("{dir} has no transcript of the messages; simulate again with "))
                    .field("record")
                    .text(", or with ")
                    .field("audit"),
            ),
        }
    })
}

/// The recorded run and its data.
struct Files<T> {
    transcript: Transcript,
    matrix: Matrix<T>,
    u: Vec<T>,
}

fn read_files<T: Real>(request: &Request<'_>, recorded: &RecordedRun, rank: usize) -> Result<Files<T>> {
    let (dir, recorded) = (request.dir.to_path_buf(), recorded.clone());
    let path = request.data.map_or_else(|| recorded.data.path.clone(), Path::to_path_buf);
    request.cancel.wait_for(move || {
        let transcript = read_transcript(&dir.join(TRANSCRIPT))?;
        let matrix = read_data::<T>(&path, &recorded)?;
        let u = read_shared::<T>(&dir, &recorded.run, FactorShape { features: matrix.cols(), rank })?;
        Ok(Files { transcript, matrix, u })
    })
}

fn read_transcript(path: &Path) -> Result<Transcript> {
    let file = std::fs::File::open(path).map_err(CoreError::io(path))?;
    Transcript::read(&mut BufReader::new(file))
        .map_err(|problem| again(format!("{}: {problem}", path.display())))
}

/// The matrix, with a row a record, if it is still the one that the run had.
fn read_data<T: Real>(path: &Path, recorded: &RecordedRun) -> Result<Matrix<T>> {
    let RecordedRun { run, data } = recorded;
    if !path.exists() {
        let problem = "does not exist, but the audit needs the records; give the matrix with ";
        return Err(wrong(Wording::new(format!("{} {problem}", path.display())).field("data")));
    }
    if run.input.sha256 != sha256(path)? {
        let problem = format!("{} is not the matrix of this run; give the right one with ", path.display());
        return Err(wrong(Wording::new(problem).field("data")));
    }
    let &RecordedData { header, row_names, images, .. } = data;
    let (memory, images) = (machine::available_memory(), images.unwrap_or_default());
    let matrix =
        io::read::<T>(path, &ReadOptions { memory, header, row_names, images, missing_as_nan: false })?
            .matrix;
    Ok(if run.transpose != (run.records == Side::Columns) { matrix.into_transpose() } else { matrix })
}

/// The shape of the factor of the features.
#[derive(Clone, Copy)]
struct FactorShape {
    features: usize,
    rank: usize,
}

/// The factor of the features, which all parties that stayed have.
fn read_shared<T: Real>(dir: &Path, run: &SimulationRecord, shape: FactorShape) -> Result<Vec<T>> {
    let FactorShape { features, rank } = shape;
    let shared = run.shared_factor.file();
    let mut parties = (1..=255).map(|number| dir.join(format!("{PARTY}{number}/{shared}")));
    let Some(path) = parties.find(|path| path.exists()) else {
        return Err(again(format!("{} has no party's {shared}", dir.display())));
    };
    let (rows, cols, u) = io::npy::read_array::<T>(&path, machine::available_memory())?;
    if (rows, cols) != (features, rank) {
        return Err(again(format!("{} is {rows} x {cols}, not {features} x {rank}", path.display())));
    }
    Ok(u)
}
