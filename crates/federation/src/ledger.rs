//! A party's ledger: what it sent, when, and whether it was masked. Each line is a JSON object with the hash of the
//! previous line, so that no line can be changed or removed without changing all that follow. It has hashes of the
//! messages as sent, and nothing below the masks.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::private;
use crate::text::{Fingerprint, timestamp};

/// The name of the file in a party's state folder.
pub const NAME: &str = "ledger.jsonl";

/// Who could read a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// Masked: only the sum over the cohort can be read.
    Masked,
    /// The coordinator.
    Plain,
    /// No data: keys, signatures, shares of masks, control messages, and values that were opened for all before.
    Public,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Counts lines from 1.
    pub line: u64,
    /// The time of the message.
    pub time: String,
    /// The kind of the message.
    pub kind: String,
    /// Whether it was masked.
    pub cover: Cover,
    /// How long it was.
    pub bytes: u64,
    /// The hash of the message as sent.
    pub sent: Fingerprint,
    /// The hash of the line before.
    pub previous: Fingerprint,
}

/// A ledger that is being written.
pub struct Ledger {
    path: PathBuf,
    file: File,
    lines: u64,
    last: Fingerprint,
    end: u64,
}

fn first() -> Fingerprint {
    Fingerprint([0; 32])
}

impl Ledger {
    /// Opens a ledger to append to, or creates one. A modified ledger is refused.
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file = private::open(&mut options, path).map_err(Error::io(path))?;
        let read = read(path)?;
        // An incomplete last line.
        file.set_len(read.end).map_err(Error::io(path))?;
        Ok(Ledger {
            path: path.into(),
            file,
            lines: read.entries.len() as u64,
            last: read.last,
            end: read.end,
        })
    }

    /// Records a message before it is sent. What cannot be recorded must not be sent.
    pub fn note(&mut self, kind: &str, cover: Cover, bytes: &[u8]) -> Result<()> {
        let entry = Entry {
            line: self.lines + 1,
            time: timestamp(),
            kind: kind.into(),
            cover,
            bytes: bytes.len() as u64,
            sent: Fingerprint::of(bytes),
            previous: self.last,
        };
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        let hash = Fingerprint::of(&line);
        line.push(b'\n');
        // Lines of messages with data are on disk before these are sent.
        let sync = |file: &File| if cover == Cover::Public { Ok(()) } else { file.sync_data() };
        if let Err(error) = self.file.write_all(&line).and_then(|()| sync(&self.file)) {
            let _ = self.file.set_len(self.end).and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(Error::io(&self.path)(error));
        }
        self.end += line.len() as u64;
        self.lines += 1;
        self.last = hash;
        Ok(())
    }
}

/// A ledger that was read.
pub struct Read {
    /// The lines.
    pub entries: Vec<Entry>,
    /// The hash of the last line; note it elsewhere to detect later changes.
    pub last: Fingerprint,
    end: u64,
}

/// Reads a ledger and checks its chain.
pub fn read(path: &Path) -> Result<Read> {
    let file = File::open(path).map_err(Error::io(path))?;
    let mut lines = BufReader::new(file);
    let mut read = Read { entries: Vec::new(), last: first(), end: 0 };
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines.read_until(b'\n', &mut line).map_err(Error::io(path))?;
        if line.pop() != Some(b'\n') {
            return Ok(read);
        }
        let number = read.entries.len() as u64 + 1;
        let broken = |what: &str| {
            let problem = format!("line {number} {what}; the ledger was changed after it was written");
            Err(Error::file(path, problem))
        };
        let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { return broken("is malformed") };
        if entry.previous != read.last {
            return broken("does not have the hash of the line before");
        }
        if entry.line != number {
            return broken("is out of sequence");
        }
        read.last = Fingerprint::of(&line);
        read.end += length as u64;
        read.entries.push(entry);
    }
}

/// What left a party, by kind: its cover, the number of messages and their bytes.
pub fn summary(entries: &[Entry]) -> BTreeMap<(String, Cover), (u64, u64)> {
    let mut summary = BTreeMap::new();
    for entry in entries {
        let (count, bytes) = summary.entry((entry.kind.clone(), entry.cover)).or_insert((0, 0));
        *count += 1;
        *bytes += entry.bytes;
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_ledger_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        for part in 0..2 {
            let mut ledger = Ledger::open(&path).unwrap();
            ledger.note("upload", Cover::Masked, &[part; 10]).unwrap();
            ledger.note("key", Cover::Public, &[part; 5]).unwrap();
        }
        let read_back = read(&path).unwrap();
        assert_eq!(read_back.entries.len(), 4);
        assert_eq!(summary(&read_back.entries)[&("upload".into(), Cover::Masked)], (2, 20));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for changed in [
            text.replacen("masked", "plain", 1),
            text.replacen("\"bytes\":10", "\"bytes\":11", 1),
            format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]),
            format!("{}\n{}\n{}\n", lines[1], lines[2], lines[3]),
        ] {
            std::fs::write(&path, changed).unwrap();
            assert!(read(&path).is_err());
            assert!(Ledger::open(&path).is_err());
        }
        // An incomplete last line is ignored and overwritten.
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        Ledger::open(&path).unwrap().note("key", Cover::Public, &[]).unwrap();
        assert_eq!(read(&path).unwrap().entries.len(), 4);
    }
}
