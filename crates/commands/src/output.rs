//! Results that appear whole or not at all: written under another name, then renamed.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow, bail};
use partwise::error::human_bytes;
use partwise_federation::private;
pub use partwise_secure::audit::folder::{PARTY, TRANSCRIPT};

/// Every file that a run may write into its folder.
const NAMES: [&str; 14] = [
    "U.npy",
    "V.npy",
    "U.tsv",
    "V.tsv",
    "rows.txt",
    "columns.txt",
    "features.txt",
    "frames.npy",
    "trace.csv",
    "run.json",
    TRANSCRIPT,
    AUDIT,
    INDIVIDUALS,
    "report.html",
];

/// What an audit found.
pub const AUDIT: &str = "audit.json";

/// What a party sees of its own records.
pub const INDIVIDUALS: &str = "individuals.json";

/// What a command is writing; clones know of the same.
///
/// It holds the staging folder or file that exists now: who ends the program early removes it under this lock, so that
/// nobody is in the middle of giving it its name.
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<Option<PathBuf>>>);

impl Outputs {
    /// Ends the program at once and leaves nothing unfinished behind.
    pub fn abandon(&self, code: i32) -> ! {
        // Held until the end: a commit that has not begun will not begin, one that has is waited for.
        let unfinished = self.0.lock();
        if let Ok(Some(path)) = unfinished.as_deref() {
            let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
        }
        std::process::exit(code)
    }

    /// Makes a folder of results that appears whole or not at all.
    pub fn folder(&self, target: &Path) -> Result<Staging> {
        self.stage(target, |path| fs::create_dir(path))
    }

    /// Makes one whose files only their owner can read.
    pub fn private_folder(&self, target: &Path) -> Result<Staging> {
        self.stage(target, private::make_new_folder)
    }

    /// Makes one for results that began from those in another folder, if there is one: as private as these.
    pub fn folder_from(&self, results: Option<&Path>, target: &Path) -> Result<Staging> {
        match results.map_or(Access::Umask, Access::of) {
            Access::Umask => self.folder(target),
            Access::Owner => self.private_folder(target),
        }
    }

    /// One that another rank has made, to write a part of the results.
    pub fn folder_of_another(&self, path: PathBuf, target: &Path) -> Staging {
        Staging { outputs: self.clone(), path, target: target.to_path_buf(), shared: true }
    }

    /// Writes a single file whole or not at all.
    pub fn write_whole(
        &self,
        target: &Path,
        argument: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.write_as(target, argument, Access::Umask, write)
    }

    /// Writes a single file that was made from the results in a folder, if there is one: as private as these.
    pub fn write_from(
        &self,
        results: Option<&Path>,
        target: &Path,
        argument: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.write_as(target, argument, results.map_or(Access::Umask, Access::of), write)
    }

    /// Adds a file to the results in a folder, whole or not at all.
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

/// Checks, before any work, that results can be written to `target`: a folder that does not exist yet or is empty, or one
/// whose results may be replaced.
pub fn check_folder(target: &Path, force: bool) -> Result<()> {
    check_absent(target, "--out", force || is_empty_folder(target))?;
    if fs::symlink_metadata(target).is_ok() && !target.is_dir() {
        bail!("{} is a file, not a folder; choose another --out", target.display());
    }
    if let Some(name) = NAMES.iter().find(|name| target.join(name).is_dir()) {
        bail!("{} is a folder and will not be replaced; choose another --out", target.join(name).display());
    }
    probe(target, "--out")
}

/// The same for results that only their owner may read: a folder that is there already becomes its owner's alone.
pub fn check_private_folder(target: &Path, force: bool) -> Result<()> {
    check_folder(target, force)?;
    if target.is_dir() {
        private::close_folder(target).map_err(|error| {
            anyhow!(
                "{} cannot be closed to others: {error}; choose another --out, which is made so that only its owner can read it",
                target.display()
            )
        })?;
    }
    Ok(())
}

/// The same for a folder of other files, which must not exist yet, or be empty.
pub fn check_new_folder(target: &Path) -> Result<()> {
    if fs::symlink_metadata(target).is_ok() && !is_empty_folder(target) {
        bail!("{} exists already; choose another --out, or remove it first", target.display());
    }
    probe(target, "--out")
}

/// Makes a folder that must not exist yet, or be empty, and that only its owner may read.
pub fn make_private_folder(target: &Path) -> Result<()> {
    check_new_folder(target)?;
    let made = if target.is_dir() { private::close_folder(target) } else { private::make_new_folder(target) };
    made.map_err(|error| no_place(target, "--out", error))
}

fn is_empty_folder(target: &Path) -> bool {
    fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none())
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
    let made = fs::create_dir(&staging).and_then(|()| fs::remove_dir(&staging));
    made.map_err(|error| no_place(target, argument, error))
}

fn no_place(target: &Path, argument: &str, error: io::Error) -> anyhow::Error {
    let place = place(target);
    let missing = if place.exists() { "" } else { "create that folder first, or " };
    let cure = cure(argument, &error);
    anyhow!("cannot write to the folder {}: {error}; {missing}{cure}", place.display())
}

fn cannot_write(path: &Path, argument: &str, error: io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {error}; {}", path.display(), cure(argument, &error))
}

/// The folder of a run, to which something is added: the user cannot choose another one for that.
pub const DIR: &str = "DIR";

/// What to do where nothing can be written, given the argument that says where.
fn cure(argument: &str, error: &io::Error) -> String {
    use io::ErrorKind::*;
    // A full disk does not always come with its own kind of error.
    let room = match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | NotFound | NotADirectory | AlreadyExists => "",
        _ => "make room there, or ",
    };
    match argument {
        DIR => format!("{room}copy the folder to where you can write, and give the copy"),
        _ => format!("{room}choose another {argument}"),
    }
}

/// The folder in which files are made: an existing target, which may be on a file system of its own, or else its
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
        bail!("{} is not a name to write to; choose another --out", target.display());
    };
    Ok(place.join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id())))
}

/// Refuses results that do not fit the disk, before they are computed.
pub fn check_room(target: &Path, needed: u64) -> Result<()> {
    let free = crate::machine::free_space(place(target));
    if needed > free {
        bail!(
            "{}: the results need {}, of which {} are free there; make room, or choose another --out",
            target.display(),
            human_bytes(needed),
            human_bytes(free)
        );
    }
    Ok(())
}

/// A folder under construction. Dropped before [`Staging::commit`], it leaves nothing behind.
pub struct Staging {
    outputs: Outputs,
    path: PathBuf,
    target: PathBuf,
    /// Another rank made it, which will give it its name or remove it.
    shared: bool,
}

impl Staging {
    /// Where files are before they have their names.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file of the folder.
    pub fn write(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let path = self.path.join(name);
        let access = Access::of(&self.path);
        // A party's files are in a folder of their own.
        let made = path.parent().map_or(Ok(()), |folder| match access {
            Access::Umask => fs::create_dir_all(folder),
            Access::Owner => private::make_folder(folder),
        });
        made.and_then(|()| write_file(&path, access, write))
            .map_err(|error| cannot_write(&self.target.join(name), "--out", error))
    }

    /// Gives the folder its name. An existing one keeps whatever else is in it; its earlier results go, also
    /// those that this run does not have, so that what is there belongs together.
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
        // Nothing better can be done with an error here; after a rename there is nothing to remove.
        let _ = fs::remove_dir_all(&self.path);
        self.outputs.set_unfinished(None);
    }
}

/// Where earlier results are kept while new ones take their places.
const OLD: &str = "old";

/// Puts the results in `new` into `folder` in place of those that are there. Whatever fails, all that was moved
/// goes back, so that old and new never stand side by side.
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

/// The names of results that a folder may have: those of a run, and those of the parties that are there.
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
    /// Whom the umask lets.
    Umask,
    /// Its owner.
    Owner,
}

impl Access {
    /// What is added to results that only their owner can read is like them.
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
