//! The audit of a run: what left each party, who could read it, and what an attacker makes of it.
//!
//! Attacks see the recorded messages ([`Transcript`]) from a [`Adversary`]: what was received there, and what those who sit
//! there had themselves. To add an attack, write a file with a function `run` and a line in `attacks`.

mod adversary;
mod candidates;
mod dishonest;
mod evidence;
mod exposure;
mod finding;
pub mod folder;
mod individuals;
mod left;
mod matching;
mod owners;
mod rates;
mod recovery;
mod result;
mod span;
mod statistics;
mod steering;
#[cfg(test)]
mod tests;
mod trajectory;
mod transcript;
mod verdict;

pub use adversary::Adversary;
pub use evidence::{Case, Evidence, Limits};
pub use finding::{Finding, Found, Reconstruction, Recovery};
pub use individuals::{
    HALF, Individuals, LeftOut, Likeness, MAX_RECORD_COSINE, WORST, highest_reproduced, own_likenesses,
};
pub use left::{Cover, Left, readers};
pub use owners::{Own, Told as ToldRecord};
pub use rates::{CONFIDENCE, FALSE_POSITIVES, Rate, Told, TruePositives};
pub use recovery::{Equations, WITHIN};
pub use statistics::{Auc, ChiSquare, Histogram, Scores, standard_error};
pub use transcript::{RecordedSum, Recording, Said, Transcript};

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::wording::{Naming, Wording};
use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::protocol::{Aggregation, Protocol};

/// The run that was audited.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// The method.
    pub protocol: Protocol,
    /// How shares travelled.
    pub aggregation: Aggregation,
    /// k.
    pub rank: usize,
    /// Number of records of each party.
    pub records: Vec<usize>,
    /// Number of features.
    pub features: usize,
    /// Number of held-out records.
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
    /// The messages that left each party.
    pub left: Vec<Left>,
    /// Whether the words that the coordinator receives before it sums look random.
    pub words: ChiSquare,
    /// How well records in the data can be told from others.
    pub findings: Vec<Finding>,
    /// How much of M follows from opened sketches.
    pub recoveries: Vec<Recovery>,
    /// Results of the attacks that reconstruct records.
    pub reconstructions: Vec<Reconstruction>,
    /// How closely people resemble components.
    pub individuals: Individuals,
    /// By party, results that only the party that has the records should see; no shared file contains them.
    #[serde(skip)]
    pub owners: Vec<Own>,
    /// The highest AUC by the adversaries that the run was to be safe from, and of the final U.
    pub highest_auc: f64,
    /// Whether single people are exposed to adversaries against which the run should be secure.
    pub exposed: bool,
    /// The verdict, in sentences.
    #[serde(serialize_with = "in_words")]
    pub verdict: Vec<Wording>,
    /// How much was computed.
    pub limits: Limits,
}

/// Sentences as text.
fn in_words<S: Serializer>(sentences: &[Wording], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(sentences.iter().map(Wording::to_string))
}

/// An attack by an adversary.
type Attack<T> = fn(&Case<'_, T>, Adversary) -> Result<Found>;

/// The attacks on the recorded messages.
fn attacks<T: Real>() -> [Attack<T>; 4] {
    [recovery::run, matching::run, span::run, trajectory::run]
}

/// Runs all attacks from all adversaries, until `cancel` stops them.
pub fn audit<T: Real>(evidence: &Evidence<'_, T>, limits: &Limits, cancel: &Cancel) -> Result<Audit> {
    if evidence.held_out.iter().all(Vec::is_empty) {
        let problem = "no records were held out, so members cannot be compared with non-members; give a number or a \
             share";
        return Err(Error::parameter("holdout", problem));
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
    let people = individuals::people(&case, evidence)?;
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
        reconstructions: Vec::new(),
        individuals: people.all,
        owners: Vec::new(),
        highest_auc: 0.0,
        exposed: false,
        verdict: Vec::new(),
        limits: *limits,
    };
    for found in found {
        audit.findings.extend(found.findings);
        audit.recoveries.extend(found.recoveries);
        audit.reconstructions.extend(found.reconstructions);
    }
    audit.reconstructions.extend(dishonest::run(&case, evidence)?);
    audit.settle();
    audit.owners = owners::of(&case, &audit, people.worst);
    Ok(audit)
}

impl Audit {
    /// The message with a front end's names for fields.
    pub fn named(self, naming: Naming) -> Self {
        let verdict = self.verdict.iter().map(|sentence| sentence.named(naming).into()).collect();
        Audit { verdict, ..self }
    }

    /// Takes figures and verdict from the scores.
    pub fn settle(&mut self) {
        self.findings.iter_mut().for_each(Finding::settle);
        let assumed = self.findings.iter().filter(|finding| finding.adversary.is_assumed());
        self.highest_auc = assumed.map(|finding| finding.auc.value).fold(0.0, f64::max);
        self.exposed = exposure::is_found(self);
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
        for theirs in &more.reconstructions {
            match self.reconstructions.iter_mut().find(|own| own.same_case(theirs)) {
                Some(own) => own.pool(theirs),
                None => self.reconstructions.push(theirs.clone()),
            }
        }
        self.individuals.pool(&more.individuals);
        self.settle();
    }

    /// The finding of an attack by an adversary with the highest AUC.
    pub fn worst(&self, attack: &str, adversary: Adversary) -> Option<&Finding> {
        let of =
            self.findings.iter().filter(|finding| finding.attack == attack && finding.adversary == adversary);
        of.max_by(|a, b| a.auc.value.total_cmp(&b.auc.value))
    }
}
