//! Files of records, each with its length and a checksum, that grow at their end: a party's journal of what it was
//! answered, and the coordinator's of what it answered. A record that was not written whole is as if it had never been.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use partwise_secure::aggregation::wire::{word_bytes, words_of};
use partwise_secure::aggregation::{Message, Words};
use partwise_secure::session::{Answered, Journal, Kept};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::agreement::Terms;
use crate::error::{Error, Result};
use crate::private;
use crate::status::Point;
use crate::text::Hex;

/// Length and checksum before a record.
const HEAD: usize = 12;

/// Which sums a run has, in which order: answers of another version would be taken for other sums.
const SUMS: u32 = 2;

/// The first record.
#[derive(Serialize, Deserialize)]
struct First<H> {
    sums: u32,
    head: H,
}

/// A file of records, read from its beginning, then added to.
pub struct Records {
    path: PathBuf,
    file: File,
    /// Behind the last record that was read or written.
    end: u64,
}

fn checksum(record: &[u8]) -> [u8; 8] {
    let hash = Sha256::digest(record);
    std::array::from_fn(|place| hash[place])
}

impl Records {
    /// A new file, which only its owner can read, with a first record.
    pub fn create(path: &Path, first: &impl Serialize) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = private::open(&mut options, path).map_err(Error::io(path))?;
        let mut records = Records { path: path.into(), file, end: 0 };
        records.append(&serde_json::to_vec(&First { sums: SUMS, head: first }).unwrap_or_default())?;
        Ok(records)
    }

    /// A file from before, with its first record; nothing if there is none, or it was not even begun.
    pub fn open<H: DeserializeOwned>(path: &Path) -> Result<Option<(Self, H)>> {
        let file = match private::open(OpenOptions::new().read(true).write(true), path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io(path))?,
        };
        let mut records = Records { path: path.into(), file, end: 0 };
        let Some(first) = records.next()? else { return Ok(None) };
        let unreadable = |why: String| {
            Error::file(path, format!("state that this version cannot read ({why}); remove it to begin anew"))
        };
        let First { sums, head } =
            serde_json::from_slice(&first).map_err(|error| unreadable(error.to_string()))?;
        if sums != SUMS {
            return Err(unreadable(format!("it has the sums of version {sums}, not {SUMS}")));
        }
        Ok(Some((records, head)))
    }

    /// The next record.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.read().map_err(Error::io(&self.path))
    }

    fn read(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let rest = self.file.metadata()?.len().saturating_sub(self.end);
        self.file.seek(SeekFrom::Start(self.end))?;
        let mut head = [0; HEAD];
        if rest < HEAD as u64 {
            return Ok(None);
        }
        self.file.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if rest - (HEAD as u64) < length as u64 {
            return Ok(None);
        }
        let mut record = vec![0; length];
        self.file.read_exact(&mut record)?;
        if checksum(&record) != head[4..] {
            return Ok(None);
        }
        self.end += (HEAD + length) as u64;
        Ok(Some(record))
    }

    /// Where the record that was just read begins.
    pub fn place_of(&self, record: &[u8]) -> u64 {
        self.end - record.len() as u64
    }

    /// Adds a record; returns where its bytes begin. If it cannot be written, the file is as it was.
    pub fn append(&mut self, record: &[u8]) -> Result<u64> {
        let place = self.end + HEAD as u64;
        let mut bytes = Vec::with_capacity(HEAD + record.len());
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
            // What is left of it is ignored when it is read.
            let _ = self.file.set_len(self.end);
            return Err(Error::io(&self.path)(error));
        }
        self.end += bytes.len() as u64;
        Ok(place)
    }
}

/// What a party keeps of a run, beside the answers.
#[derive(Serialize, Deserialize)]
pub struct PartyHead {
    /// The run's digest.
    pub run: Hex<32>,
    /// What was agreed on.
    pub terms: Terms,
    /// Everybody's identity key, by place.
    pub keys: Vec<Hex<32>>,
    /// This party's place.
    pub place: u16,
    /// Of V's start.
    pub private_seed: u64,
    /// A digest of the data.
    pub data: String,
}

/// A party's journal.
pub struct PartyJournal(pub Records);

impl Journal for PartyJournal {
    fn next(&mut self) -> partwise_secure::Result<Option<Kept>> {
        let record = self.0.next().map_err(in_words)?;
        Ok(record.and_then(|record| decode_kept(&record)))
    }

    fn keep(&mut self, kept: &Kept) -> partwise_secure::Result<()> {
        self.0.append(&encode_kept(kept)).map(drop).map_err(in_words)
    }
}

fn in_words(error: Error) -> partwise_secure::Error {
    partwise_secure::Error::Stopped { problem: error.to_string() }
}

fn encode_kept(kept: &Kept) -> Vec<u8> {
    match kept {
        Kept::Promise { cohort, survivors } => [&[0, *cohort][..], &list_bytes(survivors)].concat(),
        Kept::Answer(answered) => {
            let mut record = vec![1, answered.cohort];
            record.extend_from_slice(&(answered.parties as u16).to_le_bytes());
            record.extend_from_slice(&answered.polls.to_le_bytes());
            record.extend_from_slice(&answered.answers);
            record.extend_from_slice(&word_bytes(&answered.words));
            record
        }
    }
}

fn decode_kept(record: &[u8]) -> Option<Kept> {
    let (&[kind, cohort], rest) = record.split_first_chunk()?;
    if kind == 0 {
        return Some(Kept::Promise { cohort, survivors: list_of(rest)? });
    }
    let (parties, rest) = rest.split_first_chunk()?;
    let (polls, rest) = rest.split_first_chunk()?;
    let (answers, rest) = rest.split_first_chunk()?;
    let (words, rest) = words_of(rest)?;
    let parties = u16::from_le_bytes(*parties).into();
    let polls = u32::from_le_bytes(*polls);
    let answered = Answered { cohort, parties, polls, answers: *answers, words };
    rest.is_empty().then_some(Kept::Answer(answered))
}

fn list_bytes(parties: &[u16]) -> Vec<u8> {
    parties.iter().flat_map(|party| party.to_le_bytes()).collect()
}

fn list_of(bytes: &[u8]) -> Option<Vec<u16>> {
    let (parties, rest) = bytes.as_chunks();
    rest.is_empty().then(|| parties.iter().map(|party| u16::from_le_bytes(*party)).collect())
}

/// What the coordinator keeps of a run, beside the answers.
#[derive(Serialize, Deserialize)]
pub struct CoordinatorHead {
    /// The run's digest.
    pub run: Hex<32>,
    /// What was agreed on.
    pub terms: Terms,
    /// Everybody's identity key, by place.
    pub keys: Vec<Hex<32>>,
    /// How many features there are.
    pub features: usize,
}

/// A record of the coordinator.
pub enum Noted {
    /// A new epoch has begun.
    Epoch {
        /// The cohort.
        cohort: u8,
        /// Its number.
        epoch: u32,
    },
    /// For whom masks are about to be revealed in this round, where that may be some of the cohort.
    Promise {
        /// The cohort.
        cohort: u8,
        /// The parties.
        survivors: Vec<u16>,
    },
    /// ‖M‖² of all.
    Norm {
        /// It.
        norm: f64,
    },
    /// The error after a round.
    Error(Point),
    /// A sum was opened and answered.
    Answer {
        /// The cohort.
        cohort: u8,
        /// When, in seconds of the run.
        now: f64,
        /// The answer.
        reply: Message,
        /// The sum, where that is not the answer.
        sum: Option<Words>,
    },
}

impl Noted {
    /// As bytes; an answer's message begins at `Noted::REPLY`.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Noted::Epoch { cohort, epoch } => [&[0, *cohort][..], &epoch.to_le_bytes()].concat(),
            Noted::Promise { cohort, survivors } => [&[2, *cohort][..], &list_bytes(survivors)].concat(),
            Noted::Norm { norm } => [&[3, 0][..], &norm.to_le_bytes()].concat(),
            Noted::Error(Point { round, seconds, relative_error }) => {
                let numbers =
                    [(*round as u64).to_le_bytes(), seconds.to_le_bytes(), relative_error.to_le_bytes()];
                [&[4, 0][..], &numbers.concat()].concat()
            }
            Noted::Answer { cohort, now, reply, sum } => {
                let reply = reply.encode();
                let mut record = vec![1, *cohort];
                record.extend_from_slice(&now.to_le_bytes());
                record.extend_from_slice(&(reply.len() as u32).to_le_bytes());
                record.extend_from_slice(&reply);
                record.extend_from_slice(&sum.as_ref().map(word_bytes).unwrap_or_default());
                record
            }
        }
    }

    const REPLY: usize = 14;

    /// From bytes.
    pub fn decode(record: &[u8]) -> Option<Noted> {
        let (&[kind, cohort], rest) = record.split_first_chunk()?;
        if kind == 0 {
            return Some(Noted::Epoch { cohort, epoch: u32::from_le_bytes(rest.try_into().ok()?) });
        }
        match (kind, rest.as_chunks().0) {
            (2, _) => return Some(Noted::Promise { cohort, survivors: list_of(rest)? }),
            (3, [norm]) => return Some(Noted::Norm { norm: f64::from_le_bytes(*norm) }),
            (4, [round, seconds, error]) => {
                return Some(Noted::Error(Point {
                    round: u64::from_le_bytes(*round) as usize,
                    seconds: f64::from_le_bytes(*seconds),
                    relative_error: f64::from_le_bytes(*error),
                }));
            }
            (1, _) => {}
            _ => return None,
        }
        let (now, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (reply, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let sum = if rest.is_empty() { None } else { Some(words_of(rest)?.0) };
        Some(Noted::Answer { cohort, now: f64::from_le_bytes(*now), reply: Message::decode(reply)?, sum })
    }
}

/// Where the coordinator's answers are in its file, to read them again for whoever missed them.
pub struct Answers {
    path: PathBuf,
    places: Vec<(u8, u64, usize)>,
}

impl Answers {
    /// Of this file.
    pub fn new(path: &Path) -> Self {
        Answers { path: path.into(), places: Vec::new() }
    }

    /// Remembers where an answer is, given where its record begins.
    pub fn record_answer(&mut self, cohort: u8, record: u64, reply: usize) {
        self.places.push((cohort, record + Noted::REPLY as u64, reply));
    }

    /// Where the answers of a cohort from a round on are.
    pub fn since(&self, cohort: u8, round: u64) -> Vec<(u64, usize)> {
        let of_cohort = self.places.iter().filter(|(of, ..)| *of == cohort);
        of_cohort.skip(round as usize).map(|&(_, place, length)| (place, length)).collect()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An answer as it is sent.
pub fn read_answer(path: &Path, cohort: u8, (place, length): (u64, usize)) -> std::io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(place))?;
    let mut bytes = vec![0; length + 1];
    file.read_exact(&mut bytes[..length])?;
    bytes[length] = cohort;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use partwise_secure::aggregation::SumId;

    #[test]
    fn what_was_not_written_whole_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(Records::open::<u32>(&path).unwrap().is_none());
        let mut records = Records::create(&path, &7u32).unwrap();
        records.append(b"one").unwrap();
        records.append(b"two").unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let Some((mut records, head)) = Records::open::<u32>(&path).unwrap() else { continue };
            assert_eq!(head, 7);
            let mut count = 0;
            while records.next().unwrap().is_some() {
                count += 1;
            }
            assert!(count < 2);
            records.append(b"three").unwrap();
            let (mut records, _) = Records::open::<u32>(&path).unwrap().unwrap();
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
        let (mut records, _) = Records::open::<u32>(&path).unwrap().unwrap();
        assert_eq!(records.next().unwrap().unwrap(), b"one");
        assert!(records.next().unwrap().is_none());
    }

    /// Answers of a version with other sums are refused: the head of a version that did not say which, and another number.
    #[test]
    fn state_of_other_sums_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for first in [serde_json::json!(7), serde_json::json!({ "sums": 1, "head": 7 })] {
            Records::create(&path, &0).unwrap();
            let mut records = Records { end: 0, ..Records::open::<u32>(&path).unwrap().unwrap().0 };
            records.append(&serde_json::to_vec(&first).unwrap()).unwrap();
            let error = Records::open::<u32>(&path).err().unwrap();
            assert!(matches!(error, Error::File { .. }), "{error}");
        }
    }

    #[test]
    fn records_come_back() {
        let words = Words { narrow: vec![1, 2, 3], wide: vec![4] };
        let answered = Answered { cohort: 2, parties: 300, polls: 5, answers: [6; 32], words: words.clone() };
        for kept in [Kept::Answer(answered), Kept::Promise { cohort: 3, survivors: vec![1, 2, 300] }] {
            let record = encode_kept(&kept);
            assert_eq!(decode_kept(&record).unwrap(), kept);
            assert!(decode_kept(&record[..record.len() - 1]).is_none());
        }
        let promise = Noted::Promise { cohort: 4, survivors: vec![5, 6] }.encode();
        let Some(Noted::Promise { cohort: 4, survivors }) = Noted::decode(&promise) else { panic!() };
        assert_eq!(survivors, [5, 6]);
        let point = Point { round: 7, seconds: 1.5, relative_error: 0.25 };
        let Some(Noted::Error(back)) = Noted::decode(&Noted::Error(point).encode()) else { panic!() };
        assert_eq!(back, point);
        let Some(Noted::Norm { norm: 2.5 }) = Noted::decode(&Noted::Norm { norm: 2.5 }.encode()) else {
            panic!()
        };
        let place = SumId { epoch: 1, round: 2, attempt: 3 };
        let reply = Message::Reply { place, survivors: vec![1], words: words.clone() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut records = Records::create(&path, &0).unwrap();
        let mut answers = Answers::new(&path);
        for sum in [None, Some(words)] {
            let noted = Noted::Answer { cohort: 9, now: 1.5, reply: reply.clone(), sum: sum.clone() };
            let record = noted.encode();
            answers.record_answer(9, records.append(&record).unwrap(), reply.encode().len());
            let Some(Noted::Answer { reply: back, sum: back_sum, .. }) = Noted::decode(&record) else {
                panic!()
            };
            assert_eq!((back, back_sum), (reply.clone(), sum));
        }
        assert_eq!(answers.since(9, 0).len(), 2);
        assert_eq!(answers.since(8, 0).len(), 0);
        let bytes = read_answer(&path, 9, answers.since(9, 1)[0]).unwrap();
        let (cohort, message) = partwise_secure::session::parse(1, 0, &bytes).unwrap();
        assert_eq!((cohort, message), (9, reply));
    }
}
