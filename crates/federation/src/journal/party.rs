//! A party's journal: the answers that it received.

use partwise_secure::aggregation::OrderTip;
use partwise_secure::aggregation::wire::{word_bytes, words_of};
use partwise_secure::coordinator::CohortSum;
use partwise_secure::session::{Answered, Journal, Kept, OtherSum};
use serde::{Deserialize, Serialize};

use super::{JournalFile, list_bytes, list_of};
use crate::agreement::Terms;
use crate::error::Error;
use crate::text::Hex;

/// What a party stores of a run in addition to the answers.
#[derive(Serialize, Deserialize)]
pub struct PartyHead {
    /// The run's digest.
    pub run: Hex<32>,
    /// The agreement.
    pub terms: Terms,
    /// The identity keys of all parties, by place.
    pub keys: Vec<Hex<32>>,
    /// This party's place.
    pub place: u16,
    /// The seed of U's start and of sketches, to which all parties contributed.
    pub public_seed: u64,
    /// The seed of V's start.
    pub private_seed: u64,
    /// A digest of the data.
    pub data: String,
}

/// A party's journal.
pub struct PartyJournal(pub JournalFile);

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
    partwise_secure::Error::Stopped { problem: error.wording() }
}

/// The first byte of a record.
const PROMISE: u8 = 0;
const ANSWER: u8 = 1;
const OTHER: u8 = 2;

pub(crate) fn encode_kept(kept: &Kept) -> Vec<u8> {
    match kept {
        Kept::Promise { cohort, survivors } => [&[PROMISE, *cohort][..], &list_bytes(survivors)].concat(),
        Kept::Answer(answered) => {
            let mut record = vec![ANSWER, answered.cohort];
            record.extend_from_slice(&(answered.parties.len() as u16).to_le_bytes());
            record.extend_from_slice(&list_bytes(&answered.parties));
            record.extend_from_slice(&answered.polls.to_le_bytes());
            record.extend_from_slice(&answered.answers);
            record.extend_from_slice(&answered.epoch.to_le_bytes());
            record.extend_from_slice(&word_bytes(&answered.words));
            answered.order.iter().for_each(|order| record.extend_from_slice(&order.bytes()));
            record
        }
        Kept::Other(OtherSum { sum, answers, order }) => {
            let mut record = vec![OTHER, sum.cohort];
            record.extend_from_slice(&sum.epoch.to_le_bytes());
            record.extend_from_slice(&(sum.parties as u16).to_le_bytes());
            record.extend_from_slice(answers);
            record.extend_from_slice(&order.bytes());
            record.extend_from_slice(&word_bytes(&sum.words));
            record
        }
    }
}

pub(crate) fn decode_kept(record: &[u8]) -> Option<Kept> {
    let (&[kind, cohort], rest) = record.split_first_chunk()?;
    if kind == PROMISE {
        return Some(Kept::Promise { cohort, survivors: list_of(rest)? });
    }
    if kind == OTHER {
        return decode_other(cohort, rest).map(Kept::Other);
    }
    let (count, rest) = rest.split_first_chunk()?;
    let (parties, rest) = rest.split_at_checked(2 * usize::from(u16::from_le_bytes(*count)))?;
    let (polls, rest) = rest.split_first_chunk()?;
    let (answers, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (words, rest) = words_of(rest)?;
    let order = match rest {
        [] => None,
        order => Some(OrderTip::from_bytes(order.try_into().ok()?)),
    };
    let (parties, polls, epoch) = (list_of(parties)?, u32::from_le_bytes(*polls), u32::from_le_bytes(*epoch));
    Some(Kept::Answer(Answered { cohort, parties, polls, answers: *answers, words, epoch, order }))
}

fn decode_other(cohort: u8, bytes: &[u8]) -> Option<OtherSum> {
    let (epoch, rest) = bytes.split_first_chunk()?;
    let (parties, rest) = rest.split_first_chunk()?;
    let (answers, rest) = rest.split_first_chunk()?;
    let (order, rest) = rest.split_first_chunk()?;
    let (words, rest) = words_of(rest)?;
    let (epoch, parties) = (u32::from_le_bytes(*epoch), usize::from(u16::from_le_bytes(*parties)));
    let sum = CohortSum { cohort, epoch, parties, words };
    rest.is_empty().then_some(OtherSum { sum, answers: *answers, order: OrderTip::from_bytes(order) })
}
