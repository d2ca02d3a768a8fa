//! Span: sums such as M V are combinations of records, so that many of them span all records, and a record that lies in
//! their span was among these. The score is how close it lies to that span.
//!
//! Some records lie near to everything that is common. The second score is by how much the sums make up more of a record
//! than the final U does, which all parties have: log(distance to U's span / distance to the span of the sums).
//!
//! At most half as many dimensions are taken as there are features, the first ones: everything lies in the whole space.
//! Many features are first added up, with random signs, to four times the dimensions; what lies in a span still does.

use partwise::Real;
use partwise::random::{Purpose, stream};
use rand::Rng;

use super::adversary::{Adversary, View};
use super::{Case, Finding, Found};
use crate::basis::Basis;
use crate::error::Result;
use crate::protocol::Aggregation;

/// What is left of a column within the span is rounding, of words and of f32.
const TOLERANCE: f64 = 1e-5;

/// The attack by one adversary. Where the coordinator reads shares as they are, their span tells more than that of sums.
pub fn run<T: Real>(case: &Case<'_, T>, adversary: Adversary) -> Result<Found> {
    let shares = case.settings.aggregation == Aggregation::Plain && adversary.has_coordinator();
    let on = if shares { "messages" } else { "sums" };
    let mut findings =
        [on.into(), format!("{on} beyond U")].map(|on: String| Finding::new("span", adversary, &on));
    let folding = Folding::new(case.features, 4 * case.limits.directions, case.settings.seed);
    let mut result = Basis::new(folding.size);
    widen(&mut result, &folding, &case.u, case.settings.rank);
    let mut basis = Basis::new(folding.size);
    for (place, target) in case.targets.iter().enumerate() {
        // The coordinator by itself sees the same sums, whomever it looks at.
        if place == 0 || shares || adversary != Adversary::Coordinator || !case.one_cohort() {
            basis = span(case, &case.view(adversary, target.party), &folding, shares);
        }
        if basis.rank() > 0 {
            let folded = target.candidates.folded(&folding);
            let near = folded.nearness_to_span(&case.threads, &basis.by_row(), basis.rank());
            let to_result = folded.nearness_to_span(&case.threads, &result.by_row(), result.rank());
            // A record of zeros has distance 0 from both.
            let gain = |(far, near): (&f64, &f64)| if *near == 0.0 { 0.0 } else { (far / near).ln() };
            let beyond = to_result.iter().zip(&near).map(gain).collect();
            for (finding, scores) in findings.iter_mut().zip([near, beyond]) {
                finding.scores.pool(&target.candidates.scores(scores));
                finding.dimensions = Some(basis.rank());
            }
        }
    }
    Ok(Found { findings: findings.into_iter().filter(Finding::has_scores).collect(), ..Found::default() })
}

/// Takes in the columns of a matrix, by row.
fn widen(basis: &mut Basis, folding: &Folding, values: &[f64], columns: usize) {
    let column = |col: usize| folding.fold(values.iter().skip(col).step_by(columns).copied());
    let fresh = basis.fresh((0..columns).flat_map(column).collect(), TOLERANCE);
    basis.extend(fresh);
}

fn span<T: Real>(case: &Case<'_, T>, view: &View<'_>, folding: &Folding, shares: bool) -> Basis {
    let mut basis = Basis::new(folding.size);
    let most = case.limits.directions.min(case.features / 2);
    for place in case.limits.places(view, false) {
        if basis.rank() >= most {
            break;
        }
        let Some(seen) = (if shares { view.message(place) } else { view.sum(place) }) else { continue };
        widen(&mut basis, folding, &seen.values, seen.columns);
    }
    basis
}

/// Features summed in groups, each with a sign; the identity if there are few.
pub(super) struct Folding {
    /// The number of groups.
    pub size: usize,
    /// The place and the sign of each feature.
    places: Vec<(usize, f64)>,
}

impl Folding {
    fn new(features: usize, most: usize, seed: u64) -> Self {
        if features <= most {
            return Folding { size: features, places: (0..features).map(|feature| (feature, 1.0)).collect() };
        }
        let mut rng = stream(seed, Purpose::Sample, 2, 0);
        let mut place = || {
            let word = rng.next_u64();
            ((word >> 1) as usize % most, if word & 1 == 0 { 1.0 } else { -1.0 })
        };
        Folding { size: most, places: (0..features).map(|_| place()).collect() }
    }

    fn fold(&self, column: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut folded = vec![0.0; self.size];
        column.zip(&self.places).for_each(|(value, (place, sign))| folded[*place] += sign * value);
        folded
    }

    /// The place and the sign of a feature.
    pub fn place(&self, feature: usize) -> (usize, f64) {
        self.places[feature]
    }
}
