//! The final U alone, which every party gets: what no protocol can hide.
//!
//! Two scores: the best cosine of a record with a column of U, and how well U's columns make the record up.

use partwise::Real;

use super::adversary::Adversary;
use super::{Case, Finding, Found};
use crate::error::Result;

/// The attack, which is the same by every adversary.
pub fn run<T: Real>(case: &Case<'_, T>, adversary: Adversary) -> Result<Found> {
    let mut matched = Finding::new("final U", adversary, "cosine");
    let mut fitted = Finding::new("final U", adversary, "fit");
    let k = case.settings.rank;
    for target in &case.targets {
        let mut best = vec![f64::NEG_INFINITY; target.candidates.len()];
        target.candidates.match_columns(&case.threads, &case.u, k, &mut best);
        matched.scores.pool(&target.candidates.scores(best));
        let fit = target.candidates.fit(&case.threads, &case.u, k);
        fitted.scores.pool(&target.candidates.scores(fit));
    }
    Ok(Found { findings: vec![matched, fitted], ..Found::default() })
}
