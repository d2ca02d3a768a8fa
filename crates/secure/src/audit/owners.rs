//! What only a party should see of its own records: which of them are exposed most.

use partwise::Real;
use serde::{Deserialize, Serialize};

use super::individuals::{Likeness, WORST};
use super::{Adversary, Audit, Case};

/// What a party should know of its own records: `individuals.json` in its folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// The people that components are most alike to, the worst first.
    pub components: Vec<Likeness>,
    /// Those that are told as members with the highest scores, by the attack with the highest AUC.
    pub members: Vec<Told>,
    /// Those that were reconstructed best.
    pub reconstructed: Vec<Rebuilt>,
}

/// A person that an attack tells as a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The person's records: their rows in the party's factor, from 0.
    pub records: Vec<usize>,
    /// The attack.
    pub attack: String,
    /// On what.
    pub on: String,
    /// Who attacks.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The score; higher means "was in the data".
    pub score: f64,
    /// Of how many others, who were in nobody's data, the score is as high.
    pub others_as_high: usize,
    /// How many others there are.
    pub others: usize,
}

/// A record that was reconstructed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// Its row in the party's factor, from 0.
    pub record: usize,
    /// Who attacks.
    #[serde(rename = "seat")]
    pub adversary: Adversary,
    /// The attack.
    pub attack: String,
    /// Its cosine with what was found.
    pub cosine: f64,
}

/// For each party, given the people that components are most alike to.
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
    // Scores are in the order of the targets; an attack that left one out cannot say whose they are.
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

/// The records of a party that were reconstructed best, by whoever came nearest.
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
