//! Sums of numbers that are not masked.

use super::Words;

/// Each number as the sum of two f64, the second what the rounding of the first left over. Rounded to one number, such a
/// sum does not depend on the order of its terms, but where it lies within about 2^-100 of itself of the middle between
/// two numbers: uploads can be added as they come.
pub enum PlainSum {
    /// One term, as it came: a group of one party needs no room for sums.
    One(Words),
    /// The sum of several.
    Several {
        /// Sums of f32 words.
        narrow: Vec<[f64; 2]>,
        /// Sums of f64 words.
        wide: Vec<[f64; 2]>,
    },
}

impl PlainSum {
    /// Adds words: f32 in 32 bits, f64 in 64.
    pub fn add(&mut self, words: &Words) {
        if let PlainSum::One(first) = self {
            let pair = |term: f64| [term, 0.0];
            *self = PlainSum::Several {
                narrow: first.narrow.iter().map(|&term| pair(f32::from_bits(term).into())).collect(),
                wide: first.wide.iter().map(|&term| pair(f64::from_bits(term))).collect(),
            };
        }
        if let PlainSum::Several { narrow, wide } = self {
            narrow
                .iter_mut()
                .zip(&words.narrow)
                .for_each(|(sum, &term)| add(sum, f32::from_bits(term).into()));
            wide.iter_mut().zip(&words.wide).for_each(|(sum, &term)| add(sum, f64::from_bits(term)));
        }
    }

    /// Converts the sums to words.
    pub fn into_words(self) -> Words {
        match self {
            PlainSum::One(words) => words,
            PlainSum::Several { narrow, wide } => Words {
                narrow: narrow.iter().map(|[high, low]| ((high + low) as f32).to_bits()).collect(),
                wide: wide.iter().map(|[high, low]| (high + low).to_bits()).collect(),
            },
        }
    }
}

/// Knuth's exact two-term sum, applied to a sum with its rounding error.
fn add(sum: &mut [f64; 2], term: f64) {
    let [high, low] = *sum;
    let total = high + term;
    let added = total - high;
    let low = low + ((high - (total - added)) + (term - added));
    *sum = [total + low, low - ((total + low) - total)];
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            mut terms in prop::collection::vec((0f64..1.0, -30i32..30), 2..60), turn: prop::sample::Index,
        ) {
            let words = |(value, exponent): &(f64, i32)| {
                let value = value * 2f64.powi(*exponent);
                Words { narrow: vec![(value as f32).to_bits()], wide: vec![value.to_bits()] }
            };
            let sum = |terms: &[(f64, i32)]| {
                let mut sum = PlainSum::One(words(&terms[0]));
                terms[1..].iter().for_each(|term| sum.add(&words(term)));
                sum.into_words()
            };
            let first = sum(&terms);
            let naive: f64 = terms.iter().map(|(value, exponent)| value * 2f64.powi(*exponent)).sum();
            prop_assert!((f64::from_bits(first.wide[0]) / naive - 1.0).abs() < 1e-13);
            let turn = turn.index(terms.len());
            terms.rotate_left(turn);
            prop_assert_eq!(&sum(&terms), &first);
            terms.reverse();
            prop_assert_eq!(&sum(&terms), &first);
        }
    }
}
