//! A party before the run: it agrees with all others, and starts a journal.

use std::time::Duration;

use partwise::Real;
use partwise_secure::aggregation::Identity;
use serde_json::json;

use super::books::Books;
use super::check::{check_data, clock_problem};
use super::connection::{Connection, ConnectionEvent};
use super::folder::StateFolder;
use super::{PartyData, PartyOptions};
use crate::agreement::{Features, Negotiation, Negotiator, RunIdentity, Terms};
use crate::config::PartyConfig;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::journal::{JournalFile, PartyHead};
use crate::log::{COORDINATOR, Level};
use crate::text::{Fingerprint, Hex, unix_seconds};

/// A run that this party has agreed to.
pub struct BegunRun {
    /// The agreement.
    pub head: PartyHead,
    /// Read up to its first record.
    pub journal: JournalFile,
}

/// Checks that the data are those that the run was started with.
pub fn check_head<T: Real>(head: &PartyHead, given: &PartyData<T>, state: &StateFolder) -> Result<()> {
    if head.data == given.digest {
        return Ok(());
    }
    let problem = "contains a run with other data; use these data, or remove the file to start a new run";
    Err(Error::file(state.journal(), problem))
}

/// The maximum number of attempts at an agreement over one connection, each of which leaves a line in the
/// ledger.
const MOST_ATTEMPTS: usize = 1000;

/// A party before the run.
pub struct Joining<'a, T> {
    pub party: &'a PartyConfig,
    pub identity: &'a Identity,
    pub given: &'a PartyData<T>,
    pub options: &'a PartyOptions,
    pub connection: &'a Connection,
    pub state: &'a StateFolder,
    pub books: &'a Books,
}

impl<T: Real> Joining<'_, T> {
    /// The journal that was created or found, at its beginning.
    pub fn reopened(&self) -> Result<JournalFile> {
        match JournalFile::open::<PartyHead>(&self.state.journal())? {
            Some((records, _)) => Ok(records),
            None => Err(Error::file(self.state.journal(), "disappeared; start again")),
        }
    }

    /// The coordinator's proposal, if it does not know of the run that this party has started and nothing was
    /// summed in it yet.
    pub fn other_than(&self, head: &PartyHead) -> Result<Option<Box<Terms>>> {
        self.connection.set_run(Some(head.run.0));
        loop {
            match self.connection.next(None) {
                Some(ConnectionEvent::Welcome { run: None, terms, .. }) => {
                    self.connection.set_run(None);
                    return Ok(Some(terms));
                }
                Some(ConnectionEvent::Welcome { run: Some(run), .. }) if run == head.run.0 => {
                    return Ok(None);
                }
                Some(ConnectionEvent::Welcome { .. }) => return Err(self.no_state()),
                Some(ConnectionEvent::Failed(error)) => return Err(error),
                _ => {}
            }
        }
    }

    fn no_state(&self) -> Error {
        self.connection.say(FromParty::Stopping { reason: Reason::State });
        Error::State {
            problem: format!(
                "a run is in progress, but {} has no state of it; restore the state, or let the coordinator start a \
                 new run",
                self.state.path.display()
            ),
        }
    }

    /// Negotiates until all parties agree; starts with the proposal, if it is known.
    pub fn agree(&self, proposed: Option<Box<Terms>>) -> Result<BegunRun> {
        let agreed = self.negotiate(proposed);
        if let Err(error) = &agreed {
            let reason = match error {
                Error::Policy { .. } => Reason::Policy,
                Error::Disagreement { .. } | Error::Dishonest { .. } => Reason::Disagreement,
                _ => Reason::Trouble,
            };
            self.connection.say(FromParty::Stopping { reason });
            // Gives the last message time to arrive.
            std::thread::sleep(Duration::from_millis(100));
        }
        agreed
    }

    fn negotiate(&self, mut proposed: Option<Box<Terms>>) -> Result<BegunRun> {
        let own = Fingerprint::of(self.identity.key().bytes());
        loop {
            let terms = match proposed.take() {
                Some(terms) => terms,
                None => self.proposal()?,
            };
            check_data(self.party, &terms, self.given, &own)?;
            self.books.accept(self.party, &terms)?;
            self.connection.expect(&terms, self.given.matrix.rows());
            let log = &self.options.log;
            let text = "connected; waiting for all parties";
            log.say_of(COORDINATOR, Level::Info, text, json!({ "event": "connected" }));
            match self.negotiate_on(*terms, &own)? {
                Negotiated::Begun(begun) => return Ok(*begun),
                Negotiated::Again(terms) => proposed = terms,
            }
        }
    }

    /// The coordinator's proposal.
    fn proposal(&self) -> Result<Box<Terms>> {
        loop {
            match self.connection.next(None) {
                Some(ConnectionEvent::Welcome { run: Some(_), .. }) => return Err(self.no_state()),
                Some(ConnectionEvent::Welcome { terms, time, .. }) => {
                    if let Some(problem) = clock_problem(unix_seconds() - time) {
                        self.options.log.say_of(
                            COORDINATOR,
                            Level::Warn,
                            &problem,
                            json!({ "event": "clock" }),
                        );
                    }
                    return Ok(terms);
                }
                Some(ConnectionEvent::Failed(error)) => return Err(error),
                _ => {}
            }
        }
    }

    fn say(&self, words: FromParty) {
        #[cfg(test)]
        if self.options.mischief {
            self.connection.say(words.clone());
        }
        self.connection.say(words);
    }

    /// Agrees on these terms, or starts over if the connection was lost meanwhile.
    fn negotiate_on(&self, terms: Terms, own: &Fingerprint) -> Result<Negotiated> {
        let place = self.party.accept(&terms, own)?;
        let mut talk: Option<Talk> = None;
        let mut attempts = 0;
        let mut begun: Option<PartyHead> = None;
        loop {
            let words = match self.connection.next(None) {
                Some(ConnectionEvent::Said(words)) => words,
                Some(ConnectionEvent::Failed(error)) => return Err(error),
                Some(ConnectionEvent::Lost) => return self.lost(begun),
                // A connection sends one welcome.
                _ => continue,
            };
            match (words, &mut talk) {
                (ToParty::Propose { .. }, _) if attempts == MOST_ATTEMPTS => {
                    let problem = format!("{MOST_ATTEMPTS} attempts at an agreement without completing one");
                    return Err(Error::Dishonest { problem });
                }
                (ToParty::Propose { attempt }, _) => {
                    attempts += 1;
                    begun = None;
                    let negotiation = self.offer(&terms, place, attempt)?;
                    talk = Some(Talk { attempt, negotiation });
                }
                (ToParty::Offers { attempt, offers }, Some(talk)) if attempt == talk.attempt => {
                    let agree = talk.negotiation.agree(&offers)?;
                    self.say(FromParty::Agree { attempt, agree: Box::new(agree) });
                }
                (ToParty::Accords { attempt, accords }, Some(talk)) if attempt == talk.attempt => {
                    let agreed = talk.negotiation.conclude(&accords)?;
                    self.books.remember(&terms, place, &agreed, &self.options.log)?;
                    let head = self.head(&terms, place, &agreed)?;
                    JournalFile::create(&self.state.journal(), &head)?;
                    self.connection.set_run(Some(agreed.run));
                    begun = Some(head);
                    self.say(FromParty::Ready { attempt });
                }
                (ToParty::Begin, _) => {
                    let problem = || Error::Dishonest { problem: "a start without an agreement".into() };
                    return self.begin(begun.take().ok_or_else(problem)?);
                }
                _ => {}
            }
        }
    }

    /// Makes an offer.
    fn offer<'t>(&'t self, terms: &'t Terms, place: u16, attempt: u32) -> Result<Negotiation<'t>> {
        let features = Features { count: self.given.matrix.rows(), names: self.given.names.as_deref() };
        let (identity, ledgers) = (self.identity, self.books);
        let party = Negotiator { terms, place, identity, features, ledgers, version: crate::VERSION };
        let negotiation = Negotiation::new(party, attempt, &mut partwise_secure::entropy()?);
        self.say(FromParty::Offer { attempt, offer: Box::new(negotiation.offer()) });
        Ok(negotiation)
    }

    /// The connection was lost, perhaps after the run had started.
    fn lost(&self, begun: Option<PartyHead>) -> Result<Negotiated> {
        let Some(head) = begun else { return Ok(Negotiated::Again(None)) };
        match self.other_than(&head)? {
            None => self.begin(head),
            terms => Ok(Negotiated::Again(terms)),
        }
    }

    fn head(&self, terms: &Terms, place: u16, agreed: &RunIdentity) -> Result<PartyHead> {
        Ok(PartyHead {
            run: Hex(agreed.run),
            terms: terms.clone(),
            keys: agreed.keys.iter().map(|key| Hex(*key.bytes())).collect(),
            place,
            public_seed: self.options.hooks.public_seed(agreed.public_seed, terms.settings.seed),
            private_seed: self.options.hooks.private_seed(place)?,
            data: self.given.digest.clone(),
        })
    }

    fn begin(&self, head: PartyHead) -> Result<Negotiated> {
        let text = format!("all {} parties agree; starting the run", head.terms.roster.len());
        self.options.log.info(&text, json!({ "event": "begin", "run": head.run }));
        Ok(Negotiated::Begun(Box::new(BegunRun { head, journal: self.reopened()? })))
    }
}

/// An attempt to agree.
struct Talk<'a> {
    attempt: u32,
    negotiation: Negotiation<'a>,
}

/// The outcome of an attempt.
enum Negotiated {
    /// All parties agree.
    Begun(Box<BegunRun>),
    /// Start over, with the proposal if it is known.
    Again(Option<Box<Terms>>),
}
