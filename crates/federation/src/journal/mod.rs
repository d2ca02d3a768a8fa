//! Append-only files of records with a length and a checksum: a party's journal of the answers that it received,
//! and the coordinator's of those that it gave. An incomplete record is ignored.

mod coordinator;
mod party;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use coordinator::{AnswerIndex, CoordinatorEntry, CoordinatorHead, StoredAnswer, read_answer};
pub use party::{PartyHead, PartyJournal};
#[cfg(test)]
pub(crate) use party::{decode_kept, encode_kept};

use crate::agreement::AGREEMENT_VERSION;
use crate::error::{Error, Result};
use crate::private;

/// Length and checksum before a record.
const PREFIX: usize = 12;

/// The version of the order of sums in a run: answers of another version would be taken for other sums.
const SUMS: u32 = 4;

/// The first record.
#[derive(Serialize, Deserialize)]
struct Header<H> {
    agreement: u32,
    sums: u32,
    head: H,
}

/// The part of a first record that is read before its head, whose format depends on the version.
#[derive(Deserialize)]
struct Versions {
    /// The first version did not write it.
    #[serde(default = "first_agreement")]
    agreement: u32,
    sums: u32,
}

fn first_agreement() -> u32 {
    1
}

/// A file of records, read from its beginning, then appended to.
pub struct JournalFile {
    path: PathBuf,
    file: File,
    /// The position after the last record.
    end: u64,
}

/// The error for a run that this version cannot resume.
fn unreadable(path: &Path, why: &str) -> Error {
    let problem = format!(
        "contains a run that this version cannot resume ({why}); finish it with the version that started it, or \
         remove the file to start a new run"
    );
    Error::file(path, problem)
}

fn checksum(record: &[u8]) -> [u8; 8] {
    let hash = Sha256::digest(record);
    std::array::from_fn(|place| hash[place])
}

impl JournalFile {
    /// Creates a private file with a first record.
    pub fn create(path: &Path, first: &impl Serialize) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = private::open(&mut options, path).map_err(Error::io(path))?;
        let mut journal = JournalFile { path: path.into(), file, end: 0 };
        let header = Header { agreement: AGREEMENT_VERSION, sums: SUMS, head: first };
        journal.append(&serde_json::to_vec(&header).unwrap_or_default())?;
        Ok(journal)
    }

    /// Opens an existing file with its first record; `None` if there is none or it is incomplete.
    pub fn open<H: DeserializeOwned>(path: &Path) -> Result<Option<(Self, H)>> {
        let file = match private::open(OpenOptions::new().read(true).write(true), path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io(path))?,
        };
        let mut journal = JournalFile { path: path.into(), file, end: 0 };
        let Some(first) = journal.next()? else { return Ok(None) };
        let Versions { agreement, sums } =
            serde_json::from_slice(&first).map_err(|error| unreadable(path, &error.to_string()))?;
        if agreement != AGREEMENT_VERSION {
            let why = format!("it was agreed on in version {agreement}, not {AGREEMENT_VERSION}");
            return Err(unreadable(path, &why));
        }
        if sums != SUMS {
            return Err(unreadable(path, &format!("it has the sums of version {sums}, not {SUMS}")));
        }
        let Header { head, .. } = serde_json::from_slice::<Header<H>>(&first)
            .map_err(|error| unreadable(path, &error.to_string()))?;
        Ok(Some((journal, head)))
    }

    /// The next record.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.read().map_err(Error::io(&self.path))
    }

    fn read(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let rest = self.file.metadata()?.len().saturating_sub(self.end);
        self.file.seek(SeekFrom::Start(self.end))?;
        let mut head = [0; PREFIX];
        if rest < PREFIX as u64 {
            return Ok(None);
        }
        self.file.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if rest - (PREFIX as u64) < length as u64 {
            return Ok(None);
        }
        let mut record = vec![0; length];
        self.file.read_exact(&mut record)?;
        if checksum(&record) != head[4..] {
            return Ok(None);
        }
        self.end += (PREFIX + length) as u64;
        Ok(Some(record))
    }

    /// The position of the record that was just read.
    pub fn offset_of(&self, record: &[u8]) -> u64 {
        self.end - record.len() as u64
    }

    /// Appends a record; returns its position. If writing fails, the file is unchanged.
    pub fn append(&mut self, record: &[u8]) -> Result<u64> {
        let place = self.end + PREFIX as u64;
        let mut bytes = Vec::with_capacity(PREFIX + record.len());
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&checksum(record));
        bytes.extend_from_slice(record);
        let written = self
            .file
            .set_len(self.end)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.end)))
            .and_then(|_| self.file.write_all(&bytes))
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // An incomplete rest is ignored when the file is read.
            let _ = self.file.set_len(self.end);
            return Err(Error::io(&self.path)(error));
        }
        self.end += bytes.len() as u64;
        Ok(place)
    }
}

fn list_bytes(parties: &[u16]) -> Vec<u8> {
    parties.iter().flat_map(|party| party.to_le_bytes()).collect()
}

fn list_of(bytes: &[u8]) -> Option<Vec<u16>> {
    let (parties, rest) = bytes.as_chunks();
    rest.is_empty().then(|| parties.iter().map(|party| u16::from_le_bytes(*party)).collect())
}

#[cfg(test)]
mod tests {
    use partwise_secure::aggregation::{Message, OrderTip, SumId, Words};
    use partwise_secure::coordinator::{CohortSum, CoordinatorRecord};
    use partwise_secure::session::{Answered, Kept, OtherSum};

    use super::*;
    use crate::status::CurvePoint;

    #[test]
    fn an_incomplete_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(JournalFile::open::<u32>(&path).unwrap().is_none());
        let mut records = JournalFile::create(&path, &7u32).unwrap();
        records.append(b"one").unwrap();
        records.append(b"two").unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let Some((mut records, head)) = JournalFile::open::<u32>(&path).unwrap() else { continue };
            assert_eq!(head, 7);
            let mut count = 0;
            while records.next().unwrap().is_some() {
                count += 1;
            }
            assert!(count < 2);
            records.append(b"three").unwrap();
            let (mut records, _) = JournalFile::open::<u32>(&path).unwrap().unwrap();
            for _ in 0..count {
                records.next().unwrap().unwrap();
            }
            assert_eq!(records.next().unwrap().unwrap(), b"three");
            assert!(records.next().unwrap().is_none());
        }
        // A changed byte, in the last record.
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, changed).unwrap();
        let (mut records, _) = JournalFile::open::<u32>(&path).unwrap().unwrap();
        assert_eq!(records.next().unwrap().unwrap(), b"one");
        assert!(records.next().unwrap().is_none());
    }

    /// The first record decides, whatever the head is: answers of a version with other sums, runs that were agreed
    /// on in another version or before there were versions, and malformed heads.
    #[test]
    fn state_of_other_sums_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for (first, words) in [
            (serde_json::json!(7), "cannot resume"),
            (
                serde_json::json!({ "agreement": AGREEMENT_VERSION, "sums": 1, "head": 7 }),
                "sums of version 1, not ",
            ),
            (serde_json::json!({ "sums": SUMS, "head": 7 }), "agreed on in version 1, not "),
            (
                serde_json::json!({ "agreement": AGREEMENT_VERSION + 1, "sums": SUMS, "head": {} }),
                "cannot resume (it was agreed on in version",
            ),
        ] {
            JournalFile::create(&path, &0).unwrap();
            let mut records = JournalFile { end: 0, ..JournalFile::open::<u32>(&path).unwrap().unwrap().0 };
            records.append(&serde_json::to_vec(&first).unwrap()).unwrap();
            let error = JournalFile::open::<u32>(&path).err().unwrap();
            assert!(matches!(error, Error::File { .. }), "{error}");
            let error = error.to_string();
            assert!(error.starts_with(&format!("{}: ", path.display())) && error.contains(words), "{error}");
            assert!(
                error.contains("remove the file to start a new run") && error.lines().count() == 1,
                "{error}"
            );
        }
    }

    #[test]
    fn records_come_back() {
        let words = Words { narrow: vec![1, 2, 3], wide: vec![4] };
        let tip = OrderTip { count: 3, head: [7; 32] };
        let answered = |order| {
            let (parties, words) = (vec![1, 300], words.clone());
            Kept::Answer(Answered { cohort: 2, parties, polls: 5, answers: [6; 32], words, epoch: 4, order })
        };
        let sum = CohortSum { cohort: 3, epoch: 1, parties: 4, words: words.clone() };
        let other = Kept::Other(OtherSum { sum, answers: [8; 32], order: tip });
        let answers = [answered(None), answered(Some(tip)), other];
        for kept in answers.into_iter().chain([Kept::Promise { cohort: 3, survivors: vec![1, 2, 300] }]) {
            let record = encode_kept(&kept);
            assert_eq!(decode_kept(&record).unwrap(), kept);
            assert!(decode_kept(&record[..record.len() - 1]).is_none());
        }
        let epoch = CoordinatorRecord::Epoch { cohort: 4, epoch: 9 };
        let promise = CoordinatorRecord::Promise { cohort: 4, survivors: vec![5, 6] };
        for record in [epoch, promise] {
            let back = CoordinatorEntry::decode(&CoordinatorEntry::Sums(record.clone()).encode());
            let Some(CoordinatorEntry::Sums(back)) = back else { panic!() };
            assert_eq!(back, record);
        }
        let point = CurvePoint { round: 7, seconds: 1.5, relative_error: 0.25 };
        let back = CoordinatorEntry::decode(&CoordinatorEntry::Error(point).encode());
        let Some(CoordinatorEntry::Error(back)) = back else { panic!() };
        assert_eq!(back, point);
        let back = CoordinatorEntry::decode(&CoordinatorEntry::Norm(2.5).encode());
        let Some(CoordinatorEntry::Norm(2.5)) = back else { panic!() };
        let place = SumId { epoch: 1, round: 2, attempt: 3 };
        let reply = Message::Reply { place, survivors: vec![1], words: words.clone() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut records = JournalFile::create(&path, &0).unwrap();
        let mut answers = AnswerIndex::new(&path);
        for sum in [None, Some(words)] {
            let answer = CoordinatorRecord::Answer { cohort: 9, now: 1.5, reply: reply.clone(), sum };
            let record = CoordinatorEntry::Sums(answer.clone()).encode();
            answers.record_answer(9, records.append(&record).unwrap(), reply.encode().len());
            let Some(CoordinatorEntry::Sums(back)) = CoordinatorEntry::decode(&record) else { panic!() };
            assert_eq!(back, answer);
        }
        assert_eq!(answers.since(9, 0, None).len(), 2);
        assert_eq!(answers.since(8, 0, None).len(), 0);
        let bytes = read_answer(&path, answers.since(9, 1, None)[0]).unwrap();
        let (cohort, message) = partwise_secure::session::parse(1, 0, &bytes).unwrap();
        assert_eq!((cohort, message), (9, reply));
    }
}
