//! What the coordinator makes of what the parties say: first an agreement, then the run.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::connection::{Item, Outbox};
use super::gathering::{Agreed, Gathering};
use super::running::Running;
use super::{Outcome, Shared, journal_path};
use crate::deadline::LEAVE;
use crate::error::{Error, Result};
use crate::frame::{FromParty, Reason, ToParty};
use crate::io::Counts;
use crate::status::Doing;

/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(200);

/// What happens on a connection.
pub enum Event {
    /// A party is there, with the run that it has begun before.
    Entered { place: u16, connection: u64, outbox: Outbox, run: Option<[u8; 32]>, counts: Arc<Counts> },
    /// It says something.
    Said { place: u16, connection: u64, words: FromParty },
    /// It sends a message of the methods. Staging has room for another when this is dealt with.
    Message { place: u16, connection: u64, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// It sends U.
    Factor { place: u16, connection: u64, bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// It is gone.
    Gone { place: u16, connection: u64 },
}

/// The parties that are there.
pub struct Present {
    shared: Arc<Shared>,
    parties: BTreeMap<u16, (u64, Outbox)>,
}

impl Present {
    /// Sends, if the party is there.
    pub fn send(&self, place: u16, item: Item) {
        if let Some((_, outbox)) = self.parties.get(&place) {
            // Whoever has just left is noticed as such.
            let _ = outbox.send(item);
        }
    }

    /// Says something to all.
    pub fn say(&self, words: &ToParty) {
        self.parties.keys().for_each(|&place| self.send(place, Item::Say(words.clone())));
    }

    /// Whether a party is there.
    pub fn has(&self, place: u16) -> bool {
        self.parties.contains_key(&place)
    }

    /// Who is there.
    pub fn places(&self) -> Vec<u16> {
        self.parties.keys().copied().collect()
    }

    /// The name of a place.
    pub fn name(&self, place: u16) -> &str {
        self.shared.federation.terms.name(place)
    }
}

enum Stage {
    Gathering(Gathering),
    Running(Box<Running>),
}

/// The coordinator at work.
pub struct Driver {
    shared: Arc<Shared>,
    runtime: Handle,
    inbox: mpsc::Receiver<Event>,
    present: Present,
    stage: Stage,
}

impl Driver {
    /// Takes up a run that was under way, or waits for the parties.
    pub fn new(shared: Arc<Shared>, runtime: Handle, inbox: mpsc::Receiver<Event>) -> Result<Self> {
        let stage = match Running::resume(&shared)? {
            Some(running) => {
                let facts = json!({ "event": "resumed", "sums": running.sums() });
                shared.log.info(&format!("goes on with a run, after {} sums", running.sums()), facts);
                Stage::Running(Box::new(running))
            }
            None => Stage::Gathering(Gathering::default()),
        };
        let present = Present { shared: shared.clone(), parties: BTreeMap::new() };
        let mut driver = Driver { shared, runtime, inbox, present, stage };
        driver.note_run();
        Ok(driver)
    }

    /// Runs to the end.
    pub fn run(mut self) -> Result<Outcome> {
        let mut ticked = Instant::now();
        loop {
            let next = self.runtime.block_on(async { tokio::time::timeout(TICK, self.inbox.recv()).await });
            if let Ok(Some(event)) = next {
                self.handle(event)?;
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                if let Stage::Running(running) = &mut self.stage {
                    running.tick(&self.present)?;
                }
            }
            if let Stage::Running(running) = &mut self.stage
                && let Some(outcome) = running.outcome(&self.present)
            {
                self.present.say(&ToParty::End);
                self.wait_for_leaving();
                return Ok(outcome);
            }
        }
    }

    /// Parties leave when they are told that all is done.
    fn wait_for_leaving(&mut self) {
        let until = Instant::now() + LEAVE.limit;
        while !self.present.parties.is_empty() && Instant::now() < until {
            let next = self.runtime.block_on(async { tokio::time::timeout(TICK, self.inbox.recv()).await });
            if let Ok(Some(Event::Gone { place, connection })) = next {
                self.leave(place, connection);
            }
        }
    }

    fn is_current(&self, place: u16, connection: u64) -> bool {
        self.present.parties.get(&place).is_some_and(|(current, _)| *current == connection)
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
        if let Stage::Running(running) = &self.stage {
            *self.shared.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(running.digest());
        }
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Entered { place, connection, outbox, run, counts } => {
                self.enter(place, (connection, outbox), run, counts)
            }
            Event::Gone { place, connection } => {
                if !self.leave(place, connection) {
                    return Ok(());
                }
                let name = self.present.name(place).to_string();
                let text = format!("{name} is gone");
                match &mut self.stage {
                    Stage::Running(running) if running.is_finished(place) => Ok(()),
                    Stage::Running(running) => {
                        self.shared.log.warn(&text, json!({ "event": "lost", "party": name }));
                        self.shared.status.lock().warn(text);
                        running.lost(&self.present, place)
                    }
                    Stage::Gathering(gathering) => {
                        self.shared.log.warn(&text, json!({ "event": "lost", "party": name }));
                        gathering.interrupt();
                        Ok(())
                    }
                }
            }
            Event::Said { place, connection, .. }
            | Event::Message { place, connection, .. }
            | Event::Factor { place, connection, .. }
                if !self.is_current(place, connection) =>
            {
                Ok(())
            }
            Event::Said { place, words, .. } => self.said(place, words),
            Event::Message { place, bytes, permit, .. } => {
                let handled = match &mut self.stage {
                    Stage::Running(running) => running.message(&self.present, place, bytes),
                    Stage::Gathering(_) => {
                        self.shared.log.reject("a message before the run", self.present.name(place));
                        Ok(())
                    }
                };
                drop(permit);
                handled
            }
            Event::Factor { place, bytes, permit, .. } => {
                if let Stage::Running(running) = &mut self.stage {
                    running.factor(&self.present, place, bytes);
                }
                drop(permit);
                Ok(())
            }
        }
    }

    fn enter(
        &mut self,
        place: u16,
        connection: (u64, Outbox),
        run: Option<[u8; 32]>,
        counts: Arc<Counts>,
    ) -> Result<()> {
        self.present.parties.insert(place, connection);
        self.shared.status.lock().parties[usize::from(place) - 1].connect(counts);
        let name = self.present.name(place).to_string();
        match &mut self.stage {
            Stage::Running(running) if run == Some(running.digest()) => {
                self.shared.log.info(&format!("{name} is back"), json!({ "event": "joined", "party": name }));
                self.present.send(place, Item::Say(ToParty::Begin));
                running.joined(&self.present, place)
            }
            Stage::Running(_) => {
                // It was told which run this is, and says why it leaves.
                self.shared.log.reject("a party without the state of this run", &name);
                Ok(())
            }
            Stage::Gathering(gathering) => {
                let there = self.present.parties.len();
                let all = self.shared.federation.terms.roster.len();
                let text = format!("{name} is there, {there} of {all}");
                self.shared.log.info(&text, json!({ "event": "joined", "party": name, "present": there }));
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
            self.shared.log.warn(&text, json!({ "event": "stopping", "party": name, "reason": reason }));
            self.shared.status.lock().warn(text);
            return match &self.stage {
                Stage::Running(running) if reason == Reason::FewRecords && running.has_only_counts() => {
                    self.end_refused()
                }
                _ => {
                    self.present.send(place, Item::Close);
                    Ok(())
                }
            };
        }
        match &mut self.stage {
            Stage::Running(running) => running.said(&self.present, place, words),
            Stage::Gathering(gathering) => {
                let agreed = gathering.said(&self.shared, &self.present, place, words);
                agreed.map_or(Ok(()), |agreed| self.begin(agreed))
            }
        }
    }

    /// All parties refuse the run by the same opened counts, of which all have been told: nothing is left to go on with.
    fn end_refused(&mut self) -> Result<()> {
        self.present.say(&ToParty::End);
        self.wait_for_leaving();
        let journal = journal_path(&self.shared.federation);
        std::fs::remove_file(&journal).map_err(Error::io(&journal))?;
        let problem = "the parties have too few records together for so many features, and refuse the run; each of them says \
                       what to do";
        Err(Error::State { problem: problem.into() })
    }

    fn begin(&mut self, agreed: Agreed) -> Result<()> {
        let running = Running::begin(&self.shared, agreed)?;
        self.stage = Stage::Running(Box::new(running));
        self.note_run();
        self.shared.log.info("all parties agree; the run begins", json!({ "event": "begin" }));
        self.shared.status.lock().phase = "running";
        self.present.say(&ToParty::Begin);
        Ok(())
    }
}

impl Present {
    /// Notes that a party has its result.
    pub fn finished(&self, place: u16) {
        self.shared.status.lock().parties[usize::from(place) - 1].doing = Doing::Finished;
    }
}
