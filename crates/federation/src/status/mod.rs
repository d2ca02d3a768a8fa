//! The status of a run, for the status page: parties, rounds, errors, bytes, and no data and no factor.

mod page;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;

pub use page::StatusPage;
pub(crate) use page::bind;

use crate::agreement::Terms;
use crate::io::Counts;

/// The error after a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The round.
    pub round: usize,
    /// Seconds since the start of the run.
    pub seconds: f64,
    /// The relative error over all parties.
    pub relative_error: f64,
}

/// The presence of a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Not connected.
    Absent,
    /// Connected.
    Connected,
    /// It has its result.
    Finished,
}

/// The status of a party.
pub struct PartyStatus {
    name: String,
    /// Whether it is connected.
    pub presence: Presence,
    /// How often its connection was lost.
    pub dropouts: u64,
    live: Option<Arc<Counts>>,
    before: [u64; 2],
}

impl PartyStatus {
    fn bytes(&self) -> [u64; 2] {
        let live = self.live.as_ref().map_or([0, 0], |counts| {
            [counts.received.load(Ordering::Relaxed), counts.sent.load(Ordering::Relaxed)]
        });
        [self.before[0] + live[0], self.before[1] + live[1]]
    }

    /// A connection was opened, whose bytes are counted.
    pub(crate) fn connect(&mut self, counts: Arc<Counts>) {
        self.before = self.bytes();
        (self.live, self.presence) = (Some(counts), Presence::Connected);
    }

    /// The connection has ended.
    pub(crate) fn disconnect(&mut self) {
        self.before = self.bytes();
        self.live = None;
        if self.presence != Presence::Finished {
            self.presence = Presence::Absent;
            self.dropouts += 1;
        }
    }
}

/// The status of a run.
pub struct RunStatus {
    terms: Terms,
    /// The current phase.
    pub phase: &'static str,
    /// By place.
    pub parties: Vec<PartyStatus>,
    /// Number of opened sums.
    pub sums: u64,
    /// Key exchanges.
    pub epochs: u64,
    /// The error over rounds.
    pub curve: Vec<CurvePoint>,
    /// The parties that all wait for.
    pub waiting: Vec<String>,
    warnings: VecDeque<String>,
}

impl RunStatus {
    /// No party is connected yet.
    pub fn new(terms: &Terms) -> Self {
        let status = |name: &String| PartyStatus {
            name: name.clone(),
            presence: Presence::Absent,
            dropouts: 0,
            live: None,
            before: [0, 0],
        };
        RunStatus {
            terms: terms.clone(),
            phase: "waiting for all parties",
            parties: terms.roster.iter().map(|member| status(&member.name)).collect(),
            sums: 0,
            epochs: 0,
            curve: Vec::new(),
            waiting: Vec::new(),
            warnings: VecDeque::new(),
        }
    }

    /// Notes a warning; the last ones are shown.
    pub fn warn(&mut self, text: String) {
        self.warnings.push_back(format!("{} {text}", crate::text::timestamp()));
        if self.warnings.len() > 20 {
            self.warnings.pop_front();
        }
    }

    /// Records the error after a round, if the round is later than the previous ones.
    pub fn add_point(&mut self, point: CurvePoint) -> bool {
        let later = self.curve.last().is_none_or(|last| last.round < point.round);
        let good = later && point.relative_error.is_finite();
        if good {
            self.curve.push(point);
        }
        good
    }

    /// Bytes of all parties, received and sent.
    pub fn bytes(&self) -> Vec<[u64; 2]> {
        self.parties.iter().map(PartyStatus::bytes).collect()
    }
}
