//! The coordinator's journal: the answers that it gave.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use partwise_secure::aggregation::Message;
use partwise_secure::aggregation::wire::{word_bytes, words_of};
use partwise_secure::coordinator::CoordinatorRecord;
use partwise_secure::session::ALL;
use serde::{Deserialize, Serialize};

use super::{list_bytes, list_of};
use crate::agreement::Terms;
use crate::status::CurvePoint;
use crate::text::Hex;

/// What the coordinator stores of a run in addition to the answers.
#[derive(Serialize, Deserialize)]
pub struct CoordinatorHead {
    /// The run's digest.
    pub run: Hex<32>,
    /// The agreement.
    pub terms: Terms,
    /// The identity keys of all parties, by place.
    pub keys: Vec<Hex<32>>,
    /// The number of features.
    pub features: usize,
}

/// A record of the journal.
pub enum CoordinatorEntry {
    /// An answer to a sum.
    Sums(CoordinatorRecord),
    /// ‖M‖² of all.
    Norm(f64),
    /// The error after a round.
    Error(CurvePoint),
}

/// The first byte of a record.
const EPOCH: u8 = 0;
const ANSWER: u8 = 1;
const PROMISE: u8 = 2;
const NORM: u8 = 3;
const ERROR: u8 = 4;

/// The position of an answer's message in its record: after the kind, the cohort, the time and the message's
/// length.
const REPLY: usize = 14;

impl CoordinatorEntry {
    /// Encodes the record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            CoordinatorEntry::Sums(CoordinatorRecord::Epoch { cohort, epoch }) => {
                [&[EPOCH, *cohort][..], &epoch.to_le_bytes()].concat()
            }
            CoordinatorEntry::Sums(CoordinatorRecord::Promise { cohort, survivors }) => {
                [&[PROMISE, *cohort][..], &list_bytes(survivors)].concat()
            }
            CoordinatorEntry::Sums(CoordinatorRecord::Answer { cohort, now, reply, sum }) => {
                let reply = reply.encode();
                let mut record = vec![ANSWER, *cohort];
                record.extend_from_slice(&now.to_le_bytes());
                record.extend_from_slice(&(reply.len() as u32).to_le_bytes());
                record.extend_from_slice(&reply);
                record.extend_from_slice(&sum.as_ref().map(word_bytes).unwrap_or_default());
                record
            }
            CoordinatorEntry::Norm(norm) => [&[NORM, 0][..], &norm.to_le_bytes()].concat(),
            CoordinatorEntry::Error(CurvePoint { round, seconds, relative_error }) => {
                let numbers =
                    [(*round as u64).to_le_bytes(), seconds.to_le_bytes(), relative_error.to_le_bytes()];
                [&[ERROR, 0][..], &numbers.concat()].concat()
            }
        }
    }

    /// Decodes a record.
    pub fn decode(record: &[u8]) -> Option<Self> {
        let (&[kind, cohort], rest) = record.split_first_chunk()?;
        match (kind, rest.as_chunks().0) {
            (EPOCH, _) => {
                let epoch = u32::from_le_bytes(rest.try_into().ok()?);
                Some(CoordinatorEntry::Sums(CoordinatorRecord::Epoch { cohort, epoch }))
            }
            (PROMISE, _) => {
                let survivors = list_of(rest)?;
                Some(CoordinatorEntry::Sums(CoordinatorRecord::Promise { cohort, survivors }))
            }
            (ANSWER, _) => Some(CoordinatorEntry::Sums(decode_answer(cohort, rest)?)),
            (NORM, [norm]) => Some(CoordinatorEntry::Norm(f64::from_le_bytes(*norm))),
            (ERROR, [round, seconds, error]) => Some(CoordinatorEntry::Error(CurvePoint {
                round: u64::from_le_bytes(*round) as usize,
                seconds: f64::from_le_bytes(*seconds),
                relative_error: f64::from_le_bytes(*error),
            })),
            _ => None,
        }
    }
}

fn decode_answer(cohort: u8, bytes: &[u8]) -> Option<CoordinatorRecord> {
    let (now, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (reply, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let sum = if rest.is_empty() { None } else { Some(words_of(rest)?.0) };
    let now = f64::from_le_bytes(*now);
    Some(CoordinatorRecord::Answer { cohort, now, reply: Message::decode(reply)?, sum })
}

/// The position of an answer in the journal.
#[derive(Clone, Copy, Debug)]
pub struct StoredAnswer {
    cohort: u8,
    offset: u64,
    length: usize,
}

/// The positions of answers in the journal, to read them for parties that missed them.
pub struct AnswerIndex {
    path: PathBuf,
    answers: Vec<StoredAnswer>,
}

impl AnswerIndex {
    /// An index of this file.
    pub fn new(path: &Path) -> Self {
        AnswerIndex { path: path.into(), answers: Vec::new() }
    }

    /// Adds the answer in the record at this position.
    pub fn record_answer(&mut self, cohort: u8, record: u64, length: usize) {
        self.answers.push(StoredAnswer { cohort, offset: record + REPLY as u64, length });
    }

    /// The positions of a cohort's answers, starting with a round. Where a party is in a group, each comes behind the sums of
    /// other groups since the answer of its own before.
    pub fn since(&self, cohort: u8, round: u64, group: Option<u8>) -> Vec<StoredAnswer> {
        let (mut found, mut others, mut rounds) = (Vec::new(), Vec::new(), 0);
        for answer in &self.answers {
            if answer.cohort == cohort {
                if rounds >= round {
                    found.append(&mut others);
                    found.push(*answer);
                }
                rounds += 1;
            }
            match group {
                Some(group) if answer.cohort == group => others.clear(),
                Some(_) if answer.cohort != ALL && answer.cohort != cohort => others.push(*answer),
                _ => {}
            }
        }
        found
    }

    /// The answers with these places among all.
    pub fn at(&self, places: &[usize]) -> Vec<StoredAnswer> {
        places.iter().filter_map(|place| self.answers.get(*place).copied()).collect()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An answer as it is sent.
pub fn read_answer(path: &Path, answer: StoredAnswer) -> std::io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(answer.offset))?;
    let mut bytes = vec![0; answer.length + 1];
    file.read_exact(&mut bytes[..answer.length])?;
    bytes[answer.length] = answer.cohort;
    Ok(bytes.into())
}
