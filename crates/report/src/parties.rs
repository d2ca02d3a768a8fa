//! The parties of a run as its record knows them: all parties of a simulation, and one end's view of a federation.

use partwise::run::record::{
    FederationEnd, FederationRecord, RunKind, SentRecord, SimulatedEnd, SimulatedParty,
};

use crate::Run;

/// A party.
pub struct Party {
    /// Its name, or its number.
    pub name: String,
    /// The number of its records.
    pub records: Option<usize>,
    /// Its own relative error.
    pub relative_error: Option<f64>,
    /// The bytes that it sent, by kind of message.
    pub sent: Option<Vec<SentRecord>>,
    /// Whether it had left at the end.
    pub left: bool,
}

/// The parties of a run; empty for a run without parties.
pub fn of(run: &Run) -> Vec<Party> {
    match run.record.as_ref().map(|record| &record.kind) {
        None | Some(RunKind::Factorization(_)) => Vec::new(),
        Some(RunKind::Simulation(run)) => run.parties.iter().map(simulated).collect(),
        Some(RunKind::Federation(run)) => federated(run),
    }
}

fn simulated(party: &SimulatedParty) -> Party {
    let name = party.name.clone().unwrap_or_else(|| format!("party {}", party.party));
    match &party.end {
        SimulatedEnd::Stayed(result) => Party {
            name,
            records: Some(result.records),
            relative_error: Some(result.relative_error),
            sent: Some(result.sent.clone()),
            left: false,
        },
        SimulatedEnd::Left { .. } => {
            Party { name, records: None, relative_error: None, sent: None, left: true }
        }
    }
}

fn federated(run: &FederationRecord) -> Vec<Party> {
    let known = |(place, name): (usize, &String)| {
        let mut party =
            Party { name: name.clone(), records: None, relative_error: None, sent: None, left: false };
        match &run.end {
            FederationEnd::Party(own) if own.party == *name => {
                party.records = Some(own.records);
                party.relative_error = Some(own.own_relative_error);
            }
            FederationEnd::Party(_) => {}
            FederationEnd::Coordinator(all) => {
                party.left = all.missing.contains(name);
                party.sent = all
                    .bytes
                    .get(place)
                    .map(|link| vec![SentRecord { kind: "all".into(), count: 0, bytes: link.received }]);
            }
        }
        party
    };
    run.parties.iter().enumerate().map(known).collect()
}
