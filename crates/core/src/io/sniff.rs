//! What a file's first bytes say it is, to tell a wrong name from a damaged file.

use super::FileFormat;
use super::format::Signature;
use super::source::Source;
use crate::error::Result;

/// What is not a matrix but often taken for one.
const COMPRESSED: [Signature; 3] = [
    Signature { bytes: b"\x1f\x8b", what: "gzip data", cure: "add .gz to its name" },
    Signature { bytes: b"\xfd7zXZ", what: "xz data", cure: "decompress it, or use gzip" },
    Signature { bytes: b"\x28\xb5\x2f\xfd", what: "Zstandard data", cure: "decompress it, or use gzip" },
];

/// The problem if a file that starts with `start` is named as a `format`; `None` if it is not recognized.
fn mislabelled(format: FileFormat, start: &[u8]) -> Option<String> {
    let begins = |signature: &&Signature| {
        start.get(..signature.bytes.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(signature.bytes))
    };
    let own = format.info().signature.as_ref();
    if own.is_some_and(|signature| begins(&signature)) {
        return None;
    }
    let signatures = FileFormat::ALL.iter().filter_map(|format| format.info().signature.as_ref());
    let Signature { what, cure, .. } = signatures.chain(&COMPRESSED).find(begins)?;
    Some(format!("this is {what}, not {}; {cure}", format.info().name))
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
pub(super) fn expect(format: FileFormat, source: &mut Source) -> Result<()> {
    match mislabelled(format, source.peek()?) {
        Some(problem) => Err(source.error("content", problem)),
        None => Ok(()),
    }
}
