//! Serves the status page over HTTP.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::RunStatus;
use crate::agreement::Terms;
use crate::deadline::{ENTER, Late, REJECT_GRACE, STATUS_PAGE};
use crate::log::EventLog;

/// A run's status, and the page that shows it.
pub struct StatusPage {
    status: Mutex<RunStatus>,
    log: Arc<EventLog>,
}

impl StatusPage {
    /// No party is connected yet.
    pub fn new(terms: &Terms, log: Arc<EventLog>) -> Self {
        StatusPage { status: Mutex::new(RunStatus::new(terms)), log }
    }

    /// Locks the status.
    pub fn lock(&self) -> MutexGuard<'_, RunStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request<Incoming>, is_loopback: bool) -> Response<Full<Bytes>> {
        let host = request.headers().get("host").map(|host| host.to_str().unwrap_or_default());
        let (status, kind, body) = match (request.method(), request.uri().path()) {
            _ if is_loopback && host.is_some_and(|host| !is_address(host)) => {
                let text = "use localhost or an address; requests for other names are refused\n";
                (StatusCode::MISDIRECTED_REQUEST, "text/plain", text.to_string())
            }
            (&Method::GET | &Method::HEAD, "/") => {
                (StatusCode::OK, "text/html; charset=utf-8", PAGE.to_string())
            }
            (&Method::GET | &Method::HEAD, "/status.json") => {
                (StatusCode::OK, "application/json", self.lock().json(&self.log.rejections()))
            }
            (&Method::GET | &Method::HEAD, "/metrics") => {
                (StatusCode::OK, "text/plain; version=0.0.4", self.lock().metrics(&self.log.rejections()))
            }
            (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, "text/plain", "ok\n".to_string()),
            (&Method::GET | &Method::HEAD, _) => {
                (StatusCode::NOT_FOUND, "text/plain", "not found\n".to_string())
            }
            _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "read only\n".to_string()),
        };
        let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
             frame-ancestors 'none'";
        let response = Response::builder()
            .status(status)
            .header("content-type", kind)
            .header("cache-control", "no-store")
            .header("content-security-policy", policy)
            .header("x-content-type-options", "nosniff")
            .body(Full::new(body.into()));
        response.unwrap_or_default()
    }

    /// Serves the page.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(32));
        let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(permit) = connections.clone().try_acquire_owned() else { continue };
            let status = self.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let response = status.answer(&request, is_loopback);
                    async move { Ok::<_, Infallible>(response) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(ENTER.limit)
                    .max_buf_size(16 << 10)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                // Clients may leave, or read so slowly that others find no place.
                if let Err(Late { .. }) = STATUS_PAGE.limit(connection.as_mut()).await {
                    connection.as_mut().graceful_shutdown();
                    let _ = REJECT_GRACE.limit(connection).await;
                }
                drop(permit);
            });
        }
    }
}

/// Whether a `Host` header is an address or localhost, with or without a port. A website whose name resolves to
/// this machine, so that a browser here reads the page for it, is named in the header.
fn is_address(host: &str) -> bool {
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, last)| port(last)).map_or(host, |(name, _)| name);
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

/// Binds the address of the page.
pub(crate) async fn bind(address: SocketAddr) -> crate::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| crate::Error::Status { address, problem: error.to_string() })
}

const PAGE: &str = include_str!("page.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        for good in ["localhost", "localhost:7401", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:7401"] {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["", "evil.example", "evil.example:7401", "localhost.evil.example", "127.0.0.1.evil.example:1"]
        {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
