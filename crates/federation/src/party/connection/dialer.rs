//! The task that opens a party's connection, and reopens it whenever it is lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::failure::{DialFailure, late, of_handshake, of_status, why};
use super::{ConnectionEvent, Expected};
use crate::config::PartyConfig;
use crate::deadline::{CONNECT, HANDSHAKE, LAST_WORDS, Late, RESOLVE, WELCOME};
use crate::error::{Error, Result};
use crate::frame::{Assembly, Frame, FromParty, Payload, ToParty, read_control};
use crate::ledger::{Cover, Ledger};
use crate::log::{COORDINATOR, EventLog, Level};
use crate::party::Hooks;
use crate::rpc::{self, OpenedStream};
use crate::text::Hex;

/// An outgoing item.
pub struct Parcel {
    pub kind: &'static str,
    pub cover: Cover,
    pub content: Content,
}

/// Its content.
pub enum Content {
    Say(FromParty),
    Long(Payload, Bytes),
}

/// The waiting time before the next attempt.
const PAUSES: [f64; 5] = [0.1, 0.3, 1.0, 2.0, 5.0];

/// How the coordinator is authenticated.
pub struct TlsEnd {
    pub connector: TlsConnector,
    pub server: ServerName<'static>,
}

/// What the connection's task needs.
pub struct Dialer {
    pub party: PartyConfig,
    pub tls: Option<TlsEnd>,
    pub log: Arc<EventLog>,
    pub run: Arc<Mutex<Option<[u8; 32]>>>,
    pub expected: Arc<Mutex<Expected>>,
    pub hooks: Arc<dyn Hooks>,
    pub check: bool,
    pub ledger: Option<Ledger>,
}

impl Dialer {
    /// Connects, and reconnects whenever the connection is lost.
    pub async fn run(
        mut self,
        mut outbox: mpsc::UnboundedReceiver<Parcel>,
        events: mpsc::Sender<ConnectionEvent>,
    ) {
        let mut attempts = 0;
        let mut said = String::new();
        loop {
            match self.dial().await {
                Ok(opened) => {
                    // Messages for an earlier connection belong to an attempt that is over.
                    while outbox.try_recv().is_ok() {}
                    let mut heard = false;
                    match self.attend(opened, &mut outbox, &events, &mut heard).await {
                        Ok(None) => return,
                        // The coordinator closes the connection after answering a check.
                        Ok(Some(_)) if self.check && heard => return,
                        Ok(Some(problem)) if self.check => return self.unreachable(problem, &events).await,
                        Ok(Some(why)) => {
                            if heard {
                                (attempts, said) = (0, String::new());
                            }
                            if why != said {
                                let text =
                                    format!("lost the connection to the coordinator ({why}); retrying");
                                self.log.say_of(COORDINATOR, Level::Warn, &text, json!({ "event": "lost" }));
                                said = why;
                            }
                            if heard && events.send(ConnectionEvent::Lost).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => return drop(events.send(ConnectionEvent::Failed(error)).await),
                    }
                }
                Err(DialFailure::Permanent(error)) => {
                    return drop(events.send(ConnectionEvent::Failed(error)).await);
                }
                Err(DialFailure::Temporary(problem)) if self.check => {
                    return self.unreachable(problem, &events).await;
                }
                Err(DialFailure::Temporary(problem)) => {
                    if problem != said {
                        let text = format!("cannot reach {}: {problem}; retrying", self.party.coordinator);
                        self.log.say_of(COORDINATOR, Level::Warn, &text, json!({ "event": "unreachable" }));
                        said = problem;
                    }
                }
            }
            let pause = PAUSES[attempts.min(PAUSES.len() - 1)];
            attempts += 1;
            tokio::time::sleep(Duration::from_secs_f64(pause)).await;
            if outbox.is_closed() {
                return;
            }
        }
    }

    /// A check is not retried.
    async fn unreachable(&self, problem: String, events: &mpsc::Sender<ConnectionEvent>) {
        let what = self.party.coordinator.clone();
        let problem = format!("{problem}; start the coordinator, or correct {}", self.party.path.display());
        // The receiver may be gone.
        let _ = events.send(ConnectionEvent::Failed(Error::Network { what, problem })).await;
    }

    async fn dial(&mut self) -> Result<OpenedStream, DialFailure> {
        let address = &self.party.coordinator;
        let found = RESOLVE.limit(tokio::net::lookup_host(address)).await.map_err(late)?;
        let found: Vec<SocketAddr> =
            found.map_err(|error| DialFailure::Temporary(error.to_string()))?.collect();
        if self.tls.is_none() && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(DialFailure::Permanent(Error::Exposed {
                peer: "coordinator",
                address: address.clone(),
            }));
        }
        let stream = connect(&found).await?;
        let _ = stream.set_nodelay(true);
        let opened = match &self.tls {
            None => rpc::open(stream, "localhost").await,
            Some(TlsEnd { connector, server }) => {
                let shaken = HANDSHAKE.limit(connector.connect(server.clone(), stream)).await;
                let stream = shaken.map_err(late)?.map_err(of_handshake)?;
                rpc::open(stream, &self.party.server_name).await
            }
        };
        let opened = opened.map_err(|status| of_status(&status))?;
        let run = *self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let enter = FromParty::Enter {
            federation: self.party.federation.clone(),
            name: self.party.name.clone(),
            version: crate::VERSION.into(),
            check: self.check,
            run: run.map(Hex),
        };
        // A refused party cannot send, but can read the reason.
        let parcel = Parcel { kind: "control", cover: Cover::Public, content: Content::Say(enter) };
        self.deliver(parcel, &opened.outgoing).await.map_err(DialFailure::Permanent)?;
        Ok(opened)
    }

    /// Runs until the connection ends; returns the reason, unless this side closed it.
    async fn attend(
        &mut self,
        opened: OpenedStream,
        outbox: &mut mpsc::UnboundedReceiver<Parcel>,
        events: &mpsc::Sender<ConnectionEvent>,
        heard: &mut bool,
    ) -> Result<Option<String>> {
        let OpenedStream { mut ingoing, outgoing, mut closed } = opened;
        let mut assembly = Assembly::default();
        let welcome = tokio::time::sleep(WELCOME.limit);
        tokio::pin!(welcome);
        loop {
            let event = tokio::select! {
                parcel = outbox.recv() => match parcel {
                    None => return Ok(None),
                    Some(parcel) => match self.deliver(parcel, &outgoing).await? {
                        true => continue,
                        false => return ending(ingoing).await,
                    },
                },
                message = ingoing.message() => match message {
                    Ok(Some(bytes)) => read(bytes, &mut assembly, self.expected().longest)?,
                    Ok(None) => return Ok(Some(BROKE.into())),
                    Err(status) => return why(&status),
                },
                () = &mut welcome, if !*heard => return Ok(Some(WELCOME.late().to_string())),
                // Messages that have already arrived are read first.
                () = async { closed.wait().await; tokio::time::sleep(LAST_WORDS.limit).await } => {
                    return Ok(Some(BROKE.into()));
                }
            };
            *heard = true;
            if let Some(event) = event
                && events.send(event).await.is_err()
            {
                return Ok(None);
            }
        }
    }

    fn expected(&self) -> Expected {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message in the ledger and sends it. What cannot be recorded is not sent.
    async fn deliver(&mut self, parcel: Parcel, outgoing: &mpsc::Sender<Bytes>) -> Result<bool> {
        let Parcel { kind, cover, content } = parcel;
        let (bytes, frames): (Bytes, Vec<Frame>) = match content {
            Content::Say(words) => {
                let bytes = Frame::words(&words);
                (bytes.clone(), vec![Frame::Control(bytes)])
            }
            Content::Long(payload, bytes) => (bytes.clone(), Frame::pieces(payload, bytes).collect()),
        };
        if let Some(ledger) = &mut self.ledger {
            // A disk may be slow; heartbeats continue meanwhile.
            tokio::task::block_in_place(|| ledger.note(kind, cover, &bytes))?;
        }
        for frame in frames {
            match self.expected().sending.limit(outgoing.send(frame.encode())).await {
                Ok(Ok(())) => tokio::task::block_in_place(|| self.hooks.piece_sent(kind)),
                Ok(Err(_)) | Err(Late { .. }) => return Ok(false),
            }
        }
        Ok(true)
    }
}

const BROKE: &str = "it broke";

/// Connects to the first of these addresses that answers.
async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, DialFailure> {
    let mut failure = DialFailure::Temporary("the name has no address".into());
    for address in addresses {
        match CONNECT.limit(TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = DialFailure::Temporary(error.to_string()),
            Err(error) => failure = late(error),
        }
    }
    Err(failure)
}

/// The reason why a connection ended before anything could be sent over it.
async fn ending(mut ingoing: rpc::Ingoing) -> Result<Option<String>> {
    let last = async {
        loop {
            match ingoing.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Some(BROKE.into())),
                Err(status) => return why(&status),
            }
        }
    };
    LAST_WORDS.limit(last).await.unwrap_or(Ok(Some(BROKE.into())))
}

fn read(bytes: Bytes, assembly: &mut Assembly, longest: usize) -> Result<Option<ConnectionEvent>> {
    let dishonest = |problem: &str| Error::Dishonest { problem: problem.into() };
    match Frame::decode(bytes).map_err(dishonest)? {
        Frame::Control(words) => Ok(Some(match read_control(&words).map_err(dishonest)? {
            ToParty::Welcome { terms, time, run } => {
                ConnectionEvent::Welcome { terms, time, run: run.map(|run| run.0) }
            }
            words => ConnectionEvent::Said(words),
        })),
        Frame::Piece(piece) if piece.payload == Payload::Message => {
            let whole = assembly.take(piece, longest).map_err(dishonest)?;
            Ok(whole.map(ConnectionEvent::Message))
        }
        Frame::Piece(_) => Err(dishonest("a factor")),
    }
}
