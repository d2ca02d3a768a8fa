//! A party in the run.

use std::time::Instant;

use partwise::Real;
use partwise::threads::Threads;
use partwise_secure::Error as SecureError;
use partwise_secure::aggregation::{Cohort, Identity, IdentityKey, Party};
use partwise_secure::protocol::{self, Aggregation, Local, Settings};
use partwise_secure::session::{ALL, Announcement, Session, SessionOptions, SystemClock};
use serde_json::json;

use super::books::Books;
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
use crate::log::EventLog;
use crate::text::Fingerprint;

/// The message for a repeated run.
pub(crate) const RETRY_NOTICE: &str =
    "a party was missing from some sums; the others repeat the run and keep the better result";

/// A party of a run.
pub struct Participant<'a> {
    pub party: &'a PartyConfig,
    pub identity: Identity,
    pub options: &'a PartyOptions,
    pub connection: Connection,
    pub state: StateFolder,
    pub books: Books,
}

impl Participant<'_> {
    /// Runs from the start, or from where the journal ends.
    pub fn take_part<T: Real>(self, given: PartyData<T>, begun: BegunRun) -> Result<Joined<T>> {
        let BegunRun { head, journal } = begun;
        // The earlier agreement must still be allowed by the policy.
        self.party.accept(&head.terms, &Fingerprint::of(self.identity.key().bytes()))?;
        self.connection.set_run(Some(head.run.0));
        let settings = &Settings { seed: head.public_seed, ..head.terms.settings.clone() };
        let plain = settings.aggregation == Aggregation::Plain;
        let (own, others) = self.cohorts(&head)?;
        let machine = |cohort| Ok(Party::new(cohort, head.place, self.identity.clone(), plain)?);
        let machines = own.into_iter().map(machine).collect::<Result<Vec<Party>>>()?;
        let group = machines.last().map_or(ALL, |machine| machine.cohort().number);
        let threads = Threads::new(self.options.threads)?.with_cancel(&self.options.cancel);
        let mut local = Local::new(given.matrix, settings, threads)?;
        let mut session_options = SessionOptions::new(partwise_secure::entropy()?, SystemClock::start());
        session_options.journal = Some(Box::new(PartyJournal(journal)));
        session_options.most_rounds = Some(settings.most_rounds(head.terms.groups.len()));
        session_options.most_sums = Some(self.party.policy.most_sums(&head.terms));
        session_options.watch = Some(self.watch());
        session_options.safeguards = self.party.policy.safeguards;
        self.tell_openings(&head, local.features(), local.records());
        session_options.before_sum = Some(self.books.before_sum(head.run.0));
        session_options.sketches_before = self.books.sketches_before(head.run.0);
        session_options.other_groups = others;
        let mut session = Session::join(self.link(&head, plain), machines, session_options)?;
        let ended = protocol::run(settings, &mut local, &mut session, head.private_seed, group);
        let sums = session.meter().sums;
        drop(session);
        self.books.end(head.run.0, sums, &ended)?;
        match &ended {
            Err(SecureError::FewRecords { .. }) => self.end_refused(head.run.0)?,
            Err(SecureError::Withheld { reason, .. }) => self.connection.stop(reason.is_some()),
            Err(SecureError::Implausible { .. }) => self.connection.stop(true),
            _ => {}
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
            _books: self.books,
        })
    }

    /// Logs how much the run opens, so that a party can judge what its sums reveal.
    fn tell_openings(&self, head: &PartyHead, features: usize, records: usize) {
        let opened = head.terms.settings.opened_vectors(head.terms.groups.len());
        let per_record = opened as f64 / records.max(1) as f64;
        let text = format!(
            "sums open at most {opened} vectors of {features} numbers, {per_record:.1} per record of this party"
        );
        self.options
            .log
            .info(&text, json!({ "event": "openings", "vectors": opened, "per_record": per_record }));
    }

    /// This party's cohorts, and the groups that it is not in.
    fn cohorts(&self, head: &PartyHead) -> Result<(Vec<Cohort>, Vec<Cohort>)> {
        let keys: Option<Vec<IdentityKey>> =
            head.keys.iter().map(|key| IdentityKey::from_bytes(&key.0)).collect();
        let malformed = "has a malformed identity key; remove it to start a new run";
        let keys = keys.ok_or_else(|| Error::file(self.state.journal(), malformed))?;
        let cohorts = head.terms.cohorts(head.run.0, &keys)?.into_iter();
        Ok(cohorts.partition(|cohort| cohort.members.iter().any(|(member, _)| *member == head.place)))
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

    /// Notifies the coordinator of what all parties know.
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
                Announcement::Features { left_out, zeroed } => return tell_features(&log, left_out, &zeroed),
                Announcement::Norm(norm) => FromParty::Norm { norm },
                Announcement::Error { round, squared_error } => FromParty::Error { round, squared_error },
            });
        })
    }

    /// Ends a run that all parties refuse after the first sums: there is nothing to resume. The coordinator should
    /// have been notified by then, or it would wait for parties that have removed the run.
    fn end_refused(&self, own: [u8; 32]) -> Result<()> {
        let stopping = FromParty::Stopping { reason: Reason::FewRecords };
        self.connection.say(stopping.clone());
        let begin = Instant::now();
        loop {
            match self.connection.next(Some(LEAVE.limit.saturating_sub(begin.elapsed()))) {
                // Messages on an earlier connection may be lost.
                Some(ConnectionEvent::Welcome { run, .. }) if run == Some(own) => {
                    self.connection.say(stopping.clone());
                }
                // The coordinator is at another run, or at none.
                Some(ConnectionEvent::Welcome { .. }) => break,
                Some(ConnectionEvent::Said(ToParty::End) | ConnectionEvent::Failed(_)) | None => break,
                Some(_) => {}
            }
        }
        let journal = self.state.journal();
        std::fs::remove_file(&journal).map_err(Error::io(&journal))
    }
}

/// Logs which features were removed because few records have them. The result is private to this party.
fn tell_features(log: &EventLog, left_out: usize, zeroed: &[usize]) {
    let numbers: Vec<usize> = zeroed.iter().map(|feature| feature + 1).collect();
    let text = format!(
        "{left_out} features are left out because too few parties have them in enough records; {} more occur in \
         too few records of this party and are treated as absent",
        numbers.len()
    );
    log.warn(&text, json!({ "event": "rare-features", "left_out": left_out, "zeroed": numbers }));
}
