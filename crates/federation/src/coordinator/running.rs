//! A run in progress: passes the parties' messages to the coordinator's state machine, and stores what a restart
//! needs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use partwise::wording::Wording;
use partwise_secure::aggregation::{Cohort, Hub, IdentityKey};
use partwise_secure::coordinator::{Coordinator, CoordinatorAction, CoordinatorRecord, Echo, Violation};
use partwise_secure::link::Incoming;
use partwise_secure::protocol::{Aggregation, Server, upload_sizes};
use serde_json::json;

use super::answering::PatientServer;
use super::driver::Present;
use super::gathering::GatheredRun;
use super::outbox::OutboxItem;
use super::results::{PartyResult, Reception, Results};
use super::shared::Shared;
use super::{FederationOutcome, journal_path};
use crate::error::{Error, Result};
use crate::frame::{FromParty, ToParty};
use crate::journal::{AnswerIndex, CoordinatorEntry, CoordinatorHead, JournalFile};
use crate::log::Level;
use crate::party::RETRY_NOTICE;
use crate::status::CurvePoint;
use crate::text::Hex;

/// A run.
pub struct Running {
    shared: Arc<Shared>,
    head: CoordinatorHead,
    coordinator: Coordinator<'static>,
    journal: JournalFile,
    answers: AnswerIndex,
    sums: u64,
    norm: Option<f64>,
    begin: Instant,
    results: Results,
    /// Whether the second attempt was announced.
    is_retry_said: bool,
}

impl Running {
    /// A new run.
    pub fn begin(shared: &Arc<Shared>, gathered: GatheredRun) -> Result<Self> {
        let head = CoordinatorHead {
            run: Hex(gathered.run),
            terms: shared.federation.terms.clone(),
            keys: gathered.keys,
            features: gathered.features,
        };
        let journal = JournalFile::create(&journal_path(&shared.federation), &head)?;
        Running::new(shared, head, journal)
    }

    /// Opens the run in progress, if there is one.
    pub fn resume(shared: &Arc<Shared>) -> Result<Option<Self>> {
        let path = journal_path(&shared.federation);
        let Some((journal, head)) = JournalFile::open::<CoordinatorHead>(&path)? else { return Ok(None) };
        if head.terms != shared.federation.terms {
            let problem = format!(
                "contains a run with other settings than {}; restore the settings, or remove the file to start a new run",
                shared.federation.path.display()
            );
            return Err(Error::file(path, problem));
        }
        let mut running = Running::new(shared, head, journal)?;
        running.restore()?;
        let mut status = shared.status.lock();
        (status.phase, status.sums) = ("running", running.sums);
        drop(status);
        Ok(Some(running))
    }

    fn new(shared: &Arc<Shared>, head: CoordinatorHead, journal: JournalFile) -> Result<Self> {
        shared.set_longest(head.terms.longest_message(head.features));
        Ok(Running {
            shared: shared.clone(),
            coordinator: coordinator_of(&head)?,
            answers: AnswerIndex::new(&journal_path(&shared.federation)),
            journal,
            sums: 0,
            norm: None,
            begin: Instant::now(),
            results: Results::default(),
            is_retry_said: false,
            head,
        })
    }

    /// Restores the state from the journal; no party is connected yet.
    fn restore(&mut self) -> Result<()> {
        let mut seconds = 0f64;
        while let Some(bytes) = self.journal.next()? {
            let offset = self.journal.offset_of(&bytes);
            match CoordinatorEntry::decode(&bytes) {
                Some(CoordinatorEntry::Norm(norm)) => self.norm = Some(norm),
                Some(CoordinatorEntry::Error(point)) => {
                    seconds = seconds.max(point.seconds);
                    self.shared.status.lock().add_point(point);
                }
                Some(CoordinatorEntry::Sums(record)) => {
                    if let CoordinatorRecord::Answer { cohort, now, reply, .. } = &record {
                        self.answers.record_answer(*cohort, offset, reply.encode().len());
                        self.sums += 1;
                        seconds = now.max(seconds);
                    }
                    self.coordinator.restore(record);
                }
                None => break,
            }
        }
        self.coordinator.restart(seconds);
        // The clock continues where it stopped.
        let before = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.begin = self.begin.checked_sub(before).unwrap_or(self.begin);
        Ok(())
    }

    /// Seconds of the run so far.
    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.head.terms.deadline)
    }

    /// The run's digest.
    pub fn digest(&self) -> [u8; 32] {
        self.head.run.0
    }

    /// Whether the parties have only summed their numbers of records so far.
    pub fn has_only_counts(&self) -> bool {
        self.sums > 0 && self.norm.is_none()
    }

    /// Number of opened sums.
    pub fn sums(&self) -> u64 {
        self.sums
    }

    /// Whether a party has its result.
    pub fn is_finished(&self, place: u16) -> bool {
        self.results.has(place)
    }

    /// The group of a party, where the sums of other groups are passed on.
    fn group_of(&self, party: u16) -> Option<u8> {
        let is_masked = self.head.terms.settings.aggregation == Aggregation::Secure;
        let mut groups = (1..).zip(&self.head.terms.groups).filter(|_| is_masked);
        groups.find(|(_, members)| members.contains(&party)).map(|(number, _)| number)
    }

    fn may_leave(&self) -> bool {
        self.head.terms.settings.accepted.going_on_shows_the_leaver
    }

    /// A party has reconnected.
    pub fn joined(&mut self, present: &Present, place: u16) -> Result<()> {
        let name = present.name(place).to_string();
        self.shared.status.lock().waiting.retain(|waiting| *waiting != name);
        self.handle(present, Incoming::Joined(place))
    }

    /// A party has disconnected.
    pub fn lost(&mut self, present: &Present, place: u16) -> Result<()> {
        self.results.lost(place, present);
        self.handle(present, Incoming::Lost(place))
    }

    /// Handles a message of the protocols.
    pub fn message(&mut self, present: &Present, place: u16, bytes: Vec<u8>) -> Result<()> {
        self.handle(present, Incoming::Message { from: place, bytes })
    }

    /// Passes an event to the state machine, and performs its actions.
    fn handle(&mut self, present: &Present, incoming: Incoming) -> Result<()> {
        let actions = self.coordinator.handle(incoming, self.now())?;
        actions.into_iter().try_for_each(|action| self.act(present, action))
    }

    fn act(&mut self, present: &Present, action: CoordinatorAction) -> Result<()> {
        match action {
            CoordinatorAction::Record(record) => self.record(record)?,
            #[cfg(test)]
            CoordinatorAction::Send { to, bytes } if self.shared.tamper.is_some() => {
                for place in to {
                    let other = self.shared.tamper.as_ref().and_then(|tamper| tamper(place, &bytes));
                    let bytes = Bytes::from(other.unwrap_or_else(|| bytes.clone()));
                    present.send(place, OutboxItem::Message(bytes));
                }
            }
            CoordinatorAction::Send { to, bytes } => {
                let bytes = Bytes::from(bytes);
                to.into_iter().for_each(|place| present.send(place, OutboxItem::Message(bytes.clone())));
            }
            CoordinatorAction::CatchUp { to, cohort, round } => {
                let answers = self.answers.since(cohort, round, self.group_of(to));
                let path = self.answers.path().into();
                let text =
                    format!("{} missed {} answers and receives them now", present.name(to), answers.len());
                let name = present.name(to);
                self.shared.info_of(name, &text, json!({ "event": "catch-up", "party": name }));
                present.send(to, OutboxItem::Answers { path, answers });
            }
            CoordinatorAction::PassOn { to, answers } => {
                for place in to {
                    let (path, answers) = (self.answers.path().into(), self.answers.at(&answers));
                    present.send(place, OutboxItem::Answers { path, answers });
                }
            }
            CoordinatorAction::Wait { party, round, .. } => self.wait(present, party, round),
            CoordinatorAction::Evaluated(line) => self.add_point(line.round, line.squared_error)?,
            CoordinatorAction::Ignored { from, reason } => {
                self.shared.log.reject(reason, present.name(from));
            }
            CoordinatorAction::Rejected { from, violation } => {
                let (reason, name) = (violation.reason(), present.name(from));
                match violation {
                    Violation::Protocol(problem) => {
                        self.shared.log.reject(reason, &format!("{name} ({problem})"))
                    }
                    _ => self.shared.log.reject(reason, name),
                }
            }
        }
        Ok(())
    }

    /// Stores what a restart needs.
    fn record(&mut self, record: CoordinatorRecord) -> Result<()> {
        let answer = match &record {
            CoordinatorRecord::Answer { cohort, reply, .. } => Some((*cohort, reply.encode().len())),
            _ => None,
        };
        let is_epoch = matches!(record, CoordinatorRecord::Epoch { .. });
        let offset = self.journal.append(&CoordinatorEntry::Sums(record).encode())?;
        if let Some((cohort, length)) = answer {
            self.answers.record_answer(cohort, offset, length);
            self.sums += 1;
            self.shared.status.lock().sums = self.sums;
        }
        if is_epoch {
            self.shared.status.lock().epochs += 1;
        }
        Ok(())
    }

    /// Shows and stores the error after a round.
    fn add_point(&mut self, round: usize, squared_error: f64) -> Result<()> {
        let Some(norm) = self.norm else { return Ok(()) };
        let relative_error = (squared_error.max(0.0) / norm).sqrt();
        let point = CurvePoint { round, seconds: self.now(), relative_error };
        if self.shared.status.lock().add_point(point) {
            self.journal.append(&CoordinatorEntry::Error(point).encode())?;
        }
        Ok(())
    }

    fn wait(&mut self, present: &Present, party: u16, round: u64) {
        let name = present.name(party).to_string();
        let mut status = self.shared.status.lock();
        let all_have_results = self.results.places().count() == self.head.terms.roster.len();
        if all_have_results || status.waiting.contains(&name) {
            return;
        }
        status.waiting.push(name.clone());
        let parties = status.waiting.clone();
        drop(status);
        let text = Wording::new(format!(
            "waiting for {name} in sum {round}; start it again and it resumes from its own state ("
        ))
        .field("continue_without")
        .text(" continues without it, if all parties allow that)");
        let text = self.shared.log.in_words(&text);
        let facts = json!({ "event": "waiting", "party": name, "sum": round });
        self.shared.log.say_of(&name, Level::Warn, &text, facts);
        present.say(&ToParty::Waiting { parties });
    }

    /// Checks which parties keep the others waiting.
    pub fn tick(&mut self, present: &Present) {
        if !self.results.is_empty() {
            return;
        }
        let patience = self.patience().as_secs_f64();
        let overdue = self.coordinator.overdue(self.now(), patience);
        for place in overdue.into_iter().filter(|place| present.has(*place)) {
            let name = present.name(place);
            let text = format!("{name} is connected but unresponsive for {patience:.0} s");
            self.shared.warn_of(name, &text, json!({ "event": "hangs", "party": name }));
            if self.may_leave() {
                present.send(place, OutboxItem::Close);
            }
        }
    }

    /// Handles a control message.
    pub fn said(&mut self, present: &Present, place: u16, words: FromParty) -> Result<()> {
        match words {
            FromParty::Norm { norm } => {
                if norm > 0.0 && self.norm.is_none() {
                    self.norm = Some(norm);
                    self.journal.append(&CoordinatorEntry::Norm(norm).encode())?;
                }
            }
            FromParty::Error { round, squared_error } if round <= self.head.terms.settings.all_rounds(1) => {
                self.add_point(round, squared_error)?
            }
            FromParty::Retry if self.may_leave() => {
                if !std::mem::replace(&mut self.is_retry_said, true) {
                    self.shared.log.warn(RETRY_NOTICE, json!({ "event": "anew" }));
                    self.shared.status.lock().warn(RETRY_NOTICE.into());
                }
            }
            FromParty::Finished { factor, relative_error, rounds, attempts, stopped_by, .. } => {
                let factor = factor.0;
                let result = PartyResult { factor, relative_error, rounds, attempts, stopped_by };
                self.finished(present, place, result);
            }
            _ => self.shared.log.reject("a message out of turn", present.name(place)),
        }
        Ok(())
    }

    /// A party has reported its result.
    fn finished(&mut self, present: &Present, place: u16, result: PartyResult) {
        let name = present.name(place);
        match self.results.take(place, result) {
            Reception::Contradiction => return self.shared.log.reject("a second result", name),
            Reception::Repeated => {}
            Reception::New => {
                let text = format!("{name} has its result");
                self.shared.log.info(&text, json!({ "event": "finished", "party": name }));
            }
        }
        present.finished(place);
        self.results.ask(present);
    }

    /// U has arrived.
    pub fn factor(&mut self, present: &Present, place: u16, bytes: Vec<u8>) {
        if !self.results.take_factor(place, bytes) {
            self.shared.log.reject("a factor that was not asked for", present.name(place));
        }
    }

    /// Whether the run is finished: all parties that can be waited for have their results.
    pub fn outcome(&mut self, present: &Present) -> Option<FederationOutcome> {
        if !self.results.has_factor() {
            return None;
        }
        let all = 1..=self.head.terms.roster.len() as u16;
        let missing: Vec<u16> = all.filter(|place| !self.results.has(*place)).collect();
        let gone = missing.iter().all(|place| !present.has(*place));
        let waited = self.results.waited(self.patience());
        if !(missing.is_empty() || waited || gone && self.may_leave()) {
            return None;
        }
        let first = self.results.first()?.clone();
        let mut status = self.shared.status.lock();
        status.phase = "done";
        let seconds = self.now();
        status.add_point(CurvePoint { round: first.rounds, seconds, relative_error: first.relative_error });
        let name = |place: u16| self.head.terms.name(place).to_string();
        Some(FederationOutcome {
            factor: self.results.collected_factor()?,
            relative_error: first.relative_error,
            rounds: first.rounds,
            attempts: first.attempts,
            stopped_by: first.stopped_by,
            trace: status.curve.clone(),
            run: self.head.run.to_string(),
            finished: self.results.places().map(name).collect(),
            agreed: self.results.agree(),
            missing: missing.into_iter().map(name).collect(),
            bytes: status.bytes(),
            sums: self.sums,
            epochs: status.epochs + 1,
            features: self.head.features,
            journal: journal_path(&self.shared.federation),
        })
    }
}

/// The state machine of a run.
fn coordinator_of(head: &CoordinatorHead) -> Result<Coordinator<'static>> {
    let keys: Option<Vec<IdentityKey>> =
        head.keys.iter().map(|key| IdentityKey::from_bytes(&key.0)).collect();
    let keys =
        keys.ok_or_else(|| Error::State { problem: "a malformed identity key; create it again".into() })?;
    let settings = &head.terms.settings;
    let plain = settings.aggregation == Aggregation::Plain;
    let sizes = upload_sizes(settings, head.features);
    let hub = |cohort: Cohort| {
        let (number, mut hub) = (cohort.number, Hub::new(cohort, plain));
        hub.expect(sizes.clone());
        (number, hub)
    };
    let hubs = head.terms.cohorts(head.run.0, &keys)?.into_iter().map(hub).collect();
    let coordinator = match settings.protocol.is_asynchronous() {
        true => {
            let groups: Vec<(u8, usize)> = (1..).zip(head.terms.groups.iter().map(Vec::len)).collect();
            Coordinator::new(hubs, PatientServer(Server::new(settings, &groups)))
        }
        false => Coordinator::new(hubs, Echo),
    };
    Ok(coordinator.keeping_records())
}
