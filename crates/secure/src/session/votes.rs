//! From numbers to words and back: a sum in progress, and the ranges of its columns.
//!
//! If no ranges are known for a kind of sum, the parties vote on them in a separate round; then the numbers follow.
//! If a party's numbers are outside the ranges, noise is opened and the parties vote again.

use std::collections::BTreeMap;

use rand::Rng;

use crate::aggregation::{WordCount, Words};
use crate::error::Result;
use crate::fixed::{self, Contribution, FLAGS, Part, PartShape, Width};
use crate::sum::SumKind;

/// The ranges that a party knows, by cohort and kind of sum.
#[derive(Default)]
pub(super) struct Ranges {
    exponents: BTreeMap<(u8, SumKind), Vec<i16>>,
}

impl Ranges {
    /// The exponents of a sum's columns, if they are known.
    pub fn of(&self, cohort: u8, kind: SumKind) -> Option<&[i16]> {
        self.exponents.get(&(cohort, kind)).map(Vec::as_slice)
    }

    pub fn set(&mut self, cohort: u8, kind: SumKind, exponents: Vec<i16>) {
        self.exponents.insert((cohort, kind), exponents);
    }

    pub fn forget(&mut self, cohort: u8, kind: SumKind) {
        self.exponents.remove(&(cohort, kind));
    }

    pub fn clear(&mut self) {
        self.exponents.clear();
    }
}

/// A sum in progress.
pub(super) struct Pending {
    pub cohort: u8,
    pub kind: SumKind,
    pub parts: Vec<Part>,
    /// Whether this round only agrees on ranges.
    pub voting: bool,
    /// Whether noise is sent instead of numbers, and all parties stop.
    pub withheld: bool,
    /// How often its numbers were outside the ranges.
    pub revotes: u32,
}

/// How a party's numbers become words.
pub(super) struct Coding<'a> {
    /// Whether numbers are sent unencoded, without ranges.
    pub plain: bool,
    /// The ranges, if they are known.
    pub exponents: Option<&'a [i16]>,
    /// How many are in the cohort.
    pub parties: usize,
}

/// The interpretation of an answer.
pub(super) enum Reading {
    /// The ranges of the round that follows.
    Agreed(Vec<i16>),
    /// A party's numbers were outside the ranges.
    Outside,
    /// A party withheld its numbers.
    Withheld,
    /// The sums of the parts as they are, with no ranges to learn from.
    Bare(Vec<Vec<f64>>),
    /// The sums of the parts.
    Numbers(Vec<Part>),
}

impl Pending {
    /// The words of this round: votes on ranges if none are known, otherwise the numbers.
    pub fn words(&self, me: u16, coding: &Coding<'_>, rng: &mut impl Rng) -> Result<Words> {
        if coding.plain {
            return Ok(plain_words(&self.parts));
        }
        let Some(exponents) = coding.exponents else {
            // Numbers that are withheld take no part in votes either.
            let zeros = self.withheld.then(|| self.parts.iter().map(Part::zeros).collect::<Vec<_>>());
            let parts = zeros.as_ref().unwrap_or(&self.parts);
            return fixed::votes(parts, Contribution { party: me, kind: self.kind }, rng);
        };
        // The flags follow the numbers: words that are not 0 if a party's numbers are out of range or
        // withheld. The others' sum must not be opened then, because together with the next sum, which
        // includes this party's numbers, it would reveal them. So noise is sent.
        let encoded = fixed::encode(&self.parts, exponents, coding.parties);
        let flags = if self.withheld { [false, true] } else { [encoded.is_none(), false] };
        let mut words = match encoded {
            Some(words) if flags == [false; FLAGS] => words,
            _ => noise(&self.parts, rng),
        };
        words.wide.extend(flags.map(|flag| if flag { fixed::raised(rng) } else { 0 }));
        Ok(words)
    }

    /// Whether words are as many as this round is answered with at least. A server of the methods may have put its own
    /// among them.
    pub fn fits(&self, words: &Words, plain: bool) -> bool {
        let (least, count) = (self.answer_count(plain), words.count());
        count.narrow >= least.narrow && count.wide >= least.wide
    }

    fn answer_count(&self, plain: bool) -> WordCount {
        let shapes = self.shapes();
        if self.voting && !plain {
            let columns: usize = shapes.iter().map(|shape| shape.columns).sum();
            return WordCount { narrow: 0, wide: columns * fixed::VOTES };
        }
        let wide: usize = shapes.iter().map(PartShape::wide).sum();
        let flags = if plain { 0 } else { FLAGS };
        WordCount { narrow: shapes.iter().map(PartShape::narrow).sum(), wide: wide + flags }
    }

    pub fn shapes(&self) -> Vec<PartShape> {
        self.parts.iter().map(Part::shape).collect()
    }

    /// Interprets the answer to this round.
    pub fn read(&self, words: &Words, coding: &Coding<'_>) -> Reading {
        if coding.plain {
            return Reading::Bare(plain_numbers(words, &self.shapes()));
        }
        if self.kind.is_flag() {
            return Reading::Bare(vec![fixed::anything(words).into_iter().map(f64::from).collect()]);
        }
        if self.voting {
            return Reading::Agreed(fixed::agreed(words));
        }
        match words.wide.last_chunk() {
            Some([0, 0]) => {}
            Some([_, 0]) => return Reading::Outside,
            _ => return Reading::Withheld,
        }
        let exponents = coding.exponents.unwrap_or_default();
        Reading::Numbers(fixed::decode(words, &self.shapes(), exponents, coding.parties))
    }
}

/// Numbers as they are: f32 for matrices, f64 for the rest.
fn plain_words(parts: &[Part]) -> Words {
    let mut words = Words::default();
    for part in parts {
        match part.width {
            Width::Narrow => words.narrow.extend(part.values.iter().map(|&value| (value as f32).to_bits())),
            Width::Wide => words.wide.extend(part.values.iter().map(|value| value.to_bits())),
        }
    }
    words
}

/// The numbers of parts, converted from plain words.
pub(crate) fn plain_numbers(words: &Words, shapes: &[PartShape]) -> Vec<Vec<f64>> {
    let (mut narrow, mut wide) = (words.narrow.iter(), words.wide.iter());
    let numbers = |shape: &PartShape| match shape.width {
        Width::Narrow => narrow.by_ref().take(shape.count).map(|&word| f32::from_bits(word).into()).collect(),
        Width::Wide => wide.by_ref().take(shape.count).map(|&word| f64::from_bits(word)).collect(),
    };
    shapes.iter().map(numbers).collect()
}

/// Random words, as many as the parts have numbers.
fn noise(parts: &[Part], rng: &mut impl Rng) -> Words {
    let mut words = Words::default();
    for part in parts {
        match part.width {
            Width::Narrow => words.narrow.extend(part.values.iter().map(|_| rng.next_u32())),
            Width::Wide => words.wide.extend(part.values.iter().map(|_| rng.next_u64())),
        }
    }
    words
}
