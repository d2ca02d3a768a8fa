//! What left each party, and who could read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::adversary::Adversary;
use super::statistics::{ChiSquare, Histogram};
use super::transcript::Transcript;
use crate::aggregation::Message;
use crate::sum::SumKind;

/// How a message was protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// Under masks: only the sum over the cohort can be read.
    Masked,
    /// Not protected.
    Plain,
    /// No data: keys, signatures, shares of masks, or a notice that a party leaves.
    Control,
}

/// Messages of one kind that left a party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The party that sent them.
    pub party: u16,
    /// The kind of sum or message.
    pub kind: String,
    /// Whether it was masked.
    pub cover: Cover,
    /// How many messages.
    pub count: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// The adversaries from which it could be read.
    pub readers: Vec<Adversary>,
}

/// All messages from parties in a transcript, by party and kind.
pub fn of(transcript: &Transcript, adversaries: &[Adversary]) -> Vec<Left> {
    let mut counts: BTreeMap<(u16, Cover, String), (u64, u64)> = BTreeMap::new();
    for (said, bytes) in transcript.said().filter(|(said, _)| said.from != 0) {
        let kind = Message::kind_of(bytes);
        let sum = transcript.sum_of(bytes).filter(|_| kind == "upload");
        let (cover, kind) = match sum {
            Some(sum) if sum.is_plain() => (Cover::Plain, sum.label().into()),
            Some(sum) if sum.voting && !sum.kind.is_some_and(SumKind::is_flag) => {
                (Cover::Masked, format!("range of {}", sum.label()))
            }
            Some(sum) => (Cover::Masked, sum.label().into()),
            None => (Cover::Control, kind.into()),
        };
        let (count, size) = counts.entry((said.from, cover, kind)).or_default();
        *count += 1;
        *size += bytes.len() as u64;
    }
    let left = |((party, cover, kind), (count, bytes))| {
        let readers = readers(cover, adversaries);
        Left { party, kind, cover, count, bytes, readers }
    };
    counts.into_iter().map(left).collect()
}

/// Who can read what travels so: masked words all others together, since they can subtract their own from the sum.
pub fn readers(cover: Cover, adversaries: &[Adversary]) -> Vec<Adversary> {
    let reads = |adversary: &&Adversary| match cover {
        Cover::Masked => **adversary == Adversary::AllOthers,
        Cover::Plain | Cover::Control => adversary.has_coordinator(),
    };
    adversaries.iter().filter(reads).copied().collect()
}

/// Whether the words that the coordinator receives before it sums look random.
pub fn words_test(transcript: &Transcript) -> ChiSquare {
    let mut histogram = Histogram::default();
    for sum in transcript.sums().values().flatten() {
        for words in sum.parties().filter_map(|party| transcript.upload(sum, party)) {
            words.narrow.iter().for_each(|&word| histogram.count(word));
            for word in words.wide {
                histogram.count(word as u32);
                histogram.count((word >> 32) as u32);
            }
        }
    }
    histogram.test()
}
