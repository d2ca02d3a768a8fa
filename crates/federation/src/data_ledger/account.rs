//! What a ledger comes to: its runs, what they opened, and with whom they were.

use std::collections::BTreeSet;

use partwise_secure::protocol::leak::OpenedSketches;

use super::{LedgerEntry, RunEnd, RunStarted};
use crate::agreement::Terms;
use crate::text::{Fingerprint, Hex};

/// A run of a ledger.
#[derive(Clone, Debug)]
pub struct RunAccount {
    /// When this party agreed to it.
    pub time: String,
    /// What was agreed on.
    pub started: RunStarted,
    /// Sums that were opened: exactly, if the run has ended, else at most.
    pub sums: u64,
    /// Rounds done, if it has ended.
    pub rounds: Option<usize>,
    /// How it ended, if it did.
    pub end: Option<RunEnd>,
    /// The checks that stopped it here.
    pub gate_stops: Vec<String>,
}

impl RunAccount {
    /// The sketches of the records that it has opened. Each is in a sum of its own, so that a run which has not ended has
    /// opened no more of them than sums.
    pub fn sketches(&self) -> Option<OpenedSketches> {
        let planned = self.started.sketches?;
        let sums = usize::try_from(self.sums).unwrap_or(usize::MAX);
        Some(OpenedSketches { rounds: self.rounds.unwrap_or(sums).min(planned.rounds), ..planned })
    }

    /// Linear equations in each feature's values over the records, all other parties assumed to collude.
    pub fn equations(&self) -> usize {
        self.sketches().map_or(0, |opened| opened.rounds.saturating_mul(opened.size))
    }

    /// Everybody in it, by name.
    fn names(&self) -> BTreeSet<&str> {
        self.started.roster.iter().map(|member| &member.name[..]).collect()
    }
}

/// What a ledger comes to.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The digest of the data.
    pub data: Option<Fingerprint>,
    /// Records.
    pub records: usize,
    /// Features.
    pub features: usize,
    /// The runs, from the first to the last.
    pub runs: Vec<RunAccount>,
}

impl Account {
    /// Takes the next entry into account.
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

    /// A run by its digest.
    pub fn run(&self, run: &[u8; 32]) -> Option<&RunAccount> {
        self.runs.iter().rev().find(|of| of.started.run.0 == *run)
    }

    /// The sketches that all runs but this one have opened.
    pub fn sketches_before(&self, run: &[u8; 32]) -> Vec<OpenedSketches> {
        let others = self.runs.iter().filter(|of| of.started.run.0 != *run);
        others.filter_map(RunAccount::sketches).filter(|opened| opened.rounds > 0).collect()
    }

    /// An earlier run that opened sums over other parties than these terms would: the difference of the totals of both is
    /// of those who are in one of them only.
    pub fn other_roster(&self, terms: &Terms) -> Option<&RunAccount> {
        let names: BTreeSet<&str> = terms.roster.iter().map(|member| &member.name[..]).collect();
        let differs = |of: &&RunAccount| {
            of.sums > 0 && (of.started.federation != terms.federation || of.names() != names)
        };
        self.runs.iter().rev().find(differs)
    }

    /// Sums that were opened over all runs.
    pub fn sums(&self) -> u64 {
        self.runs.iter().map(|run| run.sums).sum()
    }

    /// Equations over all runs.
    pub fn equations(&self) -> usize {
        self.runs.iter().map(RunAccount::equations).sum()
    }

    /// Stops by checks over all runs.
    pub fn gate_stops(&self) -> usize {
        self.runs.iter().map(|run| run.gate_stops.len()).sum()
    }
}
