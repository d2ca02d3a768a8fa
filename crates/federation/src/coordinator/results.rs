//! The results that parties report, and U, which one of them is asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use partwise_secure::protocol::Stop;

use super::driver::Present;
use super::outbox::OutboxItem;
use crate::frame::ToParty;
use crate::text::Fingerprint;

/// A party's report at its end.
#[derive(Clone, PartialEq)]
pub struct PartyResult {
    /// The SHA-256 of its U, as an .npy file.
    pub factor: [u8; 32],
    /// The relative error over all parties.
    pub relative_error: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// The errors of both attempts, if the run was repeated.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
}

/// The reaction to a reported result.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// The first report of the party.
    New,
    /// The party has sent the same report before.
    Repeated,
    /// The party has sent a different report before.
    Contradiction,
}

/// The results so far.
#[derive(Default)]
pub struct Results {
    by_place: BTreeMap<u16, PartyResult>,
    first_at: Option<Instant>,
    /// The party that was asked for U.
    asked: Option<u16>,
    factor: Option<Vec<u8>>,
}

impl Results {
    /// Records a party's result.
    pub fn take(&mut self, place: u16, result: PartyResult) -> Reception {
        match self.by_place.get(&place) {
            Some(before) if *before != result => Reception::Contradiction,
            Some(_) => Reception::Repeated,
            None => {
                self.by_place.insert(place, result);
                self.first_at.get_or_insert_with(Instant::now);
                Reception::New
            }
        }
    }

    /// Whether a party has its result.
    pub fn has(&self, place: u16) -> bool {
        self.by_place.contains_key(&place)
    }

    /// Whether no party has a result.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The places of the parties with a result.
    pub fn places(&self) -> impl Iterator<Item = u16> + '_ {
        self.by_place.keys().copied()
    }

    /// The result of the first of them.
    pub fn first(&self) -> Option<&PartyResult> {
        self.by_place.values().next()
    }

    /// Whether all of them have the same U.
    pub fn agree(&self) -> bool {
        let mut all = self.by_place.values().map(|result| result.factor);
        let first = all.next();
        all.all(|other| Some(other) == first)
    }

    /// Asks a party that has its result for U, unless one was asked.
    pub fn ask(&mut self, present: &Present) {
        if self.asked.is_none()
            && let Some(&place) = self.by_place.keys().find(|place| present.has(**place))
        {
            self.asked = Some(place);
            present.send(place, OutboxItem::Say(ToParty::GiveFactor));
        }
    }

    /// Handles a disconnection: if that party was to send U, another one is asked.
    pub fn lost(&mut self, place: u16, present: &Present) {
        if self.asked == Some(place) && self.factor.is_none() {
            self.asked = None;
            self.ask(present);
        }
    }

    /// Accepts U from the party that was asked; returns whether it matches its hash.
    pub fn take_factor(&mut self, place: u16, bytes: Vec<u8>) -> bool {
        let told = self.by_place.get(&place).map(|result| result.factor);
        let is_asked_for = self.asked == Some(place) && told == Some(Fingerprint::of(&bytes).0);
        if is_asked_for {
            self.factor = Some(bytes);
        }
        is_asked_for
    }

    /// Whether U has arrived.
    pub fn has_factor(&self) -> bool {
        self.factor.is_some()
    }

    /// Returns U.
    pub fn collected_factor(&mut self) -> Option<Vec<u8>> {
        self.factor.take()
    }

    /// Whether the deadline since the first result has passed.
    pub fn waited(&self, patience: Duration) -> bool {
        self.first_at.is_some_and(|first| first.elapsed() > patience)
    }
}
