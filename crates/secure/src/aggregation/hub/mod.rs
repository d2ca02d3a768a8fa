//! The coordinator's side of secure aggregation.

mod messages;
mod uploads;

use std::collections::{BTreeMap, BTreeSet};

use super::keys::SIGNATURE_BYTES;
use super::mask::{Sign, apply};
use super::sharing::recover;
use super::transcript::TranscriptHash;
use super::wire::{Hello, roster_bytes, word_bytes};
use super::{Action, Cohort, Event, Message, SumId, WordCount, Words};
use crate::error::Result;
use uploads::Uploads;

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
    place: SumId,
    transcript: TranscriptHash,
    phase: Phase,
    absent: BTreeSet<u16>,
    /// Who has a key in this epoch.
    roster: Vec<u16>,
    uploads: Uploads,
    survivors: Vec<u16>,
    /// The list for which masks of this round may have been revealed. No other will be answered.
    promised: Option<Vec<u16>>,
    /// Who has come back meanwhile, and joins with the next round.
    returning: BTreeSet<u16>,
    /// The possible sizes of uploads; any size if unknown.
    sizes: Option<Vec<WordCount>>,
    /// What was ignored since the last call, from which party and why.
    pub ignored: Vec<(u16, &'static str)>,
    /// Passes on signatures that it should reject, as a dishonest coordinator would.
    #[cfg(test)]
    pub careless: bool,
}

impl Hub {
    /// A coordinator that waits for all to join.
    pub fn new(cohort: Cohort, plain: bool) -> Self {
        let transcript = TranscriptHash::new(&cohort);
        let roster = cohort.members.iter().map(|(party, _)| *party).collect();
        Hub {
            plain,
            place: SumId { epoch: 0, round: 0, attempt: 0 },
            transcript,
            phase: if plain { Phase::Collecting } else { Phase::Joining(BTreeMap::new()) },
            absent: BTreeSet::new(),
            roster,
            uploads: Uploads::default(),
            survivors: Vec::new(),
            promised: None,
            returning: BTreeSet::new(),
            sizes: None,
            ignored: Vec::new(),
            #[cfg(test)]
            careless: false,
            cohort,
        }
    }

    /// Uploads of other sizes than these will be rejected.
    pub fn expect(&mut self, sizes: Vec<WordCount>) {
        self.sizes = Some(sizes);
    }

    /// After a restart no party is connected, and the keys of epochs up to this one are void.
    pub fn restart(&mut self, epoch: u32) {
        self.place.epoch = epoch;
        self.absent = self.cohort.members.iter().map(|(party, _)| *party).collect();
        self.phase = Phase::Joining(BTreeMap::new());
    }

    /// Takes note of the list for which masks of this round may have been revealed before a restart.
    pub fn promise(&mut self, survivors: Vec<u16>) {
        self.promised = Some(survivors);
    }

    /// The list for which masks of this round may have been revealed.
    pub fn promised(&self) -> Option<&[u16]> {
        self.promised.as_deref()
    }

    /// Takes note of an answer, which may be one from before a restart.
    pub fn record_answer(&mut self, answer: &Message) {
        if let Message::Reply { place, survivors, words } = answer {
            self.transcript = self.transcript.opened(*place, survivors, &word_bytes(words));
            self.place.round = place.round + 1;
            self.promised = None;
        }
    }

    /// Which key exchange this is.
    pub fn epoch(&self) -> u32 {
        self.place.epoch
    }

    /// Whether no party has uploaded for the next sum: all may be computing, or at sums of other cohorts.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Collecting) && self.uploads.shares.is_empty()
    }

    /// The connected parties that the others are waiting for.
    pub fn awaited(&self) -> Vec<u16> {
        if self.is_idle() {
            return Vec::new();
        }
        let (of, done): (Vec<u16>, Vec<u16>) = match &self.phase {
            Phase::Joining(hellos) => (self.invited(), hellos.keys().copied().collect()),
            Phase::Collecting => (self.roster.clone(), self.uploads.shares.keys().copied().collect()),
            Phase::Echoing(signed) => (self.survivors.clone(), signed.keys().copied().collect()),
            Phase::Unmasking(revealed) => (self.survivors.clone(), revealed.keys().copied().collect()),
            Phase::Answering => return Vec::new(),
        };
        of.into_iter().filter(|party| !done.contains(party) && !self.absent.contains(party)).collect()
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

    /// Handles an event.
    ///
    /// After an error nothing has changed.
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

    fn to_all(&self, parties: &[u16], message: Message) -> Vec<Action> {
        let present = parties.iter().copied().filter(|party| !self.absent.contains(party));
        vec![Action::Tell { to: present.collect(), message }]
    }

    /// Whether all connected parties of `parties` have done it.
    fn all_present(&self, parties: &[u16], done: impl Fn(u16) -> bool) -> bool {
        parties.iter().all(|party| self.absent.contains(party) || done(*party))
    }

    /// Exchanges all keys again: a party has returned, or a round cannot be opened.
    fn new_epoch(&mut self) -> Vec<Action> {
        self.place.epoch += 1;
        self.place.attempt += 1;
        self.phase = Phase::Joining(BTreeMap::new());
        self.uploads = Uploads::default();
        self.to_all(&self.invited(), Message::NewEpoch { epoch: self.place.epoch })
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
            // Of fewer no party would take the list: after a restart they come one by one.
            true => {
                hellos.len() >= self.cohort.quorum(self.plain)
                    && self.all_present(&invited, |party| hellos.contains_key(&party))
            }
            false => invited.iter().all(|party| hellos.contains_key(party)),
        };
        if !complete {
            return Vec::new();
        }
        let hellos: Vec<Hello> = hellos.values().cloned().collect();
        self.roster = hellos.iter().map(|hello| hello.party).collect();
        self.transcript = self.transcript.joined(self.place.epoch, &roster_bytes(&hellos));
        self.phase = Phase::Collecting;
        self.to_all(&self.roster, Message::Roster { place: self.place, hellos })
    }

    fn try_close(&mut self) -> Result<Vec<Action>> {
        if !self.all_present(&self.roster, |party| self.uploads.shares.contains_key(&party)) {
            return Ok(Vec::new());
        }
        let wrong = self.uploads.settle_size();
        self.ignored.extend(wrong.into_iter().map(|party| (party, "words of another size than most have")));
        let arrived = &self.uploads.shares;
        let needed = match self.may_lack() {
            true => self.cohort.quorum(self.plain),
            false => self.roster.len(),
        };
        if arrived.len() < needed {
            return Ok(self.waiting());
        }
        self.survivors = arrived.keys().copied().collect();
        if self.plain
            && let Some(words) = self.uploads.take_plain_sum()
        {
            self.phase = Phase::Answering;
            return Ok(vec![Action::Opened { words, cohort: self.survivors.clone() }]);
        }
        self.phase = Phase::Echoing(BTreeMap::new());
        let actions = self.survivors.iter().filter(|party| !self.absent.contains(party)).map(|&to| {
            let shares = self.uploads.shares.iter();
            let shares = shares.filter_map(|(from, shares)| Some((*from, shares.get(&to)?.clone())));
            let (place, survivors) = (self.place, self.survivors.clone());
            Action::Send { to, message: Message::Survivors { place, survivors, shares: shares.collect() } }
        });
        Ok(actions.collect())
    }

    fn try_echoes(&mut self) -> Vec<Action> {
        let Phase::Echoing(signatures) = &self.phase else { return Vec::new() };
        // A party may have left before the others signed: too few signatures would only make the parties stop.
        let enough = signatures.len() >= self.cohort.threshold();
        if !enough || !self.all_present(&self.survivors, |party| signatures.contains_key(&party)) {
            return Vec::new();
        }
        let signatures = signatures.iter().map(|(party, signature)| (*party, *signature)).collect();
        self.phase = Phase::Unmasking(BTreeMap::new());
        self.promised = Some(self.survivors.clone());
        self.to_all(&self.survivors, Message::Echoes { place: self.place, signatures })
    }

    fn try_open(&mut self) -> Vec<Action> {
        let Phase::Unmasking(revealed) = &self.phase else { return Vec::new() };
        if !self.all_present(&self.survivors, |party| revealed.contains_key(&party)) {
            return Vec::new();
        }
        let Some(words) = self.unmasked(revealed) else {
            // Two parties left at different times, and the mask between them is unknown. The others have revealed
            // what opens the sum with the second, and will not open one without it.
            let missing = self.survivors.iter().find(|party| self.absent.contains(party));
            let round = self.place.round;
            return missing.map(|&party| Action::Waiting { party, round }).into_iter().collect();
        };
        self.phase = Phase::Answering;
        vec![Action::Opened { words, cohort: self.survivors.clone() }]
    }

    /// The sum without its masks; `None` if missing parties would have to reveal more.
    fn unmasked(&self, revealed: &BTreeMap<u16, Revealed>) -> Option<Words> {
        // The survivors are those whose words arrived.
        let mut sum = self.uploads.masked_sum();
        let threshold = self.cohort.threshold();
        for survivor in &self.survivors {
            let shares = revealed.values().filter_map(|(shares, _)| {
                shares.iter().find(|(of, _)| of == survivor).map(|(_, share)| &share[..])
            });
            let seed = recover(shares.take(threshold), threshold)?;
            apply(seed.bytes(), Sign::Subtract, &mut sum);
        }
        for gone in self.roster.iter().filter(|party| !self.survivors.contains(party)) {
            for survivor in &self.survivors {
                let (_, seed) = revealed.get(survivor)?.1.iter().find(|(of, _)| of == gone)?;
                apply(seed, Sign::between(*survivor, *gone).opposite(), &mut sum);
            }
        }
        Some(sum)
    }

    fn answer(&mut self, words: Words) -> Vec<Action> {
        let Phase::Answering = self.phase else { return Vec::new() };
        let reply = Message::Reply { place: self.place, survivors: self.survivors.clone(), words };
        let mut actions = self.to_all(&self.survivors, reply.clone());
        self.record_answer(&reply);
        self.uploads = Uploads::default();
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
        let missing = self.roster.iter().find(|party| !self.uploads.shares.contains_key(party));
        missing.map(|&party| Action::Waiting { party, round: self.place.round }).into_iter().collect()
    }

    fn lost(&mut self, party: u16) -> Result<Vec<Action>> {
        let present = self.cohort.members.len() - self.absent.len();
        let enough = present >= self.cohort.quorum(self.plain);
        let actions = match &self.phase {
            Phase::Joining(_) => self.try_roster(),
            Phase::Collecting => self.try_close()?,
            Phase::Echoing(_) if enough => self.try_echoes(),
            Phase::Unmasking(_) if enough => self.try_open(),
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
