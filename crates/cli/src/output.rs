//! Results that appear whole or not at all: written under another name, then renamed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Every file that a run may write into its folder.
pub const NAMES: [&str; 8] =
    ["U.npy", "V.npy", "U.tsv", "V.tsv", "rows.txt", "columns.txt", "trace.csv", "run.json"];

/// Checks, before any work, that results can be written to `target`: a folder that does not exist yet, or one
/// whose results may be replaced.
pub fn check_folder(target: &Path, force: bool) -> Result<()> {
    check_absent(target, "--out", force)?;
    if target.exists() && !target.is_dir() {
        bail!("{} is a file, not a folder; choose another --out", target.display());
    }
    probe(target, "--out")
}

/// The same for a single file, which the user gave as `argument`.
pub fn check_file(target: &Path, argument: &str, force: bool) -> Result<()> {
    check_absent(target, argument, force)?;
    if target.is_dir() {
        bail!("{} is a folder, not a file; choose another {argument}", target.display());
    }
    probe(target, argument)
}

fn check_absent(target: &Path, argument: &str, force: bool) -> Result<()> {
    if fs::symlink_metadata(target).is_ok() && !force {
        bail!("{} exists already; choose another {argument}, or replace it with --force", target.display());
    }
    Ok(())
}

/// Whether the place where the staging goes can be written to.
fn probe(target: &Path, argument: &str) -> Result<()> {
    let staging = staging_path(target)?;
    fs::create_dir(&staging).and_then(|()| fs::remove_dir(&staging)).with_context(|| {
        format!(
            "cannot write to {}; choose another {argument}, or create the folder first",
            parent(target).display()
        )
    })
}

fn parent(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn staging_path(target: &Path) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        bail!("{} is not a name to write to; choose another --out", target.display());
    };
    let name = format!(".{}.partial-{}", name.to_string_lossy(), std::process::id());
    Ok(parent(target).join(name))
}

/// A folder under construction. Dropped before [`Staging::commit`], it leaves nothing behind.
pub struct Staging {
    path: PathBuf,
    target: PathBuf,
    done: bool,
}

impl Staging {
    pub fn new(target: &Path) -> Result<Self> {
        let path = staging_path(target)?;
        fs::create_dir(&path).with_context(|| format!("cannot write to {}", parent(target).display()))?;
        Ok(Staging { path, target: target.to_path_buf(), done: false })
    }

    /// Writes one file of the folder.
    pub fn write(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        write_file(&self.path.join(name), write).with_context(|| {
            format!(
                "cannot write {}; make room there or choose another --out",
                self.target.join(name).display()
            )
        })
    }

    /// Gives the folder its name. An existing one keeps whatever else is in it; results of an earlier run that
    /// this one does not have are removed, so that what is there belongs together.
    pub fn commit(mut self) -> Result<()> {
        let failed = || format!("cannot put the results into {}", self.target.display());
        if !self.target.exists() {
            fs::rename(&self.path, &self.target).with_context(failed)?;
        } else {
            for name in NAMES {
                let (from, to) = (self.path.join(name), self.target.join(name));
                if from.exists() {
                    fs::rename(&from, &to).with_context(failed)?;
                } else if to.exists() {
                    fs::remove_file(&to).with_context(failed)?;
                }
            }
            fs::remove_dir(&self.path).with_context(failed)?;
        }
        self.done = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            // Nothing better can be done with an error here.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Writes a single file whole or not at all.
pub fn write_whole(
    target: &Path,
    argument: &str,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let staging = staging_path(target)?;
    let written = write_file(&staging, write).and_then(|()| fs::rename(&staging, target));
    if written.is_err() {
        let _ = fs::remove_file(&staging);
    }
    written.with_context(|| {
        format!("cannot write {}; make room there or choose another {argument}", target.display())
    })
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create_new(path)?);
    write(&mut file)?;
    file.into_inner().map_err(|error| error.into_error())?.sync_all()
}
