//! The uploads of an attempt.

use std::collections::BTreeMap;

use crate::aggregation::commitment::Commitment;
use crate::aggregation::plain::PlainSum;
use crate::aggregation::{PartyShares, WordCount, Words};

/// The uploads of one attempt. Masked words are kept by party until the sum is opened. Plain words are added
/// up as they arrive, separately for each size, until it is clear which size is wrong.
#[derive(Default)]
pub(super) struct Uploads {
    arrived: BTreeMap<u16, Arrived>,
    plain: BTreeMap<WordCount, PlainSum>,
}

/// The upload of a party.
struct Arrived {
    size: WordCount,
    masked: Option<MaskedUpload>,
}

/// Masked words, with their commitment and the sealed shares by receiver.
pub(super) struct MaskedUpload {
    pub words: Words,
    pub commitment: Commitment,
    pub shares: PartyShares,
}

impl Uploads {
    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Whether a party's upload has arrived.
    pub fn has(&self, party: u16) -> bool {
        self.arrived.contains_key(&party)
    }

    /// The parties whose uploads have arrived.
    pub fn parties(&self) -> Vec<u16> {
        self.arrived.keys().copied().collect()
    }

    /// Adds plain words.
    pub fn add_plain(&mut self, from: u16, words: Words) {
        let size = words.count();
        self.arrived.insert(from, Arrived { size, masked: None });
        match self.plain.get_mut(&size) {
            Some(sum) => sum.add(&words),
            None => {
                self.plain.insert(size, PlainSum::One(words));
            }
        }
    }

    /// Keeps masked words.
    pub fn add_masked(&mut self, from: u16, upload: MaskedUpload) {
        self.arrived.insert(from, Arrived { size: upload.words.count(), masked: Some(upload) });
    }

    /// Where uploads have different sizes, those of the size that most have are right; the others are as if they had not
    /// come. Returns whose they are.
    pub fn settle_size(&mut self) -> Vec<u16> {
        let mut counts: BTreeMap<WordCount, usize> = BTreeMap::new();
        self.arrived.values().for_each(|upload| *counts.entry(upload.size).or_default() += 1);
        let Some((size, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return Vec::new() };
        self.plain.retain(|other, _| *other == size);
        self.arrived.extract_if(.., |_, upload| upload.size != size).map(|(party, _)| party).collect()
    }

    /// The sum of plain words.
    pub fn take_plain_sum(&mut self) -> Option<Words> {
        self.plain.pop_first().map(|(_, sum)| sum.into_words())
    }

    /// The commitments to the masked uploads, by party.
    pub fn commitments(&self) -> Vec<Commitment> {
        self.masked().map(|(_, upload)| upload.commitment.clone()).collect()
    }

    /// The sealed shares for a party, by sender.
    pub fn shares_for(&self, party: u16) -> PartyShares {
        let to = |(from, upload): (u16, &MaskedUpload)| {
            let share = upload.shares.iter().find(|(to, _)| *to == party)?;
            Some((from, share.1.clone()))
        };
        self.masked().filter_map(to).collect()
    }

    /// The masked words of a party.
    pub fn words_of(&self, party: u16) -> Option<&Words> {
        self.arrived.get(&party)?.masked.as_ref().map(|upload| &upload.words)
    }

    /// Takes out all masked words, by party.
    pub fn take_words(&mut self) -> Vec<(u16, Words)> {
        let arrived = std::mem::take(&mut self.arrived).into_iter();
        arrived.filter_map(|(party, upload)| Some((party, upload.masked?.words))).collect()
    }

    fn masked(&self) -> impl Iterator<Item = (u16, &MaskedUpload)> {
        self.arrived.iter().filter_map(|(party, upload)| Some((*party, upload.masked.as_ref()?)))
    }
}
