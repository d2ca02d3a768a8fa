//! The coordinator's side of secure aggregation.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::SIGNATURE_BYTES;
use super::mask::{Sign, apply};
use super::sharing::recover;
use super::transcript::Transcript;
use super::wire::{Hello, roster_bytes, word_bytes};
use super::{Action, Cohort, Event, Message, Place, Words};
use crate::error::{Error, Peer, Result};

/// What a party reveals: shares of self-masks, and pairwise seeds.
type Revealed = (Vec<(u16, Vec<u8>)>, Vec<(u16, [u8; 32])>);

/// How far a round is.
enum Phase {
    Joining(BTreeMap<u16, Hello>),
    Collecting,
    Echoing(BTreeMap<u16, [u8; SIGNATURE_BYTES]>),
    Unmasking(BTreeMap<u16, Revealed>),
    Answering,
}

/// The coordinator of a cohort.
pub struct Hub {
    cohort: Cohort,
    plain: bool,
    place: Place,
    transcript: Transcript,
    phase: Phase,
    absent: BTreeSet<u16>,
    /// Who has a key in this epoch.
    roster: Vec<u16>,
    uploads: BTreeMap<u16, (Words, BTreeMap<u16, Vec<u8>>)>,
    survivors: Vec<u16>,
    /// The list for which masks of this round may have been revealed. No other will be answered.
    promised: Option<Vec<u16>>,
    /// Who has come back meanwhile, and joins with the next round.
    returning: BTreeSet<u16>,
    last_reply: Option<Message>,
}

impl Hub {
    /// A coordinator that waits for all to join.
    pub fn new(cohort: Cohort, plain: bool) -> Self {
        let transcript = Transcript::new(&cohort);
        let roster = cohort.members.iter().map(|(party, _)| *party).collect();
        Hub {
            plain,
            place: Place { epoch: 0, round: 0, attempt: 0 },
            transcript,
            phase: if plain { Phase::Collecting } else { Phase::Joining(BTreeMap::new()) },
            absent: BTreeSet::new(),
            roster,
            uploads: BTreeMap::new(),
            survivors: Vec::new(),
            promised: None,
            returning: BTreeSet::new(),
            last_reply: None,
            cohort,
        }
    }

    /// The hash over all that it has told.
    pub fn transcript(&self) -> &[u8; 32] {
        self.transcript.bytes()
    }

    /// Its cohort.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// How many sums were answered.
    pub fn rounds(&self) -> u64 {
        self.place.round
    }

    /// What happened, and what is to be done.
    pub fn handle(&mut self, event: Event) -> Result<Vec<Action>> {
        match event {
            Event::Message { from, message } => self.message(from, message),
            Event::Lost(party) | Event::Joined(party) if self.cohort.place_of(party).is_none() => {
                Ok(Vec::new())
            }
            Event::Lost(party) => {
                self.absent.insert(party);
                self.returning.remove(&party);
                self.lost(party)
            }
            Event::Joined(party) => {
                let answering = matches!(self.phase, Phase::Answering);
                if answering || self.promised.as_ref().is_some_and(|list| !list.contains(&party)) {
                    self.absent.insert(party);
                    self.returning.insert(party);
                    return Ok(Vec::new());
                }
                self.absent.remove(&party);
                Ok(self.new_epoch())
            }
            Event::Answer(words) => Ok(self.answer(words)),
            Event::Submit(_) => Ok(Vec::new()),
        }
    }

    fn broken(from: u16, problem: impl Into<String>) -> Error {
        Error::Dishonest { who: Peer(0), from: Peer(from), problem: problem.into() }
    }

    fn message(&mut self, from: u16, message: Message) -> Result<Vec<Action>> {
        if self.cohort.place_of(from).is_none() {
            return Err(Self::broken(from, "a message, though it is not of this cohort"));
        }
        match (message, &mut self.phase) {
            (Message::Hello { epoch, hello }, Phase::Joining(hellos)) if epoch == self.place.epoch => {
                if hello.party != from {
                    return Err(Self::broken(from, "the key of another party"));
                }
                hellos.insert(from, hello);
                Ok(self.try_roster())
            }
            (Message::Upload { place, words, shares }, Phase::Collecting) if place == self.place => {
                if self.uploads.values().any(|(other, _)| !other.fits(&words)) {
                    return Err(Self::broken(from, "a sum of another size than the others'"));
                }
                if self.uploads.insert(from, (words, shares.into_iter().collect())).is_some() {
                    return Err(Self::broken(from, "a second upload for one attempt"));
                }
                self.try_close()
            }
            (Message::Echo { place, signature }, Phase::Echoing(signatures)) if place == self.place => {
                signatures.insert(from, signature);
                Ok(self.try_echoes())
            }
            (Message::Unmask { place, shares, seeds }, Phase::Unmasking(revealed)) if place == self.place => {
                revealed.insert(from, (shares, seeds));
                self.try_open()
            }
            // From an attempt that was given up.
            (Message::Hello { epoch, .. }, _) if epoch < self.place.epoch => Ok(Vec::new()),
            (
                Message::Upload { place, .. } | Message::Echo { place, .. } | Message::Unmask { place, .. },
                _,
            ) if place < self.place => Ok(Vec::new()),
            _ => Err(Self::broken(from, "a message out of turn")),
        }
    }

    fn to_all(&self, parties: &[u16], message: &Message) -> Vec<Action> {
        let present = parties.iter().filter(|party| !self.absent.contains(party));
        present.map(|&to| Action::Send { to, message: message.clone() }).collect()
    }

    /// Whether everybody of `parties` who is there has done it.
    fn all_present(&self, parties: &[u16], done: impl Fn(u16) -> bool) -> bool {
        parties.iter().all(|party| self.absent.contains(party) || done(*party))
    }

    /// All keys anew: somebody came back, or a round cannot be opened.
    fn new_epoch(&mut self) -> Vec<Action> {
        self.place.epoch += 1;
        self.place.attempt += 1;
        self.phase = Phase::Joining(BTreeMap::new());
        self.uploads.clear();
        self.to_all(&self.invited(), &Message::NewEpoch { epoch: self.place.epoch })
    }

    /// Who may be in this round's sum.
    fn invited(&self) -> Vec<u16> {
        match &self.promised {
            Some(list) => list.clone(),
            None => self.cohort.members.iter().map(|(party, _)| *party).collect(),
        }
    }

    /// Whether the sum may be without some of those who are invited.
    fn may_lack(&self) -> bool {
        self.cohort.may_leave && self.promised.is_none()
    }

    fn try_roster(&mut self) -> Vec<Action> {
        let Phase::Joining(hellos) = &self.phase else { return Vec::new() };
        let invited = self.invited();
        let complete = match self.may_lack() {
            true => self.all_present(&invited, |party| hellos.contains_key(&party)),
            false => invited.iter().all(|party| hellos.contains_key(party)),
        };
        if !complete {
            return Vec::new();
        }
        let mut actions = Vec::new();
        // Whoever left before the last answer came needs that first.
        if let Some(reply) = &self.last_reply {
            let behind = hellos.values().filter(|hello| hello.round + 1 == self.place.round);
            actions.extend(behind.map(|hello| Action::Send { to: hello.party, message: reply.clone() }));
        }
        let hellos: Vec<Hello> = hellos.values().cloned().collect();
        self.roster = hellos.iter().map(|hello| hello.party).collect();
        self.transcript = self.transcript.joined(self.place.epoch, &roster_bytes(&hellos));
        actions.extend(self.to_all(&self.roster, &Message::Roster { place: self.place, hellos }));
        self.phase = Phase::Collecting;
        actions
    }

    fn try_close(&mut self) -> Result<Vec<Action>> {
        if !self.all_present(&self.roster, |party| self.uploads.contains_key(&party)) {
            return Ok(Vec::new());
        }
        let needed = match self.may_lack() {
            true => self.cohort.threshold().max(self.cohort.smallest()),
            false => self.roster.len(),
        };
        if self.uploads.len() < needed && !(self.plain && self.absent.is_empty()) {
            return Ok(self.waiting());
        }
        self.survivors = self.uploads.keys().copied().collect();
        if self.plain {
            self.phase = Phase::Answering;
            return Ok(vec![Action::Opened { words: self.plain_sum(), cohort: self.survivors.clone() }]);
        }
        self.phase = Phase::Echoing(BTreeMap::new());
        let actions = self.survivors.iter().filter(|party| !self.absent.contains(party)).map(|&to| {
            let shares =
                self.uploads.iter().filter_map(|(from, (_, shares))| Some((*from, shares.get(&to)?.clone())));
            let (place, survivors) = (self.place, self.survivors.clone());
            Action::Send { to, message: Message::Survivors { place, survivors, shares: shares.collect() } }
        });
        Ok(actions.collect())
    }

    /// Words of a plain sum are floating-point numbers, added in the order of the parties.
    fn plain_sum(&self) -> Words {
        let mut uploads = self.uploads.values().map(|(words, _)| words);
        let mut sum = uploads.next().cloned().unwrap_or_default();
        for words in uploads {
            for (sum, term) in sum.narrow.iter_mut().zip(&words.narrow) {
                *sum = (f32::from_bits(*sum) + f32::from_bits(*term)).to_bits();
            }
            for (sum, term) in sum.wide.iter_mut().zip(&words.wide) {
                *sum = (f64::from_bits(*sum) + f64::from_bits(*term)).to_bits();
            }
        }
        sum
    }

    fn try_echoes(&mut self) -> Vec<Action> {
        let Phase::Echoing(signatures) = &self.phase else { return Vec::new() };
        if !self.all_present(&self.survivors, |party| signatures.contains_key(&party)) {
            return Vec::new();
        }
        let signatures = signatures.iter().map(|(party, signature)| (*party, *signature)).collect();
        self.phase = Phase::Unmasking(BTreeMap::new());
        self.promised = Some(self.survivors.clone());
        self.to_all(&self.survivors, &Message::Echoes { place: self.place, signatures })
    }

    fn try_open(&mut self) -> Result<Vec<Action>> {
        let Phase::Unmasking(revealed) = &self.phase else { return Ok(Vec::new()) };
        if !self.all_present(&self.survivors, |party| revealed.contains_key(&party)) {
            return Ok(Vec::new());
        }
        let Some(words) = self.unmasked(revealed)? else {
            // Two left at different moments, and nobody knows the mask between them. The others have revealed what opens
            // the sum with the second, and will not open one without it.
            let missing = self.survivors.iter().find(|party| self.absent.contains(party));
            let round = self.place.round;
            return Ok(missing.map(|&party| Action::Waiting { party, round }).into_iter().collect());
        };
        self.phase = Phase::Answering;
        Ok(vec![Action::Opened { words, cohort: self.survivors.clone() }])
    }

    /// The sum without its masks; nothing if those who are gone would have to reveal more.
    fn unmasked(&self, revealed: &BTreeMap<u16, Revealed>) -> Result<Option<Words>> {
        let uploads = self.survivors.iter().filter_map(|party| self.uploads.get(party));
        let mut sum = uploads.clone().next().map(|(words, _)| words.zeros_like()).unwrap_or_default();
        uploads.for_each(|(words, _)| sum.add(words));
        for (&party, (shares, seeds)) in revealed {
            let gone = self.roster.iter().filter(|party| !self.survivors.contains(party));
            if !shares.iter().map(|(of, _)| of).eq(&self.survivors)
                || !seeds.iter().map(|(of, _)| of).eq(gone)
            {
                return Err(Self::broken(party, "something else than what takes off the masks"));
            }
        }
        let threshold = self.cohort.threshold();
        for survivor in &self.survivors {
            let shares = revealed.values().filter_map(|(shares, _)| {
                shares.iter().find(|(of, _)| of == survivor).map(|(_, share)| &share[..])
            });
            let Some(seed) = recover(shares.take(threshold), threshold) else { return Ok(None) };
            apply(seed.bytes(), Sign::Subtract, &mut sum);
        }
        for gone in self.roster.iter().filter(|party| !self.survivors.contains(party)) {
            for survivor in &self.survivors {
                let seed =
                    revealed.get(survivor).and_then(|(_, seeds)| seeds.iter().find(|(of, _)| of == gone));
                let Some((_, seed)) = seed else { return Ok(None) };
                apply(seed, Sign::between(*survivor, *gone).opposite(), &mut sum);
            }
        }
        Ok(Some(sum))
    }

    fn answer(&mut self, words: Words) -> Vec<Action> {
        let Phase::Answering = self.phase else { return Vec::new() };
        self.transcript = self.transcript.opened(self.place, &self.survivors, &word_bytes(&words));
        let reply = Message::Reply { place: self.place, survivors: self.survivors.clone(), words };
        let mut actions = self.to_all(&self.survivors, &reply);
        self.last_reply = Some(reply);
        self.uploads.clear();
        self.promised = None;
        self.place.round += 1;
        self.place.attempt = 0;
        self.phase = Phase::Collecting;
        if self.returning.is_empty() {
            return actions;
        }
        for party in std::mem::take(&mut self.returning) {
            self.absent.remove(&party);
        }
        actions.extend(self.new_epoch());
        actions
    }

    fn waiting(&self) -> Vec<Action> {
        let missing = self.roster.iter().find(|party| !self.uploads.contains_key(party));
        missing.map(|&party| Action::Waiting { party, round: self.place.round }).into_iter().collect()
    }

    fn lost(&mut self, party: u16) -> Result<Vec<Action>> {
        let present = self.cohort.members.len() - self.absent.len();
        let enough = present >= self.cohort.threshold().max(self.cohort.smallest());
        let actions = match &self.phase {
            Phase::Joining(_) => self.try_roster(),
            Phase::Collecting => self.try_close()?,
            Phase::Echoing(_) if enough => self.try_echoes(),
            Phase::Unmasking(_) if enough => self.try_open()?,
            _ => Vec::new(),
        };
        let stuck = match &self.phase {
            Phase::Joining(_) | Phase::Collecting if self.may_lack() => actions.is_empty() && !enough,
            Phase::Joining(_) | Phase::Collecting => actions.is_empty() && self.invited().contains(&party),
            Phase::Echoing(_) | Phase::Unmasking(_) => !enough,
            Phase::Answering => false,
        };
        Ok(if stuck { vec![Action::Waiting { party, round: self.place.round }] } else { actions })
    }
}
