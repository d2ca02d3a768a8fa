//! Saves checkpoints of a run and resumes from them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use partwise::Real;
use partwise::error::Error;
use partwise::run::{Progress, Snapshot};

use crate::args::{FactorizeArgs, Interval, ReadArgs};
use crate::output::Outputs;

/// The checkpoint, next to the output folder.
pub struct Checkpoint {
    outputs: Outputs,
    path: PathBuf,
    every: Option<Interval>,
    /// The hash of the input and how it is read: another matrix of the same size belongs to another run.
    input: String,
    reading: String,
    /// The results that the run started from.
    began_from: Option<PathBuf>,
    last: Instant,
}

/// The checkpoint of `result` is `result.checkpoint`.
fn path_beside(out: &Path) -> PathBuf {
    // Removes a trailing slash.
    let mut name = out.components().as_path().as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// Refuses to overwrite the checkpoint of an earlier run, before any work.
pub fn check(args: &FactorizeArgs) -> Result<()> {
    let path = path_beside(&args.out);
    if args.checkpoint_every.is_some() && path.exists() && !args.resume && !args.force {
        bail!("{} already exists; resume from it with --resume, or replace it with --force", path.display());
    }
    Ok(())
}

impl Checkpoint {
    pub fn new(outputs: &Outputs, args: &FactorizeArgs, input: String) -> Self {
        let ReadArgs { transpose, header, row_names, images } = args.read;
        let given = args.init_from.as_ref().map(|dir| dir.to_string_lossy());
        let clock: String = args.network.iter().map(|network| format!(" {network}")).collect();
        Checkpoint {
            outputs: outputs.clone(),
            path: path_beside(&args.out),
            every: args.checkpoint_every,
            input,
            reading: format!("{transpose:?} {header:?} {row_names:?} {images:?} {given:?}{clock}"),
            began_from: args.init_from.clone(),
            last: Instant::now(),
        }
    }

    /// The checkpoint of an earlier run, if there is one.
    pub fn read<T: Real>(&self) -> Result<Option<Snapshot<T>>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let (snapshot, note) = Snapshot::read(&self.path)?;
        let (input, reading) = note.split_once(' ').unwrap_or((&note, ""));
        if input == self.input && reading != self.reading {
            bail!(
                "{}: the checkpoint belongs to a run with different --transpose, --images, --header, --row-names, \
                 --init-from or --network; use the same options, or start over without --resume",
                self.path.display()
            );
        }
        if input != self.input {
            bail!(
                "{}: the checkpoint belongs to another input file; use the same file, or start over without --resume",
                self.path.display()
            );
        }
        Ok(Some(snapshot))
    }

    /// Whether this run saves checkpoints.
    pub fn active(&self) -> bool {
        self.every.is_some()
    }

    /// Whether a checkpoint is due.
    pub fn due(&mut self, progress: &Progress) -> bool {
        match self.every {
            None => false,
            Some(Interval::Iterations(count)) => progress.iteration.is_multiple_of(count),
            Some(Interval::Seconds(seconds)) => self.last.elapsed().as_secs_f64() >= seconds,
        }
    }

    /// Replaces the file as a whole or not at all.
    pub fn save<T: Real>(&mut self, snapshot: &Snapshot<T>) -> partwise::Result<()> {
        self.last = Instant::now();
        let failed = |error: anyhow::Error| Error::Io {
            path: self.path.clone(),
            source: error.downcast().unwrap_or_else(std::io::Error::other),
        };
        let note = format!("{} {}", self.input, self.reading);
        let from = self.began_from.as_deref();
        let written = self.outputs.write_from(from, &self.path, "--out", |file| snapshot.write(file, &note));
        written.map_err(failed)
    }

    /// Removes the checkpoint after the results are written.
    pub fn remove(&self) {
        // A checkpoint that remains does no harm.
        let _ = std::fs::remove_file(&self.path);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
