//! A party's connection to the coordinator, which it opens, and opens again whenever it is lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use partwise::cancel::{Cancel, PAUSE};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;
use tonic::{Code, Status};

use super::{Hooks, Options};
use crate::agreement::Terms;
use crate::config::Party;
use crate::deadline::{
    self, CANCELLED, CONNECT, Deadline, HANDSHAKE, LAST_WORDS, Late, RESOLVE, SEND, WELCOME,
};
use crate::error::{Error, Result};
use crate::frame::{Assembly, Frame, FromParty, Long, ToParty, read_control};
use crate::ledger::{Cover, Ledger};
use crate::log::Log;
use crate::rpc::{self, Opened};
use crate::text::Hex;
use crate::tls;

/// What comes.
pub enum Event {
    /// A connection is there; what the coordinator proposes, its clock, and the run that is under way.
    Welcome { terms: Box<Terms>, time: f64, run: Option<[u8; 32]> },
    /// Other words of control.
    Said(ToParty),
    /// A message of the methods.
    Message(Vec<u8>),
    /// The connection is lost, and another will be tried.
    Lost,
    /// There will be none.
    Failed(Error),
}

/// What is to be sent.
struct Parcel {
    kind: &'static str,
    cover: Cover,
    content: Content,
}

enum Content {
    Say(FromParty),
    Long(Long, Bytes),
}

/// How long to wait before another attempt.
const PAUSES: [f64; 5] = [0.1, 0.3, 1.0, 2.0, 5.0];

/// Long messages of the coordinator that are read ahead.
const AHEAD: usize = 2;

/// What the terms say of the connection.
#[derive(Clone, Copy)]
struct Expected {
    /// The longest message of the methods that may come.
    longest: usize,
    /// How long a frame may take to be sent.
    sending: Deadline,
}

/// What the connection's task needs.
struct Dialler {
    party: Party,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    log: Arc<Log>,
    run: Arc<Mutex<Option<[u8; 32]>>>,
    expected: Arc<Mutex<Expected>>,
    hooks: Arc<dyn Hooks>,
    check: bool,
    ledger: Option<Ledger>,
}

/// A handle on the connection.
#[derive(Clone)]
pub struct Connection {
    runtime: Arc<Background>,
    parcels: mpsc::UnboundedSender<Parcel>,
    events: Arc<tokio::sync::Mutex<mpsc::Receiver<Event>>>,
    begin: watch::Sender<bool>,
    run: Arc<Mutex<Option<[u8; 32]>>>,
    expected: Arc<Mutex<Expected>>,
    cancel: Cancel,
}

/// A runtime that does not wait long for what it cannot cancel, such as the resolution of a name.
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
    /// A connection that is opened when it is first needed. Without a ledger it only looks whether all is well.
    pub fn new(party: &Party, options: &Options, ledger: Option<Ledger>) -> Result<Self> {
        let tls = match options.insecure {
            true => None,
            false => {
                tls::check_client(party)?;
                let connector = TlsConnector::from(tls::client(&party.tls)?);
                Some((connector, tls::server_name(&party.server_name)?))
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime =
            runtime.map_err(|error| Error::State { problem: format!("no threads to work with: {error}") })?;
        let run = Arc::new(Mutex::new(None));
        let expected = Arc::new(Mutex::new(Expected { longest: 0, sending: SEND }));
        let (parcels, outbox) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(AHEAD);
        let (begin, mut begun) = watch::channel(false);
        let check = ledger.is_none();
        let dialler = Dialler {
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
                dialler.run(outbox, sender).await;
            }
        });
        let events = Arc::new(tokio::sync::Mutex::new(events));
        let runtime = Arc::new(Background(Some(runtime)));
        let cancel = options.cancel.clone();
        Ok(Connection { runtime, parcels, events, begin, run, expected, cancel })
    }

    /// The run that this party has begun.
    pub fn set_run(&self, run: Option<[u8; 32]>) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// What may come by these terms, of so many features; before, there is no message of the methods.
    pub fn expect(&self, terms: &Terms, features: usize) {
        let longest = terms.longest_message(features);
        let sending = deadline::sending(terms.deadline, terms.roster.len());
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = Expected { longest, sending };
    }

    /// Opens the connection, if it is not yet.
    pub fn begin(&self) {
        self.begin.send_replace(true);
    }

    fn send(&self, kind: &'static str, cover: Cover, content: Content) {
        // If the task is gone, its last event says why.
        let _ = self.parcels.send(Parcel { kind, cover, content });
    }

    /// Says something. What is said while there is no connection is lost.
    pub fn say(&self, words: FromParty) {
        self.send("control", Cover::Public, Content::Say(words));
    }

    /// Sends a message of the methods.
    pub fn message(&self, kind: &'static str, cover: Cover, bytes: Vec<u8>) {
        self.send(kind, cover, Content::Long(Long::Message, bytes.into()));
    }

    /// Sends U.
    pub fn factor(&self, bytes: Vec<u8>) {
        self.send("U", Cover::Public, Content::Long(Long::Factor, bytes.into()));
    }

    /// What comes next, at most after so long.
    pub fn next(&self, patience: Option<Duration>) -> Option<Event> {
        let gone =
            || Event::Failed(Error::State { problem: "the connection's task has ended; start again".into() });
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

/// Why there is no connection.
enum Trouble {
    /// Another attempt may help.
    Again(String),
    /// None will.
    Never(Error),
}

impl Dialler {
    async fn run(mut self, mut outbox: mpsc::UnboundedReceiver<Parcel>, events: mpsc::Sender<Event>) {
        let mut attempts = 0;
        let mut said = String::new();
        loop {
            match self.dial().await {
                Ok(opened) => {
                    // What was to be said on an earlier connection belongs to an attempt that is over.
                    while outbox.try_recv().is_ok() {}
                    let mut heard = false;
                    match self.attend(opened, &mut outbox, &events, &mut heard).await {
                        Ok(None) => return,
                        // The coordinator ends the connection when it has said what is to be checked.
                        Ok(Some(_)) if self.check && heard => return,
                        Ok(Some(problem)) if self.check => return self.unreachable(problem, &events).await,
                        Ok(Some(why)) => {
                            if heard {
                                (attempts, said) = (0, String::new());
                            }
                            if why != said {
                                let text = format!(
                                    "the connection to the coordinator is lost ({why}); trying again"
                                );
                                self.log.warn(&text, json!({ "event": "lost" }));
                                said = why;
                            }
                            if heard && events.send(Event::Lost).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => return drop(events.send(Event::Failed(error)).await),
                    }
                }
                Err(Trouble::Never(error)) => return drop(events.send(Event::Failed(error)).await),
                Err(Trouble::Again(problem)) if self.check => {
                    return self.unreachable(problem, &events).await;
                }
                Err(Trouble::Again(problem)) => {
                    if problem != said {
                        let text =
                            format!("cannot reach {}: {problem}; trying again", self.party.coordinator);
                        self.log.warn(&text, json!({ "event": "unreachable" }));
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

    /// Whoever only checks does not try again.
    async fn unreachable(&self, problem: String, events: &mpsc::Sender<Event>) {
        let what = self.party.coordinator.clone();
        let problem = format!("{problem}; start the coordinator, or correct {}", self.party.path.display());
        // Whoever asked may have left.
        let _ = events.send(Event::Failed(Error::Network { what, problem })).await;
    }

    async fn dial(&mut self) -> Result<Opened, Trouble> {
        let address = &self.party.coordinator;
        let found = RESOLVE.limit(tokio::net::lookup_host(address)).await.map_err(late)?;
        let found: Vec<SocketAddr> = found.map_err(|error| Trouble::Again(error.to_string()))?.collect();
        if self.tls.is_none() && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(Trouble::Never(Error::Network {
                what: format!("--insecure with the coordinator {address}"),
                problem: "is refused, since others could read along; use a loopback address or certificates"
                    .into(),
            }));
        }
        let stream = connect(&found).await?;
        let _ = stream.set_nodelay(true);
        let opened = match &self.tls {
            None => rpc::open(stream, "localhost").await,
            Some((connector, name)) => {
                let shaken = HANDSHAKE.limit(connector.connect(name.clone(), stream)).await;
                let stream = shaken.map_err(late)?.map_err(handshake)?;
                rpc::open(stream, &self.party.server_name).await
            }
        };
        let opened = opened.map_err(|status| trouble(&status))?;
        let run = *self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let enter = FromParty::Enter {
            federation: self.party.federation.clone(),
            name: self.party.name.clone(),
            version: crate::VERSION.into(),
            check: self.check,
            run: run.map(Hex),
        };
        // Whoever is refused cannot send, but reads why.
        let parcel = Parcel { kind: "control", cover: Cover::Public, content: Content::Say(enter) };
        self.deliver(parcel, &opened.outgoing).await.map_err(Trouble::Never)?;
        Ok(opened)
    }

    /// Until the connection ends: why, unless this side ended it.
    async fn attend(
        &mut self,
        opened: Opened,
        outbox: &mut mpsc::UnboundedReceiver<Parcel>,
        events: &mpsc::Sender<Event>,
        heard: &mut bool,
    ) -> Result<Option<String>> {
        let Opened { mut ingoing, outgoing, mut closed } = opened;
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
                // What has come before is read first.
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

    /// Notes and sends. What cannot be noted is not sent.
    async fn deliver(&mut self, parcel: Parcel, outgoing: &mpsc::Sender<Bytes>) -> Result<bool> {
        let Parcel { kind, cover, content } = parcel;
        let (bytes, frames): (Bytes, Vec<Frame>) = match content {
            Content::Say(words) => {
                let bytes = Frame::words(&words);
                (bytes.clone(), vec![Frame::Control(bytes)])
            }
            Content::Long(long, bytes) => (bytes.clone(), Frame::pieces(long, bytes).collect()),
        };
        if let Some(ledger) = &mut self.ledger {
            // A disk may take its time; signs of life go on meanwhile.
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
async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Trouble> {
    let mut trouble = Trouble::Again("its name has no address".into());
    for address in addresses {
        match CONNECT.limit(TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => trouble = Trouble::Again(error.to_string()),
            Err(error) => trouble = late(error),
        }
    }
    Err(trouble)
}

/// Another attempt may be quicker.
fn late(late: Late) -> Trouble {
    Trouble::Again(late.to_string())
}

/// Why a connection has ended over which nothing can be sent any more.
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

fn why(status: &Status) -> Result<Option<String>> {
    match trouble(status) {
        Trouble::Never(error) => Err(error),
        Trouble::Again(why) => Ok(Some(why)),
    }
}

fn read(bytes: Bytes, assembly: &mut Assembly, longest: usize) -> Result<Option<Event>> {
    let dishonest = |problem: &str| Error::Dishonest { problem: problem.into() };
    match Frame::decode(bytes).map_err(dishonest)? {
        Frame::Control(words) => Ok(Some(match read_control(&words).map_err(dishonest)? {
            ToParty::Welcome { terms, time, run } => {
                Event::Welcome { terms, time, run: run.map(|run| run.0) }
            }
            words => Event::Said(words),
        })),
        Frame::Piece { long: Long::Message, last, bytes } => {
            let whole = assembly.take((Long::Message, last, bytes), longest).map_err(dishonest)?;
            Ok(whole.map(Event::Message))
        }
        Frame::Piece { .. } => Err(dishonest("a factor")),
    }
}

/// What a handshake's error means for another attempt.
fn handshake(error: std::io::Error) -> Trouble {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => Trouble::Never(Error::Network {
            what: "the coordinator".into(),
            problem: format!("shows {}; check authority and server_name", tls::words_of(&error)),
        }),
        Some(rustls::Error::AlertReceived(alert)) => Trouble::Never(refused_by_alert(&format!("{alert:?}"))),
        _ => Trouble::Again(error.to_string()),
    }
}

fn refused_by_alert(alert: &str) -> Error {
    let reason = format!(
        "TLS alert {alert}; its log says more, the certificate may be expired or of another authority"
    );
    Error::Refused { reason }
}

/// The same of a gRPC status.
fn trouble(status: &Status) -> Trouble {
    match status.code() {
        Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented => {
            Trouble::Never(Error::Refused { reason: status.message().into() })
        }
        _ => {
            let mut cause: Option<&dyn std::error::Error> = Some(status);
            while let Some(error) = cause {
                let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
                if let Some(rustls::Error::AlertReceived(alert)) =
                    inner.and_then(|inner| inner.downcast_ref::<rustls::Error>())
                {
                    return Trouble::Never(refused_by_alert(&format!("{alert:?}")));
                }
                cause = error.source();
            }
            Trouble::Again(match status.code() {
                Code::AlreadyExists | Code::DeadlineExceeded => status.message().into(),
                _ => "the connection broke".into(),
            })
        }
    }
}
