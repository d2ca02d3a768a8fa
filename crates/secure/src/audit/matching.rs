//! Matching and membership: a record that was in the data lies nearer to what was seen than one that was not.
//!
//! The score of a record is its best cosine with any column of what was seen: of the messages, of the sums, of the
//! differences between one sum and the next. How well the score tells members from others is the AUC.

use partwise::Real;

use super::adversary::{Adversary, SeenMatrix};
use super::candidates::norms_of_columns;
use super::{Case, Finding, Found};
use crate::error::Result;
use crate::protocol::features_sketch;
use crate::sum::SumKind;

/// The sources of the columns.
const CHANNELS: [&str; 3] = ["messages", "sums", "differences"];

/// The attack by one adversary.
pub fn run<T: Real>(case: &Case<'_, T>, adversary: Adversary) -> Result<Found> {
    let mut findings = CHANNELS.map(|channel| Finding::new("matching", adversary, channel));
    for target in &case.targets {
        let view = case.view(adversary, target.party);
        let sketch = features_sketch(case.settings, case.features);
        let mut best = CHANNELS.map(|_| vec![f64::NEG_INFINITY; target.candidates.len()]);
        let mut compare = |channel: usize, seen: &SeenMatrix| {
            let (candidates, best) = (&target.candidates, &mut best[channel]);
            if seen.kind == SumKind::SketchedU {
                let operator = sketch.draw::<f64>(seen.iteration);
                candidates.match_sketch(&case.threads, &*operator, seen, best);
            } else {
                candidates.match_columns(&case.threads, &seen.values, seen.columns, best);
            }
        };
        let places = [false, true].map(|sketched| case.limits.places(&view, sketched));
        for place in places.concat() {
            view.message(place).iter().for_each(|seen| compare(0, seen));
            let Some(seen) = view.sum(place) else { continue };
            compare(1, &seen);
            // Sketches change from one to the next.
            let before = (0..place).rev().find(|&before| view.kind(before) == seen.kind);
            if let Some(before) =
                before.filter(|_| seen.kind != SumKind::SketchedU).and_then(|before| view.sum(before))
            {
                let before = in_scale_of(&seen.values, &before.values, seen.columns);
                let values = seen.values.iter().zip(before).map(|(new, old)| new - old).collect();
                compare(2, &SeenMatrix { values, ..seen });
            }
        }
        for (finding, best) in findings.iter_mut().zip(best) {
            if best.iter().any(|best| best.is_finite()) {
                finding.scores.pool(&target.candidates.scores(best));
            }
        }
    }
    Ok(Found { findings: findings.into_iter().filter(Finding::has_scores).collect(), ..Found::default() })
}

/// Brings one sum to the scale of another: `syn-sd` doubles and halves columns between rounds, which every
/// party can undo.
pub(super) fn in_scale_of(other: &[f64], sum: &[f64], columns: usize) -> Vec<f64> {
    let norms = norms_of_columns(other, columns).into_iter().zip(norms_of_columns(sum, columns));
    let scales: Vec<f64> = norms
        .map(|(other, own)| (other / own).log2().round())
        .map(|exponent| if exponent.is_finite() { exponent.exp2() } else { 1.0 })
        .collect();
    sum.iter().zip(scales.iter().cycle()).map(|(value, scale)| value * scale).collect()
}
