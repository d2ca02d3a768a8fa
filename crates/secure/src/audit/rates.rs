//! How many members an attack identifies at a low rate of false positives, which an average hides.
//!
//! The bounds are those of Clopper and Pearson 1934, which hold for any number of records.

use serde::{Deserialize, Serialize};

use super::statistics::Scores;

/// The rates of false positives that are evaluated.
pub const FALSE_POSITIVES: [f64; 2] = [0.001, 0.01];

/// The confidence level of the bounds of a rate.
pub const CONFIDENCE: f64 = 0.95;

/// A share of cases, with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The number of cases that count.
    pub count: usize,
    /// The number of all cases.
    pub of: usize,
    /// The lower bound of the share.
    pub lowest: f64,
    /// The upper bound of the share.
    pub highest: f64,
}

impl Rate {
    /// The share of `count` in `of` cases.
    pub fn new(count: usize, of: usize) -> Self {
        Rate { count, of, lowest: 1.0 - upper_bound(of - count, of), highest: upper_bound(count, of) }
    }

    /// The share itself.
    pub fn share(&self) -> f64 {
        self.count as f64 / self.of.max(1) as f64
    }
}

/// The members that an attack identifies at a rate of false positives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruePositives {
    /// The rate of false positives.
    pub false_positives: f64,
    /// The measured rates; `None` if there are too few non-members to choose a threshold, so the rate is not
    /// estimable.
    pub told: Option<Told>,
}

/// The members and non-members above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Members above the threshold: true positives.
    pub members: Rate,
    /// Non-members above the threshold: false positives.
    pub others: Rate,
}

impl TruePositives {
    /// Counts cases above the lowest threshold that at most this share of the non-members exceeds.
    pub fn at(false_positives: f64, scores: &Scores) -> Self {
        let allowed = (false_positives * scores.others.len() as f64).floor() as usize;
        let mut others = scores.others.clone();
        others.sort_by(|a, b| b.total_cmp(a));
        let told = (allowed > 0 && !scores.members.is_empty()).then(|| {
            // Ties with the threshold count as below.
            let threshold = others.get(allowed).copied().unwrap_or(f64::NEG_INFINITY);
            let above = |scores: &[f64]| {
                Rate::new(scores.iter().filter(|score| **score > threshold).count(), scores.len())
            };
            Told { members: above(&scores.members), others: above(&scores.others) }
        });
        TruePositives { false_positives, told }
    }

    /// Whether the bounds of both rates show that members exceed the threshold more often than non-members.
    pub fn is_certain(&self) -> bool {
        self.told.is_some_and(|told| told.members.lowest > told.others.highest)
    }
}

/// The share at which this count or fewer would occur in only (1 − [`CONFIDENCE`]) / 2 of all samples.
fn upper_bound(count: usize, of: usize) -> f64 {
    if count >= of {
        return 1.0;
    }
    let (mut low, mut high) = (count as f64 / of as f64, 1.0);
    let binomial = Binomial::new(count, of);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if binomial.at_most(middle) > (1.0 - CONFIDENCE) / 2.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The binomial distribution up to `count` of `of`.
struct Binomial {
    count: usize,
    of: usize,
    /// ln of the number of ways to choose `count`.
    choices: f64,
}

impl Binomial {
    fn new(count: usize, of: usize) -> Self {
        let choices = (0..count).map(|i| ((of - i) as f64 / (i + 1) as f64).ln()).sum();
        Binomial { count, of, choices }
    }

    /// P(X ≤ count), from the largest term down: above the mean none of the others is larger.
    fn at_most(&self, p: f64) -> f64 {
        let (count, of) = (self.count as f64, self.of as f64);
        let mut term = (self.choices + count * p.ln() + (of - count) * (-p).ln_1p()).exp();
        let odds = (1.0 - p) / p;
        let mut sum = term;
        for i in (1..=self.count).rev() {
            term *= i as f64 / (self.of - i + 1) as f64 * odds;
            sum += term;
            if term < 1e-17 * sum {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")` of SciPy.
    #[rustfmt::skip]
    const SCIPY: [(usize, usize, f64, f64); 14] = [
        (0, 1, 0.000000000000, 0.975000000000),
        (1, 1, 0.025000000000, 1.000000000000),
        (0, 10, 0.000000000000, 0.308497107819),
        (3, 10, 0.066739511178, 0.652452850060),
        (10, 10, 0.691502892181, 1.000000000000),
        (1, 200, 0.000126581028, 0.027541898458),
        (2, 2000, 0.000121127591, 0.003607628570),
        (20, 2000, 0.006118657543, 0.015402125784),
        (137, 2000, 0.057818476403, 0.080466415544),
        (1999, 2000, 0.997217360165, 0.999987341176),
        (1000, 2000, 0.477850554231, 0.522149445769),
        (9999, 10000, 0.999442963002, 0.999997468222),
        (3, 70000, 0.000008838261, 0.000125241599),
        (35000, 70000, 0.496288937710, 0.503711062290),
    ];

    #[test]
    fn bounds_agree_with_scipy() {
        for (count, of, lowest, highest) in SCIPY {
            let rate = Rate::new(count, of);
            assert!((rate.lowest - lowest).abs() < 1e-9 && (rate.highest - highest).abs() < 1e-9, "{rate:?}");
        }
    }

    fn at(false_positives: f64, members: Vec<f64>, others: Vec<f64>) -> TruePositives {
        TruePositives::at(false_positives, &Scores { members, others })
    }

    /// 1000 non-members with scores 0, 1, ..., 999: at 1%, 990 and above may be false positives; at 0.1%,
    /// 999.
    #[test]
    fn rates_of_constructed_scores() {
        let others: Vec<f64> = (0..1000).map(f64::from).collect();
        let members = vec![2000.0, 998.5, 990.0, 989.0, 988.0, 0.0, 500.0, 1.0, 2.0, 3.0];
        let counts = |told: TruePositives| told.told.map(|told| (told.members.count, told.others.count));
        assert_eq!(counts(at(0.01, members.clone(), others.clone())), Some((3, 10)));
        assert_eq!(counts(at(0.001, members.clone(), others.clone())), Some((2, 1)));
        // Of 999, not a single one is a thousandth.
        assert_eq!(counts(at(0.001, members.clone(), others[1..].to_vec())), None);
        assert_eq!(counts(at(0.01, Vec::new(), others)), None);
        // Ties with the threshold are not positives.
        assert_eq!(counts(at(0.01, vec![1.0; 50], vec![1.0; 200])), Some((0, 0)));
        // An average hides this: one of a hundred members is identified with certainty, the others not at
        // all.
        let mut members: Vec<f64> = (0..2000).map(|i| f64::from(i) * 0.5).collect();
        members[..40].fill(1e6);
        let others: Vec<f64> = (0..1000).map(f64::from).collect();
        let scores = Scores { members, others };
        let rates = TruePositives::at(0.001, &scores);
        assert!(scores.auc().value < 0.53 && rates.is_certain(), "{rates:?}");
    }

    #[test]
    fn equal_scores_are_not_certain() {
        let scores: Vec<f64> = (0..3000).map(f64::from).collect();
        for share in FALSE_POSITIVES {
            let rates = at(share, scores.clone(), scores.clone());
            assert!(!rates.is_certain() && rates.told.is_some(), "{rates:?}");
        }
    }
}
