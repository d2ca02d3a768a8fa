//! Who sums with whom: the cohort of all parties, and the groups of the asynchronous methods.

use crate::aggregation::{Cohort, IdentityKey};
use crate::error::Result;
use crate::protocol::{Aggregation, Settings};
use crate::session::ALL;

/// Fixed disjoint groups, parties of like speed together: as many as there can be of at least three, and of what c
/// colluders leave a sum of two of. Without masks every party is by itself.
pub fn groups(settings: &Settings, seconds: &[f64]) -> Vec<Vec<u16>> {
    let parties = seconds.len();
    if !settings.protocol.is_asynchronous() {
        return Vec::new();
    }
    let mut order: Vec<u16> = (1..=parties as u16).collect();
    order.sort_by(|&a, &b| seconds[usize::from(a) - 1].total_cmp(&seconds[usize::from(b) - 1]));
    let count = group_count(settings, parties);
    (0..count)
        .map(|group| {
            let mut members = order[partwise::comm::owned(parties, group, count)].to_vec();
            members.sort_unstable();
            members
        })
        .collect()
}

/// How many groups an asynchronous method has.
pub(crate) fn group_count(settings: &Settings, parties: usize) -> usize {
    let smallest = match settings.aggregation {
        Aggregation::Plain => 1,
        Aggregation::Secure => settings.colluders.saturating_add(2).max(3),
    };
    (parties / smallest).max(1)
}

/// The parties of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunParties<'a> {
    /// The run's name.
    pub run: [u8; 32],
    /// How many are in every sum at least.
    pub least: usize,
    /// The identity keys of the parties, by number.
    pub keys: &'a [IdentityKey],
}

/// The cohort of all parties, and those of the groups.
pub fn cohorts(settings: &Settings, parties: &RunParties<'_>, groups: &[Vec<u16>]) -> Result<Vec<Cohort>> {
    let &RunParties { run, least, keys } = parties;
    let everybody: Vec<u16> = (1..=keys.len() as u16).collect();
    let cohort = |(number, parties): (u8, &Vec<u16>)| Cohort {
        run,
        number,
        members: parties.iter().map(|&party| (party, keys[usize::from(party) - 1])).collect(),
        // Two parties hide nothing from each other.
        colluders: if keys.len() == 2 { 0 } else { settings.colluders },
        least,
        may_leave: settings.accepted.going_on_shows_the_leaver,
    };
    let cohorts: Vec<Cohort> =
        std::iter::once((ALL, &everybody)).chain((1..).zip(groups)).map(cohort).collect();
    if settings.aggregation == Aggregation::Secure {
        cohorts.iter().try_for_each(Cohort::check)?;
    }
    Ok(cohorts)
}
