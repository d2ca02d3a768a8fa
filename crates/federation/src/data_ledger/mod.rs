//! The ledger of a data set over all of its runs and federations: who took part, how many sums were opened,
//! and which sketches. What single runs reveal adds up, and without a ledger every run would start with a
//! fresh budget.
//!
//! The ledger is a file in a folder of the user, named by a digest of the data and not by their path. Its
//! lines form a hash chain, each signed by the identity key of the party that wrote it. In every run, a party
//! reports the head of the chain to the others, who remember it, so that replacing the ledger by an old copy
//! is noticed (`heads`).

mod account;
mod chain;
mod digest;
mod heads;

pub use account::{Account, RunAccount};
pub use chain::{DataLedger, Line, SharedLedger, read};
pub use digest::DataSet;
pub use heads::{Heads, LedgerHead, LedgerHistory, Seen};

use partwise_secure::protocol::leak::OpenedSketches;
use serde::{Deserialize, Serialize};

use crate::agreement::{Member, Terms};
use crate::text::{Fingerprint, Hex};

/// An entry about a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LedgerEntry {
    /// The first entry of a ledger.
    Created {
        /// A random name of the ledger for the other parties, which reveals nothing about the data.
        ledger: Hex<32>,
        /// The digest of the data.
        data: Fingerprint,
        /// The number of records.
        records: usize,
        /// The number of features.
        features: usize,
    },
    /// The party is about to agree to a run.
    RunStarted(Box<RunStarted>),
    /// A run is about to open sums, up to this number.
    SumsOpened {
        /// The run's digest.
        run: Hex<32>,
        /// The maximum number of opened sums.
        sums: u64,
    },
    /// A check of this party stopped the run before an upload.
    GateStop {
        /// The run's digest.
        run: Hex<32>,
        /// The name of the check.
        gate: String,
    },
    /// A run has ended.
    RunEnded {
        /// The digest of the run.
        run: Hex<32>,
        /// How the run ended.
        end: RunEnd,
        /// The number of opened sums.
        sums: u64,
        /// The number of rounds.
        rounds: usize,
        /// The hash of the last line of the list of what was sent, which the signature of this entry covers
        /// too.
        sent: Fingerprint,
    },
}

/// A run that a party is about to agree to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// The digest of the run.
    pub run: Hex<32>,
    /// The name of the federation.
    pub federation: String,
    /// The name of this party in the federation.
    pub party: String,
    /// All parties, including this one.
    pub roster: Vec<Member>,
    /// The name of the protocol.
    pub protocol: String,
    /// How contributions are aggregated.
    pub aggregation: String,
    /// The number of components.
    pub rank: usize,
    /// The maximum number of rounds.
    pub rounds: usize,
    /// The sketches of the records that the run may open, if its protocol opens any.
    pub sketches: Option<OpenedSketches>,
}

impl RunStarted {
    /// The entry for the party at this place with this many records, under these terms.
    pub fn new(run: [u8; 32], terms: &Terms, place: u16, records: usize) -> Self {
        let settings = &terms.settings;
        RunStarted {
            run: Hex(run),
            federation: terms.federation.clone(),
            party: terms.name(place).into(),
            roster: terms.roster.clone(),
            protocol: partwise::run::record::name_of(&settings.protocol),
            aggregation: partwise::run::record::name_of(&settings.aggregation),
            rank: settings.rank,
            rounds: settings.all_rounds(terms.groups.len()),
            sketches: OpenedSketches::planned(settings, place, records),
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// The run finished with a result.
    Finished,
    /// All parties refused the run after its first sums.
    Refused,
    /// A check stopped the run.
    Stopped,
}
