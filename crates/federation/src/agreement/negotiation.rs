//! A party's part in the agreement, from its offer to the digest of the run.

use hkdf::Hkdf;
use partwise_secure::aggregation::{Identity, IdentityKey};
use rand::CryptoRng;
use sha2::Sha256;
use x25519_dalek::{PublicKey, ReusableSecret};
use zeroize::Zeroizing;

use super::fields::{
    Agreement, TagOf, contribution_digest, names_digest, public_seed, seen_bytes, signed_bytes, tag_bytes,
};
use super::messages::{Accord, Agree, Offer, Tags};
use super::terms::Terms;
use crate::data_ledger::{LedgerHead, LedgerHistory, Seen};
use crate::error::{Error, Result};
use crate::text::Hex;

/// The features of a party.
#[derive(Clone, Copy)]
pub struct Features<'a> {
    /// How many.
    pub count: usize,
    /// Their names, if they have any.
    pub names: Option<&'a [String]>,
}

/// The ledger of a party's data, and what the party remembers of the others' ledgers.
pub trait Ledgers {
    /// The party's own ledger in its current state.
    fn history(&self) -> LedgerHistory;

    /// The last known state of a ledger of another party.
    fn seen(&self, name: &str, ledger: Hex<32>) -> Option<Seen>;

    /// Records that the party at this place is about to agree to a run; returns the head of the ledger after
    /// that.
    fn start(&self, run: [u8; 32], terms: &Terms, place: u16) -> Result<LedgerHead>;
}

/// The inputs of a negotiation.
#[derive(Clone, Copy)]
pub struct Negotiator<'a> {
    /// The proposed terms.
    pub terms: &'a Terms,
    /// The place of this party in the roster.
    pub place: u16,
    /// The identity key.
    pub identity: &'a Identity,
    /// The features of this party.
    pub features: Features<'a>,
    /// The ledger of the party's data, and what it remembers of the others' ledgers.
    pub ledgers: &'a dyn Ledgers,
    /// The version of its program.
    pub version: &'a str,
}

/// The result of the negotiation.
#[derive(Debug, PartialEq)]
pub struct RunIdentity {
    /// The digest that names the run.
    pub run: [u8; 32],
    /// The identity keys of all parties, by place.
    pub keys: Vec<IdentityKey>,
    /// The heads of all parties' ledgers, by place.
    pub ledgers: Vec<LedgerHead>,
    /// The seed of U's start and of sketches, which no single party can choose.
    pub public_seed: u64,
}

/// This party's view, and the expected tags of the others.
struct Understood {
    agreement: Agreement,
    expected: Vec<Expected>,
}

/// The values expected from another party.
struct Expected {
    key: IdentityKey,
    names: Hex<32>,
    sorted: Hex<32>,
    /// The secret that only the two parties share.
    shared: Zeroizing<[u8; 32]>,
    ledger: LedgerHead,
    /// The digest of the other party's contribution to the public seed.
    seed: [u8; 32],
}

/// One attempt of a party to agree with all others.
pub struct Negotiation<'a> {
    party: Negotiator<'a>,
    attempt: u32,
    /// Digests of the names in order, and sorted.
    names: [[u8; 32]; 2],
    offer: Offer,
    /// This party's contribution to the public seed. It is revealed once all parties have received its
    /// digest.
    contribution: [u8; 32],
    secret: ReusableSecret,
    understood: Option<Understood>,
}

impl<'a> Negotiation<'a> {
    /// Starts with fresh secrets.
    pub fn new(party: Negotiator<'a>, attempt: u32, rng: &mut impl CryptoRng) -> Self {
        let (mut nonce, mut contribution) = ([0; 32], [0; 32]);
        rng.fill_bytes(&mut nonce);
        rng.fill_bytes(&mut contribution);
        let secret = ReusableSecret::random_from_rng(rng);
        let mut sorted: Option<Vec<&String>> = party.features.names.map(|names| names.iter().collect());
        sorted.iter_mut().for_each(|names| names.sort_unstable());
        let names = [
            names_digest(party.features.names.map(|names| names.iter())),
            names_digest(sorted.map(Vec::into_iter)),
        ];
        let mut offer = Offer {
            identity: Hex(*party.identity.key().bytes()),
            nonce: Hex(nonce),
            key: Hex(PublicKey::from(&secret).to_bytes()),
            seed: Hex(contribution_digest(&contribution)),
            features: party.features.count,
            ledger: party.ledgers.history().head(),
            signature: Hex([0; 64]),
        };
        offer.sign(&party, attempt);
        Negotiation { party, attempt, names, offer, contribution, secret, understood: None }
    }

    /// The first message.
    pub fn offer(&self) -> Offer {
        self.offer.clone()
    }

    /// Answers all offers.
    pub fn agree(&mut self, offers: &[Offer]) -> Result<Agree> {
        let Negotiator { terms, place, identity, version, .. } = self.party;
        let own = offers.get(usize::from(place) - 1);
        if offers.len() != terms.roster.len() || own != Some(&self.offer) {
            return Err(dishonest("offers of other parties than those in the roster"));
        }
        let agreement = Agreement::new(terms, offers, version);
        let run = agreement.digest();
        let mut expected = Vec::new();
        let mut tags = Vec::new();
        for (other, offer) in (1..).zip(offers) {
            let who = terms.name(other);
            let Some(key) = offer.check(terms, other, self.attempt) else {
                return Err(dishonest(format!("an offer that {who} has not signed")));
            };
            let shared = self.secret.diffie_hellman(&PublicKey::from(offer.key.0));
            if !shared.was_contributory() {
                return Err(dishonest(format!("a key of {who} that hides nothing")));
            }
            let names_between = |from: u16, to: u16| {
                self.names.each_ref().map(|names| {
                    let tag = TagOf { from, to, names };
                    derive_tag(shared.as_bytes(), &tag_bytes(&run, tag))
                })
            };
            let seen = self.seen(who, &offer.ledger)?;
            let ledger = derive_tag(shared.as_bytes(), &seen_bytes(&run, [place, other], seen.as_ref()));
            let [names, sorted] = names_between(place, other);
            tags.push(Tags { names, sorted, seen, ledger });
            let [names, sorted] = names_between(other, place);
            let shared = Zeroizing::new(*shared.as_bytes());
            let seed = offer.seed.0;
            expected.push(Expected { key, names, sorted, shared, ledger: offer.ledger, seed });
        }
        self.check_features(offers)?;
        let ledger = self.party.ledgers.start(run, terms, place)?;
        let signature = Hex(identity.sign(&signed_bytes(&run, &ledger)));
        self.understood = Some(Understood { agreement: agreement.clone(), expected });
        Ok(Agree { agreement, ledger, seed: Hex(self.contribution), signature, tags })
    }

    /// Compares the views of all parties.
    pub fn conclude(&self, accords: &[Accord]) -> Result<RunIdentity> {
        let Some(Understood { agreement, expected }) = &self.understood else {
            return Err(dishonest("signatures of all parties out of turn"));
        };
        if accords.len() != expected.len() {
            return Err(dishonest("words that are not those of all parties"));
        }
        for ((place, accord), expected) in (1..).zip(accords).zip(expected) {
            let who = self.party.terms.name(place);
            let theirs = accord.agreement.as_ref().unwrap_or(agreement);
            let signed = signed_bytes(&theirs.digest(), &accord.ledger);
            let follows = accord.ledger.ledger == expected.ledger.ledger
                && accord.ledger.may_follow(&expected.ledger.seen());
            if !follows || !expected.key.has_signed(&signed, &accord.signature.0) {
                return Err(dishonest(format!("a message that {who} has not signed")));
            }
            if contribution_digest(&accord.seed.0) != expected.seed {
                return Err(dishonest(format!(
                    "a contribution of {who} to the seed that differs from the one it signed"
                )));
            }
            let what = agreement.difference(theirs).or_else(|| self.differing_names(accord, expected));
            if let Some(what) = what {
                return Err(Error::Disagreement { who: who.into(), what });
            }
            self.check_seen(&agreement.digest(), place, accord, expected)?;
        }
        let run = agreement.digest();
        let contributions: Vec<[u8; 32]> = accords.iter().map(|accord| accord.seed.0).collect();
        Ok(RunIdentity {
            run,
            keys: expected.iter().map(|expected| expected.key).collect(),
            ledgers: accords.iter().map(|accord| accord.ledger).collect(),
            public_seed: public_seed(&run, &contributions),
        })
    }

    /// What this party remembers of another party's ledger; an error if the other party's ledger is older.
    fn seen(&self, who: &str, told: &LedgerHead) -> Result<Option<Seen>> {
        let seen = self.party.ledgers.seen(who, told.ledger);
        match seen {
            Some(seen) if !told.may_follow(&seen) => Err(Error::Disagreement {
                who: who.into(),
                what: format!(
                    "its ledger, which has {} entries there and had {} in an earlier run; it was replaced by an \
                     old copy",
                    told.entries, seen.entries
                ),
            }),
            seen => Ok(seen),
        }
    }

    /// Checks that what another party remembers of this party's ledger is part of it.
    fn check_seen(&self, run: &[u8; 32], other: u16, accord: &Accord, expected: &Expected) -> Result<()> {
        let Tags { seen, ledger, .. } = &accord.tags;
        let who = self.party.terms.name(other);
        let between = [other, self.party.place];
        if *ledger != derive_tag(&expected.shared, &seen_bytes(run, between, seen.as_ref())) {
            return Err(dishonest(format!("a tag of this party's ledger that {who} has not sent")));
        }
        let history = self.party.ledgers.history();
        match seen {
            Some(seen) if !history.contains(seen) => Err(Error::State {
                problem: format!(
                    "the ledger of these data is an old copy: {who} remembers another entry {}, and there are \
                     {} here; restore the newest copy",
                    seen.entries,
                    history.hashes.len()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// How the names of another party's features differ from this party's.
    fn differing_names(&self, accord: &Accord, expected: &Expected) -> Option<String> {
        if accord.tags.names == expected.names {
            return None;
        }
        Some(match accord.tags.sorted == expected.sorted {
            true => "the order of the features: both have the same names, in another order".into(),
            false => format!("the names of the features (both have {} of them)", self.offer.features),
        })
    }

    /// Checks that all parties have the same number of features.
    fn check_features(&self, offers: &[Offer]) -> Result<()> {
        let other = (1..).zip(offers).find(|(_, offer)| offer.features != self.offer.features);
        let Some((place, offer)) = other else { return Ok(()) };
        Err(Error::Disagreement {
            who: self.party.terms.name(place).into(),
            what: format!("the number of features: {} there, {} here", offer.features, self.offer.features),
        })
    }
}

fn dishonest(problem: impl Into<String>) -> Error {
    Error::Dishonest { problem: problem.into() }
}

/// A digest that only two parties can compute.
fn derive_tag(shared: &[u8; 32], info: &[u8]) -> Hex<32> {
    let mut tag = Zeroizing::new([0; 32]);
    match Hkdf::<Sha256>::new(Some(b"partwise names 3"), shared).expand(info, &mut *tag) {
        Ok(()) => Hex(*tag),
        Err(_) => unreachable!("32 bytes are within what can be derived"),
    }
}

#[cfg(test)]
mod tests {
    use partwise_secure::protocol::{Protocol, Settings};

    use super::*;
    use crate::agreement::Member;
    use crate::text::Fingerprint;

    /// The data of a party in a test.
    struct Owned {
        terms: Terms,
        identity: Identity,
        names: Vec<String>,
        version: &'static str,
        ledgers: Kept,
    }

    /// A ledger with this many entries, and what is remembered of party b's ledger.
    struct Kept {
        ledger: u8,
        entries: u8,
        seen: Option<Seen>,
    }

    impl Ledgers for Kept {
        fn history(&self) -> LedgerHistory {
            let hashes = (1..=self.entries).map(|entry| Fingerprint([entry; 32])).collect();
            LedgerHistory { ledger: Hex([self.ledger; 32]), hashes }
        }

        fn seen(&self, name: &str, _: Hex<32>) -> Option<Seen> {
            self.seen.filter(|_| name == "b")
        }

        fn start(&self, _: [u8; 32], _: &Terms, _: u16) -> Result<LedgerHead> {
            Ok(Kept { entries: self.entries + 1, ..*self }.history().head())
        }
    }

    fn sides() -> Vec<Owned> {
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
        let side = |(ledger, identity)| Owned {
            terms: terms.clone(),
            identity,
            names: names(),
            version: "1",
            ledgers: Kept { ledger, entries: 3, seen: None },
        };
        (1..).zip(identities).map(side).collect()
    }

    fn begin(side: &Owned, place: u16) -> Negotiation<'_> {
        let Owned { terms, identity, names, version, ledgers } = side;
        let features = Features { count: names.len(), names: Some(names) };
        let party = Negotiator { terms, place, identity, features, ledgers, version };
        Negotiation::new(party, 1, &mut partwise_secure::entropy().unwrap())
    }

    fn negotiate(sides: &[Owned]) -> Vec<Result<RunIdentity>> {
        negotiate_with(sides, |_, _| {})
    }

    /// The coordinator changes what each party is told.
    fn negotiate_with(sides: &[Owned], tamper: impl Fn(usize, &mut Vec<Accord>)) -> Vec<Result<RunIdentity>> {
        let mut parties: Vec<Negotiation> =
            (1..).zip(sides).map(|(place, side)| begin(side, place)).collect();
        let offers: Vec<Offer> = parties.iter().map(Negotiation::offer).collect();
        let agrees: Vec<Agree> = parties.iter_mut().map(|party| party.agree(&offers).unwrap()).collect();
        let accords = |place: usize| -> Vec<Accord> {
            let own = &agrees[place].agreement;
            let accord = |agree: &Agree| Accord {
                agreement: (agree.agreement != *own).then(|| agree.agreement.clone()),
                ledger: agree.ledger,
                seed: agree.seed,
                signature: agree.signature,
                tags: agree.tags[place],
            };
            let mut accords = agrees.iter().map(accord).collect();
            tamper(place, &mut accords);
            accords
        };
        parties.iter().enumerate().map(|(place, party)| party.conclude(&accords(place))).collect()
    }

    #[test]
    fn who_agrees_has_one_digest_and_nonces_change_it() {
        let sides = sides();
        let first = negotiate(&sides);
        let run = first[0].as_ref().unwrap().run;
        assert!(first.iter().all(|result| result.as_ref().unwrap().run == run));
        assert_ne!(negotiate(&sides)[0].as_ref().unwrap().run, run);
    }

    /// No party can choose the public seed: it differs in each run, is equal at all parties, and a party that
    /// has shown the digest of a contribution cannot reveal another one.
    #[test]
    fn the_public_seed_is_chosen_by_all() {
        let sides = sides();
        let seeds = || negotiate(&sides).into_iter().map(|party| party.unwrap().public_seed);
        let first: Vec<u64> = seeds().collect();
        assert!(first.iter().all(|seed| *seed == first[0]) && seeds().all(|seed| seed != first[0]));
        let results = negotiate_with(&sides, |place, accords| {
            if place != 1 {
                accords[1].seed = Hex([7; 32]);
            }
        });
        for (place, result) in results.into_iter().enumerate().filter(|(place, _)| *place != 1) {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("a contribution of b to the seed that differs"), "{place}: {error}");
        }
    }

    fn problem(sides: &[Owned]) -> String {
        let results = negotiate(sides);
        assert!(results.iter().all(Result::is_err));
        results[0].as_ref().unwrap_err().to_string()
    }

    #[test]
    fn every_difference_is_named_and_no_feature_is() {
        let mut changed = sides();
        changed[1].terms.settings.rounds = 7;
        assert!(problem(&changed).contains("b and this party disagree on rounds: 7 there, 500 here"));
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

    fn begin_unnamed(side: &Owned, place: u16) -> Negotiation<'_> {
        let features = Features { count: 3, names: None };
        let Owned { terms, identity, ledgers, .. } = side;
        let party = Negotiator { terms, place, identity, features, ledgers, version: "1" };
        Negotiation::new(party, 1, &mut partwise_secure::entropy().unwrap())
    }

    /// Party b's ledger as the others remember it: newer than what b reports, forked, and unchanged.
    #[test]
    fn an_old_copy_of_a_ledger_is_detected_by_both_sides() {
        let remembered = |entries: u64, hash: u8| Some(Seen { entries, hash: Hex([hash; 32]) });
        let mut changed = sides();
        changed[0].ledgers.seen = remembered(2, 2);
        assert!(negotiate(&changed).iter().all(Result::is_ok));
        // An old copy that grew again: b notices it, because a cannot.
        changed[0].ledgers.seen = remembered(2, 9);
        let results = negotiate(&changed);
        let error = results[1].as_ref().unwrap_err().to_string();
        assert!(
            error.contains("is an old copy: a remembers another entry 2, and there are 3 here"),
            "{error}"
        );
        assert!(results[0].is_ok() && results[2].is_ok());
        // What a remembers cannot be left out or changed in transit.
        let sides: Vec<Owned> = changed;
        let mut parties: Vec<Negotiation> =
            (1..).zip(&sides).map(|(place, side)| begin(side, place)).collect();
        let offers: Vec<Offer> = parties.iter().map(Negotiation::offer).collect();
        let agrees: Vec<Agree> = parties.iter_mut().map(|party| party.agree(&offers).unwrap()).collect();
        let accord = |agree: &Agree| Accord {
            agreement: None,
            ledger: agree.ledger,
            seed: agree.seed,
            signature: agree.signature,
            tags: agree.tags[1],
        };
        let mut accords: Vec<Accord> = agrees.iter().map(accord).collect();
        accords[0].tags.seen = None;
        let error = parties[1].conclude(&accords).unwrap_err().to_string();
        assert!(error.contains("that a has not sent"), "{error}");
        // Neither can the head of its ledger.
        let mut accords: Vec<Accord> = agrees.iter().map(accord).collect();
        accords[0].ledger.entries += 1;
        assert!(parties[1].conclude(&accords).unwrap_err().to_string().contains("a has not signed"));
        // A ledger that became shorter: a refuses it.
        let mut changed = sides;
        changed[0].ledgers.seen = remembered(4, 4);
        let mut party = begin(&changed[0], 1);
        let offers = [party.offer(), begin(&changed[1], 2).offer(), begin(&changed[2], 3).offer()];
        let error = party.agree(&offers).unwrap_err().to_string();
        assert!(error.contains("b and this party disagree on its ledger, which has 3 entries"), "{error}");
    }

    #[test]
    fn offers_of_others_are_noticed() {
        let sides = sides();
        let of = |place: u16, side: &Owned| begin_unnamed(side, place).offer();
        let mut party = begin_unnamed(&sides[0], 1);
        let mut offers = vec![party.offer(), of(2, &sides[1]), of(3, &sides[2])];
        party.agree(&offers).unwrap();
        offers[1].features = 4;
        assert!(party.agree(&offers).unwrap_err().to_string().contains("b has not signed"));
        // A party with another identity than in the roster.
        offers[1] = of(2, &sides[2]);
        assert!(party.agree(&offers).is_err());
        offers.pop();
        assert!(party.agree(&offers).is_err());
    }
}
