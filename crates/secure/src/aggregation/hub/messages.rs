//! How a hub handles the messages of parties. After an error nothing has changed.

use super::{Hub, Phase, Revealed};
use crate::aggregation::keys::{SIGNATURE_BYTES, echo_text, hello_text};
use crate::aggregation::wire::Hello;
use crate::aggregation::{Action, Message, Words};
use crate::error::{Error, Peer, Result};

impl Hub {
    fn broken(from: u16, problem: impl Into<String>) -> Error {
        Error::Dishonest { who: Peer(0), from: Peer(from), problem: problem.into() }
    }

    pub(super) fn message(&mut self, from: u16, message: Message) -> Result<Vec<Action>> {
        if self.cohort.place_of(from).is_none() {
            return Err(Self::broken(from, "a message, though it is not of this cohort"));
        }
        match message {
            // From an attempt that was given up.
            Message::Hello { epoch, .. } if epoch < self.place.epoch => Ok(self.too_late(from)),
            Message::Upload { place, .. } | Message::Echo { place, .. } | Message::Unmask { place, .. }
                if place < self.place =>
            {
                Ok(self.too_late(from))
            }
            Message::Hello { epoch, hello } if epoch == self.place.epoch => self.hello(from, hello),
            Message::Upload { place, words, shares } if place == self.place => {
                self.collect(from, words, shares)
            }
            Message::Echo { place, signature } if place == self.place => self.echo(from, signature),
            Message::Unmask { place, shares, seeds } if place == self.place => {
                self.unmask(from, (shares, seeds))
            }
            _ => Err(Self::out_of_turn(from)),
        }
    }

    fn out_of_turn(from: u16) -> Error {
        Self::broken(from, "a message out of turn")
    }

    fn has_signed(&self, party: u16, text: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let place = self.cohort.place_of(party);
        place.is_some_and(|place| self.cohort.members[place].1.has_signed(text, signature))
    }

    /// A key for this epoch.
    fn hello(&mut self, from: u16, hello: Hello) -> Result<Vec<Action>> {
        let text = hello_text(&self.cohort, from, self.place.epoch, hello.round, &hello.key);
        let signed = self.has_signed(from, &text, &hello.signature);
        let Phase::Joining(hellos) = &mut self.phase else { return Err(Self::out_of_turn(from)) };
        if hello.party != from || !signed {
            return Err(Self::broken(from, "a key that it has not signed"));
        }
        if hello.round > self.place.round {
            return Err(Self::broken(from, "a key for a sum that is not due yet"));
        }
        // A party that was away when answers were sent needs those first.
        let (to, round) = (from, hello.round);
        let mut actions = match round < self.place.round {
            true => vec![Action::CatchUp { to, round }],
            false => Vec::new(),
        };
        hellos.insert(from, hello);
        actions.extend(self.try_roster());
        Ok(actions)
    }

    /// Words, and sealed shares of the self-mask's seed.
    fn collect(&mut self, from: u16, words: Words, shares: Vec<(u16, Vec<u8>)>) -> Result<Vec<Action>> {
        let Phase::Collecting = self.phase else { return Err(Self::out_of_turn(from)) };
        if !self.roster.contains(&from) {
            return Err(Self::out_of_turn(from));
        }
        self.upload(from, words, shares)?;
        self.try_close()
    }

    /// A signature on the list of survivors.
    fn echo(&mut self, from: u16, signature: [u8; SIGNATURE_BYTES]) -> Result<Vec<Action>> {
        let text = echo_text(&self.cohort, &self.transcript, self.place, &self.survivors);
        let other = !self.has_signed(from, &text, &signature);
        #[cfg(test)]
        let other = other && !self.careless;
        let Phase::Echoing(signatures) = &mut self.phase else { return Err(Self::out_of_turn(from)) };
        if !self.survivors.contains(&from) {
            return Err(Self::out_of_turn(from));
        }
        if other {
            return Err(Self::broken(from, "a signature on another list of survivors"));
        }
        signatures.insert(from, signature);
        Ok(self.try_echoes())
    }

    /// What takes off the masks.
    fn unmask(&mut self, from: u16, revealed: Revealed) -> Result<Vec<Action>> {
        let Phase::Unmasking(known) = &mut self.phase else { return Err(Self::out_of_turn(from)) };
        if !self.survivors.contains(&from) {
            return Err(Self::out_of_turn(from));
        }
        let (shares, seeds) = &revealed;
        let gone = self.roster.iter().filter(|party| !self.survivors.contains(party));
        let takes_off_masks =
            shares.iter().map(|(of, _)| of).eq(&self.survivors) && seeds.iter().map(|(of, _)| of).eq(gone);
        if !takes_off_masks {
            return Err(Self::broken(from, "something else than what takes off the masks"));
        }
        known.insert(from, revealed);
        Ok(self.try_open())
    }

    fn too_late(&mut self, from: u16) -> Vec<Action> {
        self.ignored.push((from, "a message of an attempt that is over"));
        Vec::new()
    }

    fn upload(&mut self, from: u16, words: Words, shares: Vec<(u16, Vec<u8>)>) -> Result<()> {
        if self.sizes.as_ref().is_some_and(|sizes| !sizes.contains(&words.count())) {
            return Err(Self::broken(from, "words of a size that no sum of this run has"));
        }
        if self.uploads.shares.contains_key(&from) {
            return Err(Self::broken(from, "a second upload for one attempt"));
        }
        self.uploads.add(from, words, shares, self.plain);
        Ok(())
    }
}
