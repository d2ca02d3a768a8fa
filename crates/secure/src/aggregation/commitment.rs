//! What a party fixes before anything is revealed: digests of its masked words and of the secrets of its masks, signed.

use sha2::{Digest, Sha256};

use super::keys::{Context, SIGNATURE_BYTES};
use super::wire::{Writer, commitment_body};
use super::{Cohort, PartyShares, Words};
use crate::error::{Error, Peer};

/// Digests of all that an upload consists of, signed by the party that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// Whose upload it is.
    pub party: u16,
    /// Of the masked words.
    pub words: [u8; 32],
    /// Of the seed of the self-mask.
    pub seed: [u8; 32],
    /// Of the share of that seed for each party of the list of keys, itself among them.
    pub shares: Vec<(u16, [u8; 32])>,
    /// Of the seed of the mask with each other party of the list of keys. Both ends of a pair have the same.
    pub pairs: Vec<(u16, [u8; 32])>,
    /// The only parties that these words may be summed with; empty where any may be. Words that were in one sum and would be
    /// in another without one of its parties would show what that party had.
    pub only_with: Vec<u16>,
    /// Over all of it, for one attempt at one sum.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// Who broke the protocol, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// A party, or 0 for the coordinator.
    pub from: u16,
    /// What is wrong.
    pub problem: String,
}

impl Blame {
    pub(crate) fn new(from: u16, problem: impl Into<String>) -> Self {
        Blame { from, problem: problem.into() }
    }

    /// The error of a party, or of the coordinator (0), that has noticed.
    pub(crate) fn noticed_by(self, who: u16) -> Error {
        Error::Dishonest { who: Peer(who), from: Peer(self.from), problem: self.problem }
    }
}

/// The digest of masked words.
pub fn words_digest(words: &Words) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(b"partwise words 1");
    hash.update((words.narrow.len() as u64).to_le_bytes());
    let mut buffer = [0u8; 4096];
    for chunk in words.narrow.chunks(buffer.len() / 4) {
        let bytes = &mut buffer[..chunk.len() * 4];
        bytes.as_chunks_mut().0.iter_mut().zip(chunk).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        hash.update(bytes);
    }
    for chunk in words.wide.chunks(buffer.len() / 8) {
        let bytes = &mut buffer[..chunk.len() * 8];
        bytes.as_chunks_mut().0.iter_mut().zip(chunk).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        hash.update(bytes);
    }
    hash.finalize().into()
}

impl Context<'_> {
    /// The digest of the seed of a party's self-mask.
    pub fn seed_digest(&self, party: u16, seed: &[u8; 32]) -> [u8; 32] {
        self.digest(b"partwise seed 1", &[party], seed)
    }

    /// The digest of a share, with its salt.
    pub fn share_digest(&self, dealer: u16, receiver: u16, share: &[u8]) -> [u8; 32] {
        self.digest(b"partwise share 1", &[dealer, receiver], share)
    }

    /// The digest of the seed of the mask between two parties, the same from both ends.
    pub fn pair_digest(&self, one: u16, other: u16, seed: &[u8; 32]) -> [u8; 32] {
        self.digest(b"partwise pair seed 1", &[one.min(other), one.max(other)], seed)
    }

    /// What a party signs when it uploads.
    pub fn commitment_text(&self, commitment: &Commitment) -> Vec<u8> {
        let mut text = self.text(b"partwise upload 1");
        text.extend(commitment_body(commitment));
        text
    }

    /// The digest of the survivors' commitments: what is summed is fixed by it.
    pub fn list_digest(&self, list: &[Commitment]) -> [u8; 32] {
        let bodies: Vec<u8> = list.iter().flat_map(commitment_body).collect();
        self.digest(b"partwise list 1", &[], &bodies)
    }

    /// What a party signs when it is told who survived.
    pub fn echo_text(&self, list: &[u8; 32]) -> Vec<u8> {
        let mut text = self.text(b"partwise survivors 2");
        text.extend_from_slice(list);
        text
    }

    /// What a party signs when it reveals its part of what opens a sum.
    pub fn reveal_text(&self, list: &[u8; 32], revealed: &Revealed) -> Vec<u8> {
        let mut writer = Writer(self.text(b"partwise reveal 1"));
        writer.raw(list).by_party(&revealed.shares).by_party(&revealed.seeds);
        writer.0
    }
}

/// What a party reveals, once enough others have signed the same list.
#[derive(Clone, PartialEq, Eq)]
pub struct Revealed {
    /// Who.
    pub party: u16,
    /// Its shares of the survivors' self-masks.
    pub shares: PartyShares,
    /// Its pairwise seeds of this attempt with those that did not survive.
    pub seeds: Vec<(u16, [u8; 32])>,
    /// Over all of it.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// The entry of a party, in a list by party.
pub(super) fn of<T>(list: &[(u16, T)], party: u16) -> Option<&T> {
    list.iter().find(|(of, _)| *of == party).map(|(_, item)| item)
}

/// Who survived.
pub fn survivors(list: &[Commitment]) -> Vec<u16> {
    list.iter().map(|commitment| commitment.party).collect()
}

impl Cohort {
    /// Whether the member has signed.
    pub(super) fn has_signed(&self, party: u16, text: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let place = self.place_of(party);
        place.is_some_and(|place| self.members[place].1.has_signed(text, signature))
    }
}

/// Whether a commitment is for these keys: a digest for each party of the list, its own seed's apart.
pub fn is_for_keys(commitment: &Commitment, roster: &[u16]) -> bool {
    let others = roster.iter().filter(|party| **party != commitment.party);
    roster.contains(&commitment.party)
        && commitment.shares.iter().map(|(party, _)| party).eq(roster)
        && commitment.pairs.iter().map(|(party, _)| party).eq(others)
}

/// Whether these can be the survivors' commitments: each signed, all for the same keys, and no two in conflict.
pub fn check_list(context: Context<'_>, list: &[Commitment]) -> Result<(), Blame> {
    let coordinator = |problem: String| Err(Blame::new(0, problem));
    if !list.windows(2).all(|pair| pair[0].party < pair[1].party) {
        return coordinator("a list of survivors with a party twice".into());
    }
    let roster: Vec<u16> = list.first().map_or_else(Vec::new, |first| parties_of(&first.shares));
    for commitment in list {
        let party = commitment.party;
        if !context.cohort.has_signed(party, &context.commitment_text(commitment), &commitment.signature) {
            return coordinator(format!("an upload of party {party} that it did not sign"));
        }
        if !is_for_keys(commitment, &roster) {
            return coordinator(format!("an upload of party {party} for other keys than the others have"));
        }
    }
    for (place, one) in list.iter().enumerate() {
        for other in &list[place + 1..] {
            if of(&one.pairs, other.party) != of(&other.pairs, one.party) {
                let problem = format!(
                    "another mask between it and party {} than that party has: one of the two is dishonest",
                    other.party
                );
                return Err(Blame::new(one.party, problem));
            }
        }
    }
    Ok(())
}

/// The parties of a list.
pub(super) fn parties_of<T>(list: &[(u16, T)]) -> Vec<u16> {
    list.iter().map(|(party, _)| *party).collect()
}
