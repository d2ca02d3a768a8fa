//! A party's journal: the answers that it received.

use partwise_secure::aggregation::wire::{word_bytes, words_of};
use partwise_secure::session::{Answered, Journal, Kept};
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

pub(crate) fn encode_kept(kept: &Kept) -> Vec<u8> {
    match kept {
        Kept::Promise { cohort, survivors } => [&[PROMISE, *cohort][..], &list_bytes(survivors)].concat(),
        Kept::Answer(answered) => {
            let mut record = vec![ANSWER, answered.cohort];
            record.extend_from_slice(&(answered.parties.len() as u16).to_le_bytes());
            record.extend_from_slice(&list_bytes(&answered.parties));
            record.extend_from_slice(&answered.polls.to_le_bytes());
            record.extend_from_slice(&answered.answers);
            record.extend_from_slice(&word_bytes(&answered.words));
            answered.answer.iter().for_each(|answer| record.extend_from_slice(&word_bytes(answer)));
            record
        }
    }
}

pub(crate) fn decode_kept(record: &[u8]) -> Option<Kept> {
    let (&[kind, cohort], rest) = record.split_first_chunk()?;
    if kind == PROMISE {
        return Some(Kept::Promise { cohort, survivors: list_of(rest)? });
    }
    let (count, rest) = rest.split_first_chunk()?;
    let (parties, rest) = rest.split_at_checked(2 * usize::from(u16::from_le_bytes(*count)))?;
    let (polls, rest) = rest.split_first_chunk()?;
    let (answers, rest) = rest.split_first_chunk()?;
    let (words, rest) = words_of(rest)?;
    let (answer, rest) = match rest {
        [] => (None, rest),
        answer => words_of(answer).map(|(answer, rest)| (Some(answer), rest))?,
    };
    let (parties, polls) = (list_of(parties)?, u32::from_le_bytes(*polls));
    let answered = Answered { cohort, parties, polls, answers: *answers, words, answer };
    rest.is_empty().then_some(Kept::Answer(answered))
}
