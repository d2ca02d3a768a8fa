//! The audit of a run: what left each party, who could read it, and what an attacker makes of it.
//!
//! Attacks see the recorded messages ([`Transcript`]) from a [`Adversary`]: what was received there, and what those who sit
//! there had themselves. To add an attack, write a file with a function `run` and a line in `attacks`.

mod adversary;
mod candidates;
pub mod folder;
mod left;
mod matching;
mod recovery;
mod result;
mod span;
mod statistics;
#[cfg(test)]
mod tests;
mod transcript;
mod verdict;

pub use adversary::Adversary;
pub use left::{Cover, Left, readers};
pub use recovery::{Equations, WITHIN};
pub use statistics::{Auc, ChiSquare, Histogram, Scores, standard_error};
pub use transcript::{Recording, Said, Shape, Sum, Transcript};

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::matrix::Matrix;
use partwise::threads::Threads;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Aggregation, Protocol, Settings};
use adversary::{SKETCHED, View};
use candidates::Candidates;

/// What an audit needs to know of a run.
pub struct Evidence<'a, T> {
    /// What was said.
    pub transcript: &'a Transcript,
    /// What the parties agreed on.
    pub settings: &'a Settings,
    /// All records, a row each, also those that were held out.
    pub matrix: &'a Matrix<T>,
    /// The records of each party.
    pub dealt: &'a [Vec<usize>],
    /// Records that were in nobody's data, by the party whose kind they are.
    pub held_out: &'a [Vec<usize>],
    /// The final U, features x k, by row.
    pub u: &'a [T],
}

/// How much an audit computes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Sums that are looked at, evenly spread over the run; and as many of sketched features.
    pub sums: usize,
    /// Members that are scored, evenly spread over parties and their records; and as many others.
    pub records: usize,
    /// Dimensions of the span at most.
    pub directions: usize,
    /// Records that are sought by linear recovery at most.
    pub unknowns: usize,
    /// Parties whose records are sought so.
    pub recovered: usize,
    /// Multiplications of one of these: it decides for how many features they are sought.
    pub multiplications: f64,
    /// Threads.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sums: 200,
            records: 2000,
            directions: 1000,
            unknowns: 800,
            recovered: 3,
            multiplications: 2e9,
            threads: 1,
        }
    }
}

impl Limits {
    /// At most so many of `0..count`, evenly spread, the first and the last among them.
    fn pick(&self, count: usize, most: usize) -> Vec<usize> {
        match most {
            _ if count <= most => (0..count).collect(),
            0 => Vec::new(),
            1 => vec![count - 1],
            _ => (0..most).map(|place| place * (count - 1) / (most - 1)).collect(),
        }
    }

    /// At most `sums` of those that are of sketched features, or of those that are not: else the many that an attack cannot
    /// use would crowd out the others.
    fn places(&self, view: &View<'_>, sketched: bool) -> Vec<usize> {
        let of: Vec<usize> =
            (0..view.len()).filter(|&place| (view.what(place) == SKETCHED) == sketched).collect();
        self.pick(of.len(), self.sums).into_iter().map(|place| of[place]).collect()
    }
}

/// How well an attack tells members from others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The attack.
    pub attack: String,
    /// Who attacks.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// On what.
    pub on: String,
    /// Its AUC.
    #[serde(flatten)]
    pub auc: Auc,
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
    fn new(attack: &str, adversary: Adversary, on: &str) -> Self {
        let (attack, on, scores) = (attack.into(), on.into(), Scores::default());
        let auc = scores.auc();
        let (mean_of_members, mean_of_others, highest) = (0.0, 0.0, 0.0);
        Finding {
            attack,
            adversary,
            on,
            auc,
            mean_of_members,
            mean_of_others,
            highest,
            dimensions: None,
            scores,
        }
    }

    fn has_scores(&self) -> bool {
        !self.scores.members.is_empty() && !self.scores.others.is_empty()
    }

    /// Takes the figures from the scores.
    pub fn settle(&mut self) {
        let mean = |scores: &[f64]| {
            let finite = scores.iter().filter(|score| score.is_finite());
            finite.clone().sum::<f64>() / finite.count().max(1) as f64
        };
        self.auc = self.scores.auc();
        self.mean_of_members = mean(&self.scores.members);
        self.mean_of_others = mean(&self.scores.others);
        self.highest = self.scores.members.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
}

/// How much of M follows from (S, M S).
#[derive(Clone, Debug, Serialize)]
pub struct Recovery {
    /// Who attacks.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// By which method.
    pub method: &'static str,
    /// After so many iterations.
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
    squared_error: f64,
    #[serde(skip)]
    squared_norm: f64,
    #[serde(skip)]
    entries: usize,
    #[serde(skip)]
    entries_recovered: usize,
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
    fn same_case(&self, other: &Recovery) -> bool {
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

    fn finish(mut self) -> Self {
        self.relative_error = (self.squared_error / self.squared_norm.max(f64::MIN_POSITIVE)).sqrt();
        self.recovered = self.entries_recovered as f64 / self.entries.max(1) as f64;
        self
    }
}

/// What one attack finds by one adversary.
#[derive(Default)]
pub struct Found {
    findings: Vec<Finding>,
    recoveries: Vec<Recovery>,
}

/// The run that was audited.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// The method.
    pub protocol: Protocol,
    /// How shares travelled.
    pub aggregation: Aggregation,
    /// k.
    pub rank: usize,
    /// Records of each party.
    pub records: Vec<usize>,
    /// Features.
    pub features: usize,
    /// Records that were held out.
    pub held_out: usize,
    /// c.
    pub colluders: usize,
    /// The public seed.
    pub seed: u64,
}

/// What an audit finds: `audit.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    /// The run.
    pub run: Subject,
    /// What left each party.
    pub left: Vec<Left>,
    /// Whether the words that the coordinator receives before it sums look random.
    pub words: ChiSquare,
    /// How well records in the data can be told from others.
    pub findings: Vec<Finding>,
    /// How much of M follows from opened sketches.
    pub recoveries: Vec<Recovery>,
    /// The highest AUC by the adversaries that the run was to be safe from, and of the final U.
    pub highest_auc: f64,
    /// What it comes to, a sentence each.
    pub verdict: Vec<String>,
    /// How much was computed.
    pub limits: Limits,
}

/// A party, and the records that are asked about.
struct Target {
    party: u16,
    candidates: Candidates,
}

/// What attacks work on.
pub struct Case<'a, T> {
    transcript: &'a Transcript,
    settings: &'a Settings,
    matrix: &'a Matrix<T>,
    dealt: &'a [Vec<usize>],
    features: usize,
    targets: Vec<Target>,
    u: Vec<f64>,
    threads: Threads,
    limits: Limits,
}

impl<'a, T: Real> Case<'a, T> {
    fn new(evidence: &Evidence<'a, T>, limits: &Limits, cancel: &Cancel) -> Result<Self> {
        let &Evidence { transcript, settings, matrix, dealt, held_out, u } = evidence;
        let (features, parties) = (matrix.cols(), dealt.len());
        // Sketched features need records as dense columns.
        let dense = if settings.protocol.sketches_features() { 10_000_000 / features } else { usize::MAX };
        let most = limits.records.min(dense);
        let each = most.div_ceil(parties);
        // Of each party as large a share of the others as of its members, or the parties' differences would be told.
        let share = |records: &Vec<usize>| each.min(records.len()) as f64 / records.len().max(1) as f64;
        let largest = dealt.iter().map(share).fold(f64::MIN_POSITIVE, f64::max);
        let wanted: Vec<f64> = dealt
            .iter()
            .zip(held_out)
            .map(|(records, others)| others.len() as f64 * share(records) / largest)
            .collect();
        let affordable = (most as f64 / wanted.iter().sum::<f64>().max(1.0)).min(1.0);
        let some = |records: &[usize], most: usize| -> Vec<usize> {
            limits.pick(records.len(), most).into_iter().map(|place| records[place]).collect()
        };
        let target = |(party, records): (u16, &Vec<usize>)| {
            let place = usize::from(party) - 1;
            let others = held_out.get(place).map_or(&[][..], |others| others);
            let wanted = wanted.get(place).map_or(0.0, |wanted| wanted * affordable);
            let (members, others) = (some(records, each), some(others, wanted.round() as usize));
            let mut candidates = Candidates::new(matrix, &members, &others);
            if settings.protocol.sketches_features() {
                candidates.turn();
            }
            Target { party, candidates }
        };
        Ok(Case {
            targets: (1..).zip(dealt).map(target).collect(),
            u: u.iter().map(|value| value.to_f64()).collect(),
            threads: Threads::new(limits.threads)?.with_cancel(cancel),
            limits: *limits,
            transcript,
            settings,
            matrix,
            dealt,
            features,
        })
    }

    fn view(&self, adversary: Adversary, party: u16) -> View<'a> {
        View::new(self.transcript, self.settings, adversary, party)
    }

    /// Whether all sums are over all parties.
    fn one_cohort(&self) -> bool {
        self.transcript.sums().len() == 1
    }
}

/// An attack by an adversary.
type Attack<T> = fn(&Case<'_, T>, Adversary) -> Result<Found>;

/// The attacks on what was said.
fn attacks<T: Real>() -> [Attack<T>; 3] {
    [recovery::run, matching::run, span::run]
}

/// Runs all attacks from all adversaries, until `cancel` stops them.
pub fn audit<T: Real>(evidence: &Evidence<'_, T>, limits: &Limits, cancel: &Cancel) -> Result<Audit> {
    if evidence.held_out.iter().all(Vec::is_empty) {
        let problem = "no records were held out, so that there is nothing to compare members with; give a number or a share";
        return Err(Error::parameter("--holdout", problem));
    }
    let settings = evidence.settings;
    let case = Case::new(evidence, limits, cancel)?;
    let adversaries = Adversary::of(evidence.dealt.len(), settings.colluders);
    let mut found = vec![result::run(&case, Adversary::Everybody)?];
    for attack in attacks::<T>() {
        for &adversary in &adversaries {
            found.push(attack(&case, adversary)?);
        }
    }
    let mut audit = Audit {
        run: Subject {
            protocol: settings.protocol,
            aggregation: settings.aggregation,
            rank: settings.rank,
            records: evidence.dealt.iter().map(Vec::len).collect(),
            features: case.features,
            held_out: evidence.held_out.iter().map(Vec::len).sum(),
            colluders: settings.colluders,
            seed: settings.seed,
        },
        left: left::of(evidence.transcript, &adversaries),
        words: left::words_test(evidence.transcript),
        findings: Vec::new(),
        recoveries: Vec::new(),
        highest_auc: 0.0,
        verdict: Vec::new(),
        limits: *limits,
    };
    for found in found {
        audit.findings.extend(found.findings);
        audit.recoveries.extend(found.recoveries);
    }
    audit.settle();
    Ok(audit)
}

impl Audit {
    /// Takes figures and verdict from the scores.
    pub fn settle(&mut self) {
        self.findings.iter_mut().for_each(Finding::settle);
        let assumed = self.findings.iter().filter(|finding| finding.adversary.is_assumed());
        self.highest_auc = assumed.map(|finding| finding.auc.value).fold(0.0, f64::max);
        self.verdict = verdict::of(self);
    }

    /// Adds what another run of the same case has found.
    pub fn pool(&mut self, more: &Audit) {
        for theirs in &more.findings {
            let same = |own: &&mut Finding| {
                (&own.attack, own.adversary, &own.on) == (&theirs.attack, theirs.adversary, &theirs.on)
            };
            match self.findings.iter_mut().find(same) {
                Some(own) => own.scores.pool(&theirs.scores),
                None => self.findings.push(theirs.clone()),
            }
        }
        for theirs in &more.recoveries {
            match self.recoveries.iter_mut().find(|own| own.same_case(theirs)) {
                Some(own) => own.pool(theirs),
                None => self.recoveries.push(theirs.clone()),
            }
        }
        self.settle();
    }

    /// The finding of an attack by an adversary with the highest AUC.
    pub fn worst(&self, attack: &str, adversary: Adversary) -> Option<&Finding> {
        let of =
            self.findings.iter().filter(|finding| finding.attack == attack && finding.adversary == adversary);
        of.max_by(|a, b| a.auc.value.total_cmp(&b.auc.value))
    }
}
