//! What parties say to each other before a run, through the coordinator.

use partwise_secure::aggregation::IdentityKey;
use serde::{Deserialize, Serialize};

use super::fields::{Agreement, offer_bytes};
use super::negotiation::Negotiator;
use super::terms::Terms;
use crate::text::{Fingerprint, Hex};

/// A party's part of the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Its identity key.
    pub identity: Hex<32>,
    /// Random.
    pub nonce: Hex<32>,
    /// An X25519 key for the comparison of names.
    pub key: Hex<32>,
    /// A digest of what it contributes to the public seed.
    pub seed: Hex<32>,
    /// How many features it has.
    pub features: usize,
    /// Over all of it.
    pub signature: Hex<64>,
}

impl Offer {
    /// Signs it.
    pub(super) fn sign(&mut self, party: &Negotiator<'_>, attempt: u32) {
        let bytes = offer_bytes(self, party.terms, party.place, attempt);
        self.signature = Hex(party.identity.sign(&bytes));
    }

    /// The identity key, if the roster has it and it has signed.
    pub fn check(&self, terms: &Terms, place: u16, attempt: u32) -> Option<IdentityKey> {
        let member = terms.roster.get(usize::from(place).checked_sub(1)?)?;
        let key = IdentityKey::from_bytes(&self.identity.0)?;
        let known = member.identity == Fingerprint::of(&self.identity.0);
        (known && key.has_signed(&offer_bytes(self, terms, place, attempt), &self.signature.0)).then_some(key)
    }
}

/// Keyed digests of the names of features, for one other party: as they are, and sorted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    /// In their order.
    pub names: Hex<32>,
    /// Sorted.
    pub sorted: Hex<32>,
}

/// What a party understood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agree {
    /// Field by field.
    pub agreement: Agreement,
    /// What it contributes to the public seed.
    pub seed: Hex<32>,
    /// Over the digest of the agreement.
    pub signature: Hex<64>,
    /// For each party of the roster.
    pub tags: Vec<Tags>,
}

/// What a party understood, as another party may read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accord {
    /// Field by field, where that differs from what the reader understood. Left out otherwise, since the signature is on
    /// its digest, and many parties have long rosters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// What it contributes to the public seed.
    pub seed: Hex<32>,
    /// Over the digest of the agreement.
    pub signature: Hex<64>,
    /// For the reader.
    pub tags: Tags,
}
