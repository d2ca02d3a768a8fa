//! Files and folders that only their owner can read, from their first byte on and whatever the umask is.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::Path;

/// What a file's owner may do, and nobody else anything.
const FILE: u32 = 0o600;

/// The same of a folder.
const FOLDER: u32 = 0o700;

/// Opens a file; if this makes it, or others could read it so far, it is its owner's alone.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, FILE);
    let file = options.open(path)?;
    if is_open_to_others(&file.metadata()?.permissions()) {
        file.set_permissions(permissions(FILE, &file.metadata()?))?;
    }
    Ok(file)
}

/// Makes a folder and those that it is in, as far as they are not there; one that is there becomes its owner's alone.
pub fn make_folder(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)?;
    close_folder(path)
}

/// Makes a folder that must not be there yet.
pub fn make_new_folder(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Replaces what is in a file, whole or not at all, also where the machine stops meanwhile.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let staging = path.with_extension("new");
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(true), &staging)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&staging, path)?;
    sync_folder(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Waits until what was made or renamed in a folder is on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Lets nobody but the owner of a folder look into it from now on.
pub fn close_folder(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    match is_open_to_others(&metadata.permissions()) {
        true => std::fs::set_permissions(path, permissions(FOLDER, &metadata)),
        false => Ok(()),
    }
}

/// Whether nobody but its owner can look into a folder.
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
    fn what_others_could_read_is_closed_when_it_is_opened() {
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
