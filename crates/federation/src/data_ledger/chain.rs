//! The file of a ledger: one JSON object per line, a hash chain of signed entries. One process at a time
//! appends to it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use partwise_secure::aggregation::{Identity, IdentityKey};
use partwise_secure::encoding::{Field, FieldValue, encode};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::{Account, DataSet, LedgerEntry, LedgerHistory};
use crate::error::{Error, Result};
use crate::private;
use crate::text::{Fingerprint, Hex, timestamp};

/// The version of what is signed.
const VERSION: u32 = 1;

/// An entry with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// Counts lines from 1.
    line: u64,
    time: String,
    entry: LedgerEntry,
}

/// A line of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    body: Body,
    /// The hash of the previous line.
    previous: Fingerprint,
    /// The identity key of the party that wrote this line.
    identity: Hex<32>,
    /// The signature on the body and the hash of the previous line.
    signature: Hex<64>,
}

fn signed_bytes(body: &Body, previous: &Fingerprint) -> Vec<u8> {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let fields =
        [Field::new("previous", previous.0), Field { name: "body".into(), value: FieldValue::Bytes(body) }];
    encode("partwise data ledger", VERSION, &fields)
}

impl Line {
    /// The entry of this line.
    pub fn entry(&self) -> &LedgerEntry {
        &self.body.entry
    }

    /// The time of the entry.
    pub fn time(&self) -> &str {
        &self.body.time
    }

    /// Whether the signature matches the identity key in the line.
    fn is_signed(&self) -> bool {
        let key = IdentityKey::from_bytes(&self.identity.0);
        key.is_some_and(|key| key.has_signed(&signed_bytes(&self.body, &self.previous), &self.signature.0))
    }
}

/// A ledger as read from its file, with its totals.
pub struct Read {
    /// The lines of the ledger.
    pub lines: Vec<Line>,
    /// The totals over all lines.
    pub account: Account,
    /// The hashes of the lines.
    pub history: LedgerHistory,
    /// The position after the last complete line.
    end: u64,
}

/// Reads a ledger, and checks its chain, its signatures and the runs to which its entries refer.
pub fn read(path: &Path) -> Result<Read> {
    let file = File::open(path).map_err(Error::io(path))?;
    let mut text = BufReader::new(file);
    let history = LedgerHistory::none();
    let mut read = Read { lines: Vec::new(), account: Account::default(), history, end: 0 };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let length = text.read_until(b'\n', &mut bytes).map_err(Error::io(path))?;
        if bytes.pop() != Some(b'\n') {
            return Ok(read);
        }
        read.take(&bytes).map_err(|what| {
            let problem = format!(
                "line {} {what}; the ledger was changed after it was written; restore it",
                read.lines.len() + 1
            );
            Error::file(path, problem)
        })?;
        read.end += length as u64;
    }
}

impl Read {
    fn take(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let line: Line = serde_json::from_slice(bytes).map_err(|_| "is malformed")?;
        if line.previous != self.last() {
            return Err("does not have the hash of the line before");
        }
        if line.body.line != self.lines.len() as u64 + 1 {
            return Err("is out of sequence");
        }
        if !line.is_signed() {
            return Err("is not signed by the identity key in it");
        }
        match line.entry() {
            LedgerEntry::Created { ledger, .. } if self.lines.is_empty() => self.history.ledger = *ledger,
            LedgerEntry::Created { .. } => return Err("begins the ledger a second time"),
            _ if self.lines.is_empty() => return Err("does not begin a ledger"),
            _ => {}
        }
        self.account.take(line.entry(), line.time())?;
        self.history.hashes.push(Fingerprint::of(bytes));
        self.lines.push(line);
        Ok(())
    }

    fn last(&self) -> Fingerprint {
        self.history.hashes.last().copied().unwrap_or(Fingerprint([0; 32]))
    }
}

/// A ledger that only this process may append to.
pub struct DataLedger {
    path: PathBuf,
    file: File,
    identity: Identity,
    data: DataSet,
    read: Read,
}

impl DataLedger {
    /// The path of a data set's ledger in a folder.
    pub fn path_in(folder: &Path, data: &Fingerprint) -> PathBuf {
        folder.join(format!("{}.jsonl", &Hex(data.0).to_string()[..32]))
    }

    /// Opens the ledger of a data set, or creates it, and locks it. A modified ledger is refused.
    pub fn open(folder: &Path, data: &DataSet, identity: &Identity) -> Result<Self> {
        private::make_folder(folder).map_err(Error::io(folder))?;
        let path = DataLedger::path_in(folder, &data.digest);
        let mut options = OpenOptions::new();
        let file =
            private::open(options.read(true).append(true).create(true), &path).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::file(
                    path,
                    "another process is using the same data; wait until it has ended",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(&path)(error)),
        }
        let read = read(&path)?;
        // Removes an incomplete last line.
        file.set_len(read.end).map_err(Error::io(&path))?;
        let mut ledger = DataLedger { path, file, identity: identity.clone(), data: *data, read };
        match ledger.account().data {
            None => {
                let mut name = Hex([0; 32]);
                partwise_secure::entropy()?.fill_bytes(&mut name.0);
                let DataSet { digest, records, features } = *data;
                ledger.append(LedgerEntry::Created { ledger: name, data: digest, records, features })?;
                private::sync_folder(folder).map_err(Error::io(folder))?;
            }
            Some(other) if other == data.digest => {}
            Some(_) => {
                return Err(Error::file(ledger.path, "is the ledger of other data; restore the right one"));
            }
        }
        Ok(ledger)
    }

    /// Appends an entry. It is on disk when this returns.
    pub fn append(&mut self, entry: LedgerEntry) -> Result<()> {
        let body = Body { line: self.read.lines.len() as u64 + 1, time: timestamp(), entry };
        let previous = self.read.last();
        let signature = Hex(self.identity.sign(&signed_bytes(&body, &previous)));
        let line = Line { body, previous, identity: Hex(*self.identity.key().bytes()), signature };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        let end = self.read.end;
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            let _ = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(Error::io(&self.path)(error));
        }
        let taken = self.read.take(&bytes[..bytes.len() - 1]);
        taken.map_err(|what| Error::State { problem: format!("an entry of the ledger that {what}") })?;
        self.read.end += bytes.len() as u64;
        Ok(())
    }

    /// Records that a run may open this many sums, a batch in advance, unless this is already recorded.
    pub fn note_sums(&mut self, run: [u8; 32], sums: u64) -> Result<()> {
        let Some(of) = self.account().run(&run) else { return Err(self.unknown_run()) };
        if sums <= of.sums {
            return Ok(());
        }
        // Sketches are recorded individually.
        let batch = if of.started.sketches.is_some() { 1 } else { BATCH };
        self.append(LedgerEntry::SumsOpened { run: Hex(run), sums: sums.next_multiple_of(batch) })
    }

    /// The error for a run that is not in the ledger.
    pub fn unknown_run(&self) -> Error {
        let problem = "does not contain the run in progress; restore the newest copy of the ledger, or \
         remove the run's journal";
        Error::file(&self.path, problem)
    }

    /// The totals of the ledger.
    pub fn account(&self) -> &Account {
        &self.read.account
    }

    /// The hashes of the ledger's entries.
    pub fn history(&self) -> &LedgerHistory {
        &self.read.history
    }

    /// The data set of the ledger.
    pub fn data(&self) -> &DataSet {
        &self.data
    }

    /// The path of the ledger's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The number of sums that are recorded together in advance, because each write waits for the disk.
const BATCH: u64 = 32;

/// A ledger that is shared between a run and its callers.
#[derive(Clone)]
pub struct SharedLedger(Arc<Mutex<DataLedger>>);

impl SharedLedger {
    /// Shares this ledger.
    pub fn new(ledger: DataLedger) -> Self {
        SharedLedger(Arc::new(Mutex::new(ledger)))
    }

    /// Locks the ledger.
    pub fn lock(&self) -> MutexGuard<'_, DataLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use partwise_secure::protocol::leak::OpenedSketches;
    use partwise_secure::protocol::{Protocol, Settings};

    use super::*;
    use crate::agreement::{Member, Terms};
    use crate::data_ledger::{RunEnd, RunStarted};

    const DATA: DataSet = DataSet { digest: Fingerprint([7; 32]), records: 20, features: 9 };

    fn identity() -> Identity {
        Identity::from_secret(&[3; 32])
    }

    fn open(folder: &Path) -> Result<DataLedger> {
        DataLedger::open(folder, &DATA, &identity())
    }

    fn started(run: u8, names: &[&str]) -> LedgerEntry {
        let member =
            |name: &&str| Member { name: name.to_string(), identity: Fingerprint::of(name.as_bytes()) };
        let terms = Terms {
            federation: "demo".into(),
            settings: Settings { rounds: 4, ..Settings::new(Protocol::DsanlsLimited, 2) },
            roster: names.iter().map(member).collect(),
            cohort: 3,
            groups: Vec::new(),
            deadline: 10.0,
            heartbeat: 1.0,
        };
        LedgerEntry::RunStarted(Box::new(RunStarted::new([run; 32], &terms, 1, DATA.records)))
    }

    fn ended(run: u8, rounds: usize) -> LedgerEntry {
        let sent = Fingerprint([9; 32]);
        LedgerEntry::RunEnded { run: Hex([run; 32]), end: RunEnd::Finished, sums: 9, rounds, sent }
    }

    #[test]
    fn runs_add_up_over_processes() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = open(folder.path()).unwrap();
        ledger.append(started(1, &["a", "b", "c"])).unwrap();
        ledger.note_sums([1; 32], 1).unwrap();
        ledger.append(ended(1, 3)).unwrap();
        drop(ledger);
        let mut ledger = open(folder.path()).unwrap();
        ledger.append(started(2, &["a", "b", "c"])).unwrap();
        // A run that was killed after two sums, each of which may have been a sketch.
        (1..=2).for_each(|sums| ledger.note_sums([2; 32], sums).unwrap());
        ledger.note_sums([2; 32], 1).unwrap();
        ledger.append(LedgerEntry::GateStop { run: Hex([2; 32]), gate: "one-hot".into() }).unwrap();
        assert!(ledger.note_sums([3; 32], 1).is_err());
        drop(ledger);
        let read = read(&DataLedger::path_in(folder.path(), &DATA.digest)).unwrap();
        let account = &read.account;
        assert_eq!((account.equations(), account.sums(), account.gate_stops()), (3 * 4 + 2 * 4, 11, 1));
        let opened: Vec<OpenedSketches> = account.sketches_before(&[2; 32]);
        assert_eq!(opened.iter().map(|opened| opened.rounds).collect::<Vec<_>>(), [3]);
        assert_eq!(read.lines.len(), 8);
    }

    #[test]
    fn a_changed_ledger_and_a_second_writer_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = open(folder.path()).unwrap();
        let error = open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another process is using the same data"), "{error}");
        ledger.append(started(1, &["a", "b", "c"])).unwrap();
        ledger.append(ended(1, 3)).unwrap();
        let path = ledger.path().to_path_buf();
        drop(ledger);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let other = Identity::from_secret(&[4; 32]);
        let forged = Line { identity: Hex(*other.key().bytes()), ..serde_json::from_str(lines[2]).unwrap() };
        for changed in [
            text.replacen("\"rounds\":3", "\"rounds\":1", 1),
            text.replacen("demo", "deme", 1),
            lines[..1].join("\n") + "\n" + lines[2] + "\n",
            lines[1..].join("\n") + "\n",
            text.clone() + lines[2] + "\n",
            format!("{}\n{}\n{}\n", lines[0], lines[1], serde_json::to_string(&forged).unwrap()),
        ] {
            std::fs::write(&path, changed).unwrap();
            let error = open(folder.path()).err().unwrap().to_string();
            assert!(error.contains("the ledger was changed after it was written"), "{error}");
        }
        // An incomplete line is ignored.
        for cut in [1, lines[2].len() / 2] {
            std::fs::write(&path, &text[..text.len() - cut]).unwrap();
            let mut ledger = open(folder.path()).unwrap();
            assert_eq!(ledger.history().hashes.len(), 2);
            ledger.append(ended(1, 3)).unwrap();
            assert_eq!(read(&path).unwrap().lines.len(), 3);
        }
        // The ledger of other data under this name.
        std::fs::write(&path, &text).unwrap();
        let other = DataSet { digest: Fingerprint([8; 32]), ..DATA };
        let moved = DataLedger::path_in(folder.path(), &other.digest);
        std::fs::rename(&path, moved).unwrap();
        let error = DataLedger::open(folder.path(), &other, &identity()).err().unwrap().to_string();
        assert!(error.contains("is the ledger of other data"), "{error}");
    }
}
