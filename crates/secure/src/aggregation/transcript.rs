//! A hash over all that the coordinator has told, from which masks are derived.

use sha2::{Digest, Sha256};

use super::wire::word_bytes;
use super::{Cohort, OrderTip, SumId, Words};

/// The hash so far: equal at all parties as long as all were told the same. Of the lists of keys it includes only
/// the last one: only its keys are in use, and a party that was away knows the answers that it missed, but no list
/// of an epoch that it was not part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptHash {
    answers: [u8; 32],
    keys: [u8; 32],
    both: [u8; 32],
}

impl TranscriptHash {
    /// The transcript of a cohort before its first message.
    pub fn new(cohort: &Cohort) -> Self {
        let members: Vec<u8> = cohort
            .members
            .iter()
            .flat_map(|(party, key)| party.to_le_bytes().into_iter().chain(*key.bytes()))
            .collect();
        let rules = [cohort.number, cohort.may_leave.into()];
        let colluders = (cohort.colluders as u64).to_le_bytes();
        let begin = [b"partwise transcript 3", &cohort.run[..], &rules, &colluders, &members];
        Self::of(hash([0; 32], &begin), [0; 32])
    }

    /// The hash after a key exchange.
    pub fn joined(self, epoch: u32, roster: &[u8]) -> Self {
        Self::of(self.answers, hash([0; 32], &[b"roster", &epoch.to_le_bytes(), roster]))
    }

    /// The hash over the same answers, in an epoch whose list of keys has this hash.
    pub fn with_keys(self, keys: [u8; 32]) -> Self {
        Self::of(self.answers, keys)
    }

    /// After a sum that was fixed by the list of commitments with this digest, and the order of sums with it, where it has a
    /// place there.
    pub fn ordered(self, place: SumId, list: &[u8; 32], order: Option<&OrderTip>) -> Self {
        let order = order.map(OrderTip::bytes);
        self.opened(place, list, order.as_ref().map(|tip| &tip[..]))
    }

    /// After an answer of these parties without masks.
    pub fn replied(self, place: SumId, parties: &[u16], words: &Words) -> Self {
        let parties: Vec<u8> = parties.iter().flat_map(|party| party.to_le_bytes()).collect();
        self.opened(place, &parties, Some(&word_bytes(words)))
    }

    fn opened(self, place: SumId, summands: &[u8], answer: Option<&[u8]>) -> Self {
        let has_answer = [answer.is_some().into()];
        let parts: [&[u8]; 5] =
            [b"opened", &place.bytes(), summands, &has_answer, answer.unwrap_or_default()];
        Self::of(hash(self.answers, &parts), self.keys)
    }

    /// Restores the hash after these answers, before a key exchange.
    pub fn recalled(answers: [u8; 32]) -> Self {
        Self::of(answers, [0; 32])
    }

    /// The hash over the list of keys.
    pub fn keys(&self) -> &[u8; 32] {
        &self.keys
    }

    /// The hash over the answers alone.
    pub fn answers(&self) -> &[u8; 32] {
        &self.answers
    }

    /// The hash.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.both
    }

    fn of(answers: [u8; 32], keys: [u8; 32]) -> Self {
        TranscriptHash { answers, keys, both: hash(answers, &[b"keys", &keys]) }
    }
}

fn hash(before: [u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(before);
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
