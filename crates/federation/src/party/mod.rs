//! A party: it agrees with the others, takes part, and keeps what it needs to go on after whatever happens.

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

/// How to take part.
pub struct PartyOptions {
    /// Without TLS, on loopback only.
    pub insecure: bool,
    /// Threads to compute with.
    pub threads: usize,
    /// What it takes from the program around it.
    pub hooks: Arc<dyn Hooks>,
    /// Where its lines go.
    pub log: Arc<EventLog>,
    /// Stops it wherever it is; it can join again later, and goes on from there.
    pub cancel: Cancel,
    /// Sends bad messages in addition to the good ones.
    #[cfg(test)]
    pub mischief: bool,
}

/// What a party brings.
pub struct PartyData<T> {
    /// A row for each feature, a column for each record.
    pub matrix: Matrix<T>,
    /// The names of the features.
    pub names: Option<Vec<String>>,
    /// A digest of the data, so that a run is not taken up with others.
    pub digest: String,
}

/// What a party has at the end. [`Joined::finish`] tells the coordinator, when it is safe.
pub struct Joined<T> {
    /// U, features x k, by row.
    pub u: Vec<T>,
    /// V_r, records x k, by row.
    pub v: Vec<T>,
    /// Features.
    pub features: usize,
    /// Records.
    pub records: usize,
    /// Of this party, which it keeps to itself.
    pub own_relative_error: f64,
    /// Over all parties.
    pub relative_error: f64,
    /// If the run was done twice, the same of each time, of which the better counts.
    pub attempts: Vec<f64>,
    /// How it went.
    pub ended: Ended,
    /// What was agreed on.
    pub terms: Terms,
    /// The run's digest.
    pub run: String,
    link: PartyLink,
    state: StateFolder,
    /// Locked until the end.
    _books: Books,
}

/// Takes part in a run, or goes on with one that was begun.
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
            // Nothing was summed yet: the coordinator may not even know of the run.
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
    /// Tells the coordinator, and gives it U (as an .npy file) if asked; then forgets what only a restart would need. The
    /// results must be safe by now.
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
                    "the coordinator does not answer; the result is here",
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
                // Answers to others.
                Some(ConnectionEvent::Message(_)) => lost = None,
                Some(event) => {
                    if let Err(error) = self.link.understand(event) {
                        log.warn(&format!("{error}; the result is here"), json!({ "event": "unheard" }));
                        break;
                    }
                }
            }
        }
        let journal = self.state.journal();
        std::fs::remove_file(&journal).map_err(Error::io(&journal))
    }
}
