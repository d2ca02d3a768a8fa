//! The coordinator: it accepts connections, knows parties by their certificates, brings them to an agreement, and serves the
//! sums. It keeps U and the trace, and nothing of any party.

mod connection;
mod driver;
mod gathering;
mod running;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use partwise_secure::protocol::Stop;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::config::Federation;
use crate::deadline::{HANDSHAKE, Late, REJECT_GRACE, SHUTDOWN};
use crate::error::{Error, Result};
use crate::io::{Counted, Counts};
use crate::log::Log;
use crate::status::{Point, Status};
use crate::{private, rpc, status, tls};
use driver::{Driver, Event};

/// How to run.
pub struct Options {
    /// Without TLS, on loopback only.
    pub insecure: bool,
    /// Where the status page is.
    pub status_address: Option<SocketAddr>,
    /// Where it says what.
    pub log: Arc<Log>,
}

/// What the coordinator has at the end.
pub struct Outcome {
    /// U, as the bytes of an .npy file.
    pub factor: Vec<u8>,
    /// Over all parties.
    pub relative_error: f64,
    /// Rounds done.
    pub rounds: usize,
    /// If the run was done once more, the error of the first time and of the second, of which the better counts.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
    /// The error over rounds.
    pub trace: Vec<Point>,
    /// The run's digest.
    pub run: String,
    /// The parties that have their results, and whether all have the same U.
    pub finished: Vec<String>,
    /// Whether all of them have the same U.
    pub agreed: bool,
    /// Those that are missing.
    pub missing: Vec<String>,
    /// Bytes from and to each party.
    pub bytes: Vec<[u64; 2]>,
    /// Sums, and key exchanges.
    pub sums: u64,
    /// Key exchanges.
    pub epochs: u64,
    /// How many features there are.
    pub features: usize,
    journal: PathBuf,
}

impl Outcome {
    /// Forgets what only a restart would need. To be called when the rest is safe.
    pub fn forget(&self) -> Result<()> {
        std::fs::remove_file(&self.journal).map_err(Error::io(&self.journal))
    }
}

/// What all connections share.
pub(crate) struct Shared {
    federation: Federation,
    log: Arc<Log>,
    status: Arc<Status>,
    events: mpsc::Sender<Event>,
    /// The longest message of the methods that is accepted.
    longest: AtomicUsize,
    /// Long messages that may be on their way at once.
    staging: Arc<Semaphore>,
    /// By place: connections that its certificate may still have, whatever they are for.
    rooms: Vec<Arc<Semaphore>>,
    /// Whose place is taken.
    taken: Mutex<BTreeSet<u16>>,
    counter: AtomicU64,
    /// The run that is under way.
    run: Mutex<Option<[u8; 32]>>,
}

/// Long messages that are put together at once, whatever the number of parties.
const STAGED: usize = 4;

/// Connections at once that have not said who they are, or are nobody's of this federation.
const MAX_UNAUTHENTICATED: usize = 64;

/// Connections of one party at once: the one that counts, one that is not yet known to be cut, checks.
const MAX_CONNECTIONS_PER_PARTY: usize = 4;

impl Shared {
    fn take_place(&self, place: u16) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(place)
    }

    fn free_place(&self, place: u16) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }

    fn set_longest(&self, longest: usize) {
        self.longest.store(longest, Ordering::Relaxed);
    }

    fn heartbeat(&self) -> Duration {
        Duration::from_secs_f64(self.federation.terms.heartbeat)
    }
}

fn journal_path(federation: &Federation) -> PathBuf {
    federation.state.join("coordinator.journal")
}

/// Checks the configuration, the certificates, the clock, the address and the state, and shares nothing.
pub fn check(federation: &Federation, insecure: bool) -> Result<Vec<String>> {
    let mut said = Vec::new();
    let terms = &federation.terms;
    let names: Vec<&str> = terms.roster.iter().map(|member| &member.name[..]).collect();
    said.push(format!("configuration: {} parties ({})", names.len(), names.join(", ")));
    if insecure {
        said.push("certificates: none (--insecure)".into());
    } else {
        tls::server(&federation.tls)?;
        tls::check_server(federation)?;
        said.push("certificates and clock: good together".into());
    }
    let listener = std::net::TcpListener::bind(&address(federation, insecure)?[..]);
    listener.map_err(|error| cannot_listen(federation, &error))?;
    said.push(format!("address: {} can be listened on", federation.address));
    private::make_folder(&federation.state).map_err(Error::io(&federation.state))?;
    said.push(match journal_path(federation).exists() {
        true => format!("state: a run is under way in {}", federation.state.display()),
        false => format!("state: {} can be written", federation.state.display()),
    });
    Ok(said)
}

fn cannot_listen(federation: &Federation, error: &std::io::Error) -> Error {
    Error::Network {
        what: format!("address {}", federation.address),
        problem: format!("cannot be listened on: {error}; choose another in {}", federation.path.display()),
    }
}

fn address(federation: &Federation, insecure: bool) -> Result<Vec<SocketAddr>> {
    use std::net::ToSocketAddrs;
    let addresses = federation.address.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let addresses = addresses.map_err(|error| cannot_listen(federation, &error))?;
    if insecure && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Error::Network {
            what: format!("--insecure with the address {}", federation.address),
            problem: "is refused, since others could read along; use a loopback address or certificates"
                .into(),
        });
    }
    Ok(addresses)
}

/// Runs to the end.
pub fn run(federation: Federation, options: Options) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::State { problem: format!("no threads to work with: {error}") })?;
    private::make_folder(&federation.state).map_err(Error::io(&federation.state))?;
    let acceptor = match options.insecure {
        true => None,
        false => {
            tls::check_server(&federation)?;
            Some(TlsAcceptor::from(tls::server(&federation.tls)?))
        }
    };
    let addresses = address(&federation, options.insecure)?;
    let log = options.log.clone();
    let status = Arc::new(Status::new(&federation.terms, log.clone()));
    let (events, inbox) = mpsc::channel(64);
    let shared = Arc::new(Shared {
        log: log.clone(),
        status: status.clone(),
        events,
        longest: AtomicUsize::new(0),
        staging: Arc::new(Semaphore::new(STAGED)),
        rooms: federation
            .terms
            .roster
            .iter()
            .map(|_| Arc::new(Semaphore::new(MAX_CONNECTIONS_PER_PARTY)))
            .collect(),
        taken: Mutex::default(),
        counter: AtomicU64::new(0),
        run: Mutex::default(),
        federation,
    });
    let driver = Driver::new(shared.clone(), runtime.handle().clone(), inbox)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&addresses[..]).await;
        let listener = listener.map_err(|error| cannot_listen(&shared.federation, &error))?;
        let bound = listener.local_addr().map_err(|error| cannot_listen(&shared.federation, &error))?;
        if let Some(address) = options.status_address {
            let page = status::bind(address).await?;
            let address = page.local_addr().unwrap_or(address);
            log.info(
                &format!("status page on http://{address}/"),
                json!({ "event": "status", "address": address }),
            );
            tokio::spawn(status.serve(page));
        }
        log.info(&format!("listening on {bound}"), json!({ "event": "listening", "address": bound }));
        tokio::spawn(accept(shared.clone(), listener, acceptor));
        Ok::<_, Error>(())
    })?;
    let outcome = driver.run();
    runtime.shutdown_timeout(SHUTDOWN.limit);
    outcome
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    // Without TLS nobody is known by a certificate.
    let unknown = if acceptor.is_some() { 0 } else { MAX_CONNECTIONS_PER_PARTY * shared.rooms.len() };
    let strangers = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED + unknown));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Too many open files, for instance.
            Err(_) => {
                shared.log.reject("a connection that the system has no room for", "somebody");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(stranger) = strangers.clone().try_acquire_owned() else {
            shared.log.reject("a connection too many", &from.ip().to_string());
            continue;
        };
        tokio::spawn(attend(shared.clone(), stream, from, acceptor.clone(), stranger));
    }
}

async fn attend(
    shared: Arc<Shared>,
    stream: TcpStream,
    from: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    stranger: tokio::sync::OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let counts = Arc::new(Counts::default());
    let stream = Counted::new(stream, counts.clone());
    let from = from.ip().to_string();
    // Dropped at the end: whoever still attends to a stream of this connection sees it.
    let (_open, gone) = watch::channel(());
    let join = |place| connection::joiner(shared.clone(), place, from.clone(), counts.clone(), gone.clone());
    let served = match acceptor {
        None => rpc::serve(stream, shared.heartbeat(), join(None)).await,
        Some(acceptor) => {
            let stream = match HANDSHAKE.limit(acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return shared.log.reject(tls::words_of(&error), &from),
                Err(Late { .. }) => return shared.log.reject("a handshake that takes too long", &from),
            };
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let place = certificate.map_or(Err("no certificate"), |own| tls::place(&shared.federation, own));
            let serve = rpc::serve(stream, shared.heartbeat(), join(Some(place)));
            match place {
                Ok(place) => {
                    let Ok(_room) = shared.rooms[usize::from(place) - 1].clone().try_acquire_owned() else {
                        let name = shared.federation.terms.name(place);
                        return shared.log.reject("a connection too many of one party", name);
                    };
                    drop(stranger);
                    serve.await
                }
                Err(reason) => {
                    shared.log.reject(reason, &from);
                    REJECT_GRACE.limit(serve).await.unwrap_or(Ok(()))
                }
            }
        }
    };
    if let Err(reason) = served {
        shared.log.reject(reason, &from);
    }
}
