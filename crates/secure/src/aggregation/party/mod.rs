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

/// The progress of a party in an attempt. Each step is taken once; only a new epoch with new keys starts
/// over.
enum PartyState {
    /// The party has sent its key and waits for those of the others.
    Joining(EpochKey),
    /// No attempt is in progress.
    Ready,
    /// The party has sent its words.
    Uploaded {
        sent: Sent,
        /// The party's own share of its own seed.
        own_share: Share,
    },
    /// The party has signed a list of survivors.
    Echoed { sent: Words, list: Vec<Commitment>, shares: BTreeMap<u16, Share> },
    /// The party has revealed its part of what removes the masks.
    Unmasked { sent: Words, list: Vec<Commitment> },
}

/// The upload of the party in this attempt.
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
    /// The secrets shared with each other party of the roster.
    pairs: BTreeMap<u16, Pair>,
    /// The words to be summed in this round.
    pending: Option<Words>,
    /// The survivors for whom this party has revealed masks with its current numbers. In a later attempt it
    /// answers no other list, because the difference of the two sums would reveal a party's words.
    revealed_for: Option<Vec<u16>>,
    /// The others' masked words of this attempt, as passed on by the coordinator.
    relayed: BTreeMap<u16, Words>,
    /// Whether the sum is not secret: words are sent unmasked, and the answer follows immediately.
    plain: bool,
    /// How this party breaks the protocol, in tests.
    #[cfg(test)]
    pub lie: Option<Lie>,
}

/// How a dishonest party of a test breaks the protocol, with valid signatures on all its messages.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The party reveals a share of the first party's mask that differs from the one it received.
    Share,
    /// The last share of the party's own mask belongs to another seed.
    Deal,
    /// The share that the party seals differs from the one that it signs.
    Seal,
    /// The party signs a different mask with the first party than the one that the two share.
    Pair,
    /// The party masks with something else, so that the sum is noise.
    Words,
}

impl Party {
    /// A party that has not joined yet; keys and masks come from the operating system.
    pub fn new(cohort: Cohort, me: u16, identity: Identity, plain: bool) -> Result<Self> {
        Self::with_entropy(cohort, me, identity, plain, entropy()?)
    }

    /// A party whose keys and masks come from this generator, which must be secret.
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

    /// The number of this party.
    pub fn me(&self) -> u16 {
        self.me
    }

    /// The cohort of this party.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// Whether words are sent unmasked.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether a sum is opened although a party is missing.
    pub fn may_miss(&self) -> bool {
        self.cohort.may_leave && self.cohort.members.len() > self.cohort.quorum(self.plain)
    }

    /// Restores an answer from before a restart, given the hash over all answers up to it.
    pub fn restore_answers(&mut self, answers: [u8; 32]) {
        self.transcript = TranscriptHash::recalled(answers);
        self.place.round += 1;
        self.revealed_for = None;
    }

    /// Restores the list of survivors for whom masks were revealed with the next numbers: in this round
    /// before a restart, or in a round that found the numbers out of range.
    pub fn promise(&mut self, survivors: Vec<u16>) {
        self.revealed_for = Some(survivors);
    }

    /// The survivors for whom masks were revealed in this round, if another list might be requested.
    pub fn promised(&self) -> Option<&[u16]> {
        self.revealed_for.as_deref().filter(|_| self.cohort.may_leave)
    }

    /// The messages with which a party begins.
    pub fn begin(&mut self) -> Vec<Action> {
        if self.plain {
            return Vec::new();
        }
        self.join(self.place.epoch)
    }

    /// The hash over everything that this party was told.
    pub fn transcript(&self) -> &[u8; 32] {
        self.transcript.bytes()
    }

    /// The hash over all answers.
    pub fn answers(&self) -> &[u8; 32] {
        self.transcript.answers()
    }

    /// The number of answered sums.
    pub fn rounds(&self) -> u64 {
        self.place.round
    }

    /// Handles an event, and returns the resulting actions.
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
            // A message of an abandoned attempt is late, not wrong, and an answer may arrive twice.
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

    /// Checks that a sum over this many parties hides each of them; if parties may not leave, all must be
    /// present.
    fn enough(&self, count: usize, what: &str) -> Result<()> {
        let needed = self.cohort.needed(self.plain);
        if count < needed {
            return Err(self.broken(format!("{what} of {count} parties, but at least {needed} are required")));
        }
        Ok(())
    }
}
