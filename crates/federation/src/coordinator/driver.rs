//! The coordinator's main loop: first the agreement, then the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::gathering::{GatheredRun, Gathering};
use super::outbox::{Outbox, OutboxItem};
use super::running::Running;
use super::shared::Shared;
use super::{FederationOutcome, journal_path};
use crate::deadline::LEAVE;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::io::Counts;
use crate::status::Presence;

/// The interval at which deadlines are checked.
const TICK: Duration = Duration::from_millis(200);

/// An event on a connection.
pub enum PartyEvent {
    /// A party has connected.
    Entered(Entrance),
    /// A control message.
    Said { place: u16, connection: u64, words: FromParty },
    /// A message of the protocols. Staging has room for the next one once this is handled.
    Message { place: u16, connection: u64, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// The party's U.
    Factor { place: u16, connection: u64, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// The party has disconnected.
    Gone { place: u16, connection: u64 },
}

/// A party that has connected.
pub struct Entrance {
    /// The place of the party.
    pub place: u16,
    /// The number of its connection.
    pub connection: u64,
    /// The queue of messages to it.
    pub outbox: Outbox,
    /// The run that it has started before.
    pub run: Option<[u8; 32]>,
    /// The bytes of its connection.
    pub counts: Arc<Counts>,
}

/// A connection to a party.
struct PresentParty {
    connection: u64,
    outbox: Outbox,
}

/// The connected parties.
pub struct Present {
    shared: Arc<Shared>,
    parties: BTreeMap<u16, PresentParty>,
}

impl Present {
    /// Sends a message, if the party is connected.
    pub fn send(&self, place: u16, item: OutboxItem) {
        if let Some(party) = self.parties.get(&place) {
            // The disconnection of a party that has just left is handled separately.
            let _ = party.outbox.send(item);
        }
    }

    /// Sends a control message to all parties.
    pub fn say(&self, words: &ToParty) {
        self.parties.keys().for_each(|&place| self.send(place, OutboxItem::Say(words.clone())));
    }

    /// Whether a party is connected.
    pub fn has(&self, place: u16) -> bool {
        self.parties.contains_key(&place)
    }

    /// The connected parties.
    pub fn places(&self) -> Vec<u16> {
        self.parties.keys().copied().collect()
    }

    /// Records that a party has received its result.
    pub fn finished(&self, place: u16) {
        self.shared.status.lock().parties[usize::from(place) - 1].presence = Presence::Finished;
    }

    /// The name of the party at a place.
    pub fn name(&self, place: u16) -> &str {
        self.shared.federation.terms.name(place)
    }
}

/// The phase of the coordinator.
enum Undertaking {
    Gathering(Gathering),
    Running(Box<Running>),
}

/// The coordinator while it runs.
pub struct Driver {
    shared: Arc<Shared>,
    runtime: Handle,
    inbox: mpsc::Receiver<PartyEvent>,
    present: Present,
    undertaking: Undertaking,
}

impl Driver {
    /// Resumes a run in progress, or waits for the parties.
    pub fn new(shared: Arc<Shared>, runtime: Handle, inbox: mpsc::Receiver<PartyEvent>) -> Result<Self> {
        let undertaking = match Running::resume(&shared)? {
            Some(running) => {
                let facts = json!({ "event": "resumed", "sums": running.sums() });
                shared.log.info(&format!("resuming the run after {} sums", running.sums()), facts);
                Undertaking::Running(Box::new(running))
            }
            None => Undertaking::Gathering(Gathering::default()),
        };
        let present = Present { shared: shared.clone(), parties: BTreeMap::new() };
        let mut driver = Driver { shared, runtime, inbox, present, undertaking };
        driver.note_run();
        Ok(driver)
    }

    /// Runs to the end.
    pub fn run(mut self) -> Result<FederationOutcome> {
        let mut ticked = Instant::now();
        loop {
            let next = self.runtime.block_on(async { tokio::time::timeout(TICK, self.inbox.recv()).await });
            if let Ok(Some(event)) = next {
                self.handle(event)?;
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                match &mut self.undertaking {
                    Undertaking::Running(running) => running.tick(&self.present),
                    Undertaking::Gathering(gathering) => gathering.tick(&self.shared, &self.present),
                }
            }
            if let Undertaking::Running(running) = &mut self.undertaking
                && let Some(outcome) = running.outcome(&self.present)
            {
                self.present.say(&ToParty::End);
                self.wait_for_leaving();
                return Ok(outcome);
            }
        }
    }

    /// Waits until all parties have been told that the run is finished, and have left.
    fn wait_for_leaving(&mut self) {
        let until = Instant::now() + LEAVE.limit;
        while !self.present.parties.is_empty() && Instant::now() < until {
            let next = self.runtime.block_on(async { tokio::time::timeout(TICK, self.inbox.recv()).await });
            if let Ok(Some(PartyEvent::Gone { place, connection })) = next {
                self.leave(place, connection);
            }
        }
    }

    fn is_current(&self, place: u16, connection: u64) -> bool {
        self.present.parties.get(&place).is_some_and(|party| party.connection == connection)
    }

    fn leave(&mut self, place: u16, connection: u64) -> bool {
        let current = self.is_current(place, connection);
        if current {
            self.present.parties.remove(&place);
            self.shared.status.lock().parties[usize::from(place) - 1].disconnect();
        }
        current
    }

    fn note_run(&mut self) {
        if let Undertaking::Running(running) = &self.undertaking {
            self.shared.set_run(running.digest());
        }
    }

    fn handle(&mut self, event: PartyEvent) -> Result<()> {
        match event {
            PartyEvent::Entered(entrance) => self.enter(entrance),
            PartyEvent::Gone { place, connection } => {
                if !self.leave(place, connection) {
                    return Ok(());
                }
                let name = self.present.name(place).to_string();
                let text = format!("{name} has disconnected");
                match &mut self.undertaking {
                    Undertaking::Running(running) if running.is_finished(place) => Ok(()),
                    Undertaking::Running(running) => {
                        self.shared.warn_of(&name, &text, json!({ "event": "lost", "party": name }));
                        running.lost(&self.present, place)
                    }
                    Undertaking::Gathering(gathering) => {
                        self.shared.warn_of(&name, &text, json!({ "event": "lost", "party": name }));
                        gathering.interrupt();
                        Ok(())
                    }
                }
            }
            PartyEvent::Said { place, connection, .. }
            | PartyEvent::Message { place, connection, .. }
            | PartyEvent::Factor { place, connection, .. }
                if !self.is_current(place, connection) =>
            {
                Ok(())
            }
            PartyEvent::Said { place, words, .. } => self.said(place, words),
            PartyEvent::Message { place, bytes, permit, .. } => {
                let handled = match &mut self.undertaking {
                    Undertaking::Running(running) => running.message(&self.present, place, bytes),
                    Undertaking::Gathering(_) => {
                        self.shared.log.reject("a message before the run", self.present.name(place));
                        Ok(())
                    }
                };
                drop(permit);
                handled
            }
            PartyEvent::Factor { place, bytes, permit, .. } => {
                if let Undertaking::Running(running) = &mut self.undertaking {
                    running.factor(&self.present, place, bytes);
                }
                drop(permit);
                Ok(())
            }
        }
    }

    fn enter(&mut self, entrance: Entrance) -> Result<()> {
        let Entrance { place, connection, outbox, run, counts } = entrance;
        self.present.parties.insert(place, PresentParty { connection, outbox });
        self.shared.status.lock().parties[usize::from(place) - 1].connect(counts);
        let name = self.present.name(place).to_string();
        match &mut self.undertaking {
            Undertaking::Running(running) if run == Some(running.digest()) => {
                let text = format!("{name} is back");
                self.shared.info_of(&name, &text, json!({ "event": "joined", "party": name }));
                self.present.send(place, OutboxItem::Say(ToParty::Begin));
                running.joined(&self.present, place)
            }
            Undertaking::Running(_) => {
                // The party was told which run this is, and reports why it leaves.
                self.shared.log.reject("a party without the state of this run", &name);
                Ok(())
            }
            Undertaking::Gathering(gathering) => {
                let there = self.present.parties.len();
                let all = self.shared.federation.terms.roster.len();
                let text = format!("{name} has connected ({there} of {all})");
                self.shared.info_of(
                    &name,
                    &text,
                    json!({ "event": "joined", "party": name, "present": there }),
                );
                if there == all {
                    gathering.propose(&self.present);
                }
                Ok(())
            }
        }
    }

    fn said(&mut self, place: u16, words: FromParty) -> Result<()> {
        if let FromParty::Stopping { reason } = words {
            let name = self.present.name(place);
            let text = format!("{name} stops: {}", serde_json::to_string(&reason).unwrap_or_default());
            self.shared.warn_of(name, &text, json!({ "event": "stopping", "party": name, "reason": reason }));
            return match &self.undertaking {
                Undertaking::Running(running)
                    if reason == Reason::FewRecords && running.has_only_counts() =>
                {
                    self.end_refused()
                }
                _ => {
                    self.present.send(place, OutboxItem::Close);
                    Ok(())
                }
            };
        }
        match &mut self.undertaking {
            Undertaking::Running(running) => running.said(&self.present, place, words),
            Undertaking::Gathering(gathering) => {
                let gathered = gathering.said(&self.shared, &self.present, place, words);
                gathered.map_or(Ok(()), |gathered| self.begin(gathered))
            }
        }
    }

    /// All parties refuse the run because of the opened counts, which all of them know: nothing can be resumed.
    fn end_refused(&mut self) -> Result<()> {
        self.present.say(&ToParty::End);
        self.wait_for_leaving();
        let journal = journal_path(&self.shared.federation);
        std::fs::remove_file(&journal).map_err(Error::io(&journal))?;
        let problem = "all parties together have too few records for the number of features, so they refuse the run; \
             see the message of each party";
        Err(Error::State { problem: problem.into() })
    }

    fn begin(&mut self, gathered: GatheredRun) -> Result<()> {
        let running = Running::begin(&self.shared, gathered)?;
        self.undertaking = Undertaking::Running(Box::new(running));
        self.note_run();
        self.shared.log.info("all parties agree; starting the run", json!({ "event": "begin" }));
        self.shared.status.lock().phase = "running";
        self.present.say(&ToParty::Begin);
        Ok(())
    }
}
