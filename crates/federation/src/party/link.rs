//! The connection as the protocols see it: a link that is never lost, only slow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use partwise_secure::aggregation::Message;
use partwise_secure::link::{Incoming, Link};
use partwise_secure::{Error as SecureError, Result as SecureResult};
use serde_json::json;

use super::connection::{Connection, ConnectionEvent};
use super::hooks::Hooks;
use crate::agreement::Terms;
use crate::error::Error;
use crate::frame::ToParty;
use crate::ledger::Cover;
use crate::log::{COORDINATOR, EventLog, Level};

/// A party's end.
pub struct PartyLink {
    pub connection: Connection,
    pub begin: Instant,
    pub plain: bool,
    pub terms: Terms,
    pub run: [u8; 32],
    pub log: Arc<EventLog>,
    pub hooks: Arc<dyn Hooks>,
    #[cfg(test)]
    pub mischief: bool,
}

impl PartyLink {
    /// Translates an event for a run in progress; `None` if the protocols need not know.
    pub fn understand(&self, event: ConnectionEvent) -> Result<Option<Vec<u8>>, Error> {
        match event {
            ConnectionEvent::Message(bytes) => Ok(Some(bytes)),
            ConnectionEvent::Welcome { terms, run, .. } => {
                if run != Some(self.run) || *terms != self.terms {
                    let problem = "the coordinator has another run than this party; restore the coordinator's state, \
                         or remove this party's state to start a new run";
                    return Err(Error::State { problem: problem.into() });
                }
                let text = "connected; the run continues";
                self.log.say_of(COORDINATOR, Level::Info, text, json!({ "event": "connected" }));
                Ok(None)
            }
            ConnectionEvent::Said(ToParty::Waiting { mut parties }) => {
                parties.retain(|name| self.terms.roster.iter().any(|member| member.name == *name));
                parties.truncate(self.terms.roster.len());
                let text = format!("waiting for {}", parties.join(", "));
                let facts = json!({ "event": "waiting", "parties": parties });
                self.log.say_of(COORDINATOR, Level::Warn, &text, facts);
                Ok(None)
            }
            ConnectionEvent::Said(_) | ConnectionEvent::Lost => Ok(None),
            ConnectionEvent::Failed(error) => Err(error),
        }
    }
}

/// Once more, damaged, cut off, for another cohort, of another round, epoch and shape.
#[cfg(test)]
fn misbehave(connection: &Connection, bytes: &[u8]) {
    let changed = |place: usize, by: u8| {
        let mut bytes = bytes.to_vec();
        if let Some(byte) = bytes.get_mut(place) {
            *byte = byte.wrapping_add(by);
        }
        bytes
    };
    let cohort = bytes.len() - 1;
    let mut longer = bytes.to_vec();
    longer.splice(cohort..cohort, [1, 2, 3]);
    let place = partwise_secure::aggregation::SumId { epoch: 0, round: 0, attempt: 0 };
    let words = partwise_secure::aggregation::Words { narrow: vec![1; 3], wide: Vec::new() };
    let early = Message::Upload { place, words, commitment: None, shares: Vec::new() };
    let bad = [
        bytes.to_vec(),
        changed(0, 100),
        bytes[..cohort / 2].to_vec(),
        longer,
        changed(cohort, 9),
        changed(5, 1),
        changed(1, 1),
        partwise_secure::session::addressed(0, &early),
    ];
    // With its key it must not leave, while a sum may still be taken.
    let count = if bytes[0] == 1 { bad.len() - 1 } else { bad.len() };
    for bytes in bad.into_iter().take(count) {
        connection.message("mischief", Cover::Public, bytes);
    }
}

impl Link for PartyLink {
    fn send(&mut self, _: u16, bytes: Vec<u8>) -> SecureResult<()> {
        self.connection.begin();
        let kind = Message::kind_of(&bytes);
        let cover = match (kind == "upload", self.plain) {
            (true, false) => Cover::Masked,
            (true, true) => Cover::Plain,
            (false, _) => Cover::Public,
        };
        self.hooks.sending(kind);
        #[cfg(test)]
        let copy = bytes.clone();
        self.connection.message(kind, cover, bytes);
        #[cfg(test)]
        if self.mischief {
            misbehave(&self.connection, &copy);
        }
        self.hooks.sent(kind);
        Ok(())
    }

    fn receive(&mut self, deadline: Option<f64>) -> SecureResult<Incoming> {
        loop {
            let patience = deadline.map(|deadline| Duration::from_secs_f64((deadline - self.now()).max(0.0)));
            let Some(event) = self.connection.next(patience) else { return Ok(Incoming::Deadline) };
            let understood = self.understand(event);
            let stopped = |error: Error| SecureError::Stopped { problem: error.wording() };
            if let Some(bytes) = understood.map_err(stopped)? {
                self.hooks.received(Message::kind_of(&bytes));
                return Ok(Incoming::Message { from: 0, bytes });
            }
        }
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}
