//! A party in the run.

use std::time::Instant;

use partwise::Real;
use partwise::threads::Threads;
use partwise_secure::Error as SecureError;
use partwise_secure::aggregation::{Identity, IdentityKey, Party};
use partwise_secure::protocol::{self, Aggregation, Local, Settings};
use partwise_secure::session::{ALL, Announcement, Session, SessionOptions, SystemClock};
use serde_json::json;

use super::check::refusal;
use super::connection::{Connection, ConnectionEvent};
use super::folder::StateFolder;
use super::joining::BegunRun;
use super::link::PartyLink;
use super::{Joined, PartyData, PartyOptions};
use crate::config::PartyConfig;
use crate::deadline::LEAVE;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::journal::{PartyHead, PartyJournal};
use crate::text::Fingerprint;

/// What is said when a run is done twice.
pub(crate) const RETRY_NOTICE: &str = "somebody was missing in some sums; those who are there do the run once more, and keep \
                                       the better result";

/// A party of a run.
pub struct Participant<'a> {
    pub party: &'a PartyConfig,
    pub identity: Identity,
    pub options: &'a PartyOptions,
    pub connection: Connection,
    pub state: StateFolder,
}

impl Participant<'_> {
    /// Takes part from the beginning, or from where the journal ends.
    pub fn take_part<T: Real>(self, given: PartyData<T>, begun: BegunRun) -> Result<Joined<T>> {
        let BegunRun { head, journal } = begun;
        // What was agreed on before must still be allowed.
        self.party.accept(&head.terms, &Fingerprint::of(self.identity.key().bytes()))?;
        self.connection.set_run(Some(head.run.0));
        let settings = &Settings { seed: head.public_seed, ..head.terms.settings.clone() };
        let plain = settings.aggregation == Aggregation::Plain;
        let machines = self.machines(&head, plain)?;
        let group = machines.last().map_or(ALL, |machine| machine.cohort().number);
        let threads = Threads::new(self.options.threads)?.with_cancel(&self.options.cancel);
        let mut local = Local::new(given.matrix, settings, threads)?;
        let mut session_options = SessionOptions::new(partwise_secure::entropy()?, SystemClock::start());
        session_options.journal = Some(Box::new(PartyJournal(journal)));
        session_options.most_rounds = Some(settings.most_rounds(head.terms.groups.len()));
        session_options.most_sums = Some(self.party.policy.most_sums(&head.terms));
        session_options.watch = Some(self.watch());
        let mut session = Session::join(self.link(&head, plain), machines, session_options)?;
        let ended = protocol::run(settings, &mut local, &mut session, head.private_seed, group);
        drop(session);
        if let Err(SecureError::FewRecords { .. }) = ended {
            self.end_refused(head.run.0)?;
        }
        let ended = ended.map_err(refusal)?;
        let relative = |squared: f64| (squared.max(0.0) / ended.present_norm).sqrt();
        Ok(Joined {
            features: local.features(),
            records: local.records(),
            own_relative_error: (ended.own_squared_error / local.norm()).sqrt(),
            relative_error: relative(ended.squared_error),
            attempts: ended.attempts.iter().copied().map(relative).collect(),
            u: local.u,
            v: local.v,
            ended,
            run: head.run.to_string(),
            link: self.link(&head, plain),
            terms: head.terms,
            state: self.state,
        })
    }

    /// The machines of the cohorts that this party is in.
    fn machines(&self, head: &PartyHead, plain: bool) -> Result<Vec<Party>> {
        let keys: Option<Vec<IdentityKey>> =
            head.keys.iter().map(|key| IdentityKey::from_bytes(&key.0)).collect();
        let malformed = "has a malformed identity key; remove it to start a new run";
        let keys = keys.ok_or_else(|| Error::file(self.state.journal(), malformed))?;
        let cohorts = head.terms.cohorts(head.run.0, &keys)?.into_iter();
        let own = cohorts.filter(|cohort| cohort.members.iter().any(|(member, _)| *member == head.place));
        own.map(|cohort| Ok(Party::new(cohort, head.place, self.identity.clone(), plain)?)).collect()
    }

    fn link(&self, head: &PartyHead, plain: bool) -> PartyLink {
        PartyLink {
            connection: self.connection.clone(),
            begin: Instant::now(),
            plain,
            terms: head.terms.clone(),
            run: head.run.0,
            log: self.options.log.clone(),
            hooks: self.options.hooks.clone(),
            #[cfg(test)]
            mischief: self.options.mischief,
        }
    }

    /// Tells the coordinator what all parties know.
    fn watch(&self) -> Box<dyn FnMut(Announcement) + Send> {
        let connection = self.connection.clone();
        #[cfg(test)]
        if self.options.mischief {
            for round in [1_000_000, usize::MAX] {
                connection.say(FromParty::Error { round, squared_error: 1.0 });
            }
        }
        let log = self.options.log.clone();
        Box::new(move |announcement| {
            connection.say(match announcement {
                Announcement::Retry => {
                    log.warn(RETRY_NOTICE, json!({ "event": "anew" }));
                    FromParty::Retry
                }
                Announcement::Norm(norm) => FromParty::Norm { norm },
                Announcement::Error { round, squared_error } => FromParty::Error { round, squared_error },
            });
        })
    }

    /// Ends a run that was refused by what all parties know after its first sums: there is nothing to go on with. The
    /// coordinator should have heard of it by then, or it would wait for parties that have forgotten the run.
    fn end_refused(&self, own: [u8; 32]) -> Result<()> {
        let stopping = FromParty::Stopping { reason: Reason::FewRecords };
        self.connection.say(stopping.clone());
        let begin = Instant::now();
        loop {
            match self.connection.next(Some(LEAVE.limit.saturating_sub(begin.elapsed()))) {
                // What was said on the connection before may be lost.
                Some(ConnectionEvent::Welcome { run, .. }) if run == Some(own) => {
                    self.connection.say(stopping.clone());
                }
                // It is at another run, or at none.
                Some(ConnectionEvent::Welcome { .. }) => break,
                Some(ConnectionEvent::Said(ToParty::End) | ConnectionEvent::Failed(_)) | None => break,
                Some(_) => {}
            }
        }
        let journal = self.state.journal();
        std::fs::remove_file(&journal).map_err(Error::io(&journal))
    }
}
