//! What a party keeps between runs: the ledger of its data, and what it remembers of the others' ledgers.

use std::cell::RefCell;

use partwise::Real;
use partwise::matrix::Matrix;
use partwise_secure::aggregation::Identity;
use partwise_secure::protocol::Ended;
use partwise_secure::protocol::leak::OpenedSketches;
use partwise_secure::session::NextSum;
use partwise_secure::{Error as SecureError, Result as SecureResult};
use serde_json::json;

use crate::agreement::{Ledgers, RunIdentity, Terms};
use crate::config::PartyConfig;
use crate::data_ledger::{
    self, DataLedger, DataSet, Heads, LedgerEntry, LedgerHead, LedgerHistory, RunEnd, RunStarted, Seen,
    SharedLedger,
};
use crate::error::Result;
use crate::ledger;
use crate::log::EventLog;
use crate::text::Hex;

/// The ledger of a party's data, and the heads of the others' ledgers that it remembers.
pub struct Books {
    ledger: SharedLedger,
    heads: RefCell<Heads>,
    /// The list of what was sent.
    sent: std::path::PathBuf,
}

impl Ledgers for Books {
    fn history(&self) -> LedgerHistory {
        self.ledger.lock().history().clone()
    }

    fn seen(&self, name: &str, ledger: Hex<32>) -> Option<Seen> {
        self.heads.borrow().of_peer(name, ledger)
    }

    fn start(&self, run: [u8; 32], terms: &Terms, place: u16) -> Result<LedgerHead> {
        let mut ledger = self.ledger.lock();
        let started = RunStarted::new(run, terms, place, ledger.data().records);
        ledger.append(LedgerEntry::RunStarted(Box::new(started)))?;
        self.heads.borrow_mut().remember_own(&ledger)?;
        Ok(ledger.history().head())
    }
}

impl Books {
    /// Opens and locks the ledger of these data, unless it is an old copy.
    pub fn open<T: Real>(party: &PartyConfig, matrix: &Matrix<T>, identity: &Identity) -> Result<Self> {
        let heads = Heads::read(&party.state)?;
        let data = DataSet::new(matrix);
        let path = DataLedger::path_in(&party.ledgers, &data.digest);
        if !path.exists() {
            heads.check_own(&data.digest, &LedgerHistory::none(), &path)?;
        }
        let ledger = DataLedger::open(&party.ledgers, &data, identity)?;
        heads.check_own(&data.digest, ledger.history(), ledger.path())?;
        let sent = party.state.join(ledger::NAME);
        Ok(Books { ledger: SharedLedger::new(ledger), heads: RefCell::new(heads), sent })
    }

    /// Checks the ledger of these data, if it exists, and whether it permits a run under these terms; locks
    /// nothing.
    pub fn check<T: Real>(party: &PartyConfig, matrix: &Matrix<T>, terms: &Terms) -> Result<()> {
        let digest = DataSet::new(matrix).digest;
        let path = DataLedger::path_in(&party.ledgers, &digest);
        let heads = Heads::read(&party.state)?;
        if !path.exists() {
            return heads.check_own(&digest, &LedgerHistory::none(), &path);
        }
        let read = data_ledger::read(&path)?;
        heads.check_own(&digest, &read.history, &path)?;
        party.accept_after(terms, &read.account)
    }

    /// Checks that a started run is in the ledger.
    pub fn check_run(&self, run: [u8; 32]) -> Result<()> {
        let ledger = self.ledger.lock();
        ledger.account().run(&run).map(|_| ()).ok_or_else(|| ledger.unknown_run())
    }

    /// Checks whether a run under these terms may follow the earlier ones.
    pub fn accept(&self, party: &PartyConfig, terms: &Terms) -> Result<()> {
        party.accept_after(terms, self.ledger.lock().account())
    }

    /// Remembers the heads of the others' ledgers.
    pub fn remember(&self, terms: &Terms, place: u16, agreed: &RunIdentity, log: &EventLog) -> Result<()> {
        let mut heads = self.heads.borrow_mut();
        let told = (1..).zip(&agreed.ledgers).filter(|(other, _)| *other != place);
        let told = told.map(|(other, head)| (terms.name(other), *head));
        for (name, _) in told.clone().filter(|(name, head)| heads.is_new(name, head.ledger)) {
            let text = format!(
                "{name} has a ledger that this party has not seen: its data are new, or their earlier ledger is \
                 missing"
            );
            log.info(&text, json!({ "event": "new-ledger", "party": name }));
        }
        heads.remember_peers(told)
    }

    /// Returns a function that records sums before they are opened.
    pub fn before_sum(&self, run: [u8; 32]) -> Box<dyn FnMut(NextSum<'_>) -> SecureResult<()> + Send> {
        let ledger = self.ledger.clone();
        Box::new(move |next| {
            let noted = ledger.lock().note_sums(run, next.answered + 1);
            noted.map_err(|error| SecureError::Stopped { problem: error.wording() })
        })
    }

    /// The sketches of these data that earlier runs have opened.
    pub fn sketches_before(&self, run: [u8; 32]) -> Vec<OpenedSketches> {
        self.ledger.lock().account().sketches_before(&run)
    }

    /// Records how a run ended, unless it can be resumed.
    pub fn end(&self, run: [u8; 32], sums: u64, ended: &SecureResult<Ended>) -> Result<()> {
        let (end, rounds) = match ended {
            Ok(ended) => (RunEnd::Finished, ended.rounds),
            Err(SecureError::FewRecords { .. } | SecureError::Core(partwise::Error::Parameter { .. })) => {
                (RunEnd::Refused, 0)
            }
            Err(SecureError::Withheld { .. } | SecureError::Implausible { .. }) => (RunEnd::Stopped, 0),
            Err(_) => return Ok(()),
        };
        let mut ledger = self.ledger.lock();
        // A party that was restarted after the end of the run gets here again.
        if ledger.account().run(&run).is_some_and(|of| of.end.is_none()) {
            if let Some(gate) = gate_of(ended) {
                ledger.append(LedgerEntry::GateStop { run: Hex(run), gate })?;
            }
            let sent = ledger::read(&self.sent)?.last;
            ledger.append(LedgerEntry::RunEnded { run: Hex(run), end, sums, rounds, sent })?;
        }
        self.heads.borrow_mut().remember_own(&ledger)
    }
}

/// The name of this party's check that ended a run, if one did.
fn gate_of(ended: &SecureResult<Ended>) -> Option<String> {
    match ended {
        Err(SecureError::Withheld { reason, .. }) => reason.clone(),
        Err(error @ SecureError::Implausible { .. }) => Some(error.to_string()),
        _ => None,
    }
}
