//! Accepts connections of clients with a certificate of the federation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::connection::Joiner;
use super::shared::{MAX_CONNECTIONS_PER_PARTY, MAX_UNAUTHENTICATED, Shared};
use crate::deadline::{HANDSHAKE, Late, REJECT_GRACE};
use crate::io::{CountedStream, Counts};
use crate::{rpc, tls};

/// Accepts connections until the runtime ends.
pub async fn accept(shared: Arc<Shared>, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    // Without TLS there are no certificates.
    let unknown = if acceptor.is_some() { 0 } else { MAX_CONNECTIONS_PER_PARTY * shared.connections.len() };
    let unauthenticated = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED + unknown));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Too many open files, for example.
            Err(_) => {
                shared.log.reject("a connection beyond the system's limit", "somebody");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = unauthenticated.clone().try_acquire_owned() else {
            shared.log.reject("too many connections", &from.ip().to_string());
            continue;
        };
        tokio::spawn(attend(shared.clone(), stream, from, acceptor.clone(), permit));
    }
}

/// Serves a connection to its end.
async fn attend(
    shared: Arc<Shared>,
    stream: TcpStream,
    from: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let counts = Arc::new(Counts::default());
    let stream = CountedStream::new(stream, counts.clone());
    let from = from.ip().to_string();
    // Dropped at the end, which notifies all streams of this connection.
    let (_open, gone) = watch::channel(());
    let joiner = Joiner { shared: shared.clone(), from: from.clone(), counts, gone };
    let served = match acceptor {
        None => rpc::serve(stream, shared.heartbeat(), joiner.join(None)).await,
        Some(acceptor) => {
            let stream = match HANDSHAKE.limit(acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return shared.log.reject(tls::words_of(&error), &from),
                Err(Late { .. }) => return shared.log.reject("a handshake that takes too long", &from),
            };
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let place = certificate.map_or(Err("no certificate"), |own| tls::place(&shared.federation, own));
            let serve = rpc::serve(stream, shared.heartbeat(), joiner.join(Some(place)));
            match place {
                Ok(place) => {
                    let of_party = shared.connections[usize::from(place) - 1].clone();
                    let Ok(_kept) = of_party.try_acquire_owned() else {
                        let name = shared.federation.terms.name(place);
                        return shared.log.reject("too many connections of one party", name);
                    };
                    drop(permit);
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
