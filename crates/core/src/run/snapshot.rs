//! Snapshots of a run, which are saved and resumed: one line of magic, one of JSON, then the factors' numbers.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log::RunLog;
use super::settings::Settings;
use super::{Factors, Report};
use crate::error::{Error, Result};
use crate::wording::Wording;
use crate::{Precision, Real};

const MAGIC: &str = "partwise checkpoint 3";

/// Everything needed to continue to the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<T> {
    /// The parameters of the run.
    pub settings: Settings,
    /// The factors at that point.
    pub factors: Factors<T>,
    /// The auxiliary factors of a method with momentum.
    pub(super) auxiliary: Option<Factors<T>>,
    pub(super) log: RunLog,
    /// The final errors of finished restarts.
    pub errors: Vec<f64>,
    /// The best of them.
    pub best: Option<(Factors<T>, Report)>,
}

/// The content without the numbers.
#[derive(Serialize, Deserialize)]
struct Header {
    precision: Precision,
    rows: usize,
    cols: usize,
    settings: Settings,
    log: RunLog,
    errors: Vec<f64>,
    auxiliary: bool,
    best: Option<Report>,
    /// A note of the caller, such as the hash of the input.
    note: String,
}

impl<T: Real> Snapshot<T> {
    /// Iterations done in the current run.
    pub fn iteration(&self) -> usize {
        self.log.iteration()
    }

    /// Checks that a run with these settings on an m x n matrix can continue from here. Only settings for stopping
    /// may change.
    pub fn check(&self, settings: &Settings, m: usize, n: usize) -> Result<()> {
        let refuse = |what: String| {
            Err(Error::parameter(
                "resume",
                format!("the checkpoint belongs to a run with {what}; use the same, or start over"),
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
                normalize: None,
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

    /// Writes the snapshot; [`Snapshot::read`] returns `note`.
    pub fn write(&self, mut writer: impl Write, note: &str) -> io::Result<()> {
        let header = Header {
            precision: T::PRECISION,
            rows: self.factors.rows,
            cols: self.factors.cols,
            settings: self.settings.clone(),
            log: self.log.clone(),
            errors: self.errors.clone(),
            auxiliary: self.auxiliary.is_some(),
            best: self.best.as_ref().map(|(_, report)| report.clone()),
            note: note.to_string(),
        };
        writeln!(writer, "{MAGIC}")?;
        serde_json::to_writer(&mut writer, &header)?;
        writeln!(writer)?;
        let best = self.best.as_ref().map(|(factors, _)| factors);
        for factors in [Some(&self.factors), self.auxiliary.as_ref(), best].into_iter().flatten() {
            writer.write_all(bytemuck::cast_slice(&factors.u))?;
            writer.write_all(bytemuck::cast_slice(&factors.v))?;
        }
        writer.flush()
    }

    /// Reads the output of [`Snapshot::write`], on a machine with the same byte order, and the note.
    pub fn read(path: &Path) -> Result<(Self, String)> {
        let bad = |problem: &str| {
            let problem = Wording::new(format!("{problem}; start over without ")).field("resume");
            Error::format(path, "checkpoint", problem)
        };
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(Error::io(path))?;
        let mut parts = bytes.splitn(3, |&byte| byte == b'\n');
        let (magic, header, numbers) = (parts.next(), parts.next(), parts.next());
        if magic != Some(MAGIC.as_bytes()) {
            return Err(bad("it is not a checkpoint, or has another version"));
        }
        let (Some(header), Some(numbers)) = (header, numbers) else { return Err(bad("it is truncated")) };
        let header: Header = serde_json::from_slice(header).map_err(|_| bad("its header is damaged"))?;
        if header.precision != T::PRECISION {
            let problem = Wording::new("it belongs to a run with another ").field("precision");
            return Err(Error::format(
                path,
                "checkpoint",
                problem.text("; start over without ").field("resume"),
            ));
        }
        let Header { rows, cols, settings, log, errors, auxiliary, best, note, .. } = header;
        let k = settings.rank;
        let sizes = [rows, cols]
            .map(|length| length.checked_mul(k).and_then(|count| count.checked_mul(size_of::<T>())));
        let [Some(of_u), Some(of_v)] = sizes else { return Err(bad("its sizes are impossible")) };
        let copies = 1 + usize::from(auxiliary) + usize::from(best.is_some());
        if of_u.checked_add(of_v).and_then(|size| size.checked_mul(copies)) != Some(numbers.len()) {
            return Err(bad("it is truncated"));
        }
        let mut rest = numbers;
        let mut take = |size: usize| {
            let (part, tail) = rest.split_at(size);
            rest = tail;
            bytemuck::pod_collect_to_vec::<u8, T>(part)
        };
        let mut factors = || Factors { rows, cols, k, u: take(of_u), v: take(of_v) };
        let current = factors();
        let auxiliary = auxiliary.then(&mut factors);
        let best = best.map(|report| (factors(), report));
        let of_best = best.as_ref().map(|(factors, _)| factors);
        for factors in [Some(&current), auxiliary.as_ref(), of_best].into_iter().flatten() {
            factors.check(rows, cols, k).map_err(|_| bad("its factors are damaged"))?;
        }
        if settings.check(rows, cols).is_err() || !log.is_plausible(&settings) {
            return Err(bad("its header is damaged"));
        }
        Ok((Snapshot { settings, factors: current, auxiliary, log, errors, best }, note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Matrix, Order, Values};
    use crate::run::{Algorithm, Directive, Machine, Monitor, Progress, factorize};

    /// Keeps the last snapshot as a file's bytes.
    struct Keep(Vec<u8>);

    impl Monitor<f32> for Keep {
        fn progress(&mut self, _progress: &Progress) -> Directive {
            Directive { save: true, ..Directive::default() }
        }

        fn snapshot(&mut self, snapshot: Snapshot<f32>) -> Result<()> {
            self.0.clear();
            snapshot.write(&mut self.0, "note").map_err(Error::io(Path::new("memory")))
        }
    }

    /// A checkpoint of the second of two runs, and the place of its numbers.
    fn checkpoint(algorithm: Algorithm) -> (Vec<u8>, usize) {
        let values = (1..=12).map(|value| value as f32).collect();
        let matrix = Matrix::Dense(Dense::new(4, 3, Order::RowMajor, Values::Real(values)));
        let settings = Settings { algorithm, iterations: 2, restarts: 2, ..Settings::new(2) };
        let mut kept = Keep(Vec::new());
        factorize(matrix, Machine::new(1, 1), &settings, None, &mut kept).unwrap();
        // Current and best, with momentum a third pair, U and V each.
        let pairs = if algorithm == Algorithm::Auto { 3 } else { 2 };
        let numbers = kept.0.len() - pairs * (4 + 3) * 2 * size_of::<f32>();
        (kept.0, numbers)
    }

    fn read(bytes: &[u8]) -> Result<(Snapshot<f32>, String)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.checkpoint");
        std::fs::write(&path, bytes).unwrap();
        Snapshot::read(&path)
    }

    #[test]
    fn damaged_numbers_are_refused_in_the_best_run_too() {
        let (bytes, numbers) = checkpoint(Algorithm::Hals);
        assert_eq!(read(&bytes).unwrap().1, "note");
        for place in (numbers..bytes.len()).step_by(size_of::<f32>()) {
            for wrong in [f32::NAN, f32::INFINITY, -1.0] {
                let mut damaged = bytes.clone();
                damaged[place..place + 4].copy_from_slice(&wrong.to_ne_bytes());
                let message = read(&damaged).unwrap_err().to_string();
                assert!(message.contains("its factors are damaged; start over without resume"), "{message}");
            }
        }
    }

    #[test]
    fn counts_that_would_overflow_are_refused() {
        let (bytes, numbers) = checkpoint(Algorithm::Hals);
        let header = std::str::from_utf8(&bytes[..numbers]).unwrap();
        let log = header.find("\"log\"").unwrap();
        for field in
            ["\"iteration\":", "\"history\":[{\"iteration\":", "\"bytes_sent\":0,\"bytes_evaluate\":"]
        {
            let place = log + header[log..].find(field).unwrap() + field.len();
            let digits = header[place..].find([',', '}']).unwrap();
            let largest = u64::MAX.to_string();
            let damaged = [&bytes[..place], largest.as_bytes(), &bytes[place + digits..]].concat();
            let message = read(&damaged).unwrap_err().to_string();
            assert!(message.contains("its header is damaged"), "{field} {message}");
        }
        let none = header.replacen("\"restarts\":2", "\"restarts\":0", 1).into_bytes();
        assert!(read(&[&none, &bytes[numbers..]].concat()).is_err());
    }

    /// Found by fuzzing: a negative mean panicked in the first step, and so did an overflowing mean of a start
    /// without that of the other factor. The state of a method is checked for plausibility.
    #[test]
    fn an_implausible_method_state_is_refused() {
        let (bytes, numbers) = checkpoint(Algorithm::Dsanls);
        assert!(read(&bytes).is_ok());
        let header = std::str::from_utf8(&bytes[..numbers]).unwrap();
        let state = header.find("\"method\":").unwrap();
        for field in ["\"alpha\":", "\"beta\":", "\"first\":", "\"sum\":", "\"count\":"] {
            let place = state + header[state..].find(field).unwrap() + field.len();
            let damaged = [&bytes[..place], b"-", &bytes[place..]].concat();
            let message = read(&damaged).unwrap_err().to_string();
            assert!(message.contains("its header is damaged"), "{field} {message}");
        }
        let end = state + header[state..].find("}}}").unwrap() + 3;
        let auto = |weight: f64| {
            format!("\"method\":{{\"auto\":{{\"weight\":{weight},\"ceiling\":1.0,\"last\":null}}}}")
        };
        let replaced = |bytes: &[u8], from: usize, to: usize, with: &str| {
            [&bytes[..from], with.as_bytes(), &bytes[to..]].concat()
        };
        for other in ["\"method\":\"stateless\"", &auto(0.5)] {
            let message = read(&replaced(&bytes, state, end, other)).unwrap_err().to_string();
            assert!(message.contains("its header is damaged"), "{other} {message}");
        }
        let (bytes, numbers) = checkpoint(Algorithm::Hals);
        let header = std::str::from_utf8(&bytes[..numbers]).unwrap();
        let stateless = "\"method\":\"stateless\"";
        let state = header.find(stateless).unwrap();
        assert!(read(&replaced(&bytes, state, state + stateless.len(), &auto(0.5))).is_err());
        let (bytes, numbers) = checkpoint(Algorithm::Auto);
        assert!(read(&bytes).is_ok());
        let header = std::str::from_utf8(&bytes[..numbers]).unwrap();
        for (field, wrong) in [("\"weight\":", "2.0"), ("\"weight\":", "-1.0"), ("\"ceiling\":", "2.0")] {
            let state = header.find("\"method\":").unwrap();
            let place = state + header[state..].find(field).unwrap() + field.len();
            let end = place + header[place..].find(',').unwrap();
            assert!(read(&replaced(&bytes, place, end, wrong)).is_err(), "{field}{wrong}");
        }
        for start in [f64::NAN, f64::INFINITY, 0.0] {
            crate::run::Damping::new(&Settings::new(2), start).next::<f64>(0, 1.0, 0.0);
        }
    }
}
