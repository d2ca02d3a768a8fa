//! A party: it agrees with the others, runs the protocol, and stores what it needs to resume after any
//! interruption.

mod books;
mod check;
mod connection;
mod folder;
mod hooks;
mod joining;
mod link;
mod run;

use std::sync::Arc;
use std::time::{Duration, Instant};

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::matrix::Matrix;
use partwise_secure::protocol::Ended;
use serde_json::json;

use books::Books;
pub use check::check;
use connection::{Connection, ConnectionEvent};
pub(crate) use folder::StateFolder;
pub use hooks::{Hooks, NoHooks};
use joining::{BegunRun, Joining, check_head};
use link::PartyLink;
use run::Participant;
pub(crate) use run::RETRY_NOTICE;

use crate::agreement::Terms;
use crate::certificates::read_identity;
use crate::config::PartyConfig;
use crate::error::{Error, Result};
use crate::frame::{FromParty, ToParty};
use crate::journal::{JournalFile, PartyHead};
use crate::ledger::{self, Ledger};
use crate::log::EventLog;
use crate::text::{Fingerprint, Hex};

/// The options of a party.
pub struct PartyOptions {
    /// Whether to run without TLS, on loopback only.
    pub insecure: bool,
    /// The number of threads.
    pub threads: usize,
    /// The hooks.
    pub hooks: Arc<dyn Hooks>,
    /// The log.
    pub log: Arc<EventLog>,
    /// Stops the party at any point; it can join again later and resumes.
    pub cancel: Cancel,
    /// Sends bad messages in addition to the good ones.
    #[cfg(test)]
    pub mischief: bool,
}

/// The data of a party.
pub struct PartyData<T> {
    /// One row per feature, one column per record.
    pub matrix: Matrix<T>,
    /// The names of the features.
    pub names: Option<Vec<String>>,
    /// A digest of the data, so that a run is not resumed with other data.
    pub digest: String,
}

/// The result of a party. [`Joined::finish`] notifies the coordinator once it is safe.
pub struct Joined<T> {
    /// U, features x k, by row.
    pub u: Vec<T>,
    /// V_r, records x k, by row.
    pub v: Vec<T>,
    /// Number of features.
    pub features: usize,
    /// Number of records.
    pub records: usize,
    /// The relative error of this party, which it keeps to itself.
    pub own_relative_error: f64,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// The errors of both attempts, if the run was repeated; the better one counts.
    pub attempts: Vec<f64>,
    /// How the run ended.
    pub ended: Ended,
    /// The agreement.
    pub terms: Terms,
    /// The run's digest.
    pub run: String,
    link: PartyLink,
    state: StateFolder,
    /// Locked until the end.
    _books: Books,
}

/// Joins a run, or resumes one.
pub fn join<T: Real>(party: &PartyConfig, given: PartyData<T>, options: &PartyOptions) -> Result<Joined<T>> {
    let identity = read_identity(&party.identity)?;
    let state = StateFolder::open(&party.state)?;
    let ledger = Ledger::open(&party.state.join(ledger::NAME))?;
    let books = Books::open(party, &given.matrix, &identity)?;
    let connection = Connection::new(party, options, Some(ledger))?;
    let joining = Joining {
        party,
        identity: &identity,
        given: &given,
        options,
        connection: &connection,
        state: &state,
        books: &books,
    };
    let begun = match JournalFile::open::<PartyHead>(&state.journal())? {
        Some((mut journal, head)) => {
            check_head(&head, &given, &state)?;
            books.check_run(head.run.0)?;
            connection.expect(&head.terms, given.matrix.rows());
            // Nothing was summed yet, so the coordinator may not know of the run.
            let proposed = match journal.next()? {
                None => joining.other_than(&head)?,
                Some(_) => None,
            };
            match proposed {
                None => BegunRun { head, journal: joining.reopened()? },
                Some(terms) => joining.agree(Some(terms))?,
            }
        }
        None => joining.agree(None)?,
    };
    Participant { party, identity, options, connection, state, books }.take_part(given, begun)
}

impl<T> Joined<T> {
    /// Notifies the coordinator, and sends it U (as an .npy file) if asked; then removes what only a restart would
    /// need. The results must be safe by now.
    pub fn finish(self, factor: Vec<u8>, parties: usize) -> Result<()> {
        let finished = FromParty::Finished {
            factor: Hex(Fingerprint::of(&factor).0),
            relative_error: self.relative_error,
            rounds: self.ended.rounds,
            attempts: self.attempts.clone(),
            stopped_by: self.ended.stopped_by,
            parties,
        };
        let connection = &self.link.connection;
        connection.say(finished.clone());
        let log = &self.link.log;
        let patience = Duration::from_secs_f64(self.terms.deadline);
        let mut lost: Option<Instant> = Some(Instant::now());
        loop {
            if lost.is_some_and(|lost| lost.elapsed() > patience) {
                log.warn(
                    "the coordinator does not answer; this party has its result",
                    json!({ "event": "unheard" }),
                );
                break;
            }
            match connection.next(Some(Duration::from_secs(1))) {
                None => {}
                Some(ConnectionEvent::Said(ToParty::End)) => break,
                Some(ConnectionEvent::Said(ToParty::GiveFactor)) => {
                    lost = None;
                    connection.factor(factor.clone());
                }
                Some(ConnectionEvent::Said(ToParty::Begin)) => {
                    lost = None;
                    connection.say(finished.clone());
                }
                Some(ConnectionEvent::Lost) => lost = Some(Instant::now()),
                // Handles questions for other parties.
                Some(ConnectionEvent::Message(_)) => lost = None,
                Some(event) => {
                    if let Err(error) = self.link.understand(event) {
                        log.warn(
                            &format!("{error}; this party has its result"),
                            json!({ "event": "unheard" }),
                        );
                        break;
                    }
                }
            }
        }
        let journal = self.state.journal();
        std::fs::remove_file(&journal).map_err(Error::io(&journal))
    }
}
