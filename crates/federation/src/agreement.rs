//! What the parties agree on before the first sum. Each signs one digest over all of it, with a nonce from everybody, and
//! compares it with those of all others; the digest then names the run, and masks are derived from it.
//!
//! Names of features are compared by keyed digests, with a key that two parties share and the coordinator has not: names
//! are guessable, and a plain digest would tell whether a guess is right.

use hkdf::Hkdf;
use partwise_secure::aggregation::{Identity, IdentityKey};
use partwise_secure::protocol::{Settings, upload_sizes};
use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, ReusableSecret};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::text::{Fingerprint, Hex, check_name};

/// A party of the roster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The fingerprint of its identity key.
    pub identity: Fingerprint,
}

/// What the coordinator proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The federation.
    pub federation: String,
    /// The method.
    pub settings: Settings,
    /// The parties, whose places are 1, 2, ...
    pub roster: Vec<Member>,
    /// How many must be in every sum at least.
    pub cohort: usize,
    /// The groups of an asynchronous method.
    pub groups: Vec<Vec<u16>>,
    /// Seconds after which a party is held to hang.
    pub deadline: f64,
    /// Seconds between two signs of life.
    pub heartbeat: f64,
}

/// What is wrong with a setting, by the name that it has in the file.
pub(crate) fn wrong_setting(error: partwise_secure::Error) -> String {
    match error {
        partwise_secure::Error::Core(partwise::Error::Parameter { name, problem }) => {
            format!("[method]: {}: {problem}", name.trim_start_matches("--").replace('-', "_"))
        }
        error => format!("[method]: {error}"),
    }
}

impl Terms {
    /// Whether these can be the terms of a run, whoever proposes them: everybody is there once, and the groups share out the
    /// parties. A roster with one party under two names or in two places would make its sums look larger than they are.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.federation)?;
        let parties = self.roster.len();
        if !(2..=255).contains(&parties) {
            return Err(format!("{parties} parties; there must be 2 to 255, each a [[party]]"));
        }
        for (place, member) in self.roster.iter().enumerate() {
            check_name(&member.name)?;
            let same = |other: &Member| other.name == member.name || other.identity == member.identity;
            if self.roster[..place].iter().any(same) {
                return Err(format!("party {} is there twice, by name or identity", member.name));
            }
        }
        let mut grouped = self.groups.concat();
        grouped.sort_unstable();
        let shared_out = match self.settings.protocol.is_asynchronous() {
            true => {
                grouped.into_iter().eq(1..=parties as u16)
                    && self.groups.iter().all(|group| group.is_sorted())
            }
            false => grouped.is_empty(),
        };
        if !shared_out || self.groups.iter().any(Vec::is_empty) || self.groups.len() > 255 {
            return Err("groups that do not share out the parties".into());
        }
        self.settings.check().map_err(wrong_setting)?;
        let smallest = if parties == 2 { 2 } else { self.settings.colluders.saturating_add(2) };
        if !(smallest..=parties).contains(&self.cohort) {
            return Err(format!("cohort: {} is out of range; give {smallest} to {parties}", self.cohort));
        }
        for (name, seconds) in [("deadline", self.deadline), ("heartbeat", self.heartbeat)] {
            if !(0.1..=1e6).contains(&seconds) {
                return Err(format!("{name}: {seconds} is out of range; give seconds, 0.1 or more"));
            }
        }
        Ok(())
    }

    /// The longest message between parties of so many features: the largest upload, and what goes with it for each party;
    /// or U, as a file.
    pub fn longest_message(&self, features: usize) -> usize {
        let sizes = upload_sizes(&self.settings, features);
        let words = sizes.iter().map(|(narrow, wide)| narrow.saturating_add(*wide).saturating_mul(8));
        words.max().unwrap_or(0).saturating_add(self.roster.len() * 256).saturating_add(64 << 10)
    }

    /// The name of a place.
    pub fn name(&self, place: u16) -> &str {
        self.roster.get(usize::from(place).wrapping_sub(1)).map_or("the coordinator", |member| &member.name)
    }

    /// What is said and signed, item by item.
    fn items(&self, offers: &[Offer], version: &str) -> Items {
        let settings = &self.settings;
        let text = |value: serde_json::Result<String>| value.unwrap_or_default();
        let roster = self.roster.iter().map(|member| format!("{} {}", member.name, member.identity));
        let nonces = offers.iter().flat_map(|offer| offer.nonce.0).collect::<Vec<u8>>();
        let keys = offers.iter().flat_map(|offer| offer.key.0).collect::<Vec<u8>>();
        let parties = self.roster.len();
        let threshold = (parties + settings.colluders) / 2 + 1;
        let features: Vec<String> = offers.iter().map(|offer| offer.features.to_string()).collect();
        [
            ("federation", self.federation.clone()),
            ("the nonces", Fingerprint::of(&nonces).to_string()),
            ("the keys", Fingerprint::of(&keys).to_string()),
            ("the roster", roster.collect::<Vec<_>>().join(", ")),
            ("the number of features", features.join(", ")),
            ("protocol", text(serde_json::to_string(&settings.protocol))),
            ("aggregation", text(serde_json::to_string(&settings.aggregation))),
            ("threshold", threshold.to_string()),
            ("cohort", self.cohort.to_string()),
            ("rounds", settings.rounds.to_string()),
            ("sketch", text(serde_json::to_string(&settings.sketch))),
            ("range", "fixed point in u32 and u64, 2".into()),
            ("seed", settings.seed.to_string()),
            ("settings", text(serde_json::to_string(settings))),
            ("groups", format!("{:?}", self.groups)),
            ("version", version.into()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .to_vec()
    }
}

/// What is agreed on, each with its name.
type Items = Vec<(String, String)>;

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
    /// How many features it has.
    pub features: usize,
    /// Over all of it.
    pub signature: Hex<64>,
}

impl Offer {
    fn text(&self, terms: &Terms, place: u16, attempt: u32) -> Vec<u8> {
        let mut text = b"partwise offer 1 ".to_vec();
        text.extend_from_slice(&Sha256::digest(&terms.federation));
        text.extend_from_slice(&place.to_le_bytes());
        text.extend_from_slice(&attempt.to_le_bytes());
        text.extend_from_slice(&[self.identity.0, self.nonce.0, self.key.0].concat());
        text.extend_from_slice(&(self.features as u64).to_le_bytes());
        text
    }

    /// The identity key, if the roster has it and it has signed.
    pub fn check(&self, terms: &Terms, place: u16, attempt: u32) -> Option<IdentityKey> {
        let member = terms.roster.get(usize::from(place).checked_sub(1)?)?;
        let key = IdentityKey::from_bytes(&self.identity.0)?;
        let known = member.identity == Fingerprint::of(&self.identity.0);
        (known && key.has_signed(&self.text(terms, place, attempt), &self.signature.0)).then_some(key)
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
    /// Item by item.
    pub items: Items,
    /// Over the digest of the items.
    pub signature: Hex<64>,
    /// For each party of the roster.
    pub tags: Vec<Tags>,
}

impl Agree {
    /// What names the run, if all agree.
    pub fn digest(&self) -> [u8; 32] {
        digest(&self.items)
    }
}

/// The same as another party may read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accord {
    /// Item by item, where that is something else than what the reader understood. Left out otherwise, since the
    /// signature is on its digest, and many parties have long rosters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    /// Over the digest of the items.
    pub signature: Hex<64>,
    /// For the reader.
    pub tags: Tags,
}

fn digest(items: &[(String, String)]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(b"partwise agreement 1");
    for text in items.iter().flat_map(|(name, value)| [name, value]) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

fn signed_text(digest: &[u8; 32]) -> Vec<u8> {
    [b"partwise agreement 1 signed ", &digest[..]].concat()
}

/// A party that negotiates.
pub struct Negotiation<'a> {
    terms: &'a Terms,
    place: u16,
    attempt: u32,
    identity: &'a Identity,
    names: [[u8; 32]; 2],
    offer: Offer,
    secret: ReusableSecret,
    version: &'a str,
    /// What this party understood, and what the others' tags should be.
    own: Option<(Items, Vec<(IdentityKey, Tags)>)>,
}

impl<'a> Negotiation<'a> {
    /// Begins, with fresh secrets.
    pub fn new(
        terms: &'a Terms,
        (place, attempt): (u16, u32),
        identity: &'a Identity,
        (features, names): (usize, Option<&[String]>),
        version: &'a str,
    ) -> Result<Self> {
        let mut rng = partwise_secure::entropy()?;
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let secret = ReusableSecret::random_from_rng(&mut rng);
        let mut sorted: Option<Vec<&String>> = names.map(|names| names.iter().collect());
        sorted.iter_mut().for_each(|names| names.sort_unstable());
        let in_order = names.map(|names| names.iter().collect::<Vec<_>>());
        let names = [digest_of_names(in_order), digest_of_names(sorted)];
        let mut offer = Offer {
            identity: Hex(*identity.key().bytes()),
            nonce: Hex(nonce),
            key: Hex(PublicKey::from(&secret).to_bytes()),
            features,
            signature: Hex([0; 64]),
        };
        offer.signature = Hex(identity.sign(&offer.text(terms, place, attempt)));
        Ok(Negotiation { terms, place, attempt, identity, names, offer, secret, version, own: None })
    }

    /// The first message.
    pub fn offer(&self) -> Offer {
        self.offer.clone()
    }

    /// Answers all offers.
    pub fn agree(&mut self, offers: &[Offer]) -> Result<Agree> {
        let dishonest = |problem: String| Error::Dishonest { problem };
        if offers.len() != self.terms.roster.len()
            || offers.get(usize::from(self.place) - 1) != Some(&self.offer)
        {
            return Err(dishonest("offers that are not those of all parties".into()));
        }
        let items = self.terms.items(offers, self.version);
        let run = digest(&items);
        let mut expected = Vec::new();
        let mut tags = Vec::new();
        for (place, offer) in (1..).zip(offers) {
            let who = self.terms.name(place);
            let Some(key) = offer.check(self.terms, place, self.attempt) else {
                return Err(dishonest(format!("an offer that {who} has not signed")));
            };
            let shared = self.secret.diffie_hellman(&PublicKey::from(offer.key.0));
            if !shared.was_contributory() {
                return Err(dishonest(format!("a key of {who} that hides nothing")));
            }
            let tags_between = |from: u16, to: u16| Tags {
                names: tag(shared.as_bytes(), &run, (from, to), &self.names[0]),
                sorted: tag(shared.as_bytes(), &run, (from, to), &self.names[1]),
            };
            tags.push(tags_between(self.place, place));
            expected.push((key, tags_between(place, self.place)));
        }
        self.check_features(offers)?;
        let signature = Hex(self.identity.sign(&signed_text(&run)));
        self.own = Some((items.clone(), expected));
        Ok(Agree { items, signature, tags })
    }

    /// Compares; returns the digest that names the run, and everybody's identity key.
    pub fn conclude(&self, accords: &[Accord]) -> Result<([u8; 32], Vec<IdentityKey>)> {
        let Some((items, expected)) = &self.own else {
            return Err(Error::Dishonest { problem: "words of all parties out of turn".into() });
        };
        if accords.len() != expected.len() {
            return Err(Error::Dishonest { problem: "words that are not those of all parties".into() });
        }
        for ((place, accord), (key, tags)) in (1..).zip(accords).zip(expected) {
            let who = self.terms.name(place);
            let theirs = accord.items.as_ref().unwrap_or(items);
            if !key.has_signed(&signed_text(&digest(theirs)), &accord.signature.0) {
                return Err(Error::Dishonest { problem: format!("words that {who} has not signed") });
            }
            let differs = |what: String| Err(Error::Disagreement { who: who.into(), what });
            if let Some(what) = difference(items, theirs) {
                return differs(what);
            }
            let counts = &self.offer.features;
            if accord.tags.names != tags.names {
                return differs(match accord.tags.sorted == tags.sorted {
                    true => "the order of the features: both have the same names, in another order".into(),
                    false => format!("the names of the features (both have {counts} of them)"),
                });
            }
        }
        Ok((digest(items), expected.iter().map(|(key, _)| *key).collect()))
    }

    /// Whether all have as many features.
    fn check_features(&self, offers: &[Offer]) -> Result<()> {
        let other = (1..).zip(offers).find(|(_, offer)| offer.features != self.offer.features);
        let Some((place, offer)) = other else { return Ok(()) };
        Err(Error::Disagreement {
            who: self.terms.name(place).into(),
            what: format!("the number of features: {} there, {} here", offer.features, self.offer.features),
        })
    }
}

/// The first item that differs, with both values; long ones are shortened.
fn difference(own: &[(String, String)], other: &[(String, String)]) -> Option<String> {
    let short = |text: &str| text.chars().take(200).collect::<String>();
    if own == other {
        return None;
    }
    let pair = own.iter().zip(other).find(|(own, other)| own != other);
    Some(match pair {
        Some(((name, own), (_, other))) => format!("{name}: {} there, {} here", short(other), short(own)),
        None => "what is to be agreed on".into(),
    })
}

fn digest_of_names(names: Option<Vec<&String>>) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(if names.is_some() { "names" } else { "no names" });
    for name in names.iter().flatten() {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    hash.finalize().into()
}

/// A digest that only the two parties can make.
fn tag(shared: &[u8; 32], run: &[u8; 32], (from, to): (u16, u16), names: &[u8; 32]) -> Hex<32> {
    let mut tag = Zeroizing::new([0; 32]);
    let info: [&[u8]; 4] = [run, &from.to_le_bytes(), &to.to_le_bytes(), names];
    let key = Hkdf::<Sha256>::new(Some(b"partwise names 1"), shared);
    match key.expand_multi_info(&info, &mut *tag) {
        Ok(()) => Hex(*tag),
        Err(_) => unreachable!("32 bytes are within what can be derived"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partwise_secure::protocol::Protocol;

    struct Side {
        terms: Terms,
        identity: Identity,
        names: Vec<String>,
        version: &'static str,
    }

    fn sides() -> Vec<Side> {
        let mut rng = partwise_secure::entropy().unwrap();
        let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
        let roster = identities.iter().zip(["a", "b", "c"]).map(|(identity, name)| Member {
            name: name.into(),
            identity: Fingerprint::of(identity.key().bytes()),
        });
        let terms = Terms {
            federation: "demo".into(),
            settings: Settings::new(Protocol::SynSd, 4),
            roster: roster.collect(),
            cohort: 3,
            groups: Vec::new(),
            deadline: 10.0,
            heartbeat: 1.0,
        };
        let names = || ["asthma", "broken leg", "cough"].map(String::from).to_vec();
        let side = |identity| Side { terms: terms.clone(), identity, names: names(), version: "1" };
        identities.into_iter().map(side).collect()
    }

    fn negotiate(sides: &[Side]) -> Vec<Result<([u8; 32], Vec<IdentityKey>)>> {
        let mut parties: Vec<Negotiation> = (1..)
            .zip(sides)
            .map(|(place, side)| {
                let names = (side.names.len(), Some(&side.names[..]));
                Negotiation::new(&side.terms, (place, 1), &side.identity, names, side.version).unwrap()
            })
            .collect();
        let offers: Vec<Offer> = parties.iter().map(Negotiation::offer).collect();
        let agrees: Vec<Agree> = parties.iter_mut().map(|party| party.agree(&offers).unwrap()).collect();
        let accords = |place: usize| -> Vec<Accord> {
            agrees
                .iter()
                .map(|agree| Accord {
                    items: (agree.items != agrees[place].items).then(|| agree.items.clone()),
                    signature: agree.signature,
                    tags: agree.tags[place],
                })
                .collect()
        };
        parties.iter().enumerate().map(|(place, party)| party.conclude(&accords(place))).collect()
    }

    #[test]
    fn who_agrees_has_one_digest_and_nonces_change_it() {
        let sides = sides();
        let first = negotiate(&sides);
        let run = first[0].as_ref().unwrap().0;
        assert!(first.iter().all(|result| result.as_ref().unwrap().0 == run));
        assert_ne!(negotiate(&sides)[0].as_ref().unwrap().0, run);
    }

    fn problem(sides: &[Side]) -> String {
        let results = negotiate(sides);
        assert!(results.iter().all(Result::is_err));
        results[0].as_ref().unwrap_err().to_string()
    }

    #[test]
    fn every_difference_is_named_and_no_feature_is() {
        let mut changed = sides();
        changed[1].terms.settings.rounds = 7;
        assert!(problem(&changed).contains("b and this party do not agree on rounds: 7 there, 500 here"));
        let mut changed = sides();
        changed[1].terms.settings.seed = 7;
        assert!(problem(&changed).contains("seed: 7 there"));
        let mut changed = sides();
        changed[1].version = "2";
        assert!(problem(&changed).contains("version: 2 there, 1 here"));
        let mut changed = sides();
        changed[1].terms.settings.rho = 3.0;
        assert!(problem(&changed).contains("settings"));
        let mut changed = sides();
        changed[1].names.swap(0, 1);
        let text = problem(&changed);
        assert!(text.contains("the same names, in another order"), "{text}");
        changed[1].names[0] = "secret".into();
        let text = problem(&changed);
        assert!(text.contains("the names of the features"), "{text}");
        assert!(!text.contains("secret") && !text.contains("asthma"), "{text}");
    }

    #[test]
    fn offers_of_others_are_noticed() {
        let sides = sides();
        let names = (3, None);
        let of = |place: u16, side: &Side| {
            Negotiation::new(&sides[0].terms, (place, 1), &side.identity, names, "1").unwrap().offer()
        };
        let (terms, names) = (&sides[0].terms, (3, None));
        let mut party = Negotiation::new(terms, (1, 1), &sides[0].identity, names, "1").unwrap();
        let mut offers = vec![party.offer(), of(2, &sides[1]), of(3, &sides[2])];
        party.agree(&offers).unwrap();
        offers[1].features = 4;
        assert!(party.agree(&offers).unwrap_err().to_string().contains("b has not signed"));
        // A party under another identity than the roster's.
        offers[1] = of(2, &sides[2]);
        assert!(party.agree(&offers).is_err());
        offers.pop();
        assert!(party.agree(&offers).is_err());
    }
}
