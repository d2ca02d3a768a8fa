//! What has arrived in an attempt.

use std::collections::BTreeMap;

use crate::aggregation::plain::PlainSum;
use crate::aggregation::{WordCount, Words};

/// Words are added up as they come, so that memory does not grow with the number of parties; those of different sizes apart,
/// until it is clear which is wrong.
#[derive(Default)]
pub(super) struct Uploads {
    /// From whom, and for whom, the sealed share.
    pub shares: BTreeMap<u16, BTreeMap<u16, Vec<u8>>>,
    sums: BTreeMap<WordCount, PartialSum>,
}

/// The sum of the uploads of one size.
struct PartialSum {
    /// Whose uploads are in it.
    parties: Vec<u16>,
    total: Accumulator,
}

enum Accumulator {
    Masked(Words),
    Plain(PlainSum),
}

impl Uploads {
    /// Adds what a party has sent.
    pub fn add(&mut self, from: u16, words: Words, shares: Vec<(u16, Vec<u8>)>, plain: bool) {
        self.shares.insert(from, shares.into_iter().collect());
        match self.sums.get_mut(&words.count()) {
            Some(sum) => {
                sum.parties.push(from);
                match &mut sum.total {
                    Accumulator::Masked(total) => total.add(&words),
                    Accumulator::Plain(total) => total.add(&words),
                }
            }
            None => {
                let size = words.count();
                let total = match plain {
                    true => Accumulator::Plain(PlainSum::One(words)),
                    false => Accumulator::Masked(words),
                };
                self.sums.insert(size, PartialSum { parties: vec![from], total });
            }
        }
    }

    /// Where uploads have different sizes, those of the size that most have are right; the others are as if they had not
    /// come. Returns whose they are.
    pub fn settle_size(&mut self) -> Vec<u16> {
        let most = self.sums.iter().max_by_key(|(_, sum)| sum.parties.len());
        let Some((&size, _)) = most else { return Vec::new() };
        let wrong = self.sums.extract_if(.., |other, _| *other != size);
        let wrong: Vec<u16> = wrong.flat_map(|(_, sum)| sum.parties).collect();
        wrong.iter().for_each(|party| drop(self.shares.remove(party)));
        wrong
    }

    /// The sum of the first size, where words are as they are.
    pub fn take_plain_sum(&mut self) -> Option<Words> {
        match self.sums.pop_first() {
            Some((_, PartialSum { total: Accumulator::Plain(total), .. })) => Some(total.into_words()),
            _ => None,
        }
    }

    /// The sum of the first size, with all masks on it.
    pub fn masked_sum(&self) -> Words {
        match self.sums.values().next() {
            Some(PartialSum { total: Accumulator::Masked(total), .. }) => total.clone(),
            _ => Words::default(),
        }
    }
}
