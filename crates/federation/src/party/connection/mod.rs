//! A party's connection to the coordinator, which it opens, and reopens whenever it is lost.

mod dialer;
mod failure;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use partwise::cancel::{Cancel, PAUSE};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;

use super::PartyOptions;
use crate::agreement::Terms;
use crate::config::PartyConfig;
use crate::deadline::{self, CANCELLED, Deadline, SEND};
use crate::error::{Error, Result};
use crate::frame::{FromParty, Payload, Reason, ToParty};
use crate::ledger::{Cover, Ledger};
use crate::tls;
use dialer::{Content, Dialer, Parcel, TlsEnd};

/// An event of the connection.
pub enum ConnectionEvent {
    /// Connected: the coordinator's proposal, its clock, and the run in progress.
    Welcome { terms: Box<Terms>, time: f64, run: Option<[u8; 32]> },
    /// Another control message.
    Said(ToParty),
    /// A message of the protocols.
    Message(Vec<u8>),
    /// The connection was lost, and is retried.
    Lost,
    /// The connection failed permanently.
    Failed(Error),
}

/// The deadline for the last message of a party that stops.
const FAREWELL: Duration = Duration::from_millis(100);

/// The number of long messages that are read ahead.
const AHEAD: usize = 2;

/// The limits of the connection that follow from the terms.
#[derive(Clone, Copy)]
struct Expected {
    /// The maximum size of a received message of the protocols.
    longest: usize,
    /// The deadline for sending a frame.
    sending: Deadline,
}

/// A handle on the connection.
#[derive(Clone)]
pub struct Connection {
    runtime: Arc<Background>,
    parcels: mpsc::UnboundedSender<Parcel>,
    events: Arc<tokio::sync::Mutex<mpsc::Receiver<ConnectionEvent>>>,
    begin: watch::Sender<bool>,
    run: Arc<Mutex<Option<[u8; 32]>>>,
    expected: Arc<Mutex<Expected>>,
    cancel: Cancel,
}

/// A runtime whose shutdown does not wait long for tasks that cannot be cancelled, such as resolving a name.
struct Background(Option<Runtime>);

impl Background {
    fn block_on<R>(&self, work: impl Future<Output = R>) -> R {
        match &self.0 {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("taken when it is dropped"),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(CANCELLED);
        }
    }
}

impl Connection {
    /// A connection that is opened when it is first needed. Without a ledger it only checks.
    pub fn new(party: &PartyConfig, options: &PartyOptions, ledger: Option<Ledger>) -> Result<Self> {
        let tls = match options.insecure {
            true => None,
            false => {
                tls::check_client(party)?;
                let connector = TlsConnector::from(tls::client(&party.tls)?);
                Some(TlsEnd { connector, server: tls::server_name(&party.server_name)? })
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime =
            runtime.map_err(|error| Error::State { problem: format!("cannot start threads: {error}") })?;
        let run = Arc::new(Mutex::new(None));
        let expected = Arc::new(Mutex::new(Expected { longest: 0, sending: SEND }));
        let (parcels, outbox) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(AHEAD);
        let (begin, mut begun) = watch::channel(false);
        let check = ledger.is_none();
        let dialer = Dialer {
            party: party.clone(),
            tls,
            log: options.log.clone(),
            run: run.clone(),
            expected: expected.clone(),
            hooks: options.hooks.clone(),
            check,
            ledger,
        };
        runtime.spawn(async move {
            if begun.wait_for(|begun| *begun).await.is_ok() {
                dialer.run(outbox, sender).await;
            }
        });
        let events = Arc::new(tokio::sync::Mutex::new(events));
        let runtime = Arc::new(Background(Some(runtime)));
        let cancel = options.cancel.clone();
        Ok(Connection { runtime, parcels, events, begin, run, expected, cancel })
    }

    /// The run that this party has started.
    pub fn set_run(&self, run: Option<[u8; 32]>) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// Sets the limits that follow from the terms and the number of features; before that, no message of the
    /// protocols is accepted.
    pub fn expect(&self, terms: &Terms, features: usize) {
        let longest = terms.longest_answer(features);
        let sending = deadline::sending(terms.deadline, terms.roster.len());
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = Expected { longest, sending };
    }

    /// Opens the connection, if it is not open yet.
    pub fn begin(&self) {
        self.begin.send_replace(true);
    }

    fn send(&self, kind: &'static str, cover: Cover, content: Content) {
        // If the task has ended, its last event has the reason.
        let _ = self.parcels.send(Parcel { kind, cover, content });
    }

    /// Sends a control message. Messages without a connection are lost.
    pub fn say(&self, words: FromParty) {
        self.send("control", Cover::Public, Content::Say(words));
    }

    /// Notifies the coordinator that this party stops. The ledger distinguishes stops by the party's own
    /// checks; the message is the same.
    pub fn stop(&self, by_own_checks: bool) {
        let kind = if by_own_checks { "stop by own checks" } else { "control" };
        let stopping = FromParty::Stopping { reason: Reason::Trouble };
        self.send(kind, Cover::Public, Content::Say(stopping));
        // The last message should still arrive.
        std::thread::sleep(FAREWELL);
    }

    /// Sends a message of the protocols.
    pub fn message(&self, kind: &'static str, cover: Cover, bytes: Vec<u8>) {
        self.send(kind, cover, Content::Long(Payload::Message, bytes.into()));
    }

    /// Sends U.
    pub fn factor(&self, bytes: Vec<u8>) {
        self.send("U", Cover::Public, Content::Long(Payload::Factor, bytes.into()));
    }

    /// The next event, if there is one within this time.
    pub fn next(&self, patience: Option<Duration>) -> Option<ConnectionEvent> {
        let gone =
            || ConnectionEvent::Failed(Error::State { problem: "the connection ended; start again".into() });
        self.begin();
        let begin = Instant::now();
        loop {
            self.cancel.check();
            let left = patience.map(|patience| patience.saturating_sub(begin.elapsed()));
            let pause = left.map_or(PAUSE, |left| left.min(PAUSE));
            let event = self.runtime.block_on(async {
                let mut events = self.events.lock().await;
                tokio::time::timeout(pause, events.recv()).await
            });
            match event {
                Ok(event) => return Some(event.unwrap_or_else(gone)),
                Err(_) if left == Some(pause) => return None,
                Err(_) => {}
            }
        }
    }
}
