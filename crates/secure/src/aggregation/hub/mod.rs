//! The coordinator's side of secure aggregation.

mod messages;
mod uploads;

use std::collections::{BTreeMap, BTreeSet};

use super::commitment::{Commitment, Revealed};
use super::keys::{Context, SIGNATURE_BYTES};
use super::opening::{NotOpened, Opening, open};
use super::transcript::TranscriptHash;
use super::wire::{Hello, roster_bytes};
use super::{Action, Cohort, Event, Message, OrderTip, SumId, WordCount, Words};
use crate::error::Result;
use uploads::Uploads;

/// How far a round is.
enum Phase {
    Joining(BTreeMap<u16, Hello>),
    Collecting,
    Echoing(Vec<Commitment>, BTreeMap<u16, [u8; SIGNATURE_BYTES]>),
    Unmasking(Unmasking),
    /// A sum is to be answered, with what opened it where it was masked.
    Answering(Option<Opening>),
    /// A party broke the protocol, and all parties have been notified.
    Blamed,
}

/// A signed list whose masks are being removed.
struct Unmasking {
    list: Vec<Commitment>,
    signatures: Vec<(u16, [u8; SIGNATURE_BYTES])>,
    revealed: BTreeMap<u16, Revealed>,
}

/// The coordinator of a cohort.
pub struct Hub {
    cohort: Cohort,
    plain: bool,
    place: SumId,
    transcript: TranscriptHash,
    phase: Phase,
    absent: BTreeSet<u16>,
    /// The parties that have a key in this epoch.
    roster: Vec<u16>,
    uploads: Uploads,
    survivors: Vec<u16>,
    /// The list for which masks of this round may have been revealed. No other will be answered.
    promised: Option<Vec<u16>>,
    /// The parties that have returned meanwhile, and join with the next round.
    returning: BTreeSet<u16>,
    /// The possible sizes of uploads; any size if unknown.
    sizes: Option<Vec<WordCount>>,
    /// Messages ignored since the last call: the party and the reason.
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
        let (round, transcript) = match answer {
            Message::Reply { place, survivors, words } => {
                (place.round, self.transcript.replied(*place, survivors, words))
            }
            Message::Opening(opening) => {
                let Opening { place, keys, commitments, order, .. } = &**opening;
                let transcript = self.transcript.with_keys(*keys);
                let context = Context { cohort: &self.cohort, place: *place, transcript: &transcript };
                let list = context.list_digest(commitments);
                (place.round, self.transcript.ordered(*place, &list, order.as_ref()))
            }
            _ => return,
        };
        self.transcript = transcript;
        self.place.round = round + 1;
        self.promised = None;
    }

    /// Which key exchange this is.
    pub fn epoch(&self) -> u32 {
        self.place.epoch
    }

    /// Whether no party has uploaded for the next sum: all may be computing, or at sums of other cohorts.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Collecting) && self.uploads.is_empty()
    }

    /// The connected parties that the others are waiting for.
    pub fn awaited(&self) -> Vec<u16> {
        if self.is_idle() {
            return Vec::new();
        }
        let (of, done): (Vec<u16>, Vec<u16>) = match &self.phase {
            Phase::Joining(hellos) => (self.invited(), hellos.keys().copied().collect()),
            Phase::Collecting => (self.roster.clone(), self.uploads.parties()),
            Phase::Echoing(_, signed) => (self.survivors.clone(), signed.keys().copied().collect()),
            Phase::Unmasking(unmasking) => {
                (self.survivors.clone(), unmasking.revealed.keys().copied().collect())
            }
            Phase::Answering(_) | Phase::Blamed => return Vec::new(),
        };
        of.into_iter().filter(|party| !done.contains(party) && !self.absent.contains(party)).collect()
    }

    /// The hash over all that it has told.
    pub fn transcript(&self) -> &[u8; 32] {
        self.transcript.bytes()
    }

    /// The cohort of this hub.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// How many sums were answered.
    pub fn rounds(&self) -> u64 {
        self.place.round
    }

    /// Handles an event.
    ///
    /// An error leaves the state unchanged.
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
                let answering = matches!(self.phase, Phase::Answering(_));
                if answering || self.promised.as_ref().is_some_and(|list| !list.contains(&party)) {
                    self.absent.insert(party);
                    self.returning.insert(party);
                    return Ok(Vec::new());
                }
                self.absent.remove(&party);
                Ok(self.new_epoch())
            }
            Event::Answer { words, after } => Ok(self.answer(words, after)),
            Event::Submit(_) => Ok(Vec::new()),
        }
    }

    /// What signatures and digests of this attempt are bound to.
    fn context(&self) -> Context<'_> {
        Context { cohort: &self.cohort, place: self.place, transcript: &self.transcript }
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

    /// The parties that may take part in this round's sum.
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
        if !self.all_present(&self.roster, |party| self.uploads.has(party)) {
            return Ok(Vec::new());
        }
        let wrong = self.uploads.settle_size();
        self.ignored.extend(wrong.into_iter().map(|party| (party, "words of another size than most have")));
        let arrived = self.uploads.parties();
        let complete = match (self.may_lack(), &self.promised) {
            (true, _) => arrived.len() >= self.cohort.quorum(self.plain),
            (false, Some(list)) => arrived == *list,
            (false, None) => arrived == self.roster,
        };
        if !complete {
            return Ok(self.waiting());
        }
        self.survivors = arrived;
        if self.plain
            && let Some(sum) = self.uploads.take_plain_sum()
        {
            return Ok(self.opened(sum, None));
        }
        let list = self.uploads.commitments();
        let present = self.survivors.iter().filter(|party| !self.absent.contains(party));
        let actions = present.map(|&to| {
            let (place, commitments) = (self.place, list.clone());
            let shares = self.uploads.shares_for(to);
            Action::Send { to, message: Message::Survivors { place, commitments, shares } }
        });
        let actions = actions.collect();
        self.phase = Phase::Echoing(list, BTreeMap::new());
        Ok(actions)
    }

    fn try_echoes(&mut self) -> Vec<Action> {
        let Phase::Echoing(list, signatures) = &mut self.phase else { return Vec::new() };
        // A party may have left before the others signed: too few signatures would only make the parties stop.
        let enough = signatures.len() >= self.cohort.threshold();
        let absent = &self.absent;
        let signed = |party: &u16| absent.contains(party) || signatures.contains_key(party);
        if !enough || !self.survivors.iter().all(signed) {
            return Vec::new();
        }
        let signatures: Vec<_> = std::mem::take(signatures).into_iter().collect();
        let (list, revealed) = (std::mem::take(list), BTreeMap::new());
        self.phase = Phase::Unmasking(Unmasking { list, signatures: signatures.clone(), revealed });
        self.promised = Some(self.survivors.clone());
        self.to_all(&self.survivors, Message::Echoes { place: self.place, signatures })
    }

    fn try_open(&mut self) -> Vec<Action> {
        let Phase::Unmasking(unmasking) = &mut self.phase else { return Vec::new() };
        let absent = &self.absent;
        let done = |party: &u16| absent.contains(party) || unmasking.revealed.contains_key(party);
        if !self.survivors.iter().all(done) {
            return Vec::new();
        }
        let opening = Opening {
            place: self.place,
            keys: *self.transcript.keys(),
            commitments: unmasking.list.clone(),
            signatures: unmasking.signatures.clone(),
            revealed: unmasking.revealed.values().cloned().collect(),
            uploads: Vec::new(),
            order: None,
        };
        let Opening { commitments, revealed, .. } = &opening;
        match open(self.context(), commitments, revealed, |party| self.uploads.words_of(party)) {
            Ok(sum) => self.opened(sum, Some(opening)),
            // Two parties left at different times, and the mask between them is unknown. The others have revealed
            // what opens the sum with the second, and will not open one without it.
            Err(NotOpened::Lacking) => {
                let missing = self.survivors.iter().find(|party| self.absent.contains(party));
                let round = self.place.round;
                missing.map(|&party| Action::Waiting { party, round }).into_iter().collect()
            }
            // The parties verify this themselves, and stop.
            Err(NotOpened::Blamed(blame)) => {
                let mut actions = self.to_all(&self.survivors, Message::Opening(Box::new(opening)));
                self.phase = Phase::Blamed;
                actions.push(Action::Blame(blame));
                actions
            }
        }
    }

    fn opened(&mut self, sum: Words, opening: Option<Opening>) -> Vec<Action> {
        self.phase = Phase::Answering(opening);
        vec![Action::Opened { words: sum, fixed: None, cohort: self.survivors.clone() }]
    }

    fn answer(&mut self, words: Words, after: Option<OrderTip>) -> Vec<Action> {
        let opening = match std::mem::replace(&mut self.phase, Phase::Collecting) {
            Phase::Answering(opening) => opening,
            phase => {
                self.phase = phase;
                return Vec::new();
            }
        };
        let mut actions = Vec::new();
        let (message, kept) = match opening {
            None => {
                let message = Message::Reply { place: self.place, survivors: self.survivors.clone(), words };
                (message.clone(), message)
            }
            Some(opening) => {
                let list = self.context().list_digest(&opening.commitments);
                let opening = Opening { order: after.map(|tip| tip.after(&list)), ..opening };
                let kept = Opening { uploads: self.uploads.take_words(), ..opening.clone() };
                (Message::Opening(Box::new(opening)), Message::Opening(Box::new(kept)))
            }
        };
        self.record_answer(&message);
        actions.push(Action::Keep(kept));
        actions.extend(self.to_all(&self.survivors, message));
        self.uploads = Uploads::default();
        self.place.attempt = 0;
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
        let due = self.promised.as_ref().unwrap_or(&self.roster);
        let missing = due.iter().find(|party| !self.uploads.has(**party));
        missing.map(|&party| Action::Waiting { party, round: self.place.round }).into_iter().collect()
    }

    fn lost(&mut self, party: u16) -> Result<Vec<Action>> {
        let present = self.cohort.members.len() - self.absent.len();
        let enough = present >= self.cohort.quorum(self.plain);
        let actions = match &self.phase {
            Phase::Joining(_) => self.try_roster(),
            Phase::Collecting => self.try_close()?,
            Phase::Echoing(..) if enough => self.try_echoes(),
            Phase::Unmasking(_) if enough => self.try_open(),
            _ => Vec::new(),
        };
        let stuck = match &self.phase {
            Phase::Joining(_) | Phase::Collecting if self.may_lack() => actions.is_empty() && !enough,
            Phase::Joining(_) | Phase::Collecting => actions.is_empty() && self.invited().contains(&party),
            Phase::Echoing(..) | Phase::Unmasking(_) => !enough,
            Phase::Answering(_) | Phase::Blamed => false,
        };
        Ok(if stuck { vec![Action::Waiting { party, round: self.place.round }] } else { actions })
    }
}
