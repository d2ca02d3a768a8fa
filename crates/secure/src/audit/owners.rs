//! Results that only a party should see about its own records: which of them are most exposed.

use partwise::Real;
use serde::{Deserialize, Serialize};

use super::individuals::{Likeness, WORST};
use super::{Adversary, Audit, Case};

/// What a party should know about its own records: `individuals.json` in its folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// The people who are most similar to a component, the most similar first.
    pub components: Vec<Likeness>,
    /// The people whom the attack with the highest AUC identifies as members with the highest scores.
    pub members: Vec<Told>,
    /// The records that were reconstructed best.
    pub reconstructed: Vec<Rebuilt>,
}

/// A person whom an attack identifies as a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The person's records: their rows in the party's factor, from 0.
    pub records: Vec<usize>,
    /// The name of the attack.
    pub attack: String,
    /// What the attack evaluates.
    pub on: String,
    /// The adversary.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The score; higher means "was in the data".
    pub score: f64,
    /// The number of non-members with a score at least as high.
    pub others_as_high: usize,
    /// The number of non-members.
    pub others: usize,
}

/// A record that was reconstructed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// The record's row in the party's factor, from 0.
    pub record: usize,
    /// The adversary.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The name of the attack.
    pub attack: String,
    /// The cosine between the record and its reconstruction.
    pub cosine: f64,
}

/// The results for each party, given the people who are most similar to a component.
pub fn of<T: Real>(case: &Case<'_, T>, audit: &Audit, likenesses: Vec<Vec<Likeness>>) -> Vec<Own> {
    let mut members = told(case, audit);
    let own = |(party, components): (usize, Vec<Likeness>)| Own {
        components,
        members: members.get_mut(party).map(std::mem::take).unwrap_or_default(),
        reconstructed: reconstructed(case, audit, party),
    };
    likenesses.into_iter().enumerate().map(own).collect()
}

/// The members with the highest scores, by party, of the attack with the highest AUC.
fn told<T: Real>(case: &Case<'_, T>, audit: &Audit) -> Vec<Vec<Told>> {
    let people: usize = case.targets.iter().map(|target| target.members.len()).sum();
    // Scores are in the order of the targets; an attack that skipped one cannot be assigned to people.
    let assumed = audit.findings.iter().filter(|finding| finding.adversary.is_assumed());
    let complete = assumed.filter(|finding| finding.scores.members.len() == people);
    let Some(worst) = complete.max_by(|a, b| a.auc.value.total_cmp(&b.auc.value)) else { return Vec::new() };
    let mut others = worst.scores.others.clone();
    others.sort_by(f64::total_cmp);
    let mut scores = worst.scores.members.iter();
    let of_target = |target: &super::evidence::Target| {
        let dealt = &case.dealt[usize::from(target.party) - 1];
        let place = |row: &usize| dealt.iter().position(|own| own == row).unwrap_or_default();
        let mut own: Vec<(f64, &Vec<usize>)> = scores.by_ref().copied().zip(&target.members).collect();
        own.sort_by(|a, b| b.0.total_cmp(&a.0));
        let told = |(score, rows): (f64, &Vec<usize>)| Told {
            records: rows.iter().map(place).collect(),
            attack: worst.attack.clone(),
            on: worst.on.clone(),
            adversary: worst.adversary,
            score,
            others_as_high: others.len() - others.partition_point(|other| *other < score),
            others: others.len(),
        };
        own.into_iter().take(WORST).map(told).collect()
    };
    case.targets.iter().map(of_target).collect()
}

/// The records of a party that were reconstructed best by any adversary.
fn reconstructed<T: Real>(case: &Case<'_, T>, audit: &Audit, party: usize) -> Vec<Rebuilt> {
    let mut all = Vec::new();
    for reconstruction in &audit.reconstructions {
        for found in &reconstruction.records {
            let Some(record) = case.dealt[party].iter().position(|&row| row == found.row) else { continue };
            let (adversary, attack) = (reconstruction.adversary, reconstruction.attack.clone());
            all.push(Rebuilt { record, adversary, attack, cosine: found.cosine });
        }
    }
    all.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
    let mut known = std::collections::BTreeSet::new();
    all.retain(|rebuilt| known.insert(rebuilt.record));
    all.truncate(WORST);
    all
}
