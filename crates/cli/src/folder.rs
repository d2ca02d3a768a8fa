//! A folder that `factorize` wrote, read again.

use std::path::Path;

use anyhow::{Context, Result, bail};
use partwise::run::Factors;
use partwise::{Precision, Real, io};
use serde_json::Value;

use crate::machine::available_memory;

/// The factors of a run, its labels, and what its record says.
pub struct Folder<T> {
    pub factors: Factors<T>,
    pub row_labels: Option<Vec<String>>,
    pub col_labels: Option<Vec<String>>,
}

/// Reads the factors and labels of a folder.
pub fn read<T: Real>(dir: &Path) -> Result<Folder<T>> {
    if !dir.is_dir() {
        bail!("{} is not a folder; give one that `partwise factorize --out` wrote", dir.display());
    }
    let (rows, k, u) = io::npy::read_array::<T>(&dir.join("U.npy"), available_memory())?;
    let (cols, k_of_v, v) = io::npy::read_array::<T>(&dir.join("V.npy"), available_memory())?;
    if k != k_of_v {
        bail!(
            "{}: U.npy has {k} columns but V.npy has {k_of_v}; they are not of the same run, factorize again",
            dir.display()
        );
    }
    let labels = |name: &str, count: usize| -> Result<Option<Vec<String>>> {
        let path = dir.join(name);
        Ok(if path.exists() { Some(io::labels::read(&path, count)?) } else { None })
    };
    Ok(Folder {
        row_labels: labels("rows.txt", rows)?,
        col_labels: labels("columns.txt", cols)?,
        factors: Factors { rows, cols, k, u, v },
    })
}

/// What `run.json` says, as far as other commands need it.
pub struct Record {
    pub transpose: bool,
    pub precision: Precision,
}

/// Reads `run.json`; a folder with factors alone, made by hand, is taken as untransposed and f64.
pub fn record(dir: &Path) -> Result<Record> {
    let path = dir.join("run.json");
    let mut record = Record { transpose: false, precision: Precision::F64 };
    if path.exists() {
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let value: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is not JSON; factorize again", path.display()))?;
        record.transpose = value["transpose"].as_bool().unwrap_or(false);
        if value["precision"] == "f32" {
            record.precision = Precision::F32;
        }
    }
    Ok(record)
}
