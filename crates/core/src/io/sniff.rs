//! What a file's first bytes say it is, to tell a wrong name from a damaged file.

use super::FileFormat;
use super::source::Source;
use crate::error::Result;

/// Formats that begin with a signature, what they are called, and the ending that their names should have.
const SIGNATURES: [(&[u8], Option<FileFormat>, &str, &str); 7] = [
    (b"\x93NUMPY", Some(FileFormat::Npy), "a NumPy array", "rename it to end in .npy"),
    (
        b"PK\x03\x04",
        Some(FileFormat::Npz),
        "a zip archive",
        "rename it to end in .npz if NumPy or SciPy made it, in .zip if it holds images",
    ),
    (b"%%MatrixMarket", Some(FileFormat::MatrixMarket), "a Matrix Market file", "rename it to end in .mtx"),
    (b"\x1f\x8b", None, "gzip data", "add .gz to its name"),
    (b"\x89HDF\r\n", Some(FileFormat::H5ad), "an HDF5 file", "rename it to end in .h5ad if AnnData made it"),
    (b"\xfd7zXZ", None, "xz data", "decompress it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", None, "Zstandard data", "decompress it, or use gzip"),
];

/// What is wrong if a file that begins with `start` calls itself a `kind`; nothing if there is no telling.
fn mislabelled(kind: FileFormat, start: &[u8]) -> Option<String> {
    let begins = |signature: &[u8]| {
        start.get(..signature.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(signature))
    };
    let (_, found, what, cure) = SIGNATURES.iter().find(|(signature, ..)| begins(signature))?;
    let zip_of_images = kind == FileFormat::Images && *found == Some(FileFormat::Npz);
    if *found == Some(kind) || zip_of_images {
        return None;
    }
    Some(format!("this is {what}, not {}; {cure}", kind.words()))
}

/// What bytes without the expected signature look like.
pub(super) fn looks_like(start: &[u8]) -> &'static str {
    let text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    match start {
        [] => "nothing",
        _ if start.iter().take(256).all(text) => "text",
        _ => "other binary data",
    }
}

/// Refuses a source whose first bytes belong to another format.
pub(super) fn expect(kind: FileFormat, source: &mut Source) -> Result<()> {
    match mislabelled(kind, source.peek()?) {
        Some(problem) => Err(source.error("content", problem)),
        None => Ok(()),
    }
}
