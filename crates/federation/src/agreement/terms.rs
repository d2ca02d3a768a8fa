//! The terms that the coordinator proposes, and their validation.

use partwise_secure::RunParties;
use partwise_secure::aggregation::{Cohort, IdentityKey, WordCount};
use partwise_secure::protocol::{Settings, upload_sizes};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::text::{Fingerprint, check_name};

/// A party of the roster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The party's name.
    pub name: String,
    /// The fingerprint of its identity key.
    pub identity: Fingerprint,
}

/// The terms that the coordinator proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The federation.
    pub federation: String,
    /// The method.
    pub settings: Settings,
    /// The parties, whose places are 1, 2, ...
    pub roster: Vec<Member>,
    /// The minimum number of parties in every sum.
    pub cohort: usize,
    /// The groups of an asynchronous protocol.
    pub groups: Vec<Vec<u16>>,
    /// Seconds after which a party counts as unresponsive.
    pub deadline: f64,
    /// Seconds between two heartbeats.
    pub heartbeat: f64,
}

/// An invalid setting, by its name in the file.
pub(crate) fn wrong_setting(error: partwise_secure::Error) -> String {
    match error {
        partwise_secure::Error::Core(partwise::Error::Parameter { name, problem }) => {
            format!("[method]: {name}: {problem}")
        }
        error => format!("[method]: {error}"),
    }
}

impl Terms {
    /// Validates terms from any source: every party is listed once, and the groups partition the parties. A roster
    /// with one party under two names or in two places would make its sums look larger than they are.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.federation)?;
        let parties = self.roster.len();
        if !(2..=255).contains(&parties) {
            return Err(format!("{parties} parties; there must be 2 to 255, each a [[party]]"));
        }
        for (place, member) in self.roster.iter().enumerate() {
            check_name(&member.name)?;
            let same = |other: &Member| other.name == member.name || other.identity == member.identity;
            if self.roster[..place].iter().any(same) {
                return Err(format!("party {} is listed twice, by name or identity", member.name));
            }
        }
        let mut grouped = self.groups.concat();
        grouped.sort_unstable();
        let shared_out = match self.settings.protocol.is_asynchronous() {
            true => {
                grouped.into_iter().eq(1..=parties as u16)
                    && self.groups.iter().all(|group| group.is_sorted())
            }
            false => grouped.is_empty(),
        };
        if !shared_out || self.groups.iter().any(Vec::is_empty) || self.groups.len() > 255 {
            return Err("groups that do not partition the parties".into());
        }
        self.settings.check().map_err(wrong_setting)?;
        let smallest = Terms::smallest_cohort(parties, &self.settings);
        if !(smallest..=parties).contains(&self.cohort) {
            return Err(format!("cohort: {} is out of range; give {smallest} to {parties}", self.cohort));
        }
        for (name, seconds) in [("deadline", self.deadline), ("heartbeat", self.heartbeat)] {
            if !(0.1..=1e6).contains(&seconds) {
                return Err(format!("{name}: {seconds} is out of range; give seconds, 0.1 or more"));
            }
        }
        Ok(())
    }

    /// The minimum number of parties in a sum, so that it covers two that do not collude.
    pub(crate) fn smallest_cohort(parties: usize, settings: &Settings) -> usize {
        if parties == 2 { 2 } else { settings.colluders.saturating_add(2) }
    }

    /// The maximum size of a message of a party with this many features: the largest upload with its shares and digests, or
    /// U as a file.
    pub fn longest_message(&self, features: usize) -> usize {
        let sizes = upload_sizes(&self.settings, features);
        let words = sizes.into_iter().map(WordCount::most_bytes);
        words.max().unwrap_or(0).saturating_add(self.roster.len() * 256).saturating_add(64 << 10)
    }

    /// The maximum size of a message to a party: everything that opens a sum that it has missed.
    pub fn longest_answer(&self, features: usize) -> usize {
        self.longest_message(features).saturating_mul(self.roster.len())
    }

    /// The name of a place.
    pub fn name(&self, place: u16) -> &str {
        self.roster.get(usize::from(place).wrapping_sub(1)).map_or("the coordinator", |member| &member.name)
    }
    /// The cohorts of a run with this digest between parties with these keys.
    pub fn cohorts(&self, run: [u8; 32], keys: &[IdentityKey]) -> Result<Vec<Cohort>> {
        let parties = RunParties { run, least: self.cohort, keys };
        Ok(partwise_secure::cohorts(&self.settings, &parties, &self.groups)?)
    }
}
