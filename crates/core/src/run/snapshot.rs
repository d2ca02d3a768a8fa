//! A run in the middle, as it is saved and taken up again: one line of magic, one of JSON, then the factors' numbers.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::driver::Log;
use super::settings::Settings;
use super::{Factors, Report};
use crate::error::{Error, Result};
use crate::{Precision, Real};

const MAGIC: &str = "partwise checkpoint 1";

/// All that it takes to go on to the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<T> {
    /// The parameters of the run.
    pub settings: Settings,
    /// The factors at that moment.
    pub factors: Factors<T>,
    pub(super) log: Log,
    /// Final errors of the restarts that are done.
    pub errors: Vec<f64>,
    /// The best of them.
    pub best: Option<(Factors<T>, Report)>,
}

/// Everything but the numbers.
#[derive(Serialize, Deserialize)]
struct Header {
    precision: Precision,
    rows: usize,
    cols: usize,
    settings: Settings,
    log: Log,
    errors: Vec<f64>,
    best: Option<Report>,
    /// What the caller wants back, such as the hash of the input.
    note: String,
}

impl<T: Real> Snapshot<T> {
    /// Iterations done in the current run.
    pub fn iteration(&self) -> usize {
        self.log.iteration()
    }

    /// Whether a run with these settings on an m x n matrix can go on from here. When to stop may change, how to get
    /// there may not.
    pub fn check(&self, settings: &Settings, m: usize, n: usize) -> Result<()> {
        let refuse = |what: String| {
            Err(Error::parameter(
                "--resume",
                format!("the checkpoint is of a run with {what}; use the same, or begin anew"),
            ))
        };
        if (self.factors.rows, self.factors.cols) != (m, n) {
            return refuse(format!("a {} x {} matrix, not {m} x {n}", self.factors.rows, self.factors.cols));
        }
        let fixed = |settings: &Settings| {
            let stop_anywhere = Settings {
                iterations: 1,
                tolerance: 0.0,
                target_error: None,
                time_limit: None,
                ..settings.clone()
            };
            serde_json::to_value(stop_anywhere).unwrap_or_default()
        };
        let (ours, theirs) = (fixed(&self.settings), fixed(settings));
        if let (Some(ours), Some(theirs)) = (ours.as_object(), theirs.as_object()) {
            for (name, value) in ours {
                if theirs.get(name) != Some(value) {
                    let asked = theirs.get(name).map_or("nothing".into(), |value| value.to_string());
                    return refuse(format!("{} = {value}, not {asked}", name.replace('_', "-")));
                }
            }
        }
        Ok(())
    }

    /// Writes all of it; `note` comes back from [`Snapshot::read`].
    pub fn write(&self, mut writer: impl Write, note: &str) -> io::Result<()> {
        let header = Header {
            precision: T::PRECISION,
            rows: self.factors.rows,
            cols: self.factors.cols,
            settings: self.settings.clone(),
            log: self.log.clone(),
            errors: self.errors.clone(),
            best: self.best.as_ref().map(|(_, report)| report.clone()),
            note: note.to_string(),
        };
        writeln!(writer, "{MAGIC}")?;
        serde_json::to_writer(&mut writer, &header)?;
        writeln!(writer)?;
        for factors in
            [Some(&self.factors), self.best.as_ref().map(|(factors, _)| factors)].into_iter().flatten()
        {
            writer.write_all(bytemuck::cast_slice(&factors.u))?;
            writer.write_all(bytemuck::cast_slice(&factors.v))?;
        }
        writer.flush()
    }

    /// Reads what [`Snapshot::write`] wrote, on a machine of the same byte order, and the note.
    pub fn read(path: &Path) -> Result<(Self, String)> {
        let bad = |problem: &str| {
            Error::format(path, "checkpoint", format!("{problem}; begin anew without --resume"))
        };
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(Error::io(path))?;
        let mut parts = bytes.splitn(3, |&byte| byte == b'\n');
        let (magic, header, numbers) = (parts.next(), parts.next(), parts.next());
        if magic != Some(MAGIC.as_bytes()) {
            return Err(bad("it is not one, or of another version"));
        }
        let (Some(header), Some(numbers)) = (header, numbers) else { return Err(bad("it is cut off")) };
        let header: Header = serde_json::from_slice(header).map_err(|_| bad("its header is damaged"))?;
        if header.precision != T::PRECISION {
            return Err(bad("it is of a run with another --precision"));
        }
        let Header { rows, cols, settings, log, errors, best, note, .. } = header;
        let k = settings.rank;
        let sizes = [rows, cols]
            .map(|length| length.checked_mul(k).and_then(|count| count.checked_mul(size_of::<T>())));
        let [Some(of_u), Some(of_v)] = sizes else { return Err(bad("its sizes are absurd")) };
        let copies = if best.is_some() { 2 } else { 1 };
        if of_u.checked_add(of_v).and_then(|size| size.checked_mul(copies)) != Some(numbers.len()) {
            return Err(bad("it is cut off"));
        }
        let mut rest = numbers;
        let mut take = |size: usize| {
            let (part, tail) = rest.split_at(size);
            rest = tail;
            bytemuck::pod_collect_to_vec::<u8, T>(part)
        };
        let mut factors = || Factors { rows, cols, k, u: take(of_u), v: take(of_v) };
        let current = factors();
        let best = best.map(|report| (factors(), report));
        for factors in [Some(&current), best.as_ref().map(|(factors, _)| factors)].into_iter().flatten() {
            factors.check(rows, cols, k)?;
        }
        Ok((Snapshot { settings, factors: current, log, errors, best }, note))
    }
}
