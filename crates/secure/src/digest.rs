//! The SHA-256 of files, by which a run knows its data again.

use std::io::Read;
use std::path::Path;

use partwise::error::{Error, Result};
use partwise::io;
use sha2::{Digest, Sha256};

/// The SHA-256 of a file, as `sha256sum` prints it; of a folder of images, that of what `sha256sum` prints for
/// them there, in the order in which they are read.
pub fn sha256(path: &Path) -> Result<String> {
    if !path.is_dir() {
        return of_file(path);
    }
    let mut listing = Vec::new();
    for file in io::images::files(path)? {
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        listing.extend_from_slice(of_file(&file)?.as_bytes());
        listing.extend_from_slice(&[b"  ", name, b"\n"].concat());
    }
    Ok(hex(Sha256::digest(&listing).as_slice()))
}

fn of_file(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(Error::io(path))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hex(hash.finalize().as_slice()))
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
