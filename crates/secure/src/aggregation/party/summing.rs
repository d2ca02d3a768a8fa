//! A party's part in a sum: it commits, signs the list of all commitments, reveals, and opens the sum itself.

use std::collections::BTreeMap;

use super::{Party, PartyState, Sent};
use crate::aggregation::commitment::{Commitment, Revealed, check_list, parties_of, survivors, words_digest};
use crate::aggregation::keys::{Context, Direction, SIGNATURE_BYTES};
use crate::aggregation::mask::{Seed, Sign, apply};
use crate::aggregation::opening::{NotOpened, Opening, check_signatures, check_uploads, open};
use crate::aggregation::sharing::{Share, deal};
use crate::aggregation::{Action, FixedSum, Message, SumId, Words};
use crate::error::Result;

impl Party {
    /// What the masks, keys and signatures of this attempt are derived from.
    fn context(&self) -> Context<'_> {
        Context { cohort: &self.cohort, place: self.place, transcript: &self.transcript }
    }

    fn mask(&self, seed: &Seed, sign: Sign, words: &mut Words) {
        let key = seed.stream();
        #[cfg(test)]
        crate::aggregation::tests::note_mask(self.me, key.bytes());
        apply(key.bytes(), sign, words);
    }

    /// Masks the words, and signs digests of them and of the secrets behind their masks.
    pub(super) fn upload(&mut self) -> Vec<Action> {
        let Some(mut words) = self.pending.clone() else { return Vec::new() };
        let (me, place) = (self.me, self.place);
        if self.plain {
            return Self::send(Message::Upload { place, words, commitment: None, shares: Vec::new() });
        }
        let seed = Seed::random(&mut self.entropy);
        let context = self.context();
        let mut pairs = Vec::new();
        for (&other, pair) in &self.pairs {
            let seed = pair.mask_seed(context);
            pairs.push((other, context.pair_digest(me, other, seed.bytes())));
            self.mask(&seed, Sign::between(me, other), &mut words);
        }
        self.mask(&seed, Sign::Add, &mut words);
        let (mut sealed, mut digests, mut own_share) = (Vec::new(), Vec::new(), None);
        let members = &self.cohort.members;
        let dealt = deal(&seed, self.cohort.threshold(), members.len());
        #[cfg(test)]
        let dealt = self.tampered(dealt, &mut words, &mut pairs);
        for (&(other, _), share) in members.iter().zip(dealt) {
            let digest = context.share_digest(me, other, share.bytes());
            #[cfg(test)]
            let share = match self.lie {
                Some(super::Lie::Seal) if other != me => share.damaged(),
                _ => share,
            };
            if let Some(pair) = self.pairs.get(&other) {
                let direction = Direction { from: me, to: other };
                sealed.push((other, pair.seal(direction, context, &share)));
                digests.push((other, digest));
            } else if other == me {
                own_share = Some(share);
                digests.push((other, digest));
            }
        }
        let Some(own_share) = own_share else { unreachable!("a party is a member of its cohort") };
        let mut commitment = Commitment {
            party: me,
            words: words_digest(&words),
            seed: context.seed_digest(me, seed.bytes()),
            shares: digests,
            pairs,
            only_with: self.promised().unwrap_or_default().to_vec(),
            signature: [0; SIGNATURE_BYTES],
        };
        commitment.signature = self.identity.sign(&context.commitment_text(&commitment));
        let sent = Sent { words: words.clone(), commitment: commitment.clone() };
        self.state = PartyState::Uploaded { sent, own_share };
        Self::send(Message::Upload { place, words, commitment: Some(Box::new(commitment)), shares: sealed })
    }

    #[cfg(test)]
    fn tampered(
        &self,
        mut dealt: Vec<Share>,
        words: &mut Words,
        pairs: &mut [(u16, [u8; 32])],
    ) -> Vec<Share> {
        match self.lie {
            Some(super::Lie::Deal) => {
                let other = Seed::filled(|bytes| bytes.fill(7));
                let of_other = deal(&other, self.cohort.threshold(), dealt.len()).pop();
                dealt.pop();
                dealt.extend(of_other);
            }
            Some(super::Lie::Pair) => pairs[0].1[0] ^= 1,
            Some(super::Lie::Words) => words.wide.iter_mut().for_each(|word| *word = word.wrapping_add(1)),
            _ => {}
        }
        dealt
    }

    /// Keeps another party's masked words until it is clear who survives.
    pub(super) fn relay(&mut self, party: u16, words: Words) -> Result<Vec<Action>> {
        if !self.pairs.contains_key(&party) || self.relayed.insert(party, words).is_some() {
            return Err(self.broken(format!("unexpected words of party {party}")));
        }
        Ok(Vec::new())
    }

    /// Signs the list of survivors. This changes the state, so a second list no longer finds
    /// [`PartyState::Uploaded`].
    pub(super) fn survivors(
        &mut self,
        list: Vec<Commitment>,
        sealed: &[(u16, Vec<u8>)],
    ) -> Result<Vec<Action>> {
        let PartyState::Uploaded { sent, own_share } = &self.state else {
            return Err(self.broken("a second list of survivors for one attempt"));
        };
        let context = self.context();
        let roster: Vec<u16> = parties_of(&sent.commitment.shares);
        let survivors = survivors(&list);
        if !survivors.iter().all(|party| roster.contains(party)) {
            return Err(self.broken("a list of survivors that are not parties of this epoch"));
        }
        if !list.contains(&sent.commitment) {
            return Err(self.broken("a list of survivors without this party's upload"));
        }
        check_list(context, &list).map_err(|blame| blame.noticed_by(self.me))?;
        self.may_sum_with(&survivors)?;
        let mut shares = BTreeMap::from([(self.me, own_share.clone())]);
        for (from, sealed) in sealed {
            shares.insert(*from, self.unseal(*from, &list, sealed)?);
        }
        if !survivors.iter().all(|party| shares.contains_key(party)) {
            return Err(self.broken("a list of survivors without their shares"));
        }
        let signature = self.identity.sign(&context.echo_text(&context.list_digest(&list)));
        let sent = sent.words.clone();
        self.state = PartyState::Echoed { sent, list, shares };
        Ok(Self::send(Message::Echo { place: self.place, signature }))
    }

    /// The share that a party has sent, checked against its commitment.
    fn unseal(&self, from: u16, list: &[Commitment], sealed: &[u8]) -> Result<Share> {
        let context = self.context();
        let direction = Direction { from, to: self.me };
        let share = self.pairs.get(&from).and_then(|pair| pair.open(direction, context, sealed));
        let Some(share) = share else {
            return Err(self.broken(format!("a share of party {from} that it did not seal")));
        };
        let signed = list.iter().find(|commitment| commitment.party == from);
        let digest = (self.me, context.share_digest(from, self.me, share.bytes()));
        if signed.is_some_and(|commitment| !commitment.shares.contains(&digest)) {
            return Err(self.broken_by(from, "a share of its mask that differs from the one it signed"));
        }
        Ok(share)
    }

    /// Checks that the words of this party may be summed with those of `survivors`: enough parties, and
    /// exactly those with which these words were summed before, if they were.
    fn may_sum_with(&self, survivors: &[u16]) -> Result<()> {
        self.enough(survivors.len(), "a sum")?;
        match &self.revealed_for {
            Some(before) if before != survivors => Err(self.broken(
                "a list of survivors that differs from the one for which it revealed masks with \
                 these numbers",
            )),
            _ => Ok(()),
        }
    }

    /// Reveals secrets once enough others have signed the same list: for each party either the share of its
    /// self-mask or the pairwise seed, never both.
    pub(super) fn echoes(&mut self, signatures: &[(u16, [u8; SIGNATURE_BYTES])]) -> Result<Vec<Action>> {
        let (sent, list, shares) = match std::mem::replace(&mut self.state, PartyState::Ready) {
            PartyState::Echoed { sent, list, shares } => (sent, list, shares),
            state => {
                self.state = state;
                return Err(self.broken("signatures out of turn"));
            }
        };
        let context = self.context();
        check_signatures(context, &list, signatures).map_err(|blame| blame.noticed_by(self.me))?;
        let survivors = survivors(&list);
        let survived = |party: &u16| survivors.contains(party);
        let shares = shares.iter().filter(|(party, _)| survived(party));
        let gone = self.pairs.iter().filter(|(party, _)| !survived(party));
        let mut revealed = Revealed {
            party: self.me,
            shares: shares.map(|(party, share)| (*party, share.bytes().to_vec())).collect(),
            seeds: gone.map(|(party, pair)| (*party, *pair.mask_seed(context).bytes())).collect(),
            signature: [0; SIGNATURE_BYTES],
        };
        #[cfg(test)]
        if let (Some(super::Lie::Share), Some((_, share))) = (self.lie, revealed.shares.first_mut()) {
            share[7] ^= 1;
        }
        let digest = context.list_digest(&list);
        revealed.signature = self.identity.sign(&context.reveal_text(&digest, &revealed));
        self.revealed_for = Some(survivors);
        self.state = PartyState::Unmasked { sent, list };
        Ok(Self::send(Message::Unmask { place: self.place, revealed }))
    }

    /// Opens the sum. The message contains everything that a party may have missed, and the party checks that
    /// as well.
    pub(super) fn opening(&mut self, opening: Opening) -> Result<Vec<Action>> {
        let Some(pending) = &self.pending else {
            return Err(self.broken("an answer that nobody asked for"));
        };
        let Opening { place, keys, commitments: list, signatures, revealed, uploads, order } = opening;
        let transcript = self.transcript.with_keys(keys);
        let context = Context { cohort: &self.cohort, place, transcript: &transcript };
        let blamed = |blame: crate::aggregation::commitment::Blame| blame.noticed_by(self.me);
        let mut own = None;
        let known = match &self.state {
            PartyState::Unmasked { sent, list: signed } | PartyState::Echoed { sent, list: signed, .. }
                if place == self.place =>
            {
                if *signed != list {
                    return Err(self.broken("an answer about a list that differs from the one it signed"));
                }
                own = Some(sent);
                matches!(self.state, PartyState::Unmasked { .. }) && keys == *self.transcript.keys()
            }
            _ => false,
        };
        let survivors = survivors(&list);
        if !known {
            check_list(context, &list).map_err(blamed)?;
            check_signatures(context, &list, &signatures).map_err(blamed)?;
            self.may_sum_with(&survivors)?;
        }
        let upload = |party: u16| match uploads.iter().find(|(from, _)| *from == party) {
            Some((_, words)) => Some(words),
            None if place != self.place => None,
            None if party == self.me => own,
            None => self.relayed.get(&party),
        };
        check_uploads(&list, upload).map_err(blamed)?;
        let sum = open(context, &list, &revealed, upload).map_err(|problem| match problem {
            NotOpened::Blamed(blame) => blame.noticed_by(self.me),
            NotOpened::Lacking => self.broken("a sum without everything needed to open it"),
        })?;
        if !sum.fits(pending) {
            return Err(self.broken("a sum of a different size than requested"));
        }
        let list = context.list_digest(&list);
        self.transcript = self.transcript.ordered(place, &list, order.as_ref());
        let fixed = FixedSum { epoch: place.epoch, list, order };
        self.answered(survivors, sum, Some(fixed))
    }

    /// Accepts an answer to plain words, which no party can verify.
    pub(super) fn reply(&mut self, place: SumId, survivors: Vec<u16>, words: Words) -> Result<Vec<Action>> {
        if self.pending.is_none() {
            return Err(self.broken("an answer that nobody asked for"));
        }
        let known = |party: &u16| self.cohort.place_of(*party).is_some();
        if !survivors.windows(2).all(|pair| pair[0] < pair[1]) || !survivors.iter().all(known) {
            return Err(self.broken("an answer about parties outside this cohort"));
        }
        self.enough(survivors.len(), "the answer to a sum")?;
        self.transcript = self.transcript.replied(place, &survivors, &words);
        self.answered(survivors, words, None)
    }

    fn answered(&mut self, cohort: Vec<u16>, words: Words, fixed: Option<FixedSum>) -> Result<Vec<Action>> {
        self.pending = None;
        self.revealed_for = None;
        self.relayed.clear();
        self.place.round += 1;
        self.place.attempt = 0;
        if !matches!(self.state, PartyState::Joining(_)) {
            self.state = PartyState::Ready;
        }
        Ok(vec![Action::Opened { words, fixed, cohort }])
    }
}
