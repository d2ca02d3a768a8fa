//! What a party fixes before anything is revealed: signed digests of its masked words and of the secrets
//! behind its masks.

use sha2::{Digest, Sha256};

use super::keys::{Context, SIGNATURE_BYTES};
use super::wire::{Writer, commitment_body};
use super::{Cohort, PartyShares, Words};
use crate::error::{Error, Peer};

/// Digests of everything in an upload, signed by the uploading party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// The party that uploads.
    pub party: u16,
    /// Digest of the masked words.
    pub words: [u8; 32],
    /// Digest of the seed of the self-mask.
    pub seed: [u8; 32],
    /// Digests of the shares of that seed, one for each party of the list of keys, including this one.
    pub shares: Vec<(u16, [u8; 32])>,
    /// Digests of the seeds of the masks with each other party of the list of keys. Both ends of a pair
    /// compute the same digest.
    pub pairs: Vec<(u16, [u8; 32])>,
    /// The only parties with which these words may be summed; empty if any parties may be. If the same words
    /// entered a second sum without one of the parties of the first, the difference would reveal what that
    /// party contributed.
    pub only_with: Vec<u16>,
    /// Signature over all fields, bound to one attempt at one sum.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// Which participant broke the protocol, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// A party, or 0 for the coordinator.
    pub from: u16,
    /// The description of the violation.
    pub problem: String,
}

impl Blame {
    pub(crate) fn new(from: u16, problem: impl Into<String>) -> Self {
        Blame { from, problem: problem.into() }
    }

    /// The error of the party, or of the coordinator (0), that detected the violation.
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

    /// The text that a party signs when it uploads.
    pub fn commitment_text(&self, commitment: &Commitment) -> Vec<u8> {
        let mut text = self.text(b"partwise upload 1");
        text.extend(commitment_body(commitment));
        text
    }

    /// The digest of the survivors' commitments, which determines what is summed.
    pub fn list_digest(&self, list: &[Commitment]) -> [u8; 32] {
        let bodies: Vec<u8> = list.iter().flat_map(commitment_body).collect();
        self.digest(b"partwise list 1", &[], &bodies)
    }

    /// The text that a party signs when it receives the list of survivors.
    pub fn echo_text(&self, list: &[u8; 32]) -> Vec<u8> {
        let mut text = self.text(b"partwise survivors 2");
        text.extend_from_slice(list);
        text
    }

    /// The text that a party signs when it reveals its part of what opens a sum.
    pub fn reveal_text(&self, list: &[u8; 32], revealed: &Revealed) -> Vec<u8> {
        let mut writer = Writer(self.text(b"partwise reveal 1"));
        writer.raw(list).by_party(&revealed.shares).by_party(&revealed.seeds);
        writer.0
    }
}

/// What a party reveals once enough others have signed the same list.
#[derive(Clone, PartialEq, Eq)]
pub struct Revealed {
    /// Who.
    pub party: u16,
    /// The party's shares of the survivors' self-masks.
    pub shares: PartyShares,
    /// The seeds of this attempt's masks between the party and those that did not survive.
    pub seeds: Vec<(u16, [u8; 32])>,
    /// Signature over all fields.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// The entry of a party in a list keyed by party.
pub(super) fn of<T>(list: &[(u16, T)], party: u16) -> Option<&T> {
    list.iter().find(|(of, _)| *of == party).map(|(_, item)| item)
}

/// The parties whose commitments are in the list.
pub fn survivors(list: &[Commitment]) -> Vec<u16> {
    list.iter().map(|commitment| commitment.party).collect()
}

impl Cohort {
    /// Whether the signature of this member is valid.
    pub(super) fn has_signed(&self, party: u16, text: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let place = self.place_of(party);
        place.is_some_and(|place| self.members[place].1.has_signed(text, signature))
    }
}

/// Whether a commitment matches this list of keys: one digest of a share for each party, and one of a
/// pairwise seed for each other party.
pub fn is_for_keys(commitment: &Commitment, roster: &[u16]) -> bool {
    let others = roster.iter().filter(|party| **party != commitment.party);
    roster.contains(&commitment.party)
        && commitment.shares.iter().map(|(party, _)| party).eq(roster)
        && commitment.pairs.iter().map(|(party, _)| party).eq(others)
}

/// Checks that a list can be the survivors' commitments: all are signed, match the same keys and do not
/// contradict each other.
pub fn check_list(context: Context<'_>, list: &[Commitment]) -> Result<(), Blame> {
    let coordinator = |problem: String| Err(Blame::new(0, problem));
    if !list.windows(2).all(|pair| pair[0].party < pair[1].party) {
        return coordinator("a list of survivors that names a party twice".into());
    }
    let roster: Vec<u16> = list.first().map_or_else(Vec::new, |first| parties_of(&first.shares));
    for commitment in list {
        let party = commitment.party;
        if !context.cohort.has_signed(party, &context.commitment_text(commitment), &commitment.signature) {
            return coordinator(format!("an upload of party {party} that it did not sign"));
        }
        if !is_for_keys(commitment, &roster) {
            return coordinator(format!("an upload of party {party} for keys that differ from the others'"));
        }
    }
    for (place, one) in list.iter().enumerate() {
        for other in &list[place + 1..] {
            if of(&one.pairs, other.party) != of(&other.pairs, one.party) {
                let problem = format!(
                    "a mask shared with party {} that differs from that party's: one of the two is dishonest",
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
