//! Names of rows or columns in a text file of their own, one a line.

use std::io::{self, Write};
use std::path::Path;

use super::source::Source;
use crate::error::{Error, Result};

/// Reads exactly `expected` labels; a `.gz` file is decompressed.
pub fn read(path: &Path, expected: usize) -> Result<Vec<String>> {
    let mut source = Source::open(path)?;
    let mut labels = Vec::new();
    let mut count = 0usize;
    let mut line = Vec::new();
    while source.line(&mut line)? {
        // Lines may also end in CR alone, the last one included.
        for bytes in line.strip_suffix(b"\r").unwrap_or(&line).split(|&byte| byte == b'\r') {
            count += 1;
            // Those beyond are only counted.
            if count > expected {
                continue;
            }
            let bytes = if count == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
            let text = std::str::from_utf8(bytes).map_err(|_| {
                let problem = "the label is not UTF-8; save the file in that encoding";
                Error::format(path, format!("line {count}"), problem)
            })?;
            labels.push(text.to_string());
        }
    }
    if count != expected {
        let problem =
            format!("{count} labels, but the matrix needs {expected}; write one per line, without a header");
        return Err(Error::format(path, "content", problem));
    }
    Ok(labels)
}

/// Writes labels, one a line. Line ends within a label, which would make two of it, become blanks.
pub fn write(mut writer: impl Write, labels: &[impl AsRef<str>]) -> io::Result<()> {
    for label in labels {
        writeln!(writer, "{}", label.as_ref().replace(['\r', '\n'], " "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.txt");
        let names = ["a", "", "ü b\tc", "two\nlines"];
        write(std::fs::File::create(&path).unwrap(), &names).unwrap();
        assert_eq!(read(&path, 4).unwrap(), ["a", "", "ü b\tc", "two lines"]);
        for expected in [0, 3, 5] {
            let message = read(&path, expected).unwrap_err().to_string();
            assert!(message.contains(&format!("4 labels, where the matrix needs {expected}")), "{message}");
        }
        std::fs::write(&path, b"\xef\xbb\xbfx\r\ny").unwrap();
        assert_eq!(read(&path, 2).unwrap(), ["x", "y"]);
        for ends in ["\n", "\r\n", "\r"] {
            for text in ["x| |z|", "x| |z"] {
                std::fs::write(&path, text.replace('|', ends)).unwrap();
                assert_eq!(read(&path, 3).unwrap(), ["x", " ", "z"], "{ends:?}");
            }
            std::fs::write(&path, [b"x", ends.as_bytes(), b"\xff", ends.as_bytes()].concat()).unwrap();
            assert!(read(&path, 2).unwrap_err().to_string().contains("line 2: the label is not UTF-8"));
        }
    }
}
