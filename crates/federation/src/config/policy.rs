//! What a party allows, whatever the coordinator proposes.

use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PartyConfig;
use crate::agreement::Terms;
use crate::error::{Error, Result};
use crate::text::Fingerprint;

/// What a party allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The methods.
    pub protocols: Vec<Protocol>,
    /// How shares may travel.
    pub aggregation: Vec<Aggregation>,
    /// How many must be in every sum.
    pub minimum_cohort: usize,
    /// How many parties must be assumed to collude.
    pub minimum_colluders: usize,
    /// The most rounds.
    pub maximum_rounds: usize,
    /// The most sums, failed attempts and votes on ranges among them; what follows from the terms, if absent.
    pub maximum_sums: Option<u64>,
    /// Whether the others may go on when somebody has left, which shows nearly what it had.
    pub continue_without: bool,
    /// Further risks that are accepted, by name.
    pub accept: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        use Protocol::*;
        Policy {
            protocols: vec![SynSd, SynSsdU, SynSsdV, SynSsdUv, AsynSd, AsynSsdV],
            aggregation: vec![Aggregation::Secure],
            minimum_cohort: 3,
            minimum_colluders: 1,
            maximum_rounds: Settings::ROUNDS,
            maximum_sums: None,
            continue_without: false,
            accept: Vec::new(),
        }
    }
}

/// What the terms ask for, and what is allowed instead.
struct Refusal {
    asked: String,
    allowed: String,
}

impl Refusal {
    fn new(asked: impl Into<String>, allowed: impl Into<String>) -> Self {
        Refusal { asked: asked.into(), allowed: allowed.into() }
    }
}

/// As files have it.
fn words(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Policy {
    /// Whether the method is allowed, by these terms.
    fn allow(&self, terms: &Terms) -> Result<(), Refusal> {
        let settings = &terms.settings;
        if !self.protocols.contains(&settings.protocol) {
            let asked = format!("the protocol {}", words(&settings.protocol));
            return Err(Refusal::new(asked, words(&self.protocols)));
        }
        if !self.aggregation.contains(&settings.aggregation) {
            let asked = format!("the aggregation {}", words(&settings.aggregation));
            return Err(Refusal::new(asked, words(&self.aggregation)));
        }
        // A sum over all is over no fewer than all, unless parties may leave.
        let may_leave = settings.accepted.going_on_shows_the_leaver;
        let groups = terms.groups.iter().map(Vec::len).min().unwrap_or(terms.roster.len());
        let smallest = if may_leave { terms.cohort.min(groups) } else { groups };
        if smallest < self.minimum_cohort {
            let allowed = format!("{} or more", self.minimum_cohort);
            return Err(Refusal::new(format!("sums over {smallest} parties"), allowed));
        }
        if settings.colluders < self.minimum_colluders {
            let allowed = format!("{} or more", self.minimum_colluders);
            return Err(Refusal::new(format!("colluders = {}", settings.colluders), allowed));
        }
        let rounds = settings.all_rounds(terms.groups.len());
        if rounds > self.maximum_rounds {
            let second = if may_leave { ", those of a second attempt among them" } else { "" };
            let allowed = format!("{} at most", self.maximum_rounds);
            return Err(Refusal::new(format!("{rounds} rounds{second}"), allowed));
        }
        let sums = settings.fewest_sums(terms.groups.len());
        if let Some(most) = self.maximum_sums.filter(|most| sums > *most) {
            return Err(Refusal::new(format!("at least {sums} sums"), format!("{most} at most")));
        }
        self.allow_risks(settings)
    }

    /// How many sums a party takes part in at most, by these terms.
    pub fn most_sums(&self, terms: &Terms) -> u64 {
        let default = terms.settings.most_sums(terms.groups.len());
        self.maximum_sums.map_or(default, |most| most.min(default))
    }

    /// Whether the risks that the terms accept are accepted here.
    fn allow_risks(&self, settings: &Settings) -> Result<(), Refusal> {
        if settings.accepted.going_on_shows_the_leaver && !self.continue_without {
            return Err(Refusal::new("to go on when somebody has left", "no such thing"));
        }
        let accepted = serde_json::to_value(settings.accepted).unwrap_or_default();
        let risks = accepted.as_object().into_iter().flatten();
        let risks = risks.filter(|(_, accepted)| **accepted == Value::Bool(true));
        for (risk, _) in risks.filter(|(risk, _)| *risk != "going_on_shows_the_leaver") {
            if !self.accept.contains(&risk.replace('_', "-")) {
                let asked = format!("to accept that {}", risk.replace('_', " "));
                return Err(Refusal::new(asked, "no such thing"));
            }
        }
        Ok(())
    }
}

impl PartyConfig {
    /// This party's place, if the terms are what it allows.
    pub fn accept(&self, terms: &Terms, own: &Fingerprint) -> Result<u16> {
        terms
            .check()
            .map_err(|problem| Error::Dishonest { problem: format!("terms that are none: {problem}") })?;
        let accepted = if terms.federation == self.federation {
            self.policy.allow(terms).and_then(|()| self.place(terms, own))
        } else {
            Err(Refusal::new(format!("the federation {}", terms.federation), &self.federation))
        };
        accepted.map_err(|Refusal { asked, allowed }| Error::Policy {
            file: self.path.display().to_string(),
            asked,
            allowed,
        })
    }

    /// This party's place in the roster, if the others are those that it knows.
    fn place(&self, terms: &Terms, own: &Fingerprint) -> Result<u16, Refusal> {
        for member in terms.roster.iter().filter(|member| member.name != self.name) {
            match self.peers.get(&member.name) {
                Some(pinned) if *pinned == member.identity => {}
                Some(pinned) => {
                    let asked = format!("{} with the identity {}", member.name, member.identity);
                    return Err(Refusal::new(asked, pinned.to_string()));
                }
                None => {
                    let asked =
                        format!("{} as another party, with the identity {}", member.name, member.identity);
                    return Err(Refusal::new(asked, "only those in [peers]"));
                }
            }
        }
        match (1..).zip(&terms.roster).find(|(_, member)| member.name == self.name) {
            Some((place, member)) if member.identity == *own => Ok(place),
            Some((_, member)) => {
                let asked = format!("the identity {} for this party", member.identity);
                Err(Refusal::new(asked, format!("its own, {own}")))
            }
            None => Err(Refusal::new("a roster without this party", format!("one with {}", self.name))),
        }
    }
}
