//! Where a run saves itself while it works, and takes itself up again.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use partwise::Real;
use partwise::error::Error;
use partwise::run::{Progress, Snapshot};

use crate::args::{FactorizeArgs, Interval};
use crate::output;

/// The file beside the output folder.
pub struct Checkpoint {
    path: PathBuf,
    every: Option<Interval>,
    /// The hash of the input: another matrix of the same size is another run.
    input: String,
    last: Instant,
}

/// `result` saves to `result.checkpoint`.
fn path_beside(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// Refuses to overwrite an earlier run's checkpoint, before any work.
pub fn check(args: &FactorizeArgs) -> Result<()> {
    let path = path_beside(&args.out);
    if args.checkpoint_every.is_some() && path.exists() && !args.resume && !args.force {
        bail!("{} exists already; go on from it with --resume, or replace it with --force", path.display());
    }
    Ok(())
}

impl Checkpoint {
    pub fn new(args: &FactorizeArgs, input: String) -> Self {
        Checkpoint { path: path_beside(&args.out), every: args.checkpoint_every, input, last: Instant::now() }
    }

    /// What an earlier run left, if anything.
    pub fn read<T: Real>(&self) -> Result<Option<Snapshot<T>>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let (snapshot, input) = Snapshot::read(&self.path)?;
        if input != self.input {
            bail!(
                "{}: it is of another input file; give the same, or begin anew without --resume",
                self.path.display()
            );
        }
        Ok(Some(snapshot))
    }

    /// Whether runs are saved at all.
    pub fn active(&self) -> bool {
        self.every.is_some()
    }

    /// Whether to save now.
    pub fn due(&mut self, progress: &Progress) -> bool {
        match self.every {
            None => false,
            Some(Interval::Iterations(count)) => progress.iteration.is_multiple_of(count),
            Some(Interval::Seconds(seconds)) => self.last.elapsed().as_secs_f64() >= seconds,
        }
    }

    /// Replaces the file, whole or not at all.
    pub fn save<T: Real>(&mut self, snapshot: &Snapshot<T>) -> partwise::Result<()> {
        self.last = Instant::now();
        let failed = |error: anyhow::Error| Error::Io {
            path: self.path.clone(),
            source: error.downcast().unwrap_or_else(std::io::Error::other),
        };
        output::write_whole(&self.path, "--out", |file| snapshot.write(file, &self.input)).map_err(failed)
    }

    /// The results are written: nothing to go on from.
    pub fn remove(&self) {
        // A checkpoint that stays is no harm.
        let _ = std::fs::remove_file(&self.path);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
