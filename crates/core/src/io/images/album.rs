//! The sources of images: a folder or a zip archive.

use std::io::Read;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::super::memory::Budget;
use super::super::npz::zip_error;
use super::super::source::{DEFLATE_RATIO, ReadSeek, open_seekable, read_error};
use super::error;
use crate::error::{Error, Result};

/// Image files by number, in the order of their names.
pub(super) trait Album {
    /// The names, as labels.
    fn names(&self) -> Vec<String>;
    /// A file's bytes.
    fn load(&mut self, index: usize) -> Result<Vec<u8>>;
    /// The advice if there are no images.
    fn cure(&self) -> &'static str;
}

/// The kind of a file by its name; `Err` for unsupported images.
fn is_image(name: &str) -> Result<bool, &'static str> {
    let hidden = name.split('/').any(|part| part.starts_with('.') || part == "__MACOSX");
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    match extension.as_deref() {
        _ if hidden => Ok(false),
        Some("jpg" | "jpeg" | "jpe" | "jfif" | "png") => Ok(true),
        Some("gif" | "bmp" | "tif" | "tiff" | "webp" | "pgm" | "ppm" | "avif" | "heic" | "jp2") => {
            Err("images of this kind are not read; convert it to PNG, or remove it")
        }
        _ => Ok(false),
    }
}

/// The image files of a folder, in the order in which they are read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = label(&path);
        let wanted = is_image(&name)
            .map_err(|problem| Error::format(folder, format!("image {name}"), problem))?
            // A link may point to a folder; opening a pipe would block.
            && std::fs::metadata(&path).map_err(Error::io(&path))?.is_file();
        if wanted {
            files.push(path);
        }
    }
    files.sort_by(|left, right| left.as_os_str().cmp(right.as_os_str()));
    Ok(files)
}

fn label(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The images of a folder.
pub(super) struct Folder<'a> {
    budget: Budget<'a>,
    files: Vec<PathBuf>,
}

impl<'a> Folder<'a> {
    pub fn open(budget: Budget<'a>) -> Result<Self> {
        Ok(Folder { budget, files: files(budget.path)? })
    }
}

impl Album for Folder<'_> {
    fn names(&self) -> Vec<String> {
        self.files.iter().map(|path| label(path)).collect()
    }

    fn load(&mut self, index: usize) -> Result<Vec<u8>> {
        let path = &self.files[index];
        let length = std::fs::metadata(path).map_err(Error::io(path))?.len();
        self.budget.check(&format!("the image {}", label(path)), length)?;
        std::fs::read(path).map_err(Error::io(path))
    }

    fn cure(&self) -> &'static str {
        "give a folder with images (subfolders are not searched), or a file"
    }
}

/// The images of a zip archive.
pub(super) struct Zip<'a> {
    budget: Budget<'a>,
    length: u64,
    archive: ZipArchive<Box<dyn ReadSeek + 'a>>,
    /// Names and numbers of the members that are images.
    members: Vec<(String, usize)>,
}

impl<'a> Zip<'a> {
    pub fn open(budget: Budget<'a>) -> Result<Self> {
        let (reader, length) = open_seekable(budget.path, budget)?;
        let archive = ZipArchive::new(reader).map_err(|error| zip_error(budget.path, None, error))?;
        let mut members = Vec::new();
        for (index, name) in archive.file_names().enumerate() {
            let name = name.map_err(|error| zip_error(budget.path, None, error))?.into_owned();
            if !name.ends_with('/') && is_image(&name).map_err(|problem| error(budget, &name, problem))? {
                members.push((name, index));
            }
        }
        members.sort();
        Ok(Zip { budget, length, archive, members })
    }
}

impl Album for Zip<'_> {
    fn names(&self) -> Vec<String> {
        self.members.iter().map(|(name, _)| name.clone()).collect()
    }

    fn load(&mut self, index: usize) -> Result<Vec<u8>> {
        let (name, number) = &self.members[index];
        let path = self.budget.path;
        let file = self.archive.by_index(*number).map_err(|error| zip_error(path, Some(name), error))?;
        let at_most = file.compressed_size().min(self.length).saturating_mul(DEFLATE_RATIO).min(file.size());
        let what = format!("the image {name}");
        let mut bytes = self.budget.vec(&what, usize::try_from(at_most).unwrap_or(usize::MAX))?;
        // Requesting one more byte makes the archive's reader verify the checksum.
        let read = file.take(at_most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| read_error(path, Some(name), error))?;
        Ok(bytes)
    }

    fn cure(&self) -> &'static str {
        "add some, or rename it to .npz if NumPy or SciPy wrote it"
    }
}
