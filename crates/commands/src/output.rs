//! Writes results completely or not at all: under a temporary name that is then renamed.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow, bail};
use partwise::error::human_bytes;
use partwise_federation::private;
pub use partwise_secure::audit::folder::{PARTY, TRANSCRIPT};

/// Every file that a run can write into its folder.
const NAMES: [&str; 16] = [
    "U.npy",
    "V.npy",
    "U.tsv",
    "V.tsv",
    "rows.txt",
    "columns.txt",
    "features.txt",
    "frames.npy",
    "trace.csv",
    "ranks.csv",
    "ranks.json",
    "run.json",
    TRANSCRIPT,
    AUDIT,
    INDIVIDUALS,
    "report.html",
];

/// The results of an audit.
pub const AUDIT: &str = "audit.json";

/// What a party should know about its own records.
pub const INDIVIDUALS: &str = "individuals.json";

/// The staging folder or file that a command is writing; clones share it.
///
/// Ending the program early removes it while holding this lock, so that no thread is renaming it at the same time.
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<Option<PathBuf>>>);

impl Outputs {
    /// Ends the program at once without leaving partial results.
    pub fn abandon(&self, code: i32) -> ! {
        // Held until the end: no new commit starts, and one in progress is waited for.
        let unfinished = self.0.lock();
        if let Ok(Some(path)) = unfinished.as_deref() {
            let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
        }
        std::process::exit(code)
    }

    /// Creates a staging folder for results.
    pub fn folder(&self, target: &Path) -> Result<Staging> {
        self.stage(target, |path| fs::create_dir(path))
    }

    /// Creates a staging folder whose files only their owner can read.
    pub fn private_folder(&self, target: &Path) -> Result<Staging> {
        self.stage(target, private::make_new_folder)
    }

    /// Creates a staging folder for results that started from those in another folder, if given: it is as private
    /// as these.
    pub fn folder_from(&self, results: Option<&Path>, target: &Path) -> Result<Staging> {
        match results.map_or(Access::Umask, Access::of) {
            Access::Umask => self.folder(target),
            Access::Owner => self.private_folder(target),
        }
    }

    /// Opens the staging folder of another MPI process, to write a part of the results.
    pub fn folder_of_another(&self, path: PathBuf, target: &Path) -> Staging {
        Staging { outputs: self.clone(), path, target: target.to_path_buf(), shared: true }
    }

    /// Writes a single file completely or not at all.
    pub fn write_whole(
        &self,
        target: &Path,
        argument: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.write_as(target, argument, Access::Umask, write)
    }

    /// Writes a single file that was made from the results in a folder, if given: it is as private as these.
    pub fn write_from(
        &self,
        results: Option<&Path>,
        target: &Path,
        argument: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.write_as(target, argument, results.map_or(Access::Umask, Access::of), write)
    }

    /// Adds a file to the results in a folder, completely or not at all.
    pub fn write_into(
        &self,
        folder: &Path,
        name: &str,
        argument: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.write_as(&folder.join(name), argument, Access::of(folder), write)
    }

    fn stage(&self, target: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<Staging> {
        let path = staging_path(target)?;
        self.set_unfinished(Some(&path));
        make(&path).map_err(|error| no_place(target, "--out", error))?;
        Ok(Staging { outputs: self.clone(), path, target: target.to_path_buf(), shared: false })
    }

    fn write_as(
        &self,
        target: &Path,
        argument: &str,
        access: Access,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let staging = staging_path(target)?;
        self.set_unfinished(Some(&staging));
        let written = write_file(&staging, access, write).and_then(|()| fs::rename(&staging, target));
        if written.is_err() {
            let _ = fs::remove_file(&staging);
        }
        self.set_unfinished(None);
        written.map_err(|error| cannot_write(target, argument, error))
    }

    fn set_unfinished(&self, path: Option<&Path>) {
        if let Ok(mut unfinished) = self.0.lock() {
            *unfinished = path.map(Path::to_path_buf);
        }
    }
}

/// Checks, before any work, that results can be written to `target`: a folder that is new or empty, or one whose
/// results may be replaced.
pub fn check_folder(target: &Path, force: bool) -> Result<()> {
    check_absent(target, "--out", force || is_empty_folder(target))?;
    if fs::symlink_metadata(target).is_ok() && !target.is_dir() {
        bail!("{} is a file, not a folder; choose another --out", target.display());
    }
    if let Some(name) = NAMES.iter().find(|name| target.join(name).is_dir()) {
        bail!("{} is a folder, which is not replaced; choose another --out", target.join(name).display());
    }
    probe(target, "--out")
}

/// Checks a folder for results that only their owner may read; an existing folder is made private.
pub fn check_private_folder(target: &Path, force: bool) -> Result<()> {
    check_folder(target, force)?;
    if target.is_dir() {
        private::close_folder(target).map_err(|error| {
            anyhow!(
                "{} cannot be made private: {error}; choose another --out, on a file system with permissions",
                target.display()
            )
        })?;
    }
    Ok(())
}

/// Checks a folder for other files, which must be new or empty.
pub fn check_new_folder(target: &Path) -> Result<()> {
    if fs::symlink_metadata(target).is_ok() && !is_empty_folder(target) {
        bail!("{} already exists; choose another --out, or remove it first", target.display());
    }
    probe(target, "--out")
}

/// Creates a private folder, which must be new or empty.
pub fn make_private_folder(target: &Path) -> Result<()> {
    check_new_folder(target)?;
    let made = if target.is_dir() { private::close_folder(target) } else { private::make_new_folder(target) };
    made.map_err(|error| no_place(target, "--out", error))
}

fn is_empty_folder(target: &Path) -> bool {
    fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none())
}

/// Checks a single output file, which the user gave as `argument`.
pub fn check_file(target: &Path, argument: &str, force: bool) -> Result<()> {
    check_absent(target, argument, force)?;
    if target.is_dir() {
        bail!("{} is a folder, not a file; choose another {argument}", target.display());
    }
    probe(target, argument)
}

fn check_absent(target: &Path, argument: &str, force: bool) -> Result<()> {
    if fs::symlink_metadata(target).is_ok() && !force {
        bail!("{} already exists; choose another {argument}, or replace it with --force", target.display());
    }
    Ok(())
}

/// Checks that the folder for staging is writable.
fn probe(target: &Path, argument: &str) -> Result<()> {
    let staging = staging_path(target)?;
    let made = fs::create_dir(&staging).and_then(|()| fs::remove_dir(&staging));
    made.map_err(|error| no_place(target, argument, error))
}

fn no_place(target: &Path, argument: &str, error: io::Error) -> anyhow::Error {
    let place = place(target);
    let missing = if place.exists() { "" } else { "create this folder first, or " };
    let cure = cure(argument, &error);
    anyhow!("cannot write to the folder {}: {error}; {missing}{cure}", place.display())
}

fn cannot_write(path: &Path, argument: &str, error: io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {error}; {}", path.display(), cure(argument, &error))
}

/// The advice for a run's own folder, for which the user cannot choose another name.
pub const DIR: &str = "DIR";

/// The advice if nothing can be written, given the argument that names the place.
fn cure(argument: &str, error: &io::Error) -> String {
    use io::ErrorKind::*;
    // A full disk does not always have its own error kind.
    let room = match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | NotFound | NotADirectory | AlreadyExists => "",
        _ => "free space there, or ",
    };
    match argument {
        DIR => format!("{room}copy the folder to a place where you can write, and use the copy"),
        _ => format!("{room}choose another {argument}"),
    }
}

/// The folder in which files are created: an existing target, which may be on another file system, or else its
/// parent.
fn place(target: &Path) -> &Path {
    match target.parent() {
        _ if target.is_dir() => target,
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn staging_path(target: &Path) -> Result<PathBuf> {
    let place = place(target);
    if place == target {
        return Ok(place.join(format!(".partial-{}", std::process::id())));
    }
    let Some(name) = target.file_name() else {
        bail!("{} cannot be written; choose another --out", target.display());
    };
    Ok(place.join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id())))
}

/// Refuses results that do not fit on the disk, before they are computed.
pub fn check_room(target: &Path, needed: u64) -> Result<()> {
    let free = crate::machine::free_space(place(target));
    if needed > free {
        bail!(
            "{}: the results need {}, but only {} is free; free space, or choose another --out",
            target.display(),
            human_bytes(needed),
            human_bytes(free)
        );
    }
    Ok(())
}

/// A folder under construction. If it is dropped before [`Staging::commit`], nothing remains.
pub struct Staging {
    outputs: Outputs,
    path: PathBuf,
    target: PathBuf,
    /// Another process created it and will rename or remove it.
    shared: bool,
}

impl Staging {
    /// The folder in which files are staged.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file of the folder.
    pub fn write(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let path = self.path.join(name);
        let access = Access::of(&self.path);
        // Each party has a folder of its own.
        let made = path.parent().map_or(Ok(()), |folder| match access {
            Access::Umask => fs::create_dir_all(folder),
            Access::Owner => private::make_folder(folder),
        });
        made.and_then(|()| write_file(&path, access, write))
            .map_err(|error| cannot_write(&self.target.join(name), "--out", error))
    }

    /// Renames the staging folder to its final name. An existing folder keeps its other files; all its earlier
    /// results are removed, so that the files in it belong together.
    pub fn commit(self) -> Result<()> {
        let unfinished = self.outputs.0.lock();
        let renamed = if place(&self.target) == self.target {
            exchange(&self.path, &self.target)
        } else {
            fs::rename(&self.path, &self.target)
        };
        drop(unfinished);
        renamed.map_err(|error| cannot_write(&self.target, "--out", error))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.shared {
            return;
        }
        // An error cannot be handled better here; after a rename there is nothing to remove.
        let _ = fs::remove_dir_all(&self.path);
        self.outputs.set_unfinished(None);
    }
}

/// The folder for earlier results while new ones replace them.
const OLD: &str = "old";

/// Replaces the results in `folder` by those in `new`. If anything fails, everything is moved back, so that old and
/// new results are never mixed.
fn exchange(new: &Path, folder: &Path) -> io::Result<()> {
    let old = new.join(OLD);
    fs::create_dir(&old)?;
    let mut moves: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut rename = |from: PathBuf, to: PathBuf| match fs::rename(&from, &to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            for (from, to) in moves.iter().rev() {
                let _ = fs::rename(to, from);
            }
            Err(error)
        }
        Ok(()) => {
            moves.push((from, to));
            Ok(())
        }
    };
    for name in results(folder)? {
        rename(folder.join(&name), old.join(&name))?;
    }
    for entry in fs::read_dir(new)? {
        let name = entry?.file_name();
        if name != OLD {
            rename(new.join(&name), folder.join(&name))?;
        }
    }
    Ok(())
}

/// The names of results that a folder can contain: those of a run, and those of its parties.
fn results(folder: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = NAMES.map(String::from).to_vec();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number =
            name.strip_prefix(PARTY).map(|number| number.bytes().all(|digit| digit.is_ascii_digit()));
        if number == Some(true) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Who may read a file.
#[derive(Clone, Copy)]
enum Access {
    /// As the umask allows.
    Umask,
    /// Its owner.
    Owner,
}

impl Access {
    /// Files that are added to private results are private.
    fn of(results: &Path) -> Self {
        if private::is_private(results) { Access::Owner } else { Access::Umask }
    }
}

fn write_file(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let file = match access {
        Access::Umask => options.open(path)?,
        Access::Owner => private::open(&mut options, path)?,
    };
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.into_inner().map_err(|error| error.into_error())?.sync_all()
}
