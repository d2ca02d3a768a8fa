//! A party's policy, which the coordinator cannot override.

use partwise_secure::Safeguards;
use std::collections::BTreeSet;

use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PartyConfig;
use crate::agreement::Terms;
use crate::data_ledger::Account;
use crate::error::{Error, Result};
use crate::text::Fingerprint;

/// The policy of a party.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The methods.
    pub protocols: Vec<Protocol>,
    /// The allowed kinds of aggregation.
    pub aggregation: Vec<Aggregation>,
    /// The minimum number of parties in every sum.
    pub minimum_cohort: usize,
    /// The minimum number of colluding parties that the run must assume.
    pub minimum_colluders: usize,
    /// The maximum number of rounds.
    pub maximum_rounds: usize,
    /// The maximum number of components.
    pub maximum_rank: usize,
    /// The maximum number of local iterations between two exchanges.
    pub maximum_inner: usize,
    /// The maximum α of damping, which keeps U in place.
    pub maximum_alpha: f64,
    /// The maximum β of damping.
    pub maximum_beta: f64,
    /// Allowed rosters in addition to that of all peers, by the names of the other parties.
    pub rosters: Vec<BTreeSet<String>>,
    /// The maximum number of sums, including failed attempts and votes on ranges; derived from the terms if
    /// absent.
    pub maximum_sums: Option<u64>,
    /// Whether the others may continue without a party that left, which nearly reveals its contribution.
    pub continue_without: bool,
    /// Further accepted risks, by name.
    pub accept: Vec<String>,
    /// The checks of this party during a run.
    pub safeguards: Safeguards,
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
            maximum_rank: 256,
            maximum_inner: 100,
            maximum_alpha: 10.0,
            maximum_beta: 1.0,
            rosters: Vec::new(),
            maximum_sums: None,
            continue_without: false,
            accept: Vec::new(),
            safeguards: Safeguards::default(),
        }
    }
}

/// What the terms request, and what the policy allows instead.
struct Refusal {
    asked: String,
    allowed: String,
}

impl Refusal {
    fn new(asked: impl Into<String>, allowed: impl Into<String>) -> Self {
        Refusal { asked: asked.into(), allowed: allowed.into() }
    }
}

/// The name in configuration files.
fn words(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Policy {
    /// Checks the protocol and its settings.
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
        // Without dropouts, a sum always covers all parties.
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
        self.allow_sizes(settings)?;
        let sums = settings.fewest_sums(terms.groups.len());
        if let Some(most) = self.maximum_sums.filter(|most| sums > *most) {
            return Err(Refusal::new(format!("at least {sums} sums"), format!("{most} at most")));
        }
        self.allow_risks(settings)
    }

    /// Checks the settings that determine how much a run opens, and how far U is damped.
    fn allow_sizes(&self, settings: &Settings) -> Result<(), Refusal> {
        let counts =
            [("rank", settings.rank, self.maximum_rank), ("inner", settings.inner, self.maximum_inner)];
        for (name, asked, most) in counts {
            if asked > most {
                return Err(Refusal::new(format!("{name} = {asked}"), format!("{most} at most")));
            }
        }
        let weights =
            [("alpha", settings.alpha, self.maximum_alpha), ("beta", settings.beta, self.maximum_beta)];
        for (name, asked, most) in weights {
            if asked > most {
                return Err(Refusal::new(format!("{name} = {asked}"), format!("{most} at most")));
            }
        }
        Ok(())
    }

    /// The maximum number of sums in which a party takes part under these terms.
    pub fn most_sums(&self, terms: &Terms) -> u64 {
        let default = terms.settings.most_sums(terms.groups.len());
        self.maximum_sums.map_or(default, |most| most.min(default))
    }

    /// Checks that this party accepts the risks that the terms accept.
    fn allow_risks(&self, settings: &Settings) -> Result<(), Refusal> {
        if settings.accepted.going_on_shows_the_leaver && !self.continue_without {
            return Err(Refusal::new("to continue without a party that left", "nothing of the kind"));
        }
        let accepted = serde_json::to_value(settings.accepted).unwrap_or_default();
        let risks = accepted.as_object().into_iter().flatten();
        let risks = risks.filter(|(_, accepted)| **accepted == Value::Bool(true));
        for (risk, _) in risks.filter(|(risk, _)| *risk != "going_on_shows_the_leaver") {
            if !self.accept.contains(&risk.replace('_', "-")) {
                let asked = format!("to accept that {}", risk.replace('_', " "));
                return Err(Refusal::new(asked, "nothing of the kind"));
            }
        }
        Ok(())
    }
}

fn run_with(others: &BTreeSet<String>) -> String {
    format!("a run with {}", others.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
}

impl PartyConfig {
    /// This party's place, if its policy allows the terms.
    pub fn accept(&self, terms: &Terms, own: &Fingerprint) -> Result<u16> {
        terms.check().map_err(|problem| Error::Dishonest { problem: format!("invalid terms: {problem}") })?;
        let accepted = if terms.federation == self.federation {
            self.policy.allow(terms).and_then(|()| self.place(terms, own))
        } else {
            Err(Refusal::new(format!("the federation {}", terms.federation), &self.federation))
        };
        accepted.map_err(|refusal| self.refuse(refusal))
    }

    fn refuse(&self, Refusal { asked, allowed }: Refusal) -> Error {
        Error::Policy { file: self.path.display().to_string(), asked, allowed }
    }

    /// Checks whether a run under these terms may follow earlier runs with the same data.
    pub fn accept_after(&self, terms: &Terms, account: &Account) -> Result<()> {
        let others = self.others(terms);
        if self.policy.rosters.contains(&others) {
            return Ok(());
        }
        let Some(before) = account.other_roster(terms) else { return Ok(()) };
        let names: Vec<&str> = before.started.roster.iter().map(|member| &member.name[..]).collect();
        let allowed = format!(
            "a roster other than that of the run of {} in {} ({}) with the same data only if it is listed in \
             rosters, because the difference of both totals would reveal the parties that are in only one of them",
            before.time,
            before.started.federation,
            names.join(", ")
        );
        Err(self.refuse(Refusal::new(run_with(&others), allowed)))
    }

    /// The names of the other parties.
    fn others(&self, terms: &Terms) -> BTreeSet<String> {
        let names = terms.roster.iter().map(|member| member.name.clone());
        names.filter(|name| *name != self.name).collect()
    }

    /// Checks that the others are all peers, or an additionally allowed roster.
    fn allow_roster(&self, terms: &Terms) -> Result<(), Refusal> {
        let others = self.others(terms);
        let peers: BTreeSet<String> = self.peers.keys().filter(|name| **name != self.name).cloned().collect();
        if others == peers || self.policy.rosters.contains(&others) {
            return Ok(());
        }
        let missing: Vec<&str> = peers.difference(&others).map(String::as_str).collect();
        let allowed = format!("one without {} only if it is listed in rosters", missing.join(", "));
        Err(Refusal::new(run_with(&others), allowed))
    }

    /// This party's place in the roster, if the others are the pinned ones.
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
            Some((place, member)) if member.identity == *own => self.allow_roster(terms).map(|()| place),
            Some((_, member)) => {
                let asked = format!("the identity {} for this party", member.identity);
                Err(Refusal::new(asked, format!("its own, {own}")))
            }
            None => Err(Refusal::new("a roster without this party", format!("one with {}", self.name))),
        }
    }
}
