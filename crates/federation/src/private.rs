//! Files and folders that only their owner can read, from the moment they exist and whatever the umask.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::Path;

/// The permissions of private files.
const FILE: u32 = 0o600;

/// The permissions of private folders.
const FOLDER: u32 = 0o700;

/// Opens a file and makes it private if it is new or was readable by others.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, FILE);
    let file = options.open(path)?;
    if is_open_to_others(&file.metadata()?.permissions()) {
        file.set_permissions(permissions(FILE, &file.metadata()?))?;
    }
    Ok(file)
}

/// Creates a folder and its missing parents; an existing folder is made private.
pub fn make_folder(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)?;
    close_folder(path)
}

/// Creates a folder that must not exist yet.
pub fn make_new_folder(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Replaces the content of a file atomically and durably, even if the machine stops meanwhile.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let staging = path.with_extension("new");
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(true), &staging)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&staging, path)?;
    sync_folder(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Waits until files created or renamed in a folder are on disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // On other systems, folders cannot be opened.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Makes a folder private.
pub fn close_folder(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    match is_open_to_others(&metadata.permissions()) {
        true => std::fs::set_permissions(path, permissions(FOLDER, &metadata)),
        false => Ok(()),
    }
}

/// Whether a folder is private.
pub fn is_private(folder: &Path) -> bool {
    cfg!(unix) && std::fs::metadata(folder).is_ok_and(|folder| !is_open_to_others(&folder.permissions()))
}

fn builder() -> DirBuilder {
    #[allow(unused_mut)]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
    builder
}

#[cfg(unix)]
fn is_open_to_others(permissions: &Permissions) -> bool {
    std::os::unix::fs::PermissionsExt::mode(permissions) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Permissions) -> bool {
    false
}

#[cfg(unix)]
fn permissions(mode: u32, _: &std::fs::Metadata) -> Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

#[cfg(not(unix))]
fn permissions(_: u32, metadata: &std::fs::Metadata) -> Permissions {
    metadata.permissions()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn readable_files_become_private_when_opened() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (file, inner) = (folder.path().join("file"), folder.path().join("a/b"));
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        open(OpenOptions::new().append(true).create(true), &file).unwrap();
        make_folder(&inner).unwrap();
        assert!(is_private(&inner) && is_private(inner.parent().unwrap()));
        std::fs::set_permissions(&inner, Permissions::from_mode(0o777)).unwrap();
        assert!(!is_private(&inner));
        make_folder(&inner).unwrap();
        assert_eq!([mode(&file), mode(&inner)], [FILE, FOLDER]);
        assert!(make_new_folder(&inner).is_err());
    }
}
