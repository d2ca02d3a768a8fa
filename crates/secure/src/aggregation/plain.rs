//! Sums of numbers that are not masked.

use super::Words;

/// Each number as the sum of two f64, the second what the rounding of the first left over. Rounded to one number, such a
/// sum does not depend on the order of its terms, but where it lies within about 2^-100 of itself of the middle between
/// two numbers: uploads can be added as they come.
pub struct PlainSum {
    narrow: Vec<[f64; 2]>,
    wide: Vec<[f64; 2]>,
}

impl PlainSum {
    /// Of these words alone: f32 in 32 bits, f64 in 64.
    pub fn new(words: &Words) -> Self {
        let mut sum =
            PlainSum { narrow: vec![[0.0; 2]; words.narrow.len()], wide: vec![[0.0; 2]; words.wide.len()] };
        sum.add(words);
        sum
    }

    /// Adds.
    pub fn add(&mut self, words: &Words) {
        self.narrow
            .iter_mut()
            .zip(&words.narrow)
            .for_each(|(sum, &term)| add(sum, f32::from_bits(term).into()));
        self.wide.iter_mut().zip(&words.wide).for_each(|(sum, &term)| add(sum, f64::from_bits(term)));
    }

    /// As words again.
    pub fn words(&self) -> Words {
        Words {
            narrow: self.narrow.iter().map(|[high, low]| ((high + low) as f32).to_bits()).collect(),
            wide: self.wide.iter().map(|[high, low]| (high + low).to_bits()).collect(),
        }
    }
}

/// Knuth's sum without loss, and what was left over before.
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
                let mut sum = PlainSum::new(&words(&terms[0]));
                terms[1..].iter().for_each(|term| sum.add(&words(term)));
                sum.words()
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
