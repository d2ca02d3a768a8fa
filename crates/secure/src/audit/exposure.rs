//! The audit's result for the most exposed person, in plain words, as the head of the verdict.

use partwise::wording::Wording;

use super::finding::Reconstruction;
use super::verdict::sentence_of;
use super::{Audit, Finding, Individuals, LeftOut, TruePositives};

/// Whether any person is exposed to an adversary against which the run should be secure.
pub fn is_found(audit: &Audit) -> bool {
    audit.individuals.reproduced > 0 || rebuilt(audit).next().is_some() || told(audit).is_some()
}

/// The sentences of the verdict about single people, the worst exposure first; or one sentence that none was
/// found exposed.
pub fn of(audit: &Audit) -> Vec<Wording> {
    let mut sentences: Vec<Wording> = rebuilt(audit).map(|found| rebuilt_in_words(found).into()).collect();
    if audit.individuals.reproduced > 0 {
        sentences.push(reproduced(&audit.individuals).into());
    }
    sentences.extend(told(audit).map(|(finding, rate)| told_in_words(finding, rate).into()));
    if sentences.is_empty() {
        sentences.push(
            "The attacks of this audit found no single person exposed, but each of them can miss people."
                .into(),
        );
    } else {
        sentences.insert(0, "Single people are exposed, even where averages look safe:".into());
    }
    sentences.extend(not_estimable(audit));
    sentences.extend(stopped(audit));
    sentences
}

/// Reconstructions that found records exactly.
fn rebuilt(audit: &Audit) -> impl Iterator<Item = &Reconstruction> {
    audit.reconstructions.iter().filter(|found| found.adversary.is_assumed() && found.exact > 0)
}

fn rebuilt_in_words(found: &Reconstruction) -> String {
    format!(
        "{} computed {} of {} records exactly ({}; median cosine {:.3}).",
        sentence_of(found.adversary),
        found.exact,
        found.tried,
        found.attack,
        found.median_cosine
    )
}

fn reproduced(found: &Individuals) -> String {
    let &Individuals { people, reproduced, most, ref left_out, .. } = found;
    let verb = if reproduced == 1 { "dominates" } else { "dominate" };
    let without = left_out.first().map_or(String::new(), |&LeftOut { cosine, leverage, cosine_without }| {
        format!(
            " The most exposed one has a cosine of {cosine:.3} with a component of which it makes up {:.0}%, \
             and {cosine_without:.3} in a run without it.",
            100.0 * leverage
        )
    });
    format!(
        "{reproduced} of {people} people {verb} a component of the final U, which all parties have: cosine \
         above {most}, and more than half of the component.{without} Fewer components, or more records of \
         their kind, reduce this."
    )
}

/// The attack that identifies members with the most certainty at a low rate of false positives.
fn told(audit: &Audit) -> Option<(&Finding, &TruePositives)> {
    let assumed = audit.findings.iter().filter(|finding| finding.adversary.is_assumed());
    let certain = assumed
        .flat_map(|finding| finding.true_positives.iter().map(move |rate| (finding, rate)))
        .filter(|(_, rate)| rate.is_certain());
    let lowest =
        |rate: &TruePositives| rate.told.map_or(0.0, |told| told.members.lowest / rate.false_positives);
    certain.max_by(|a, b| lowest(a.1).total_cmp(&lowest(b.1)))
}

fn told_in_words(finding: &Finding, rate: &TruePositives) -> String {
    let members = rate.told.map(|told| told.members);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let bounds = members.map_or(String::new(), |rate| {
        format!("{} ({} to {})", percent(rate.share()), percent(rate.lowest), percent(rate.highest))
    });
    format!(
        "{} identifies {bounds} of the members at a false positive rate of {} ({} on {}, AUC {:.2}).",
        sentence_of(finding.adversary),
        percent(rate.false_positives),
        finding.attack,
        finding.on,
        finding.auc.value
    )
}

/// States which rates cannot be estimated from too few held-out records.
fn not_estimable(audit: &Audit) -> Option<Wording> {
    let others = audit.findings.iter().map(|finding| finding.auc.others).max()?;
    let rates = audit.findings.iter().flat_map(|finding| &finding.true_positives);
    let missing = rates.filter(|rate| rate.told.is_none()).map(|rate| rate.false_positives);
    let least = missing.fold(f64::INFINITY, f64::min);
    least.is_finite().then(|| {
        format!(
            "The share of members identified at {:.1}% false positives cannot be estimated from {others} \
             non-members; hold out at least {:.0} records.",
            100.0 * least,
            1.0 / least
        )
        .into()
    })
}

/// Deviations that parties noticed.
fn stopped(audit: &Audit) -> Vec<Wording> {
    let noticed = |found: &Reconstruction| {
        let why = found.noticed.as_ref()?;
        Some(
            format!(
                "{}, {}: the parties noticed and stopped ({why}).",
                sentence_of(found.adversary),
                found.attack
            )
            .into(),
        )
    };
    audit.reconstructions.iter().filter_map(noticed).collect()
}
