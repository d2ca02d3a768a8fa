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
    /// Its identity key.
    pub identity: Hex<32>,
    /// Random.
    pub nonce: Hex<32>,
    /// An X25519 key for the comparison of names.
    pub key: Hex<32>,
    /// A digest of what it contributes to the public seed.
    pub seed: Hex<32>,
    /// The number of its features.
    pub features: usize,
    /// Where the ledger of its data is.
    pub ledger: LedgerHead,
    /// A signature over all of it.
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

/// Keyed digests for one other party: of the names of features, as they are and sorted, and of what is remembered of that
/// party's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    /// In their order.
    pub names: Hex<32>,
    /// Sorted.
    pub sorted: Hex<32>,
    /// Where the other party's ledger was in the last run with it.
    pub seen: Option<Seen>,
    /// The digest of that.
    pub ledger: Hex<32>,
}

impl Tags {
    /// Nobody's.
    pub fn none() -> Self {
        Tags { names: Hex([0; 32]), sorted: Hex([0; 32]), seen: None, ledger: Hex([0; 32]) }
    }
}

/// A party's view of the agreement, with tags for all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agree {
    /// Field by field.
    pub agreement: Agreement,
    /// Where its ledger is with this run in it, for the others to remember.
    pub ledger: LedgerHead,
    /// Over the digest of the agreement, and that.
    /// What it contributes to the public seed.
    pub seed: Hex<32>,
    /// Over the digest of the agreement.
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
    /// Where its ledger is with this run in it.
    pub ledger: LedgerHead,
    /// Over the digest of the agreement, and that.
    /// What it contributes to the public seed.
    pub seed: Hex<32>,
    /// Over the digest of the agreement.
    pub signature: Hex<64>,
    /// The tag for the reader.
    pub tags: Tags,
}
