//! The ledger of a data set, over all of its runs and federations: with whom they were, how many sums they opened, and
//! which sketches. What single runs show adds up, and a party that forgot earlier ones would begin every budget again.
//!
//! The ledger is a file in a folder of the user's own, named by a digest of the data and not by their path. Its lines are a
//! hash chain, each signed by the identity key of the party that wrote it. Every run tells the other parties the head of the
//! chain, and they remember it, so that an old copy that was put in its place is noticed ([`heads`]).

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

/// What is noted about a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LedgerEntry {
    /// The first entry of a ledger.
    Created {
        /// Random: names the ledger to other parties, and says nothing of the data.
        ledger: Hex<32>,
        /// The digest of the data.
        data: Fingerprint,
        /// How many records they have.
        records: usize,
        /// How many features.
        features: usize,
    },
    /// The party is about to agree to a run.
    RunStarted(Box<RunStarted>),
    /// A run is about to open sums: so many of it may be open from now on.
    SumsOpened {
        /// The run's digest.
        run: Hex<32>,
        /// Sums at most.
        sums: u64,
    },
    /// A check stopped the run here before an upload.
    GateStop {
        /// The run's digest.
        run: Hex<32>,
        /// The name of the check.
        gate: String,
    },
    /// A run has ended.
    RunEnded {
        /// The run's digest.
        run: Hex<32>,
        /// How.
        end: RunEnd,
        /// Sums that were opened.
        sums: u64,
        /// Rounds done.
        rounds: usize,
        /// The hash of the last line of the list of what was sent, which this entry's signature vouches for too.
        sent: Fingerprint,
    },
}

/// A run that a party is about to agree to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// The run's digest.
    pub run: Hex<32>,
    /// The federation.
    pub federation: String,
    /// This party's name in it.
    pub party: String,
    /// All parties, this one included.
    pub roster: Vec<Member>,
    /// The protocol's name.
    pub protocol: String,
    /// How shares travel.
    pub aggregation: String,
    /// Components.
    pub rank: usize,
    /// Rounds at most.
    pub rounds: usize,
    /// The sketches of the records that it may open, if its protocol opens some.
    pub sketches: Option<OpenedSketches>,
}

impl RunStarted {
    /// What these terms come to for the party at a place with so many records.
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
    /// With a result.
    Finished,
    /// It was refused by what all parties knew after its first sums.
    Refused,
    /// It was stopped by a check.
    Stopped,
}
