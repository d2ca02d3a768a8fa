//! The verdict of an audit, in plain words.

use partwise::wording::Wording;

use super::{Adversary, Audit, Cover, Finding, exposure};
use crate::protocol::Aggregation;

/// An AUC below this is hardly better than guessing.
const GUESSING: f64 = 0.55;

/// A sentence for what was masked, for each adversary, for recovery, and for the result itself.
pub fn of(audit: &Audit) -> Vec<Wording> {
    // The exposure of single people comes before averages.
    let mut sentences = exposure::of(audit);
    sentences.push(words(audit).into());
    let floor =
        audit.findings.iter().filter(|finding| finding.adversary == Adversary::Everybody).max_by(by_auc);
    let floor = floor.map_or(0.5, |finding| finding.auc.value);
    let parties = audit.run.records.len();
    for adversary in Adversary::of(parties, audit.run.colluders) {
        let of_adversary = audit.findings.iter().filter(|finding| finding.adversary == adversary);
        sentences.extend(of_adversary.max_by(by_auc).map(|finding| membership(audit, finding, floor)));
        let recovered = audit.recoveries.iter().filter(|recovery| recovery.adversary == adversary);
        let recovered = recovered.max_by(|a, b| a.recovered.total_cmp(&b.recovered));
        sentences.extend(recovered.map(|best| {
            format!(
                "{} can compute {:.0}% of the nonzero entries to within a tenth of their value, by {} from {} opened \
                 sketches{}.",
                sentence_of(adversary),
                100.0 * best.recovered,
                best.method,
                best.iterations,
                if best.recovered > 0.02 { "; fewer rounds or a smaller sketch reduce this" } else { "" }
            )
            .into()
        }));
    }
    let of_result = format!(
        "Anyone who has the final U, without any messages, can tell members from others with AUC {floor:.2}{}; no \
         protocol can do better; only fewer components or more records help.",
        if floor < GUESSING { ", which is hardly better than guessing" } else { "" }
    );
    sentences.extend([of_result.into(), LIMITS.into()]);
    sentences
}

/// What this audit does not cover.
const LIMITS: &str = "An AUC is an average over people, and other attacks exist: these results guarantee \
 nothing for any individual.";

fn by_auc(a: &&Finding, b: &&Finding) -> std::cmp::Ordering {
    a.auc.value.total_cmp(&b.auc.value)
}

fn words(audit: &Audit) -> String {
    let masked = audit.left.iter().any(|left| left.cover == Cover::Masked);
    let plain = audit.left.iter().any(|left| left.cover == Cover::Plain);
    match (audit.run.aggregation, plain) {
        (Aggregation::Plain, _) | (_, true) => {
            "The coordinator reads the contribution of every party: nothing was masked.".into()
        }
        (Aggregation::Secure, false) if masked && audit.words.p > 1e-4 => format!(
            "The messages that the coordinator receives look like random words (chi-square p = {:.2} over {} words).",
            audit.words.p, audit.words.words
        ),
        _ => format!(
            "The messages that the coordinator receives do not look random (chi-square p = {:.1e}): do not use \
             this run.",
            audit.words.p
        ),
    }
}

pub(super) fn in_words(adversary: Adversary) -> String {
    match adversary {
        Adversary::AllOthers => "all other parties together".into(),
        adversary => adversary.to_string(),
    }
}

pub(super) fn sentence_of(adversary: Adversary) -> String {
    let adversary = in_words(adversary);
    adversary[..1].to_uppercase() + &adversary[1..]
}

/// What an adversary can infer, and what would reduce it.
pub(super) fn membership(audit: &Audit, worst: &Finding, floor: f64) -> Wording {
    let adversary = sentence_of(worst.adversary);
    let (auc, error) = (worst.auc.value, worst.auc.standard_error);
    let (attack, on) = (&worst.attack, &worst.on);
    let floor_alone =
        if floor > GUESSING { format!(", where the final U alone gives {floor:.2}") } else { String::new() };
    let whose =
        if worst.adversary == Adversary::Coordinator { "a party's data" } else { "another party's data" };
    let figures = format!("standard error {error:.2}, {attack} on {on}");
    match (auc < GUESSING, auc - 2.0 * error < 0.5) {
        (true, true) => format!(
            "{adversary} could not tell better than by guessing whether a given record was in {whose} (AUC at most \
             {auc:.2}, {figures}){floor_alone}."
        )
        .into(),
        (true, false) => format!(
            "{adversary} can tell only slightly better than by guessing whether a given record was in {whose} (AUC \
             {auc:.2}, {figures}){floor_alone}."
        )
        .into(),
        (false, true) => Wording::new(format!(
            "It is uncertain whether {} can tell if a given record was in {whose}: the AUC is {auc:.2} ({figures}), \
             but {} members and {} others are too few to rule out chance{floor_alone}; use more data, or a larger ",
            in_words(worst.adversary),
            worst.auc.members,
            worst.auc.others
        ))
        .field("holdout")
        .text(", would tell."),
        (false, false) => Wording::new(format!(
            "{adversary} can tell with AUC {auc:.2} ({figures}) whether a given record was in {whose}{floor_alone}; "
        ))
        .then(cure(audit, worst))
        .text("."),
    }
}

fn cure(audit: &Audit, worst: &Finding) -> Wording {
    if worst.adversary == Adversary::AllOthers {
        return "nothing hides a party from all others; only more parties that do not collude help".into();
    }
    if audit.run.aggregation == Aggregation::Plain && worst.adversary.has_coordinator() {
        return Wording::default().choice("aggregation", "secure").text(" lowers this");
    }
    if let Some(cure) = audit.run.protocol.definition().membership_cure() {
        return cure.into();
    }
    match &*worst.attack {
        "span" => "fewer rounds, or more records per party, reduce this".into(),
        _ => "more records per party, more parties or fewer components reduce this".into(),
    }
}
