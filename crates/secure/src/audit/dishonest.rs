//! Adversaries that deviate from the protocol, each in its own run: a coordinator that sends all parties the
//! same wrong sums, and a party whose uploads move the sums to where it wants them.

use std::sync::Mutex;

use partwise::Real;

use super::adversary::Adversary;
use super::finding::Reconstructed;
use super::steering::{State, Steering};
use super::trajectory::{Holder, rare_features};
use super::{Case, Evidence, Reconstruction};
use crate::Plan;
use crate::error::{Error, Result};
use crate::protocol::{Aggregation, start_u};
use crate::simulate::simulate_with;
use crate::split::{parts, rows};
use crate::sum::SumKind;

/// The name of the coordinator's attack.
pub const WRONG_SUMS: &str = "wrong sums sent to all parties";

/// The name of the party's attack.
pub const WRONG_UPLOADS: &str = "wrong numbers uploaded";

/// The party that deviates.
const DISHONEST: u16 = 1;

/// Both attacks, if the protocol opens U or M V of all parties under masks, records have individual features,
/// and the run can be repeated.
pub fn run<T: Real>(case: &Case<'_, T>, evidence: &Evidence<'_, T>) -> Result<Vec<Reconstruction>> {
    let mut found = Vec::new();
    for (adversary, attack, party) in
        [(Adversary::Coordinator, WRONG_SUMS, None), (Adversary::Party, WRONG_UPLOADS, Some(DISHONEST))]
    {
        if let Some(attempt) = Attempt::of(case, evidence, party) {
            found.extend(attempt.run(case, evidence, (adversary, attack))?);
        }
    }
    Ok(found)
}

/// An attack that can be tried.
struct Attempt {
    plan: Plan,
    holders: Vec<Holder>,
    steering: Steering,
}

impl Attempt {
    fn of<T: Real>(case: &Case<'_, T>, evidence: &Evidence<'_, T>, party: Option<u16>) -> Option<Self> {
        let settings = case.settings;
        let mut plan = evidence.plan?.clone();
        let averages = !settings.protocol.is_asynchronous();
        let opens = |kind: SumKind| {
            averages
                && settings
                    .protocol
                    .definition()
                    .sums(settings, case.features)
                    .iter()
                    .any(|sum| sum.kind == kind)
        };
        let is_pooled = opens(SumKind::ProductV);
        if settings.aggregation != Aggregation::Secure || !(is_pooled || opens(SumKind::U)) {
            return None;
        }
        let k = settings.rank;
        // One sum for V to fit U, and one with that V alone; one more if the part of the others must be
        // guessed.
        let hold = match (party, is_pooled) {
            (None, true) => 1,
            (None, false) => 2,
            (Some(_), _) => 3,
        };
        let most = case
            .limits
            .reconstructed
            .min((plan.settings.rounds.saturating_sub(1) / hold).saturating_sub(1) * k);
        let attackers: Vec<u16> = party.into_iter().collect();
        let victims = (1..=case.dealt.len() as u16).filter(|victim| !attackers.contains(victim));
        let mut all: Vec<Holder> =
            victims.flat_map(|victim| rare_features(case, victim, &attackers)).collect();
        all.sort_by_key(|holder| holder.feature);
        let picked = case.limits.pick(all.len(), most);
        let holders: Vec<Holder> = picked.into_iter().map(|place| all[place]).collect();
        if holders.is_empty() {
            return None;
        }
        let chunks: Vec<Vec<usize>> =
            holders.chunks(k).map(|chunk| chunk.iter().map(|holder| holder.feature).collect()).collect();
        plan.settings.rounds = hold * (chunks.len() + 1) + 1;
        // An adversary that steers the sums also steers the error that ends a run.
        plan.settings.tolerance = 0.0;
        let begun = squares_of_start(case, mean(case));
        let state = Mutex::new(State::default());
        let steering = Steering { party, parties: case.dealt.len(), begun, chunks, hold, state };
        Some(Attempt { plan, holders, steering })
    }

    fn run<T: Real>(
        self,
        case: &Case<'_, T>,
        evidence: &Evidence<'_, T>,
        (adversary, attack): (Adversary, &str),
    ) -> Result<Option<Reconstruction>> {
        let Attempt { plan, holders, steering } = self;
        let parts = parts(evidence.matrix, case.dealt)?;
        let noticed = match simulate_with(parts, &plan, &steering, Some(&steering)) {
            Ok(_) => None,
            Err(error @ Error::Core(_)) => return Err(error),
            Err(error) => Some(error.to_string()),
        };
        let state = steering.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let k = case.settings.rank;
        let judged = |(place, holder): (usize, &Holder)| {
            let mut record = vec![0.0; case.features];
            rows(case.matrix, &[holder.row]).for_each_stored(|_, feature, value| record[feature] = value);
            let seen = state.seen.get(place / k).map_or(&[][..], |seen| seen);
            let component = seen.iter().skip(place % k).step_by(k);
            let mut found: Vec<f64> = component.map(|value| value.max(0.0)).collect();
            found.resize(case.features, 0.0);
            // The adversary's own share of this feature, to which U was fitted.
            (record[holder.feature], found[holder.feature]) = (0.0, 0.0);
            Reconstructed::new(holder.row, &record, &found)
        };
        let records = holders.iter().enumerate().map(judged).collect();
        Ok(Some(Reconstruction { noticed, ..Reconstruction::new(adversary, attack, records) }))
    }
}

/// The mean entry of all parties' records, which is opened.
fn mean<T: Real>(case: &Case<'_, T>) -> f64 {
    let records: usize = case.dealt.iter().map(Vec::len).sum();
    let mut sum = 0.0;
    for own in case.dealt {
        rows(case.matrix, own).for_each_stored(|_, _, value| sum += value);
    }
    sum / (records * case.features) as f64
}

/// The squared norms of the columns that U starts with.
fn squares_of_start<T: Real>(case: &Case<'_, T>, mean: f64) -> Vec<f64> {
    let k = case.settings.rank;
    let start: Vec<T> = start_u(case.settings.seed, case.features, k, mean);
    let mut squares = vec![0.0; k];
    for row in start.chunks_exact(k) {
        squares.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64().powi(2));
    }
    squares
}
