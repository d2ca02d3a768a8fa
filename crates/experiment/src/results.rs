//! The results of a run.

use std::path::Path;

use partwise::run::record::{RUN_FILE, RunKind, RunRecord};

use crate::{Error, Planned, Result, file_error};

/// A finished run.
#[derive(Clone, Debug)]
pub struct Done {
    /// Which.
    pub run: Planned,
    /// Steps, seconds and relative errors.
    pub curve: Vec<[f64; 3]>,
    /// Iterations or rounds.
    pub steps: f64,
    /// The seconds on its clock.
    pub seconds: f64,
    /// The final error.
    pub error: f64,
    /// The kind of that clock.
    pub clock: &'static str,
}

impl Done {
    /// Reads the folder of a run.
    pub fn read(run: &Planned, folder: &Path) -> Result<Self> {
        let wrong = |problem: &str| Error::Results { folder: folder.into(), problem: problem.into() };
        let text =
            |name: &str| std::fs::read_to_string(folder.join(name)).map_err(file_error(folder.join(name)));
        let file = folder.join(RUN_FILE);
        let record = RunRecord::parse(&file, text(RUN_FILE)?.as_bytes()).map_err(|error| match error {
            partwise::Error::DamagedRecord { .. } => wrong("run.json is damaged"),
            // A record of a later version may be valid, but this version cannot read it.
            error => Error::Record(error),
        })?;
        let mut curve = Vec::new();
        for line in text("trace.csv")?.lines().skip(1) {
            let numbers: Vec<f64> = line.split(',').filter_map(|cell| cell.parse().ok()).collect();
            match numbers.as_slice() {
                &[step, seconds, error, ..] => curve.push([step, seconds, error]),
                _ => return Err(wrong("trace.csv is damaged")),
            }
        }
        let (clock, seconds) = match &record.kind {
            RunKind::Factorization(_) if record.has_virtual_clock() => ("virtual", record.seconds()),
            RunKind::Factorization(_) => ("real", record.seconds()),
            RunKind::Simulation(_) | RunKind::Federation(_) => ("simulated", record.seconds()),
        };
        let seconds = seconds.ok_or_else(|| wrong("run.json has no seconds"))?;
        let (steps, error) = (record.steps() as f64, record.relative_error);
        Ok(Done { run: run.clone(), curve, steps, seconds, error, clock })
    }

    /// Iterations per second.
    pub fn speed(&self) -> f64 {
        self.steps / self.seconds.max(f64::MIN_POSITIVE)
    }
}
