//! The fields that the parties agree on, and the bytes that each of them signs.

use partwise_secure::encoding::{self, Field, FieldValue, encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::terms::Terms;
use super::{AGREEMENT_VERSION, Offer};
use crate::data_ledger::{LedgerHead, Seen};
use crate::text::Fingerprint;

/// The purpose of an agreement's digest.
const PURPOSE: &str = "partwise agreement";

/// The encoding of numbers as words that can be masked, including its version.
const RANGE: &str = "fixed point in u32 and u64, 2";

/// A party's view of the agreement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// The version of the encoding, with the order of the fields.
    pub version: u32,
    /// The fields.
    pub fields: Vec<Field>,
}

impl Agreement {
    /// The view that follows from these terms and offers, for a program of this version.
    pub fn new(terms: &Terms, offers: &[Offer], program: &str) -> Self {
        let digest = |of: fn(&Offer) -> [u8; 32]| {
            let all: Vec<u8> = offers.iter().flat_map(of).collect();
            Fingerprint::of(&all).0
        };
        let roster = terms.roster.iter().map(|member| {
            FieldValue::Record(vec![
                Field::new("name", &member.name[..]),
                Field::new("identity", member.identity.0),
            ])
        });
        let group = |group: &Vec<u16>| group.iter().map(|place| usize::from(*place)).collect::<FieldValue>();
        let groups = terms.groups.iter().map(group);
        // The threshold of a cohort of all parties.
        let threshold = (terms.roster.len() + terms.settings.colluders) / 2 + 1;
        Agreement {
            version: AGREEMENT_VERSION,
            fields: vec![
                Field::new("federation", &terms.federation[..]),
                Field::new("the nonces", digest(|offer| offer.nonce.0)),
                Field::new("the keys", digest(|offer| offer.key.0)),
                Field::new("the ledgers", digest(|offer| offer.ledger.hash.0)),
                Field::new("the seeds", digest(|offer| offer.seed.0)),
                Field::new("the roster", roster.collect::<FieldValue>()),
                Field::new(
                    "the number of features",
                    offers.iter().map(|offer| offer.features).collect::<FieldValue>(),
                ),
                Field::new("settings", FieldValue::Record(encoding::settings(&terms.settings))),
                Field::new("threshold", threshold),
                Field::new("cohort", terms.cohort),
                Field::new("range", RANGE),
                Field::new("groups", groups.collect::<FieldValue>()),
                Field::new("version", program),
            ],
        }
    }

    /// The encoded bytes whose digest is signed.
    pub fn encode(&self) -> Vec<u8> {
        encode(PURPOSE, self.version, &self.fields)
    }

    /// The digest that identifies the run if all agree.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }

    /// The first field that differs, with both values; `None` if there is none.
    pub fn difference(&self, other: &Agreement) -> Option<String> {
        if self.encode() == other.encode() {
            return None;
        }
        if self.version != other.version {
            let what = "version of the agreement";
            return Some(format!("{what}: {} there, {} here", other.version, self.version));
        }
        let what = differing_field(&self.fields, &other.fields);
        Some(what.unwrap_or_else(|| "what is to be agreed on".into()))
    }
}

/// The first differing field of two lists, or of a nested structure.
fn differing_field(own: &[Field], other: &[Field]) -> Option<String> {
    // Long values, such as the roster, are shortened.
    let shown = |value: &FieldValue| value.to_string().chars().take(200).collect::<String>();
    let (own, other) = own.iter().zip(other).find(|(own, other)| own != other)?;
    if let (FieldValue::Record(own_fields), FieldValue::Record(other_fields)) = (&own.value, &other.value)
        && let Some(within) = differing_field(own_fields, other_fields)
    {
        return Some(format!("{within} ({})", own.name));
    }
    Some(format!("{}: {} there, {} here", own.name, shown(&other.value), shown(&own.value)))
}

/// The digest that an offer's signature covers.
pub fn offer_bytes(offer: &Offer, terms: &Terms, place: u16, attempt: u32) -> Vec<u8> {
    let mut fields = vec![
        Field::new("federation", &terms.federation[..]),
        Field::new("place", usize::from(place)),
        Field::new("attempt", u64::from(attempt)),
        Field::new("identity", offer.identity.0),
        Field::new("nonce", offer.nonce.0),
        Field::new("key", offer.key.0),
        Field::new("seed", offer.seed.0),
        Field::new("features", offer.features),
    ];
    fields.extend(head_fields(&offer.ledger));
    encode("partwise offer", AGREEMENT_VERSION, &fields)
}

/// The digest of a party's contribution to the public seed.
pub fn contribution_digest(contribution: &[u8; 32]) -> [u8; 32] {
    let fields = [Field::new("contribution", *contribution)];
    Sha256::digest(encode("partwise contribution to the seed", AGREEMENT_VERSION, &fields)).into()
}

/// The public seed of a run, which depends on the contributions of all parties.
pub fn public_seed(run: &[u8; 32], contributions: &[[u8; 32]]) -> u64 {
    let contributions = contributions.iter().copied().collect::<FieldValue>();
    let fields = [Field::new("run", *run), Field::new("contributions", contributions)];
    let digest = Sha256::digest(encode("partwise public seed", AGREEMENT_VERSION, &fields));
    u64::from_le_bytes(std::array::from_fn(|place| digest[place]))
}

/// The digest that a signature on an agreement covers.
pub fn signed_bytes(run: &[u8; 32], ledger: &LedgerHead) -> Vec<u8> {
    let mut fields = vec![Field::new("run", *run)];
    fields.extend(head_fields(ledger));
    encode("partwise signed agreement", AGREEMENT_VERSION, &fields)
}

fn head_fields(head: &LedgerHead) -> [Field; 3] {
    [
        Field::new("ledger", head.ledger.0),
        Field::new("ledger entries", head.entries),
        Field::new("ledger hash", head.hash.0),
    ]
}

/// The digest of the names of features, or of their absence, in this order.
pub fn names_digest<'a>(names: Option<impl Iterator<Item = &'a String>>) -> [u8; 32] {
    let names = names.map_or(FieldValue::Absent, |names| names.map(|name| &name[..]).collect());
    Sha256::digest(encode("partwise feature names", AGREEMENT_VERSION, &[Field::new("names", names)])).into()
}

/// The input for deriving the tag for one other party.
pub fn tag_bytes(run: &[u8; 32], tag: TagOf<'_>) -> Vec<u8> {
    let fields = [
        Field::new("run", *run),
        Field::new("from", usize::from(tag.from)),
        Field::new("to", usize::from(tag.to)),
        Field::new("names", *tag.names),
    ];
    encode("partwise tag of feature names", AGREEMENT_VERSION, &fields)
}

/// The input for the digest of what is remembered of another party's ledger.
pub fn seen_bytes(run: &[u8; 32], [from, to]: [u16; 2], seen: Option<&Seen>) -> Vec<u8> {
    let fields = [
        Field::new("run", *run),
        Field::new("from", usize::from(from)),
        Field::new("to", usize::from(to)),
        Field::new("entries", seen.map_or(0, |seen| seen.entries)),
        Field::new("hash", seen.map_or([0; 32], |seen| seen.hash.0)),
    ];
    encode("partwise tag of a ledger", AGREEMENT_VERSION, &fields)
}

/// The parties of a tag.
#[derive(Clone, Copy)]
pub struct TagOf<'a> {
    /// The place of the party that creates it.
    pub from: u16,
    /// The place of the party that compares it.
    pub to: u16,
    /// The digest of the names.
    pub names: &'a [u8; 32],
}
