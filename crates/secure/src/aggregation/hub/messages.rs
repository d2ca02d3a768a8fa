//! How a hub handles the messages of parties. An error leaves its state unchanged.

use super::uploads::MaskedUpload;
use super::{Hub, Phase};
use crate::aggregation::commitment::{Commitment, Revealed, is_for_keys, parties_of, words_digest};
use crate::aggregation::keys::{SIGNATURE_BYTES, hello_text};
use crate::aggregation::wire::Hello;
use crate::aggregation::{Action, Message, PartyShares, Words};
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
            // The message belongs to an abandoned attempt.
            Message::Hello { epoch, .. } if epoch < self.place.epoch => Ok(self.too_late(from)),
            Message::Upload { place, .. } | Message::Echo { place, .. } | Message::Unmask { place, .. }
                if place < self.place =>
            {
                Ok(self.too_late(from))
            }
            Message::Hello { epoch, hello } if epoch == self.place.epoch => self.hello(from, hello),
            Message::Upload { place, words, commitment, shares } if place == self.place => {
                self.collect(from, words, commitment.map(|commitment| (*commitment, shares)))
            }
            Message::Echo { place, signature } if place == self.place => self.echo(from, signature),
            Message::Unmask { place, revealed } if place == self.place => self.unmask(from, revealed),
            _ => Err(Self::out_of_turn(from)),
        }
    }

    fn out_of_turn(from: u16) -> Error {
        Self::broken(from, "a message out of turn")
    }

    /// A key for this epoch.
    fn hello(&mut self, from: u16, hello: Hello) -> Result<Vec<Action>> {
        let text = hello_text(&self.cohort, from, self.place.epoch, hello.round, &hello.key);
        let signed = self.cohort.has_signed(from, &text, &hello.signature);
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

    /// Collects the words of a party; if they are masked, also the commitment and the sealed shares of the
    /// self-mask's seed. Masked words are passed on immediately, because transferring them takes longest.
    fn collect(
        &mut self,
        from: u16,
        words: Words,
        masked: Option<(Commitment, PartyShares)>,
    ) -> Result<Vec<Action>> {
        let Phase::Collecting = self.phase else { return Err(Self::out_of_turn(from)) };
        if !self.roster.contains(&from) {
            return Err(Self::out_of_turn(from));
        }
        if self.sizes.as_ref().is_some_and(|sizes| !sizes.contains(&words.count())) {
            return Err(Self::broken(from, "words whose size matches no sum of this run"));
        }
        if self.uploads.has(from) {
            return Err(Self::broken(from, "a second upload for one attempt"));
        }
        let mut actions = Vec::new();
        match masked {
            None if self.plain => self.uploads.add_plain(from, words),
            Some((commitment, shares)) if !self.plain => {
                self.check_commitment(from, &words, &commitment, &shares)?;
                if self.promised.is_none() && !commitment.only_with.is_empty() {
                    let actions = self.bind(commitment.only_with.clone());
                    if !actions.is_empty() {
                        return Ok(actions);
                    }
                }
                let others: Vec<u16> = self.roster.iter().copied().filter(|party| *party != from).collect();
                let (place, party, copy) = (self.place, from, words.clone());
                actions = self.to_all(&others, Message::Relay { place, party, words: copy });
                self.uploads.add_masked(from, MaskedUpload { words, commitment, shares });
            }
            _ => {
                return Err(Self::broken(from, "words that are masked but should not be, or the reverse"));
            }
        }
        actions.extend(self.try_close()?);
        Ok(actions)
    }

    /// Restricts the round to `list`: these words were part of a sum over these parties and must not enter a
    /// sum over others. Keys are exchanged again among exactly these parties if the present ones differ.
    fn bind(&mut self, list: Vec<u16>) -> Vec<Action> {
        let others = self.roster.iter().copied();
        let others = others.filter(|party| !list.contains(party) && !self.absent.contains(party));
        let others: Vec<u16> = others.collect();
        let missing = list.iter().copied().find(|party| !self.roster.contains(party));
        self.promised = Some(list);
        if others.is_empty() && missing.is_none() {
            return Vec::new();
        }
        self.absent.extend(&others);
        self.returning.extend(others);
        let mut actions = self.new_epoch();
        actions.extend(missing.map(|party| Action::Waiting { party, round: self.place.round }));
        actions
    }

    fn check_commitment(
        &self,
        from: u16,
        words: &Words,
        commitment: &Commitment,
        shares: &[(u16, Vec<u8>)],
    ) -> Result<()> {
        let text = self.context().commitment_text(commitment);
        let signed = self.cohort.has_signed(from, &text, &commitment.signature);
        #[cfg(test)]
        let signed = signed || self.careless;
        if commitment.party != from || !signed {
            return Err(Self::broken(from, "an upload that it has not signed"));
        }
        let others = self.roster.iter().copied().filter(|party| *party != from);
        if !is_for_keys(commitment, &self.roster) || !others.eq(parties_of(shares)) {
            return Err(Self::broken(from, "an upload for keys that differ from those it was sent"));
        }
        if words_digest(words) != commitment.words {
            return Err(Self::broken(from, "words that differ from those it signed"));
        }
        let only = &commitment.only_with;
        let possible = only.windows(2).all(|pair| pair[0] < pair[1])
            && only.iter().all(|party| self.cohort.place_of(*party).is_some())
            && (only.is_empty() || only.contains(&from) && only.len() >= self.cohort.quorum(false));
        if !possible || self.promised.as_ref().is_some_and(|list| !only.is_empty() && only != list) {
            return Err(Self::broken(from, "words for a sum over other parties than the rest expects"));
        }
        Ok(())
    }

    /// A signature on the list of survivors.
    fn echo(&mut self, from: u16, signature: [u8; SIGNATURE_BYTES]) -> Result<Vec<Action>> {
        let Phase::Echoing(list, signatures) = &self.phase else { return Err(Self::out_of_turn(from)) };
        let context = self.context();
        let text = context.echo_text(&context.list_digest(list));
        let other = !self.cohort.has_signed(from, &text, &signature);
        #[cfg(test)]
        let other = other && !self.careless;
        if !self.survivors.contains(&from) || signatures.contains_key(&from) {
            return Err(Self::out_of_turn(from));
        }
        if other {
            return Err(Self::broken(from, "a signature on another list of survivors"));
        }
        if let Phase::Echoing(_, signatures) = &mut self.phase {
            signatures.insert(from, signature);
        }
        Ok(self.try_echoes())
    }

    /// Collects the secrets that remove the masks. Every party verifies them itself and learns whose are
    /// wrong.
    fn unmask(&mut self, from: u16, revealed: Revealed) -> Result<Vec<Action>> {
        let Phase::Unmasking(unmasking) = &self.phase else { return Err(Self::out_of_turn(from)) };
        if !self.survivors.contains(&from) || unmasking.revealed.contains_key(&from) {
            return Err(Self::out_of_turn(from));
        }
        let context = self.context();
        let text = context.reveal_text(&context.list_digest(&unmasking.list), &revealed);
        if revealed.party != from || !self.cohort.has_signed(from, &text, &revealed.signature) {
            return Err(Self::broken(from, "secrets that it has not signed"));
        }
        let gone = self.roster.iter().filter(|party| !self.survivors.contains(party));
        let takes_off_masks = revealed.shares.iter().map(|(of, _)| of).eq(&self.survivors)
            && revealed.seeds.iter().map(|(of, _)| of).eq(gone);
        if !takes_off_masks {
            return Err(Self::broken(from, "secrets other than those that remove the masks"));
        }
        if let Phase::Unmasking(unmasking) = &mut self.phase {
            unmasking.revealed.insert(from, revealed);
        }
        Ok(self.try_open())
    }

    fn too_late(&mut self, from: u16) -> Vec<Action> {
        self.ignored.push((from, "a message of an attempt that is over"));
        Vec::new()
    }
}
