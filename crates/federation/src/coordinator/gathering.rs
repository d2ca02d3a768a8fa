//! The coordinator's part in the agreement: it passes on what the parties say to each other.

use std::collections::{BTreeMap, BTreeSet};

use super::driver::Present;
use super::outbox::OutboxItem;
use super::shared::Shared;
use crate::agreement::{Accord, Agree, Offer, Tags};
use crate::frame::{FromParty, ToParty};
use crate::text::Hex;

/// An agreement that is not there yet. Whenever somebody leaves it starts from the beginning.
#[derive(Default)]
pub struct Gathering {
    attempt: u32,
    offers: BTreeMap<u16, Offer>,
    agrees: BTreeMap<u16, Agree>,
    ready: BTreeSet<u16>,
}

/// What the parties agreed on.
pub struct GatheredRun {
    pub run: [u8; 32],
    pub keys: Vec<Hex<32>>,
    pub features: usize,
}

impl Gathering {
    /// All are there.
    pub fn propose(&mut self, present: &Present) {
        self.interrupt();
        present.say(&ToParty::Propose { attempt: self.attempt });
    }

    /// What was said so far is void.
    pub fn interrupt(&mut self) {
        *self = Gathering { attempt: self.attempt + 1, ..Gathering::default() };
    }

    /// Passes on; returns what was agreed on when all are ready.
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
            // Each says each once: what all are told must not be more than what all said.
            FromParty::Offer { attempt, offer }
                if attempt == self.attempt && !self.offers.contains_key(&place) =>
            {
                if offer.check(&shared.federation.terms, place, attempt).is_none() {
                    shared.log.reject("an offer that the party has not signed", name);
                    return None;
                }
                self.offers.insert(place, offer);
                if self.offers.len() == all {
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
                self.agrees.insert(place, agree);
                if self.agrees.len() == all {
                    self.tell_accords(present);
                }
                None
            }
            FromParty::Ready { attempt } if attempt == self.attempt && self.agrees.len() == all => {
                self.ready.insert(place);
                (self.ready.len() == all).then(|| self.agreed())
            }
            _ => {
                shared.log.reject("words out of turn", name);
                None
            }
        }
    }

    /// To each party what the others said, as far as it cannot know that, with the digests of names that are for it. Of
    /// those who understood something else the first is enough.
    fn tell_accords(&self, present: &Present) {
        for place in present.places() {
            let Some(own) = self.agrees.get(&place) else { continue };
            let mut told = false;
            let accord = |agree: &Agree| {
                let differs = !told && agree.agreement != own.agreement;
                told |= differs;
                Accord {
                    agreement: differs.then(|| agree.agreement.clone()),
                    seed: agree.seed,
                    signature: agree.signature,
                    tags: agree
                        .tags
                        .get(usize::from(place) - 1)
                        .copied()
                        .unwrap_or(Tags { names: Hex([0; 32]), sorted: Hex([0; 32]) }),
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
