//! The results of attacks.

use serde::{Deserialize, Serialize};

use super::adversary::Adversary;
use super::rates::{FALSE_POSITIVES, TruePositives};
use super::recovery::WITHIN;
use super::statistics::{Auc, Scores};

/// How well an attack tells members from others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The attack.
    pub attack: String,
    /// The adversary.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// What the attack evaluates.
    pub on: String,
    /// The AUC of the attack.
    #[serde(flatten)]
    pub auc: Auc,
    /// The members that the attack identifies at low rates of false positives.
    #[serde(default)]
    pub true_positives: Vec<TruePositives>,
    /// Mean score of members: for matching, the best cosine with what was seen.
    pub mean_of_members: f64,
    /// Mean score of others.
    pub mean_of_others: f64,
    /// The highest score of a member.
    pub highest: f64,
    /// Dimensions of the span.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dimensions: Option<usize>,
    /// The scores themselves, to pool those of several runs.
    #[serde(skip)]
    pub scores: Scores,
}

impl Finding {
    pub(super) fn new(attack: &str, adversary: Adversary, on: &str) -> Self {
        let (attack, on, scores) = (attack.into(), on.into(), Scores::default());
        let auc = scores.auc();
        let (mean_of_members, mean_of_others, highest) = (0.0, 0.0, 0.0);
        Finding {
            attack,
            adversary,
            on,
            auc,
            true_positives: Vec::new(),
            mean_of_members,
            mean_of_others,
            highest,
            dimensions: None,
            scores,
        }
    }

    pub(super) fn has_scores(&self) -> bool {
        !self.scores.members.is_empty() && !self.scores.others.is_empty()
    }

    /// Takes the figures from the scores.
    pub fn settle(&mut self) {
        let mean = |scores: &[f64]| {
            let finite = scores.iter().filter(|score| score.is_finite());
            finite.clone().sum::<f64>() / finite.count().max(1) as f64
        };
        self.auc = self.scores.auc();
        self.true_positives = FALSE_POSITIVES.map(|share| TruePositives::at(share, &self.scores)).to_vec();
        self.mean_of_members = mean(&self.scores.members);
        self.mean_of_others = mean(&self.scores.others);
        self.highest = self.scores.members.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
}

/// How much of M follows from (S, M S).
#[derive(Clone, Debug, Serialize)]
pub struct Recovery {
    /// The adversary.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The method of the attack.
    pub method: &'static str,
    /// The number of iterations used.
    pub iterations: usize,
    /// Equations for each feature.
    pub equations: usize,
    /// Unknown records.
    pub unknowns: usize,
    /// ‖X − M‖ / ‖M‖ over the features that were tried.
    pub relative_error: f64,
    /// Share of the entries that are not 0 which were found within a tenth of their value.
    pub recovered: f64,
    #[serde(skip)]
    pub(super) squared_error: f64,
    #[serde(skip)]
    pub(super) squared_norm: f64,
    #[serde(skip)]
    pub(super) entries: usize,
    #[serde(skip)]
    pub(super) entries_recovered: usize,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery {
            adversary: Adversary::Everybody,
            method: "",
            iterations: 0,
            equations: 0,
            unknowns: 0,
            relative_error: 0.0,
            recovered: 0.0,
            squared_error: 0.0,
            squared_norm: 0.0,
            entries: 0,
            entries_recovered: 0,
        }
    }
}

impl Recovery {
    pub(super) fn same_case(&self, other: &Recovery) -> bool {
        (self.adversary, self.method, self.iterations) == (other.adversary, other.method, other.iterations)
    }

    /// Adds that of another victim, or of another run.
    pub fn pool(&mut self, more: &Recovery) {
        self.squared_error += more.squared_error;
        self.squared_norm += more.squared_norm;
        self.entries += more.entries;
        self.entries_recovered += more.entries_recovered;
        *self = self.clone().finish();
    }

    pub(super) fn finish(mut self) -> Self {
        self.relative_error = (self.squared_error / self.squared_norm.max(f64::MIN_POSITIVE)).sqrt();
        self.recovered = self.entries_recovered as f64 / self.entries.max(1) as f64;
        self
    }
}

/// How well an attack reconstructed records, in numbers that all parties may know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reconstruction {
    /// The adversary.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The name of the attack.
    pub attack: String,
    /// The number of records that the attack tried to reconstruct.
    pub tried: usize,
    /// The number of records found exactly up to scale, with every entry within a tenth of its value.
    pub exact: usize,
    /// The median cosine between a record and its reconstruction.
    pub median_cosine: f64,
    /// The highest cosine between a record and its reconstruction.
    pub highest_cosine: f64,
    /// The error with which parties noticed a deviation and stopped, if they did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub noticed: Option<String>,
    /// The individual records, for their own parties.
    #[serde(skip)]
    pub(super) records: Vec<Reconstructed>,
}

/// A record that an attack tried to reconstruct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reconstructed {
    /// The record's row in the matrix.
    pub row: usize,
    /// The cosine between the record and its reconstruction; 0 if there is none.
    pub cosine: f64,
    /// Whether, at the best scale, every entry was found within a tenth of its value, and every zero within a
    /// tenth of the smallest nonzero entry.
    pub is_exact: bool,
}

impl Reconstructed {
    /// Compares the record in a row of the matrix with its reconstruction.
    pub fn new(row: usize, record: &[f64], found: &[f64]) -> Self {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (both, own, theirs) = (product(record, found), product(record, record), product(found, found));
        if own == 0.0 || theirs == 0.0 {
            return Reconstructed { row, cosine: 0.0, is_exact: false };
        }
        let smallest = record.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let is_near = |(value, found): (&f64, &f64)| {
            (found * both / theirs - value).abs() <= WITHIN * value.max(smallest)
        };
        Reconstructed {
            row,
            cosine: both / (own * theirs).sqrt(),
            is_exact: record.iter().zip(found).all(is_near),
        }
    }
}

impl Reconstruction {
    /// Summarizes an attack, counting each record once with its best reconstruction.
    pub(super) fn new(adversary: Adversary, attack: &str, mut records: Vec<Reconstructed>) -> Self {
        records.sort_by(|a, b| a.row.cmp(&b.row).then(b.cosine.total_cmp(&a.cosine)));
        records.dedup_by_key(|record| record.row);
        records.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
        let cosine = |place: usize| records.get(place).map_or(0.0, |record| record.cosine);
        Reconstruction {
            adversary,
            attack: attack.into(),
            tried: records.len(),
            exact: records.iter().filter(|record| record.is_exact).count(),
            median_cosine: cosine(records.len() / 2),
            highest_cosine: cosine(0),
            noticed: None,
            records,
        }
    }

    pub(super) fn same_case(&self, other: &Reconstruction) -> bool {
        (self.adversary, &self.attack) == (other.adversary, &other.attack)
    }

    /// Adds the results of another run, which is about different records.
    pub(super) fn pool(&mut self, more: &Reconstruction) {
        let noticed = self.noticed.take().or_else(|| more.noticed.clone());
        let moved = |record: &Reconstructed| Reconstructed { row: record.row + self.shift(), ..*record };
        let records = more.records.iter().map(moved).chain(self.records.iter().copied()).collect();
        *self = Reconstruction { noticed, ..Reconstruction::new(self.adversary, &self.attack, records) };
    }

    /// A number larger than every row so far.
    fn shift(&self) -> usize {
        self.records.iter().map(|record| record.row + 1).max().unwrap_or(0)
    }
}

/// The results of one attack by one adversary.
#[derive(Default)]
pub struct Found {
    pub(super) findings: Vec<Finding>,
    pub(super) recoveries: Vec<Recovery>,
    pub(super) reconstructions: Vec<Reconstruction>,
}
