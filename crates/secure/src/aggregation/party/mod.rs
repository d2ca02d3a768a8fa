//! A party's side of secure aggregation.

mod joining;
mod summing;

use std::collections::BTreeMap;

use chacha20::ChaCha20Rng;

use super::commitment::Commitment;
use super::keys::{EpochKey, Identity, Pair};
use super::sharing::Share;
use super::transcript::TranscriptHash;
use super::{Action, Cohort, Event, Message, SumId, Words};
use crate::entropy::entropy;
use crate::error::{Error, Peer, Result};

/// How far a party is in an attempt. Each step is taken once: there is no way back but a new epoch, with new keys.
enum PartyState {
    /// Its key is sent, the others' are not here yet.
    Joining(EpochKey),
    /// Nothing is under way.
    Ready,
    /// Its words are sent.
    Uploaded {
        sent: Sent,
        /// Its own share of its own seed.
        own_share: Share,
    },
    /// A list of survivors is signed.
    Echoed { sent: Words, list: Vec<Commitment>, shares: BTreeMap<u16, Share> },
    /// The masks of the others are given up.
    Unmasked { sent: Words, list: Vec<Commitment> },
}

/// What it has uploaded.
struct Sent {
    words: Words,
    commitment: Commitment,
}

/// A party of a cohort.
pub struct Party {
    cohort: Cohort,
    me: u16,
    identity: Identity,
    entropy: ChaCha20Rng,
    place: SumId,
    transcript: TranscriptHash,
    state: PartyState,
    /// What it shares with each other party of the roster.
    pairs: BTreeMap<u16, Pair>,
    /// What is to be summed in this round.
    pending: Option<Words>,
    /// The list of survivors that it has revealed masks for with these numbers. In a later attempt it answers no other: the
    /// difference of the two would be somebody's words.
    revealed_for: Option<Vec<u16>>,
    /// The others' masked words of this attempt, as they were passed on.
    relayed: BTreeMap<u16, Words>,
    /// The sum is not secret: words go out as they are, and the answer comes at once.
    plain: bool,
    /// How it breaks the protocol.
    #[cfg(test)]
    pub lie: Option<Lie>,
}

/// How a dishonest party of a test breaks the protocol, with signatures on all that it says.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It reveals another share of the first party's mask than it was given.
    Share,
    /// The last share of its own mask is one of another seed.
    Deal,
    /// The share that it seals is not the one that it signs for.
    Seal,
    /// It signs for another mask with the first party than the one that the two share.
    Pair,
    /// It masks with something else, so that no sum is one of numbers.
    Words,
}

impl Party {
    /// A party that has not joined yet; keys and masks come from the operating system.
    pub fn new(cohort: Cohort, me: u16, identity: Identity, plain: bool) -> Result<Self> {
        Self::with_entropy(cohort, me, identity, plain, entropy()?)
    }

    /// A party whose keys and masks come from this generator, which nobody else may know.
    pub fn with_entropy(
        cohort: Cohort,
        me: u16,
        identity: Identity,
        plain: bool,
        mut entropy: ChaCha20Rng,
    ) -> Result<Self> {
        let transcript = TranscriptHash::new(&cohort);
        if cohort.place_of(me).is_none() {
            let problem = format!("party {me} is not in cohort {}; give it its own cohorts", cohort.number);
            return Err(Error::parameter("party", problem));
        }
        let state = if plain { PartyState::Ready } else { PartyState::Joining(EpochKey::new(&mut entropy)) };
        let place = SumId { epoch: 0, round: 0, attempt: 0 };
        let (pairs, pending, revealed_for) = (BTreeMap::new(), None, None);
        Ok(Party {
            cohort,
            me,
            identity,
            entropy,
            place,
            transcript,
            state,
            pairs,
            pending,
            revealed_for,
            relayed: BTreeMap::new(),
            plain,
            #[cfg(test)]
            lie: None,
        })
    }

    /// Its number.
    pub fn me(&self) -> u16 {
        self.me
    }

    /// Its cohort.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// Whether words go out as they are.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether a sum is opened though somebody is missing.
    pub fn may_miss(&self) -> bool {
        self.cohort.may_leave && self.cohort.members.len() > self.cohort.quorum(self.plain)
    }

    /// Takes note of an answer from before a restart, after which the hash over all answers was this.
    pub fn restore_answers(&mut self, answers: [u8; 32]) {
        self.transcript = TranscriptHash::recalled(answers);
        self.place.round += 1;
        self.revealed_for = None;
    }

    /// Takes note of the list that it has revealed masks for with the numbers that come next: in this round before a restart,
    /// or in a round that showed them to be outside of their ranges.
    pub fn promise(&mut self, survivors: Vec<u16>) {
        self.revealed_for = Some(survivors);
    }

    /// The list that it has revealed masks for in this round, where another one might be asked for.
    pub fn promised(&self) -> Option<&[u16]> {
        self.revealed_for.as_deref().filter(|_| self.cohort.may_leave)
    }

    /// The first message.
    pub fn begin(&mut self) -> Vec<Action> {
        if self.plain {
            return Vec::new();
        }
        self.join(self.place.epoch)
    }

    /// The hash over all that it was told.
    pub fn transcript(&self) -> &[u8; 32] {
        self.transcript.bytes()
    }

    /// The hash over all answers.
    pub fn answers(&self) -> &[u8; 32] {
        self.transcript.answers()
    }

    /// How many sums it has seen answered.
    pub fn rounds(&self) -> u64 {
        self.place.round
    }

    /// What happened, and what is to be done.
    pub fn handle(&mut self, event: Event) -> Result<Vec<Action>> {
        match event {
            Event::Submit(words) => {
                if self.pending.is_some() {
                    return Err(self.broken("a second sum before the first was answered"));
                }
                self.pending = Some(words);
                Ok(if let PartyState::Ready = self.state { self.upload() } else { Vec::new() })
            }
            Event::Message { from: 0, message } => self.message(message),
            Event::Message { from, .. } => {
                let problem = "a message that should come through the coordinator".into();
                Err(Error::Dishonest { who: Peer(self.me), from: Peer(from), problem })
            }
            Event::Lost(_) => Err(Error::LinkLost { who: Peer(self.me), peer: Peer(0) }),
            Event::Joined(_) | Event::Answer { .. } => Ok(Vec::new()),
        }
    }

    fn broken(&self, problem: impl Into<String>) -> Error {
        self.broken_by(0, problem)
    }

    fn broken_by(&self, from: u16, problem: impl Into<String>) -> Error {
        Error::Dishonest { who: Peer(self.me), from: Peer(from), problem: problem.into() }
    }

    fn send(message: Message) -> Vec<Action> {
        vec![Action::Send { to: 0, message }]
    }

    fn message(&mut self, message: Message) -> Result<Vec<Action>> {
        match message {
            Message::NewEpoch { epoch } if epoch > self.place.epoch => Ok(self.join(epoch)),
            Message::Roster { place, hellos }
                if (place.epoch, place.round) == (self.place.epoch, self.place.round) =>
            {
                self.place = place;
                self.roster(&hellos)
            }
            Message::Relay { place, party, words } if place == self.place => self.relay(party, words),
            Message::Survivors { place, commitments, shares } if place == self.place => {
                self.survivors(commitments, &shares)
            }
            Message::Echoes { place, signatures } if place == self.place => self.echoes(&signatures),
            Message::Opening(opening) if !self.plain && opening.place.round == self.place.round => {
                self.opening(*opening)
            }
            Message::Reply { place, survivors, words } if self.plain && place.round == self.place.round => {
                self.reply(place, survivors, words)
            }
            // What belongs to an attempt that was given up is late, not wrong; an answer may be told twice.
            Message::Reply { place, .. } if place.round < self.place.round => Ok(Vec::new()),
            Message::Opening(opening) if opening.place.round < self.place.round => Ok(Vec::new()),
            Message::Survivors { place, .. }
            | Message::Echoes { place, .. }
            | Message::Relay { place, .. }
                if place < self.place =>
            {
                Ok(Vec::new())
            }
            _ => Err(self.broken("a message out of turn")),
        }
    }

    /// Whether a sum over so many hides each of them; without leave to go on, all must be there.
    fn enough(&self, count: usize, of: &str) -> Result<()> {
        let needed = self.cohort.needed(self.plain);
        if count < needed {
            return Err(self.broken(format!("{of} of {count} parties, where {needed} must be there")));
        }
        Ok(())
    }
}
