//! The messages between parties before a run, passed on by the coordinator.

use partwise_secure::aggregation::IdentityKey;
use serde::{Deserialize, Serialize};

use super::fields::{Agreement, offer_bytes};
use super::negotiation::Negotiator;
use super::terms::Terms;
use crate::data_ledger::{LedgerHead, Seen};
use crate::text::{Fingerprint, Hex};

/// A party's offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The party's identity key.
    pub identity: Hex<32>,
    /// Random.
    pub nonce: Hex<32>,
    /// An X25519 key for the comparison of names.
    pub key: Hex<32>,
    /// The digest of the party's contribution to the public seed.
    pub seed: Hex<32>,
    /// The number of features.
    pub features: usize,
    /// The head of the ledger of the party's data.
    pub ledger: LedgerHead,
    /// A signature over all other fields.
    pub signature: Hex<64>,
}

impl Offer {
    /// Signs it.
    pub(super) fn sign(&mut self, party: &Negotiator<'_>, attempt: u32) {
        let bytes = offer_bytes(self, party.terms, party.place, attempt);
        self.signature = Hex(party.identity.sign(&bytes));
    }

    /// The identity key, if it is in the roster and the signature is valid.
    pub fn check(&self, terms: &Terms, place: u16, attempt: u32) -> Option<IdentityKey> {
        let member = terms.roster.get(usize::from(place).checked_sub(1)?)?;
        let key = IdentityKey::from_bytes(&self.identity.0)?;
        let known = member.identity == Fingerprint::of(&self.identity.0);
        (known && key.has_signed(&offer_bytes(self, terms, place, attempt), &self.signature.0)).then_some(key)
    }
}

/// Keyed digests for one other party: of the names of features in order and sorted, and of what is remembered
/// of that party's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    /// The keyed digest of the names in order.
    pub names: Hex<32>,
    /// The keyed digest of the sorted names.
    pub sorted: Hex<32>,
    /// The position of the other party's ledger in the last run with it.
    pub seen: Option<Seen>,
    /// The keyed digest of `seen`.
    pub ledger: Hex<32>,
}

impl Tags {
    /// Empty tags, which belong to no party.
    pub fn none() -> Self {
        Tags { names: Hex([0; 32]), sorted: Hex([0; 32]), seen: None, ledger: Hex([0; 32]) }
    }
}

/// A party's view of the agreement, with tags for all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agree {
    /// The fields of the agreement.
    pub agreement: Agreement,
    /// The head of the party's ledger including this run, for the others to remember.
    pub ledger: LedgerHead,
    /// The party's contribution to the public seed.
    pub seed: Hex<32>,
    /// A signature over the digest of the agreement and the ledger head.
    pub signature: Hex<64>,
    /// Tags for each party of the roster.
    pub tags: Vec<Tags>,
}

/// A party's view, as another party may read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accord {
    /// The fields, if they differ from the reader's; left out otherwise, because the signature covers the digest,
    /// and the roster can be long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The head of the party's ledger including this run.
    pub ledger: LedgerHead,
    /// The party's contribution to the public seed.
    pub seed: Hex<32>,
    /// A signature over the digest of the agreement and the ledger head.
    pub signature: Hex<64>,
    /// The tag for the reader.
    pub tags: Tags,
}
