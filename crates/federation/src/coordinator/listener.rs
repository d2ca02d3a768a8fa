//! Accepts connections of clients with a certificate of the federation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::admission::Admission;
use super::connection::Joiner;
use super::doorway::{HalfOpen, MAX_HALF_OPEN};
use super::shared::{MAX_CONNECTIONS_PER_PARTY, Shared};
use crate::deadline::{ADMIT, Late, REJECT_GRACE};
use crate::io::{CountedStream, Counts};
use crate::{rpc, tls};

/// The maximum number of half-open connections with this many parties.
pub fn most_half_open(is_insecure: bool, parties: usize) -> usize {
    // Without TLS there are no certificates.
    if is_insecure { MAX_HALF_OPEN + MAX_CONNECTIONS_PER_PARTY * parties } else { MAX_HALF_OPEN }
}

/// Accepts connections until the runtime ends.
pub async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Too many open files, for example.
            Err(_) => {
                shared.log.reject("a connection beyond the system's limit", "an unknown client");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let counts = Arc::new(Counts::default());
        let half_open = Arc::new(shared.doorway.enter(from.ip(), counts.clone()));
        let stream = CountedStream::new(stream, counts.clone());
        let newcomer = Newcomer { shared: shared.clone(), from, counts, half_open };
        tokio::spawn(newcomer.attend(stream));
    }
}

/// A connection that was just accepted.
struct Newcomer {
    shared: Arc<Shared>,
    from: SocketAddr,
    counts: Arc<Counts>,
    half_open: Arc<HalfOpen>,
}

impl Newcomer {
    /// Serves the connection to its end.
    async fn attend(self, stream: CountedStream<TcpStream>) {
        let from = self.from.ip().to_string();
        let served = tokio::select! {
            served = self.serve(stream) => served,
            () = self.half_open.evicted() => Err("a half-open connection, closed to make room for another"),
        };
        if let Err(reason) = served {
            self.shared.log.reject(reason, &from);
        }
    }

    async fn serve(&self, stream: CountedStream<TcpStream>) -> Result<(), &'static str> {
        let Newcomer { shared, from, counts, half_open } = self;
        let _ = stream.get_ref().set_nodelay(true);
        // Dropped at the end, which notifies all streams of this connection.
        let (_open, gone) = watch::channel(());
        let (shared, from) = (shared.clone(), from.ip().to_string());
        let joiner = Joiner {
            shared: shared.clone(),
            from,
            counts: counts.clone(),
            gone,
            half_open: half_open.clone(),
        };
        let admission = shared.admission.borrow().clone();
        let Some(admission) = admission else {
            return rpc::serve(stream, shared.heartbeat(), joiner.join(None)).await;
        };
        let stream = match ADMIT.limit(admission.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(tls::words_of(&error)),
            Err(Late { .. }) => return Err("a handshake that takes too long"),
        };
        let chain: Vec<CertificateDer<'static>> = stream
            .get_ref()
            .1
            .peer_certificates()
            .into_iter()
            .flatten()
            .map(|own| own.clone().into_owned())
            .collect();
        let place = admission.place(&shared.federation, &chain);
        let serve = rpc::serve(stream, shared.heartbeat(), joiner.join(Some(place)));
        match place {
            Ok(place) => {
                let of_party = shared.connections[usize::from(place) - 1].clone();
                let Ok(_kept) = of_party.try_acquire_owned() else {
                    let name = shared.federation.terms.name(place);
                    shared.log.reject("too many connections of one party", name);
                    return Ok(());
                };
                half_open.admit();
                tokio::select! {
                    served = serve => served,
                    reason = refused_later(&shared, &chain) => Err(reason),
                }
            }
            Err(reason) => {
                // Counted before its party reads why.
                shared.log.reject(reason, &self.from.ip().to_string());
                REJECT_GRACE.limit(serve).await.unwrap_or(Ok(()))
            }
        }
    }
}

/// Waits until a certificate is no longer accepted; returns the reason.
async fn refused_later(shared: &Shared, chain: &[CertificateDer<'_>]) -> &'static str {
    let mut changes = shared.admission.subscribe();
    loop {
        let admission: Option<Arc<Admission>> = changes.borrow_and_update().clone();
        if let Some(Err(reason)) = admission.map(|admission| admission.admits(chain)) {
            return reason;
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
