//! State that all connections of a coordinator share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};

use super::admission::Admission;
use super::doorway::Doorway;
use super::driver::PartyEvent;
use super::listener::most_half_open;
use crate::config::FederationConfig;
use crate::error::Result;
use crate::log::{EventLog, Level};
use crate::status::StatusPage;

/// The number of long messages that are assembled at the same time, for any number of parties.
const STAGED: usize = 4;

/// The number of connections per party: the active one, one that is not yet known to be cut, and checks.
pub const MAX_CONNECTIONS_PER_PARTY: usize = 4;

/// State that all connections share.
pub struct Shared {
    pub federation: FederationConfig,
    pub log: Arc<EventLog>,
    pub status: Arc<StatusPage>,
    pub events: mpsc::Sender<PartyEvent>,
    /// The maximum size of a message of the protocols.
    pub longest: AtomicUsize,
    /// Permits for long messages in transit.
    pub staging: Arc<Semaphore>,
    /// Connections that are not authenticated yet.
    pub doorway: Arc<Doorway>,
    /// The accepted certificates; `None` without TLS.
    pub admission: watch::Sender<Option<Arc<Admission>>>,
    /// By place: permits for connections with this party's certificate.
    pub connections: Vec<Arc<Semaphore>>,
    /// The places of parties with an active connection.
    taken: Mutex<BTreeSet<u16>>,
    /// The number of connections so far.
    pub counter: AtomicU64,
    #[cfg(test)]
    pub tamper: Option<super::Tamper>,
    /// The run in progress.
    run: Mutex<Option<[u8; 32]>>,
}

impl Shared {
    /// Starts without connections; their events go to `events`.
    pub fn new(
        federation: FederationConfig,
        log: Arc<EventLog>,
        events: mpsc::Sender<PartyEvent>,
        admission: Option<Admission>,
    ) -> Result<Self> {
        let most = most_half_open(admission.is_none(), federation.terms.roster.len());
        let limit = |_| Arc::new(Semaphore::new(MAX_CONNECTIONS_PER_PARTY));
        Ok(Shared {
            status: Arc::new(StatusPage::new(&federation.terms, log.clone())),
            log,
            events,
            longest: AtomicUsize::new(0),
            staging: Arc::new(Semaphore::new(STAGED)),
            doorway: Doorway::new(most, partwise_secure::entropy()?),
            admission: watch::Sender::new(admission.map(Arc::new)),
            connections: federation.terms.roster.iter().map(limit).collect(),
            taken: Mutex::default(),
            counter: AtomicU64::new(0),
            #[cfg(test)]
            tamper: None,
            run: Mutex::default(),
            federation,
        })
    }

    /// Logs an event that a party causes.
    pub fn info_of(&self, name: &str, text: &str, facts: Value) {
        self.log.say_of(name, Level::Info, text, facts);
    }

    /// Logs a warning that a party causes, and shows it on the status page.
    pub fn warn_of(&self, name: &str, text: &str, facts: Value) {
        if self.log.say_of(name, Level::Warn, text, facts) {
            self.status.lock().warn(text.into());
        }
    }

    #[cfg(test)]
    pub fn dishonest(mut self, tamper: Option<super::Tamper>) -> Self {
        self.tamper = tamper;
        self
    }

    /// Whether this becomes the party's only active connection; it stays so until it is released.
    pub fn take_place(&self, place: u16) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(place)
    }

    pub fn free_place(&self, place: u16) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }

    pub fn set_longest(&self, longest: usize) {
        self.longest.store(longest, Ordering::Relaxed);
    }

    pub fn run(&self) -> Option<[u8; 32]> {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_run(&self, run: [u8; 32]) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }

    pub fn heartbeat(&self) -> Duration {
        Duration::from_secs_f64(self.federation.terms.heartbeat)
    }
}
