//! Reads the result folder of `factorize`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use partwise::error::Error;
use partwise::io::ImageSide;
use partwise::matrix::Shape;
use partwise::objective::Loss;
use partwise::pipeline::MissingEntries;
use partwise::run::record::{RunKind, RunRecord};
use partwise::run::{Factors, Side};
use partwise::{Precision, Real, io};

use crate::machine::available_memory;
use crate::output;

/// The factors of a run, its labels and its record.
pub struct Folder<T> {
    pub factors: Factors<T>,
    pub row_labels: Option<Vec<String>>,
    pub col_labels: Option<Vec<String>>,
}

/// Reads the factors and labels of a folder.
pub fn read<T: Real>(dir: &Path) -> Result<Folder<T>> {
    if !dir.is_dir() {
        bail!("{} is not a folder; give a result folder of `partwise factorize`", dir.display());
    }
    check_kind(dir)?;
    for name in ["U.npy", "V.npy"] {
        if !dir.join(name).exists() {
            bail!("{} has no {name}; give a result folder of `partwise factorize`", dir.display());
        }
    }
    let (rows, k, u) = io::npy::read_array::<T>(&dir.join("U.npy"), available_memory())?;
    let (cols, k_of_v, v) = io::npy::read_array::<T>(&dir.join("V.npy"), available_memory())?;
    if k != k_of_v {
        bail!(
            "{}: U.npy has {k} columns but V.npy has {k_of_v}, so they come from different runs; factorize again",
            dir.display()
        );
    }
    if rows == 0 || cols == 0 || k == 0 {
        bail!(
            "{}: the factors are empty (U.npy is {rows} x {k}, V.npy {cols} x {k}); factorize again",
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

/// Names of the rows and columns of a matrix, of those that have any.
#[derive(Clone, Copy, Default)]
pub struct Names<'a> {
    pub rows: Option<&'a [String]>,
    pub cols: Option<&'a [String]>,
}

/// Refuses results whose factors are in several folders, and says where they are.
fn check_kind(dir: &Path) -> Result<()> {
    let (here, party) = (dir.display(), dir.join(format!("{}1", output::PARTY)));
    if party.is_dir() && !dir.join("U.npy").exists() {
        bail!(
            "{here} is a result of `partwise simulate`; its error is in run.json and its factors are in the folders \
             of the parties, so give one of these, such as {}",
            party.display()
        );
    }
    let factors = ["U.npy", "V.npy"].iter().filter(|name| dir.join(name).exists()).count();
    // If the record cannot be read, the error is about the missing factor.
    let record = if factors == 1 { RunRecord::read(dir).ok() } else { None };
    if record.is_some_and(|record| matches!(record.kind, RunKind::Federation(_))) {
        bail!(
            "{here} is the result of a coordinator, which has only the shared factor; give the result folder of a party"
        );
    }
    Ok(())
}

impl<T: Real> Folder<T> {
    /// Puts the rows of U and V into the order that the rows and columns of `file` have by their names, where both have
    /// names; refuses other names.
    pub fn match_names(&mut self, dir: &Path, file: &Path, names: Names<'_>) -> Result<()> {
        let k = self.factors.k;
        for (what, known, given, factor) in [
            ("rows", &mut self.row_labels, names.rows, &mut self.factors.u),
            ("columns", &mut self.col_labels, names.cols, &mut self.factors.v),
        ] {
            let (Some(known), Some(given)) = (known, given) else { continue };
            let order = order(known, given).map_err(|problem| {
                let (file, dir) = (file.display(), dir.display());
                anyhow!("{file}: {what} are matched by name with the factors in {dir}, but {problem}")
            })?;
            if let Some(order) = order {
                *factor = order.iter().flat_map(|&place| &factor[place * k..][..k]).copied().collect();
                *known = given.to_vec();
            }
        }
        Ok(())
    }

    /// Refuses factors of another matrix than the one in `file`, or with another number of components.
    pub fn check(&self, dir: &Path, file: &Path, shape: Shape, rank: Option<usize>) -> Result<()> {
        let Shape { rows: m, cols: n } = shape;
        let Factors { rows, cols, k, .. } = self.factors;
        if (rows, cols) != (m, n) {
            let cure =
                if (rows, cols) == (n, m) { "add or drop --transpose" } else { "use files of the same run" };
            bail!(
                "{} is {m} x {n}, but the factors in {} belong to a {rows} x {cols} matrix; {cure}",
                file.display(),
                dir.display()
            );
        }
        match rank {
            Some(rank) if rank != k => bail!(
                "--rank {rank}: the factors in {} have {k} components; use --rank {k} or another --init-from",
                dir.display()
            ),
            _ => Ok(()),
        }
    }
}

/// The position of each given name among the known ones; `None` if the order is the same.
fn order(known: &[String], given: &[String]) -> Result<Option<Vec<usize>>, String> {
    // A folder has one label per line, and a table has none with surrounding blanks.
    let plain = |names: &[String]| -> Vec<String> {
        names.iter().map(|name| name.replace(['\r', '\n'], " ").trim().to_string()).collect()
    };
    let (known, given) = (plain(known), plain(given));
    if known == given {
        return Ok(None);
    }
    let places: HashMap<&String, usize> = known.iter().zip(0..).collect();
    let found: HashSet<&String> = given.iter().collect();
    let missing = known.iter().find(|name| !found.contains(name)).map(|name| format!("{name:?} is missing"));
    let unexpected =
        given.iter().find(|name| !places.contains_key(name)).map(|name| format!("{name:?} is unexpected"));
    let problems: Vec<String> = missing.into_iter().chain(unexpected).collect();
    if !problems.is_empty() {
        return Err(format!("{}; use data with the same names, or try --transpose", problems.join(" and ")));
    }
    let mut seen = HashSet::new();
    // The sets are equal, so either all names are distinct or one occurs twice on the longer side.
    let longer = if given.len() >= known.len() { &given } else { &known };
    if let Some(name) = longer.iter().find(|name| !seen.insert(*name)) {
        return Err(format!(
            "{name:?} occurs more than once; rename one of them, or keep the order of the run"
        ));
    }
    Ok(Some(given.iter().map(|name| places[name]).collect()))
}

/// The parts of `run.json` that other commands need.
pub struct Record {
    pub transpose: bool,
    /// The side that images were read as.
    pub images: Option<ImageSide>,
    pub precision: Precision,
    /// The side of M that the samples are on.
    pub samples: Side,
    /// What was minimized.
    pub loss: Loss,
    /// Which entries were missing, unless a file specified them.
    pub missing: Option<MissingEntries>,
}

/// Reads `run.json`; a folder with factors alone, made by hand, is taken as untransposed and f64.
pub fn record(dir: &Path) -> Result<Record> {
    let record = RunRecord::read_if_there(dir).map_err(|error| match error {
        Error::DamagedRecord { path, problem } => {
            anyhow!("{}: not the record of a run ({problem}); factorize again", path.display())
        }
        error => error.into(),
    })?;
    let precision = record.as_ref().and_then(RunRecord::precision).unwrap_or(Precision::F64);
    let images = record.as_ref().and_then(RunRecord::images_in_file);
    let loss = record.as_ref().map_or(Loss::default(), RunRecord::loss_name);
    let missing = match record.as_ref().map(|record| &record.kind) {
        Some(RunKind::Factorization(run)) => run.reading.missing.as_deref().map(MissingEntries::from),
        _ => None,
    };
    let missing = missing.filter(|missing| !matches!(missing, MissingEntries::Mask(_)));
    let (transpose, samples) = record.map_or((false, Side::Rows), |of| (of.transpose(), of.samples()));
    Ok(Record { transpose, images, precision, samples, loss, missing })
}
