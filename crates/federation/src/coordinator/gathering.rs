//! The coordinator's part in the agreement: passing messages between the parties.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::json;

use super::driver::Present;
use super::outbox::OutboxItem;
use super::shared::Shared;
use crate::agreement::{Accord, Agree, Offer, Tags};
use crate::frame::{FromParty, ToParty};
use crate::text::Hex;

/// An agreement in progress. It starts over whenever a party leaves.
#[derive(Default)]
pub struct Gathering {
    attempt: u32,
    offers: BTreeMap<u16, Offer>,
    agrees: BTreeMap<u16, Agree>,
    ready: BTreeSet<u16>,
    /// When all parties were last asked for an answer; `None` after the missing parties were reported.
    asked: Option<Instant>,
}

/// The agreement of the parties.
pub struct GatheredRun {
    pub run: [u8; 32],
    pub keys: Vec<Hex<32>>,
    pub features: usize,
}

impl Gathering {
    /// Starts an attempt once all parties are connected.
    pub fn propose(&mut self, present: &Present) {
        self.interrupt();
        self.asked = Some(Instant::now());
        present.say(&ToParty::Propose { attempt: self.attempt });
    }

    /// Checks for connected parties that do not answer.
    pub fn tick(&mut self, shared: &Shared, present: &Present) {
        let patience = shared.federation.terms.deadline;
        if self.asked.is_none_or(|asked| asked.elapsed().as_secs_f64() < patience) {
            return;
        }
        self.asked = None;
        let all = shared.federation.terms.roster.len();
        let has_answered = |place: &u16| {
            if self.offers.len() < all {
                self.offers.contains_key(place)
            } else if self.agrees.len() < all {
                self.agrees.contains_key(place)
            } else {
                self.ready.contains(place)
            }
        };
        for place in present.places().into_iter().filter(|place| !has_answered(place)) {
            let name = present.name(place);
            let text = format!(
                "{name} is connected but has not answered for {patience:.0} s; all wait for its agreement"
            );
            shared.warn_of(name, &text, json!({ "event": "hangs", "party": name }));
        }
    }

    /// The messages so far are void.
    pub fn interrupt(&mut self) {
        *self = Gathering { attempt: self.attempt + 1, ..Gathering::default() };
    }

    /// Passes a message on; returns the agreement when all parties are ready.
    pub fn said(
        &mut self,
        shared: &Shared,
        present: &Present,
        place: u16,
        words: FromParty,
    ) -> Option<GatheredRun> {
        let all = shared.federation.terms.roster.len();
        let name = present.name(place);
        match words {
            // Each party sends each message once, so that all receive no more than all sent.
            FromParty::Offer { attempt, offer }
                if attempt == self.attempt && !self.offers.contains_key(&place) =>
            {
                if offer.check(&shared.federation.terms, place, attempt).is_none() {
                    shared.log.reject("an offer that the party has not signed", name);
                    return None;
                }
                self.offers.insert(place, *offer);
                if self.offers.len() == all {
                    self.asked = Some(Instant::now());
                    let offers = self.offers.values().cloned().collect();
                    present.say(&ToParty::Offers { attempt, offers });
                }
                None
            }
            FromParty::Agree { attempt, agree }
                if attempt == self.attempt
                    && agree.tags.len() == all
                    && self.offers.len() == all
                    && !self.agrees.contains_key(&place) =>
            {
                self.agrees.insert(place, *agree);
                if self.agrees.len() == all {
                    self.asked = Some(Instant::now());
                    self.tell_accords(present);
                }
                None
            }
            FromParty::Ready { attempt } if attempt == self.attempt && self.agrees.len() == all => {
                self.ready.insert(place);
                (self.ready.len() == all).then(|| self.agreed())
            }
            _ => {
                shared.log.reject("a message out of turn", name);
                None
            }
        }
    }

    /// Sends each party the views of the others as far as it cannot derive them, with the digests of names for it.
    /// Of those that differ, the first one is enough.
    fn tell_accords(&self, present: &Present) {
        for place in present.places() {
            let Some(own) = self.agrees.get(&place) else { continue };
            let mut told = false;
            let accord = |agree: &Agree| {
                let differs = !told && agree.agreement != own.agreement;
                told |= differs;
                Accord {
                    agreement: differs.then(|| agree.agreement.clone()),
                    ledger: agree.ledger,
                    seed: agree.seed,
                    signature: agree.signature,
                    tags: agree.tags.get(usize::from(place) - 1).copied().unwrap_or(Tags::none()),
                }
            };
            let accords = self.agrees.values().map(accord).collect();
            present.send(place, OutboxItem::Say(ToParty::Accords { attempt: self.attempt, accords }));
        }
    }

    fn agreed(&self) -> GatheredRun {
        GatheredRun {
            run: self.agrees.values().next().map_or([0; 32], |agree| agree.agreement.digest()),
            keys: self.offers.values().map(|offer| offer.identity).collect(),
            features: self.offers.values().next().map_or(0, |offer| offer.features),
        }
    }
}
