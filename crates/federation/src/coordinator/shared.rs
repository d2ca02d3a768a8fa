//! What all connections of a coordinator share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::driver::PartyEvent;
use crate::config::FederationConfig;
use crate::log::EventLog;
use crate::status::StatusPage;

/// Long messages that are put together at once, whatever the number of parties.
const STAGED: usize = 4;

/// Connections at once that have not said who they are, or are nobody's of this federation.
pub const MAX_UNAUTHENTICATED: usize = 64;

/// Connections of one party at once: the one that counts, one that is not yet known to be cut, checks.
pub const MAX_CONNECTIONS_PER_PARTY: usize = 4;

/// What all connections share.
pub struct Shared {
    pub federation: FederationConfig,
    pub log: Arc<EventLog>,
    pub status: Arc<StatusPage>,
    pub events: mpsc::Sender<PartyEvent>,
    /// The longest message of the methods that is accepted.
    pub longest: AtomicUsize,
    /// Long messages that may be on their way at once.
    pub staging: Arc<Semaphore>,
    /// By place: connections that its certificate may still have, whatever they are for.
    pub connections: Vec<Arc<Semaphore>>,
    /// The places of parties that have a connection which counts.
    taken: Mutex<BTreeSet<u16>>,
    /// Connections so far.
    pub counter: AtomicU64,
    #[cfg(test)]
    pub tamper: Option<super::Tamper>,
    /// The run that is under way.
    run: Mutex<Option<[u8; 32]>>,
}

impl Shared {
    /// Nobody is connected yet; what happens on connections goes to `events`.
    pub fn new(federation: FederationConfig, log: Arc<EventLog>, events: mpsc::Sender<PartyEvent>) -> Self {
        let limit = |_| Arc::new(Semaphore::new(MAX_CONNECTIONS_PER_PARTY));
        Shared {
            status: Arc::new(StatusPage::new(&federation.terms, log.clone())),
            log,
            events,
            longest: AtomicUsize::new(0),
            staging: Arc::new(Semaphore::new(STAGED)),
            connections: federation.terms.roster.iter().map(limit).collect(),
            taken: Mutex::default(),
            counter: AtomicU64::new(0),
            #[cfg(test)]
            tamper: None,
            run: Mutex::default(),
            federation,
        }
    }

    #[cfg(test)]
    pub fn dishonest(mut self, tamper: Option<super::Tamper>) -> Self {
        self.tamper = tamper;
        self
    }

    /// Whether this is the party's only connection that counts; if so it stays that until its place is free again.
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
