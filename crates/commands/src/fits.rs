//! Finished fits of `partwise ranks`, kept in a folder next to the output folder until all have ended.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use partwise::error::Error;
use partwise::selection::{FitStore, HeldOutLoss, RestartFit};
use partwise::{Real, io};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::available_memory;

/// The name of the file that describes the inputs of all fits.
const HEADER: &str = "survey.json";

/// A folder of fits.
pub struct FitFolder {
    path: PathBuf,
}

/// The content of a restart's file. Its V is in a separate file, which is written first.
#[derive(Serialize, Deserialize)]
struct Saved {
    loss: f64,
    labels: Vec<u16>,
}

/// The folder of fits: `ranks` keeps them in `ranks.fits`.
pub fn path_beside(out: &Path) -> PathBuf {
    // Removes a trailing slash.
    let mut name = out.components().as_path().as_os_str().to_owned();
    name.push(".fits");
    name.into()
}

/// Refuses to mix fits with those of an earlier run, before any work.
pub fn check(out: &Path, resume: bool, force: bool) -> Result<()> {
    let path = path_beside(out);
    if path.exists() && !resume && !force {
        bail!(
            "{} holds fits of an interrupted run; continue with --resume, or replace them with --force",
            path.display()
        );
    }
    Ok(())
}

impl FitFolder {
    /// Opens the folder next to `out`: a new one, or with `resume` the existing one, if its fits have the
    /// same inputs.
    pub fn open(out: &Path, resume: bool, made_from: &Value) -> Result<Self> {
        let path = path_beside(out);
        let failed = |error| anyhow::Error::from(Error::Io { path: path.clone(), source: error });
        let header = path.join(HEADER);
        if resume && path.exists() {
            let text = fs::read(&header).map_err(failed)?;
            if serde_json::from_slice::<Value>(&text).ok().as_ref() != Some(made_from) {
                bail!(
                    "{}: its fits belong to another input file or other settings; use the same ones, or start \
                     over without --resume",
                    path.display()
                );
            }
            return Ok(FitFolder { path });
        }
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed)?;
        }
        fs::create_dir_all(&path).map_err(failed)?;
        let folder = FitFolder { path: path.clone() };
        folder.write(HEADER, |file| serde_json::to_writer(file, made_from).map_err(Into::into))?;
        Ok(folder)
    }

    /// Removes the folder once all fits have ended and the results are written.
    pub fn remove(self) {
        // A folder that remains does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }

    fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> partwise::Result<()> {
        let (path, partial) = (self.path.join(name), self.path.join(format!("{name}.partial")));
        let written = fs::File::create(&partial)
            .map(std::io::BufWriter::new)
            .and_then(|mut file| write(&mut file).and_then(|()| file.flush()))
            .and_then(|()| fs::rename(&partial, &path));
        written.map_err(|source| Error::Io { path, source })
    }

    fn read<S: serde::de::DeserializeOwned>(&self, name: &str) -> partwise::Result<Option<S>> {
        let path = self.path.join(name);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| Error::Io { path, source: error.into() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { path, source }),
        }
    }
}

impl<T: Real> FitStore<T> for FitFolder {
    fn restart(&self, components: usize, restart: usize) -> partwise::Result<Option<RestartFit<T>>> {
        let name = format!("k{components}-restart{restart}");
        let Some(Saved { loss, labels }) = self.read(&format!("{name}.json"))? else { return Ok(None) };
        let path = self.path.join(format!("{name}.npy"));
        let (_, _, v) = io::npy::read_array::<T>(&path, available_memory())?;
        Ok(Some(RestartFit { loss, v, labels }))
    }

    fn fold(&self, components: usize, fold: usize) -> partwise::Result<Option<HeldOutLoss>> {
        let saved: Option<[HeldOutLoss; 1]> = self.read(&format!("k{components}-fold{fold}.json"))?;
        Ok(saved.map(|[loss]| loss))
    }

    fn save_restart(&self, components: usize, restart: usize, fit: &RestartFit<T>) -> partwise::Result<()> {
        let name = format!("k{components}-restart{restart}");
        let rows = fit.v.len() / components;
        self.write(&format!("{name}.npy"), |file| io::npy::write(file, rows, components, &fit.v))?;
        let saved = Saved { loss: fit.loss, labels: fit.labels.clone() };
        self.write(&format!("{name}.json"), |file| serde_json::to_writer(file, &saved).map_err(Into::into))
    }

    fn save_fold(&self, components: usize, fold: usize, loss: HeldOutLoss) -> partwise::Result<()> {
        let name = format!("k{components}-fold{fold}.json");
        self.write(&name, |file| serde_json::to_writer(file, &[loss]).map_err(Into::into))
    }
}
