//! What came out of a run.

use std::path::Path;

use serde_json::Value;

use crate::{Error, Planned, Result, file_error};

/// A run that is done.
#[derive(Clone, Debug)]
pub struct Done {
    /// Which.
    pub run: Planned,
    /// Steps, seconds and relative errors.
    pub curve: Vec<[f64; 3]>,
    /// Iterations or rounds.
    pub steps: f64,
    /// Seconds on its clock.
    pub seconds: f64,
    /// The final error.
    pub error: f64,
    /// Which clock that was.
    pub clock: &'static str,
}

impl Done {
    /// Reads a run's folder.
    pub fn read(run: &Planned, folder: &Path) -> Result<Self> {
        let wrong = |problem: &str| Error::Results { folder: folder.into(), problem: problem.into() };
        let text =
            |name: &str| std::fs::read_to_string(folder.join(name)).map_err(file_error(folder.join(name)));
        let record: Value =
            serde_json::from_str(&text("run.json")?).map_err(|_| wrong("run.json is damaged"))?;
        let mut curve = Vec::new();
        for line in text("trace.csv")?.lines().skip(1) {
            let numbers: Vec<f64> = line.split(',').filter_map(|cell| cell.parse().ok()).collect();
            match numbers.as_slice() {
                &[step, seconds, error, ..] => curve.push([step, seconds, error]),
                _ => return Err(wrong("trace.csv is damaged")),
            }
        }
        let number = |name: &str| record[name].as_f64();
        let steps =
            number("iterations").or(number("rounds")).ok_or_else(|| wrong("run.json has no iterations"))?;
        let seconds = number("seconds").ok_or_else(|| wrong("run.json has no seconds"))?;
        let error = number("relative_error").unwrap_or(f64::NAN);
        let clock = match () {
            () if record["protocol"].is_string() => "simulated",
            () if record["clock"] == "virtual" => "virtual",
            () => "real",
        };
        Ok(Done { run: run.clone(), curve, steps, seconds, error, clock })
    }

    /// Iterations a second.
    pub fn speed(&self) -> f64 {
        self.steps / self.seconds.max(f64::MIN_POSITIVE)
    }
}
