//! A party's side of secure aggregation.

use std::collections::BTreeMap;

use chacha20::ChaCha20Rng;

use super::keys::{Context, Direction, EpochKey, Identity, Pair, SIGNATURE_BYTES, echo_text, hello_text};
use super::mask::{Seed, Sign, apply};
use super::sharing::{Share, deal};
use super::transcript::TranscriptHash;
use super::wire::{Hello, roster_bytes, word_bytes};
use super::{Action, Cohort, Event, Message, SumId, Words};
use crate::entropy::entropy;
use crate::error::{Error, Peer, Result};

/// How far a party is in an attempt. Each step is taken once: there is no way back but a new epoch, with new keys.
enum PartyState {
    /// Its key is sent, the others' are not here yet.
    Joining(EpochKey),
    /// No attempt is in progress.
    Ready,
    /// Its words are sent.
    Uploaded {
        /// Its own share of its own seed.
        own_share: Share,
    },
    /// A list of survivors is signed.
    Echoed { survivors: Vec<u16>, shares: BTreeMap<u16, Share> },
    /// The masks of the others are given up.
    Unmasked { survivors: Vec<u16> },
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
    /// The list of survivors for which it has revealed masks in this round. In a later attempt at the same sum it
    /// answers no other list: the difference of the two would be one party's words.
    revealed_for: Option<Vec<u16>>,
    /// The sum is not secret: words go out as they are, and the answer comes at once.
    plain: bool,
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
            plain,
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

    /// Whether a sum is opened although a party is missing.
    pub fn may_miss(&self) -> bool {
        self.cohort.may_leave && self.cohort.members.len() > self.cohort.quorum(self.plain)
    }

    /// Takes note of an answer from before a restart, after which the hash over all answers was this.
    pub fn restore_answers(&mut self, answers: [u8; 32]) {
        self.transcript = TranscriptHash::recalled(answers);
        self.place.round += 1;
        self.revealed_for = None;
    }

    /// Takes note of the list that it has revealed masks for in this round, before a restart.
    pub fn promise(&mut self, survivors: Vec<u16>) {
        self.revealed_for = Some(survivors);
    }

    /// The list for which it has revealed masks in this round, if another one might be requested.
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
            Event::Joined(_) | Event::Answer(_) => Ok(Vec::new()),
        }
    }

    fn broken(&self, problem: impl Into<String>) -> Error {
        Error::Dishonest { who: Peer(self.me), from: Peer(0), problem: problem.into() }
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
            Message::Survivors { place, survivors, shares } if place == self.place => {
                self.survivors(survivors, &shares)
            }
            Message::Echoes { place, signatures } if place == self.place => self.echoes(&signatures),
            Message::Reply { place, survivors, words } if place.round == self.place.round => {
                self.reply(place, survivors, words)
            }
            // What belongs to an attempt that was given up is late, not wrong; an answer may be told twice.
            Message::Reply { place, .. } if place.round < self.place.round => Ok(Vec::new()),
            Message::Survivors { place, .. } | Message::Echoes { place, .. } if place < self.place => {
                Ok(Vec::new())
            }
            _ => Err(self.broken("a message out of turn")),
        }
    }

    /// A new key; an attempt under way is given up, and its words are masked again.
    fn join(&mut self, epoch: u32) -> Vec<Action> {
        let key = match std::mem::replace(&mut self.state, PartyState::Ready) {
            PartyState::Joining(key) if epoch == self.place.epoch => key,
            _ => EpochKey::new(&mut self.entropy),
        };
        if epoch > self.place.epoch {
            self.place.attempt += 1;
        }
        self.place.epoch = epoch;
        self.pairs.clear();
        let (party, round, public) = (self.me, self.place.round, key.public());
        let signature = self.identity.sign(&hello_text(&self.cohort, party, epoch, round, &public));
        self.state = PartyState::Joining(key);
        Self::send(Message::Hello { epoch, hello: Hello { party, round, key: public, signature } })
    }

    fn roster(&mut self, hellos: &[Hello]) -> Result<Vec<Action>> {
        let PartyState::Joining(key) = &self.state else {
            return Err(self.broken("a second list of keys in one epoch"));
        };
        if !hellos.windows(2).all(|pair| pair[0].party < pair[1].party) {
            return Err(self.broken("a list of keys with a party twice"));
        }
        let mut pairs = BTreeMap::new();
        let mut present = false;
        for hello in hellos {
            let Some(place) = self.cohort.place_of(hello.party) else {
                return Err(
                    self.broken(format!("a key of party {}, which is not of this cohort", hello.party))
                );
            };
            let text = hello_text(&self.cohort, hello.party, self.place.epoch, hello.round, &hello.key);
            if !self.cohort.members[place].1.has_signed(&text, &hello.signature) {
                return Err(self.broken(format!("a key that party {} has not signed", hello.party)));
            }
            if hello.party == self.me {
                present = hello.key == key.public();
            } else {
                let pair = key.pair(&hello.key).ok_or_else(|| self.broken("a key that hides nothing"))?;
                pairs.insert(hello.party, pair);
            }
        }
        self.enough(hellos.len(), "keys")?;
        if !present {
            return Err(self.broken("a list of keys without its own"));
        }
        self.pairs = pairs;
        self.transcript = self.transcript.joined(self.place.epoch, &roster_bytes(hellos));
        self.state = PartyState::Ready;
        Ok(if self.pending.is_some() { self.upload() } else { Vec::new() })
    }

    /// Whether a sum over this many hides each of them; unless parties may leave, all must be present.
    fn enough(&self, count: usize, of: &str) -> Result<()> {
        let needed = match self.cohort.may_leave {
            true => self.cohort.quorum(self.plain),
            false => self.cohort.members.len(),
        };
        if count < needed {
            return Err(self.broken(format!("{of} of {count} parties, where {needed} must be there")));
        }
        Ok(())
    }

    /// What masks and keys of this attempt are derived from.
    fn context(&self) -> Context<'_> {
        Context { cohort: &self.cohort, place: self.place, transcript: &self.transcript }
    }

    fn upload(&mut self) -> Vec<Action> {
        let Some(mut words) = self.pending.clone() else { return Vec::new() };
        let place = self.place;
        if self.plain {
            return Self::send(Message::Upload { place, words, shares: Vec::new() });
        }
        let context = self.context();
        for (&other, pair) in &self.pairs {
            let seed = pair.mask_seed(context);
            #[cfg(test)]
            super::tests::note_mask(self.me, seed.bytes());
            apply(seed.bytes(), Sign::between(self.me, other), &mut words);
        }
        let seed = Seed::random(&mut self.entropy);
        #[cfg(test)]
        super::tests::note_mask(self.me, seed.bytes());
        apply(seed.bytes(), Sign::Add, &mut words);

        let (threshold, count) = (self.cohort.threshold(), self.cohort.members.len());
        let dealt = deal(&seed, threshold, count, &mut self.entropy);
        let context = self.context();
        let (mut shares, mut own_share) = (Vec::new(), None);
        for ((other, _), share) in self.cohort.members.iter().zip(dealt) {
            if *other == self.me {
                own_share = Some(share);
            } else if let Some(pair) = self.pairs.get(other) {
                let direction = Direction { from: self.me, to: *other };
                shares.push((*other, pair.seal(direction, context, &share)));
            }
        }
        let Some(own_share) = own_share else { unreachable!("a party is a member of its cohort") };
        self.state = PartyState::Uploaded { own_share };
        Self::send(Message::Upload { place, words, shares })
    }

    /// Signs the list. The state has moved on then: a second list finds no [`PartyState::Uploaded`].
    fn survivors(&mut self, survivors: Vec<u16>, sealed: &[(u16, Vec<u8>)]) -> Result<Vec<Action>> {
        let PartyState::Uploaded { own_share } = &self.state else {
            return Err(self.broken("a second list of survivors for one attempt"));
        };
        let known = |party: &u16| *party == self.me || self.pairs.contains_key(party);
        if !survivors.windows(2).all(|pair| pair[0] < pair[1]) || !survivors.iter().all(known) {
            return Err(self.broken("a list of survivors that is not one of parties of this epoch"));
        }
        if !survivors.contains(&self.me) {
            return Err(self.broken("a list of survivors without itself, though it has uploaded"));
        }
        self.enough(survivors.len(), "a sum")?;
        if self.revealed_for.as_ref().is_some_and(|before| *before != survivors) {
            return Err(self.broken("another list of survivors than it revealed masks for in this round"));
        }
        let mut shares = BTreeMap::from([(self.me, own_share.clone())]);
        for (from, sealed) in sealed {
            let direction = Direction { from: *from, to: self.me };
            let opened = self.pairs.get(from).and_then(|pair| pair.open(direction, self.context(), sealed));
            match opened {
                Some(share) => shares.insert(*from, share),
                None => return Err(self.broken(format!("a share of party {from} that it did not seal"))),
            };
        }
        if !survivors.iter().all(|party| shares.contains_key(party)) {
            return Err(self.broken("a list of survivors without their shares"));
        }
        let text = echo_text(&self.cohort, &self.transcript, self.place, &survivors);
        let signature = self.identity.sign(&text);
        self.state = PartyState::Echoed { survivors, shares };
        Ok(Self::send(Message::Echo { place: self.place, signature }))
    }

    /// Reveals, once enough others have signed the same list: for each party either its share of the self-mask or the
    /// pairwise seed, never both.
    fn echoes(&mut self, signatures: &[(u16, [u8; SIGNATURE_BYTES])]) -> Result<Vec<Action>> {
        let (survivors, shares) = match std::mem::replace(&mut self.state, PartyState::Ready) {
            PartyState::Echoed { survivors, shares } => (survivors, shares),
            state => {
                self.state = state;
                return Err(self.broken("signatures out of turn"));
            }
        };
        let text = echo_text(&self.cohort, &self.transcript, self.place, &survivors);
        let mut signers: Vec<u16> = Vec::new();
        for (party, signature) in signatures.iter().filter(|(party, _)| survivors.contains(party)) {
            let signed = self
                .cohort
                .place_of(*party)
                .is_some_and(|place| self.cohort.members[place].1.has_signed(&text, signature));
            if !signed {
                return Err(self.broken(format!(
                    "a list of survivors that party {party} did not sign: it was told another one"
                )));
            }
            if !signers.contains(party) {
                signers.push(*party);
            }
        }
        let needed = self.cohort.threshold();
        if signers.len() < needed {
            return Err(self.broken(format!("{} signatures, where {needed} are needed", signers.len())));
        }
        let mut revealed = Vec::new();
        let mut seeds = Vec::new();
        for (party, share) in &shares {
            if survivors.contains(party) {
                revealed.push((*party, share.bytes().to_vec()));
            }
        }
        for (party, pair) in self.pairs.iter().filter(|(party, _)| !survivors.contains(party)) {
            seeds.push((*party, *pair.mask_seed(self.context()).bytes()));
        }
        self.revealed_for = Some(survivors.clone());
        self.state = PartyState::Unmasked { survivors };
        Ok(Self::send(Message::Unmask { place: self.place, shares: revealed, seeds }))
    }

    fn reply(&mut self, place: SumId, survivors: Vec<u16>, words: Words) -> Result<Vec<Action>> {
        if self.pending.is_none() {
            return Err(self.broken("an answer that nobody asked for"));
        }
        let known = |party: &u16| self.cohort.place_of(*party).is_some();
        if !survivors.windows(2).all(|pair| pair[0] < pair[1]) || !survivors.iter().all(known) {
            return Err(self.broken("an answer about others than parties of this cohort"));
        }
        self.enough(survivors.len(), "an answer about")?;
        match &self.state {
            PartyState::Unmasked { survivors: signed } | PartyState::Echoed { survivors: signed, .. }
                if *signed != survivors =>
            {
                return Err(self.broken("an answer about other parties than it signed for"));
            }
            _ => {}
        }
        self.pending = None;
        self.revealed_for = None;
        self.transcript = self.transcript.opened(place, &survivors, &word_bytes(&words));
        self.place.round += 1;
        self.place.attempt = 0;
        if !matches!(self.state, PartyState::Joining(_)) {
            self.state = PartyState::Ready;
        }
        Ok(vec![Action::Opened { words, cohort: survivors }])
    }
}
