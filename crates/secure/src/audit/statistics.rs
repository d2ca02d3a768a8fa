//! How well scores tell members from others, and whether words look random.

use serde::{Deserialize, Serialize};

/// Scores of records that were in the data and of others; higher means "was in it".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Scores of members.
    pub members: Vec<f64>,
    /// Scores of non-members.
    pub others: Vec<f64>,
}

impl Scores {
    /// Adds those of another victim, or of another run.
    pub fn pool(&mut self, more: &Scores) {
        self.members.extend(&more.members);
        self.others.extend(&more.others);
    }

    /// The area under the ROC curve: how often a member has a higher score than another record, ties counting half.
    pub fn auc(&self) -> Auc {
        let (members, others) = (self.members.len(), self.others.len());
        let mut all: Vec<(f64, bool)> = self.members.iter().map(|&score| (score, true)).collect();
        all.extend(self.others.iter().map(|&score| (score, false)));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut below, mut wins) = (0.0, 0.0);
        for tied in all.chunk_by(|a, b| a.0 == b.0) {
            let tied_others = tied.iter().filter(|(_, member)| !member).count() as f64;
            wins += (tied.len() as f64 - tied_others) * (below + 0.5 * tied_others);
            below += tied_others;
        }
        let pairs = (members * others) as f64;
        let value = if pairs > 0.0 { wins / pairs } else { 0.5 };
        Auc { value, standard_error: standard_error(value, members, others), members, others }
    }
}

/// An area under the ROC curve: 0.5 is guessing, 1 is certainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Auc {
    /// The area.
    #[serde(rename = "auc")]
    pub value: f64,
    /// Standard error of the AUC, after Hanley and McNeil 1982.
    pub standard_error: f64,
    /// How many members were scored.
    pub members: usize,
    /// How many others.
    pub others: usize,
}

/// Hanley and McNeil 1982, "The meaning and use of the area under a receiver operating characteristic curve", with the
/// probabilities of their Q1 and Q2 for exponential scores.
pub fn standard_error(auc: f64, members: usize, others: usize) -> f64 {
    if members == 0 || others == 0 {
        return 0.5;
    }
    let (first, second) = (auc / (2.0 - auc), 2.0 * auc * auc / (1.0 + auc));
    let variance = auc * (1.0 - auc)
        + (members as f64 - 1.0) * (first - auc * auc)
        + (others as f64 - 1.0) * (second - auc * auc);
    (variance.max(0.0) / (members * others) as f64).sqrt()
}

/// Counts the bytes of 32-bit words, place by place.
#[derive(Clone)]
pub struct Histogram([[u64; 256]; 4]);

impl Default for Histogram {
    fn default() -> Self {
        Histogram([[0; 256]; 4])
    }
}

impl Histogram {
    /// Counts a word; a wide one is two.
    pub fn count(&mut self, word: u32) {
        self.0.iter_mut().zip(word.to_le_bytes()).for_each(|(counts, byte)| counts[usize::from(byte)] += 1);
    }

    /// Pearson's test that every byte is equally likely at each of the four places.
    pub fn test(&self) -> ChiSquare {
        let words: u64 = self.0[0].iter().sum();
        let expected = words as f64 / 256.0;
        let term = |&count: &u64| (count as f64 - expected).powi(2) / expected;
        let statistic =
            if words == 0 { 0.0 } else { self.0.iter().flat_map(|counts| counts.iter().map(term)).sum() };
        let degrees = 4 * 255;
        ChiSquare { words, statistic, degrees, p: chi_square_tail(statistic, degrees) }
    }
}

/// A chi-square test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChiSquare {
    /// How many words were counted.
    pub words: u64,
    /// χ².
    pub statistic: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// How likely random words give at least this.
    pub p: f64,
}

/// P(χ² ≥ x) for an even number of degrees of freedom: e^(−y) Σ y^i / i! over i < degrees / 2, y = x / 2.
fn chi_square_tail(x: f64, degrees: usize) -> f64 {
    let y = x / 2.0;
    if y <= 0.0 {
        return 1.0;
    }
    let (mut log_term, mut sum) = (-y, 0.0);
    for i in 0..degrees / 2 {
        if i > 0 {
            log_term += (y / i as f64).ln();
        }
        sum += log_term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::entropy;
    use proptest::prelude::*;
    use rand::Rng;

    /// The example of Hanley and McNeil 1982: 51 and 58 patients, area 0.893, standard error 0.032.
    #[test]
    fn the_standard_error_is_that_of_hanley_and_mcneil() {
        assert!((standard_error(0.893, 51, 58) - 0.0321).abs() < 5e-4);
        // By hand: A = 1/2, two of each: Q1 = Q2 = 1/3, (1/4 + 2 (1/3 - 1/4)) / 4 = 5/48.
        assert!((standard_error(0.5, 2, 2) - (5.0f64 / 48.0).sqrt()).abs() < 1e-15);
        assert_eq!(standard_error(1.0, 20, 20), 0.0);
    }

    #[test]
    fn areas_by_hand() {
        let auc = |members: &[f64], others: &[f64]| {
            Scores { members: members.to_vec(), others: others.to_vec() }.auc().value
        };
        assert_eq!(auc(&[2.0, 3.0], &[0.0, 1.0]), 1.0);
        assert_eq!(auc(&[0.0, 1.0], &[2.0, 3.0]), 0.0);
        assert_eq!(auc(&[1.0, 1.0], &[1.0]), 0.5);
        // 3 over 2, 3 over 1, 1 ties with 1, 1 below 2.
        assert_eq!(auc(&[3.0, 1.0], &[2.0, 1.0]), 2.5 / 4.0);
        assert_eq!(auc(&[], &[1.0]), 0.5);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs(
            members in prop::collection::vec(0u8..12, 1..30), others in prop::collection::vec(0u8..12, 1..30),
        ) {
            let wins: f64 = members.iter().flat_map(|member| others.iter().map(move |other| match member.cmp(other) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            })).sum();
            let real = |scores: &[u8]| scores.iter().map(|&score| f64::from(score)).collect();
            let scores = Scores { members: real(&members), others: real(&others) };
            prop_assert!((scores.auc().value - wins / (members.len() * others.len()) as f64).abs() < 1e-12);
        }
    }

    #[test]
    fn tails_of_chi_square_are_those_of_tables() {
        for (x, degrees, p) in
            [(5.99146, 2, 0.05), (18.307, 10, 0.05), (124.342, 100, 0.05), (23.209, 10, 0.01)]
        {
            assert!((chi_square_tail(x, degrees) - p).abs() < 1e-5, "{x} {degrees}");
        }
    }

    #[test]
    fn random_words_pass_and_numbers_do_not() {
        let mut rng = entropy().unwrap();
        let (mut random, mut numbers) = (Histogram::default(), Histogram::default());
        for i in 0..100_000u32 {
            random.count(rng.next_u32());
            numbers.count((1.0 + i as f32 / 1e5).to_bits());
        }
        assert!(random.test().p > 1e-6, "{:?}", random.test());
        assert!(numbers.test().p < 1e-12);
    }
}
