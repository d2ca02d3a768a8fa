//! A party before the run: it agrees with all others, and begins a journal.

use std::time::Duration;

use partwise::Real;
use partwise_secure::aggregation::Identity;
use serde_json::json;

use super::check::{check_data, clock_problem};
use super::connection::{Connection, ConnectionEvent};
use super::folder::StateFolder;
use super::{PartyData, PartyOptions};
use crate::agreement::{Features, Negotiation, Negotiator, RunIdentity, Terms};
use crate::config::PartyConfig;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::journal::{JournalFile, PartyHead};
use crate::text::{Fingerprint, Hex, unix_seconds};

/// A run that this party has agreed to.
pub struct BegunRun {
    /// What was agreed on.
    pub head: PartyHead,
    /// Read up to its first record.
    pub journal: JournalFile,
}

/// Whether the data are those that the run was begun with.
pub fn check_head<T: Real>(head: &PartyHead, given: &PartyData<T>, state: &StateFolder) -> Result<()> {
    if head.data == given.digest {
        return Ok(());
    }
    let problem = "has a run that was begun with other data; give those, or remove it to start a new run";
    Err(Error::file(state.journal(), problem))
}

/// A party before the run.
pub struct Joining<'a, T> {
    pub party: &'a PartyConfig,
    pub identity: &'a Identity,
    pub given: &'a PartyData<T>,
    pub options: &'a PartyOptions,
    pub connection: &'a Connection,
    pub state: &'a StateFolder,
}

impl<T: Real> Joining<'_, T> {
    /// The journal that was just begun or found, from its beginning.
    pub fn reopened(&self) -> Result<JournalFile> {
        match JournalFile::open::<PartyHead>(&self.state.journal())? {
            Some((records, _)) => Ok(records),
            None => Err(Error::file(self.state.journal(), "vanished; start again")),
        }
    }

    /// What the coordinator proposes instead of a run that nothing was summed in yet, if it does not know of that.
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
                "a run is under way that this party has no state of in {}; restore it, or let the coordinator start a new run",
                self.state.path.display()
            ),
        }
    }

    /// Until all parties have agreed with each other; begins with what is proposed, if that is known.
    pub fn agree(&self, proposed: Option<Box<Terms>>) -> Result<BegunRun> {
        let agreed = self.negotiate(proposed);
        if let Err(error) = &agreed {
            let reason = match error {
                Error::Policy { .. } => Reason::Policy,
                Error::Disagreement { .. } | Error::Dishonest { .. } => Reason::Disagreement,
                _ => Reason::Trouble,
            };
            self.connection.say(FromParty::Stopping { reason });
            // What was said should arrive.
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
            self.connection.expect(&terms, self.given.matrix.rows());
            let log = &self.options.log;
            log.info("connected; waits until all parties are there", json!({ "event": "connected" }));
            match self.negotiate_on(*terms, &own)? {
                Negotiated::Begun(begun) => return Ok(*begun),
                Negotiated::Again(terms) => proposed = terms,
            }
        }
    }

    /// What the coordinator proposes.
    fn proposal(&self) -> Result<Box<Terms>> {
        loop {
            match self.connection.next(None) {
                Some(ConnectionEvent::Welcome { run: Some(_), .. }) => return Err(self.no_state()),
                Some(ConnectionEvent::Welcome { terms, time, .. }) => {
                    if let Some(problem) = clock_problem(unix_seconds() - time) {
                        self.options.log.warn(&problem, json!({ "event": "clock" }));
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

    /// Agrees on these terms, or begins again where the connection was lost meanwhile.
    fn negotiate_on(&self, terms: Terms, own: &Fingerprint) -> Result<Negotiated> {
        let place = self.party.accept(&terms, own)?;
        let mut talk: Option<Talk> = None;
        let mut begun: Option<PartyHead> = None;
        loop {
            let words = match self.connection.next(None) {
                Some(ConnectionEvent::Said(words)) => words,
                Some(ConnectionEvent::Failed(error)) => return Err(error),
                Some(ConnectionEvent::Lost) => return self.lost(begun),
                // The same connection does not welcome twice.
                _ => continue,
            };
            match (words, &mut talk) {
                (ToParty::Propose { attempt }, _) => {
                    begun = None;
                    let negotiation = self.offer(&terms, place, attempt)?;
                    talk = Some(Talk { attempt, negotiation });
                }
                (ToParty::Offers { attempt, offers }, Some(talk)) if attempt == talk.attempt => {
                    let agree = talk.negotiation.agree(&offers)?;
                    self.say(FromParty::Agree { attempt, agree });
                }
                (ToParty::Accords { attempt, accords }, Some(talk)) if attempt == talk.attempt => {
                    let agreed = talk.negotiation.conclude(&accords)?;
                    let head = self.head(&terms, place, &agreed)?;
                    JournalFile::create(&self.state.journal(), &head)?;
                    self.connection.set_run(Some(agreed.run));
                    begun = Some(head);
                    self.say(FromParty::Ready { attempt });
                }
                (ToParty::Begin, _) => {
                    let problem = || Error::Dishonest { problem: "a beginning without an agreement".into() };
                    return self.begin(begun.take().ok_or_else(problem)?);
                }
                _ => {}
            }
        }
    }

    /// Makes an offer.
    fn offer<'t>(&'t self, terms: &'t Terms, place: u16, attempt: u32) -> Result<Negotiation<'t>> {
        let features = Features { count: self.given.matrix.rows(), names: self.given.names.as_deref() };
        let party = Negotiator { terms, place, identity: self.identity, features, version: crate::VERSION };
        let negotiation = Negotiation::new(party, attempt, &mut partwise_secure::entropy()?);
        self.say(FromParty::Offer { attempt, offer: negotiation.offer() });
        Ok(negotiation)
    }

    /// The connection was lost, perhaps when the run had begun.
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
        let text = format!("all {} parties agree; the run begins", head.terms.roster.len());
        self.options.log.info(&text, json!({ "event": "begin", "run": head.run }));
        Ok(Negotiated::Begun(Box::new(BegunRun { head, journal: self.reopened()? })))
    }
}

/// An attempt to agree that is under way.
struct Talk<'a> {
    attempt: u32,
    negotiation: Negotiation<'a>,
}

/// How an agreement went.
enum Negotiated {
    /// All agree.
    Begun(Box<BegunRun>),
    /// From the beginning, with what is proposed if that is known.
    Again(Option<Box<Terms>>),
}
