//! The totals of a ledger: its runs, what they opened, and who took part.

use std::collections::BTreeSet;

use partwise_secure::protocol::leak::OpenedSketches;

use super::{LedgerEntry, RunEnd, RunStarted};
use crate::agreement::Terms;
use crate::text::{Fingerprint, Hex};

/// The account of one run.
#[derive(Clone, Debug)]
pub struct RunAccount {
    /// The time at which this party agreed to the run.
    pub time: String,
    /// The terms that were agreed on.
    pub started: RunStarted,
    /// The number of opened sums: exact if the run has ended, otherwise an upper bound.
    pub sums: u64,
    /// The number of rounds, if the run has ended.
    pub rounds: Option<usize>,
    /// How the run ended, if it has.
    pub end: Option<RunEnd>,
    /// The checks of this party that stopped the run.
    pub gate_stops: Vec<String>,
}

impl RunAccount {
    /// The sketches of the records that the run has opened. Each is in a separate sum, so a run that has not
    /// ended has opened at most as many sketches as sums.
    pub fn sketches(&self) -> Option<OpenedSketches> {
        let planned = self.started.sketches?;
        let sums = usize::try_from(self.sums).unwrap_or(usize::MAX);
        Some(OpenedSketches { rounds: self.rounds.unwrap_or(sums).min(planned.rounds), ..planned })
    }

    /// The number of opened linear equations in each feature's values over the records, if all other parties
    /// collude.
    pub fn equations(&self) -> usize {
        self.sketches().map_or(0, |opened| opened.rounds.saturating_mul(opened.size))
    }

    /// The names of all parties of the run.
    fn names(&self) -> BTreeSet<&str> {
        self.started.roster.iter().map(|member| &member.name[..]).collect()
    }
}

/// The totals of a ledger over all runs.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The digest of the data.
    pub data: Option<Fingerprint>,
    /// The number of records.
    pub records: usize,
    /// The number of features.
    pub features: usize,
    /// The runs, in chronological order.
    pub runs: Vec<RunAccount>,
}

impl Account {
    /// Adds the next entry to the totals.
    pub(super) fn take(&mut self, entry: &LedgerEntry, time: &str) -> Result<(), &'static str> {
        match entry {
            LedgerEntry::Created { data, records, features, .. } => {
                (self.data, self.records, self.features) = (Some(*data), *records, *features);
            }
            LedgerEntry::RunStarted(started) => self.runs.push(RunAccount {
                time: time.into(),
                started: (**started).clone(),
                sums: 0,
                rounds: None,
                end: None,
                gate_stops: Vec::new(),
            }),
            LedgerEntry::SumsOpened { run, sums } => {
                let of = self.run_mut(run)?;
                of.sums = of.sums.max(*sums);
            }
            LedgerEntry::GateStop { run, gate } => self.run_mut(run)?.gate_stops.push(gate.clone()),
            LedgerEntry::RunEnded { run, end, sums, rounds, .. } => {
                let of = self.run_mut(run)?;
                (of.end, of.sums, of.rounds) = (Some(*end), *sums, Some(*rounds));
            }
        }
        Ok(())
    }

    fn run_mut(&mut self, run: &Hex<32>) -> Result<&mut RunAccount, &'static str> {
        self.runs
            .iter_mut()
            .rev()
            .find(|of| of.started.run == *run)
            .ok_or("refers to a run that was not started")
    }

    /// The run with this digest.
    pub fn run(&self, run: &[u8; 32]) -> Option<&RunAccount> {
        self.runs.iter().rev().find(|of| of.started.run.0 == *run)
    }

    /// The sketches opened by all runs except this one.
    pub fn sketches_before(&self, run: &[u8; 32]) -> Vec<OpenedSketches> {
        let others = self.runs.iter().filter(|of| of.started.run.0 != *run);
        others.filter_map(RunAccount::sketches).filter(|opened| opened.rounds > 0).collect()
    }

    /// The last run that opened sums over other parties than these terms would. The difference between the
    /// totals of both runs would reveal the parties that are in only one of them.
    pub fn other_roster(&self, terms: &Terms) -> Option<&RunAccount> {
        let names: BTreeSet<&str> = terms.roster.iter().map(|member| &member.name[..]).collect();
        let differs = |of: &&RunAccount| {
            of.sums > 0 && (of.started.federation != terms.federation || of.names() != names)
        };
        self.runs.iter().rev().find(differs)
    }

    /// The number of opened sums over all runs.
    pub fn sums(&self) -> u64 {
        self.runs.iter().map(|run| run.sums).sum()
    }

    /// The number of equations over all runs.
    pub fn equations(&self) -> usize {
        self.runs.iter().map(RunAccount::equations).sum()
    }

    /// The number of stops by this party's checks over all runs.
    pub fn gate_stops(&self) -> usize {
        self.runs.iter().map(|run| run.gate_stops.len()).sum()
    }
}
