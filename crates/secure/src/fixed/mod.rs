//! Numbers as fixed-point words with a range per column that all parties agree on.
//!
//! A column of exponent e holds values below 2^e in absolute value, with room for the sum over all parties: b = 31
//! (or 63) bits minus those of N, and x is the word round(x 2^(b − e)). If no range is known yet, parties agree on
//! one that fits all columns without revealing whose is the largest ([`votes`]); later it follows the opened sums.

mod part;

pub use part::{Part, PartShape, Width, whole_gram};

use rand::Rng;

use crate::aggregation::Words;
use crate::error::{Error, Result};
use crate::sum::SumKind;

/// Exponents stay within ±LIMIT: 2^250 is 1.8e75.
const LIMIT: i16 = 250;
/// Exponents that one vote decides between.
const STEP: i16 = 4;
/// Votes of a column.
pub const VOTES: usize = (2 * LIMIT / STEP) as usize;

/// Words appended to masked numbers: not 0 if a party's numbers are out of range, or if a party withholds its
/// own.
pub const FLAGS: usize = 2;

/// The range of the numbers of a column, and the distance between two adjacent fixed-point values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// The largest absolute value of any party.
    pub reach: f64,
    /// The distance between two adjacent values.
    pub step: f64,
}

/// The precision of each column of each part; infinite ranges if none are known.
pub fn precision(shapes: &[PartShape], exponents: Option<&[i16]>, parties: usize) -> Vec<Vec<Precision>> {
    let mut exponents = exponents.map(|exponents| exponents.iter());
    let mut column = |width| match exponents.as_mut().and_then(Iterator::next) {
        Some(&exponent) => Precision {
            reach: power(exponent.into()),
            step: power(i32::from(exponent) - bits(width, parties)),
        },
        None => Precision { reach: f64::MAX, step: 0.0 },
    };
    shapes.iter().map(|shape| (0..shape.columns).map(|_| column(shape.width)).collect()).collect()
}

/// The smallest exponent of a range that holds `value`.
fn exponent_above(value: f64) -> i16 {
    if value <= 0.0 {
        return -LIMIT;
    }
    // 2^e > value also where the logarithm is rounded.
    (value.log2().floor() + 1.0).clamp(-LIMIT as f64, LIMIT as f64) as i16
}

/// Bits for one party's words, such that N of them do not wrap around.
fn bits(width: Width, parties: usize) -> i32 {
    let room = usize::BITS as i32 - parties.next_power_of_two().leading_zeros() as i32 - 1;
    match width {
        Width::Narrow => 31 - room,
        Width::Wide => 63 - room,
    }
}

/// 2^e, exactly, for the exponents that occur here.
fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The words of the parts, or `None` if a value is outside its range.
pub fn encode(parts: &[Part], exponents: &[i16], parties: usize) -> Option<Words> {
    let mut words = Words::default();
    let mut exponents = exponents;
    for part in parts {
        let (own, rest) = exponents.split_at(part.columns);
        exponents = rest;
        let bits = bits(part.width, parties);
        let scales: Vec<f64> = own.iter().map(|&exponent| power(bits - exponent as i32)).collect();
        // Exclusive, so that N times the largest still fits where N is a power of two.
        let bound = power(bits);
        match part.width {
            Width::Narrow => words.narrow.reserve(part.values.len()),
            Width::Wide => words.wide.reserve(part.values.len()),
        }
        for row in part.values.chunks_exact(part.columns.max(1)) {
            for (value, scale) in row.iter().zip(&scales) {
                let scaled = (value * scale).round();
                if scaled.is_nan() || scaled.abs() >= bound {
                    return None;
                }
                match part.width {
                    Width::Narrow => words.narrow.push(scaled as i32 as u32),
                    Width::Wide => words.wide.push(scaled as i64 as u64),
                }
            }
        }
    }
    Some(words)
}

/// The parts' numbers, from the words of their sum.
pub fn decode(words: &Words, shapes: &[PartShape], exponents: &[i16], parties: usize) -> Vec<Part> {
    let (mut narrow, mut wide) = (words.narrow.iter(), words.wide.iter());
    let mut exponents = exponents;
    let mut decoded = Vec::new();
    for shape in shapes {
        let (own, rest) = exponents.split_at(shape.columns);
        exponents = rest;
        let bits = bits(shape.width, parties);
        let scales: Vec<f64> = own.iter().map(|&exponent| power(exponent as i32 - bits)).collect();
        let count = shape.count;
        let scales = scales.iter().cycle();
        let values = match shape.width {
            Width::Narrow => narrow
                .by_ref()
                .take(count)
                .zip(scales)
                .map(|(word, scale)| f64::from(*word as i32) * scale)
                .collect(),
            Width::Wide => wide
                .by_ref()
                .take(count)
                .zip(scales)
                .map(|(word, scale)| *word as i64 as f64 * scale)
                .collect(),
        };
        decoded.push(Part { values, columns: shape.columns, width: shape.width });
    }
    decoded
}

/// Ranges for the next sum of this kind: the opened values, with room to grow by a factor of four. No summand of
/// nonnegative numbers exceeds their sum; a summand that is out of range nevertheless is detected, and the parties vote
/// again.
pub fn follow(opened: &[Part]) -> Vec<i16> {
    let largest = opened.iter().flat_map(Part::largest);
    largest.map(|largest| (exponent_above(largest) + 2).min(LIMIT)).collect()
}

/// A flag that a masked sum can carry: uniform over all words except 0, so that the sum reveals only whether any
/// party raised it, not how many did.
pub fn raised(rng: &mut impl Rng) -> u64 {
    loop {
        let word = rng.next_u64();
        if word != 0 {
            return word;
        }
    }
}

/// The party and the sum for which numbers are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Contribution {
    /// The party.
    pub party: u16,
    /// The sum.
    pub kind: SumKind,
}

/// A party's vote on the ranges that it needs: for each column and each step of the scale a word that is random
/// where its values reach that far and 0 where they do not. The sum reveals which words are not 0, and thus the
/// largest exponent that any party needs, but not which parties need it or how many.
pub fn votes(parts: &[Part], from: Contribution, rng: &mut impl Rng) -> Result<Words> {
    let mut wide = Vec::new();
    for largest in parts.iter().flat_map(Part::largest) {
        if largest.is_nan() || largest >= power(LIMIT as i32) {
            return Err(Error::Outside { party: from.party, what: from.kind.label(), value: largest });
        }
        let exponent = exponent_above(largest);
        for vote in 0..VOTES as i16 {
            wide.push(if exponent > -LIMIT + vote * STEP { raised(rng) } else { 0 });
        }
    }
    Ok(Words { narrow: Vec::new(), wide })
}

/// The exponents that the sum of all votes asks for.
pub fn agreed(votes: &Words) -> Vec<i16> {
    let exponent = |votes: &[u64]| {
        let highest = votes.iter().rposition(|&vote| vote != 0);
        highest.map_or(-LIMIT, |vote| -LIMIT + (vote as i16 + 1) * STEP)
    };
    votes.wide.chunks_exact(VOTES).map(exponent).collect()
}

/// Whether any party's column has a nonzero value, by the sum of all votes.
pub fn anything(votes: &Words) -> Vec<bool> {
    agreed(votes).into_iter().map(|exponent| exponent > -LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::entropy;
    use chacha20::ChaCha20Rng;
    use proptest::prelude::*;
    use rand::SeedableRng;

    const FIRST: Contribution = Contribution { party: 1, kind: SumKind::U };

    fn shapes(parts: &[Part]) -> Vec<PartShape> {
        parts.iter().map(Part::shape).collect()
    }

    fn parts(values: &[f64], scalars: &[f64]) -> Vec<Part> {
        vec![Part::matrix(values.to_vec(), 2), Part::scalars(scalars)]
    }

    proptest! {
        /// Against the sum in f64.
        #[test]
        fn sums_of_words_are_sums_of_numbers(
            parties in 1usize..60, scale in -200i32..200,
            values in prop::collection::vec(-1f64..1.0, 8), scalars in prop::collection::vec(-1f64..1.0, 3),
        ) {
            let scaled = |values: &[f64], party: usize| -> Vec<f64> {
                values.iter().map(|value| value * power(scale) * (party + 1) as f64 / parties as f64).collect()
            };
            let shares: Vec<Vec<Part>> =
                (0..parties).map(|party| parts(&scaled(&values, party), &scaled(&scalars, party))).collect();
            let mut rng = entropy().unwrap();
            let mut ballot = votes(&shares[0], FIRST, &mut rng).unwrap();
            for share in &shares[1..] {
                ballot.add(&votes(share, FIRST, &mut rng).unwrap());
            }
            let exponents = agreed(&ballot);
            let mut sum = encode(&shares[0], &exponents, parties).unwrap();
            for share in &shares[1..] {
                sum.add(&encode(share, &exponents, parties).unwrap());
            }
            let opened = decode(&sum, &shapes(&shares[0]), &exponents, parties);
            for (part, opened) in opened.iter().enumerate() {
                for (place, value) in opened.values.iter().enumerate() {
                    let naive: f64 = shares.iter().map(|share| share[part].values[place]).sum();
                    let largest = shares.iter().flat_map(|share| &share[part].values).fold(0f64, |a, b| a.max(b.abs()));
                    // 25 bits of 31 remain for 60 parties, of which a coarse range takes up to 4.
                    let tolerance = if part == 0 { power(-20) } else { power(-50) };
                    prop_assert!((value - naive).abs() <= tolerance * parties as f64 * largest);
                }
            }
            // The ranges that follow hold every summand.
            let next = follow(&opened);
            let positive = shares.iter().all(|share| share.iter().all(|part| part.values.iter().all(|x| *x >= 0.0)));
            if positive {
                prop_assert!(shares.iter().all(|share| encode(share, &next, parties).is_some()));
            }
        }
    }

    #[test]
    fn the_largest_words_of_all_parties_do_not_wrap() {
        for parties in [1, 2, 3, 4, 5, 8, 50, 64, 255] {
            for sign in [-1.0, 1.0] {
                let part =
                    vec![Part::matrix(vec![sign * (1.0 - 1e-9)], 1), Part::scalars(&[sign * (1.0 - 1e-15)])];
                let Some(words) = encode(&part, &[0, 0], parties) else { continue };
                let mut sum = words.zeros_like();
                (0..parties).for_each(|_| sum.add(&words));
                for opened in decode(&sum, &shapes(&part), &[0, 0], parties) {
                    let opened = opened.values[0];
                    assert!((opened - sign * parties as f64).abs() < 1e-3, "{parties} {opened}");
                }
            }
        }
    }

    #[test]
    fn values_outside_are_noticed() {
        for value in [1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            assert_eq!(encode(&[Part::matrix(vec![value], 1)], &[0], 3), None, "{value}");
            assert_eq!(encode(&[Part::scalars(&[value])], &[0], 3), None, "{value}");
        }
        let mut rng = entropy().unwrap();
        for value in [1e76, f64::NAN, f64::INFINITY] {
            let from = Contribution { party: 4, kind: SumKind::Norms };
            let error = votes(&[Part::scalars(&[0.0, value])], from, &mut rng).unwrap_err();
            assert!(
                error.to_string().contains("party 4") && error.to_string().contains("rescale"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_gram_matrix_travels_as_its_triangle() {
        let gram = [1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 3.0, 5.0, 6.0];
        assert_eq!(whole_gram(&Part::gram(&gram, 3).values, 3), gram);
    }

    #[test]
    fn votes_reveal_only_the_largest_exponent() {
        let mut rng = entropy().unwrap();
        let vote = |value: f64, rng: &mut _| votes(&[Part::scalars(&[value])], FIRST, rng).unwrap();
        let (mut one, mut three) = (vote(1000.0, &mut rng), vote(0.001, &mut rng));
        three.add(&vote(1000.0, &mut rng));
        three.add(&vote(1000.0, &mut rng));
        one.add(&vote(0.0, &mut rng));
        assert_eq!(agreed(&one), agreed(&three));
        assert!((10..=13).contains(&agreed(&one)[0]), "{:?}", agreed(&one));
        assert_eq!(agreed(&vote(0.0, &mut rng)), [-LIMIT]);
        assert_eq!((anything(&one), anything(&vote(0.0, &mut rng))), (vec![true], vec![false]));
    }

    /// Bits and bytes of the sum of n votes are distributed alike for every n.
    #[test]
    fn sums_of_votes_do_not_tell_how_many_voted() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for voters in 1..=6 {
            let ballots = (0..200).map(|_| {
                let mut sum = votes(&[Part::scalars(&[1e70])], FIRST, &mut rng).unwrap();
                for _ in 1..voters {
                    sum.add(&votes(&[Part::scalars(&[1e70])], FIRST, &mut rng).unwrap());
                }
                sum.wide.into_iter().filter(|&word| word != 0).collect::<Vec<u64>>()
            });
            let words: Vec<u64> = ballots.flatten().collect();
            assert!(words.len() > 20_000);
            for bit in 0..64 {
                let set = words.iter().filter(|&word| word >> bit & 1 == 1).count() as f64;
                let expected = words.len() as f64 / 2.0;
                // Six standard deviations.
                assert!(
                    (set - expected).abs() < 6.0 * (expected / 2.0).sqrt(),
                    "{voters} voters, bit {bit}: {set}"
                );
            }
        }
    }
}
