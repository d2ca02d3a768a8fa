//! What the parties have at the end, and U, which one of them is asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use partwise_secure::protocol::Stop;

use super::driver::Present;
use super::outbox::OutboxItem;
use crate::frame::ToParty;
use crate::text::Fingerprint;

/// What a party said at its end.
#[derive(Clone, PartialEq)]
pub struct PartyResult {
    /// The SHA-256 of its U, as an .npy file.
    pub factor: [u8; 32],
    /// Over all parties.
    pub relative_error: f64,
    /// Rounds done.
    pub rounds: usize,
    /// If the run was done twice, the error of each time.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
}

/// What to do with a result.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is the party's first.
    New,
    /// The party has said it before.
    Repeated,
    /// The party has said something else before.
    Contradiction,
}

/// The results so far.
#[derive(Default)]
pub struct Results {
    by_place: BTreeMap<u16, PartyResult>,
    first_at: Option<Instant>,
    /// Who was asked for U.
    asked: Option<u16>,
    factor: Option<Vec<u8>>,
}

impl Results {
    /// Takes a party's result.
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

    /// Whether nobody has a result.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The places of those that have theirs.
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

    /// Asks somebody who has it for U, unless somebody was asked.
    pub fn ask(&mut self, present: &Present) {
        if self.asked.is_none()
            && let Some(&place) = self.by_place.keys().find(|place| present.has(**place))
        {
            self.asked = Some(place);
            present.send(place, OutboxItem::Say(ToParty::GiveFactor));
        }
    }

    /// A party has left: if it was to send U, another is asked.
    pub fn lost(&mut self, place: u16, present: &Present) {
        if self.asked == Some(place) && self.factor.is_none() {
            self.asked = None;
            self.ask(present);
        }
    }

    /// Takes U from whom it was asked for; returns whether it is that.
    pub fn take_factor(&mut self, place: u16, bytes: Vec<u8>) -> bool {
        let told = self.by_place.get(&place).map(|result| result.factor);
        let is_asked_for = self.asked == Some(place) && told == Some(Fingerprint::of(&bytes).0);
        if is_asked_for {
            self.factor = Some(bytes);
        }
        is_asked_for
    }

    /// Whether U is there.
    pub fn has_factor(&self) -> bool {
        self.factor.is_some()
    }

    /// Gives U away.
    pub fn collected_factor(&mut self) -> Option<Vec<u8>> {
        self.factor.take()
    }

    /// Whether it is so long since the first party had its result.
    pub fn waited(&self, patience: Duration) -> bool {
        self.first_at.is_some_and(|first| first.elapsed() > patience)
    }
}
