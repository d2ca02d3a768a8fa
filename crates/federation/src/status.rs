//! How a run stands, for the status page: parties, rounds, errors, bytes, and no data and no factor.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::agreement::Terms;
use crate::deadline::{ENTER, Late, REJECT_GRACE, STATUS_PAGE};
use crate::io::Counts;
use crate::log::Log;

/// The error after a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The round.
    pub round: usize,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Over all parties.
    pub relative_error: f64,
}

/// What a party does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It is not there.
    Absent,
    /// It is there.
    Connected,
    /// It has its result.
    Finished,
}

/// How a party stands.
pub struct Standing {
    name: String,
    /// What it does.
    pub doing: Doing,
    /// How often its connection was lost.
    pub dropouts: u64,
    live: Option<Arc<Counts>>,
    before: [u64; 2],
}

impl Standing {
    fn bytes(&self) -> [u64; 2] {
        let live = self.live.as_ref().map_or([0, 0], |counts| {
            [counts.received.load(Ordering::Relaxed), counts.sent.load(Ordering::Relaxed)]
        });
        [self.before[0] + live[0], self.before[1] + live[1]]
    }

    /// A connection, of which the bytes are counted, is there.
    pub(crate) fn connect(&mut self, counts: Arc<Counts>) {
        self.before = self.bytes();
        (self.live, self.doing) = (Some(counts), Doing::Connected);
    }

    /// It is gone.
    pub(crate) fn disconnect(&mut self) {
        self.before = self.bytes();
        self.live = None;
        if self.doing != Doing::Finished {
            self.doing = Doing::Absent;
            self.dropouts += 1;
        }
    }
}

/// How a run stands.
pub struct State {
    terms: Terms,
    /// What is being done.
    pub phase: &'static str,
    /// By place.
    pub parties: Vec<Standing>,
    /// Sums that were opened.
    pub sums: u64,
    /// Key exchanges.
    pub epochs: u64,
    /// The error over rounds.
    pub curve: Vec<Point>,
    /// For whom all wait.
    pub waiting: Vec<String>,
    warnings: VecDeque<String>,
}

impl State {
    /// Notes a warning; the last ones are shown.
    pub fn warn(&mut self, text: String) {
        self.warnings.push_back(format!("{} {text}", crate::text::timestamp()));
        if self.warnings.len() > 20 {
            self.warnings.pop_front();
        }
    }

    /// Notes the error after a round, if it is of a later one than those before.
    pub fn point(&mut self, point: Point) -> bool {
        let later = self.curve.last().is_none_or(|last| last.round < point.round);
        let good = later && point.relative_error.is_finite();
        if good {
            self.curve.push(point);
        }
        good
    }

    /// Bytes of all parties, received and sent.
    pub fn bytes(&self) -> Vec<[u64; 2]> {
        self.parties.iter().map(Standing::bytes).collect()
    }
}

/// The same, shared.
pub struct Status {
    state: Mutex<State>,
    log: Arc<Log>,
}

impl Status {
    /// Nobody is there yet.
    pub fn new(terms: &Terms, log: Arc<Log>) -> Self {
        let standing = |name: &String| Standing {
            name: name.clone(),
            doing: Doing::Absent,
            dropouts: 0,
            live: None,
            before: [0, 0],
        };
        let state = State {
            terms: terms.clone(),
            phase: "waiting for all parties",
            parties: terms.roster.iter().map(|member| standing(&member.name)).collect(),
            sums: 0,
            epochs: 0,
            curve: Vec::new(),
            waiting: Vec::new(),
            warnings: VecDeque::new(),
        };
        Status { state: Mutex::new(state), log }
    }

    /// To look at or change.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn json(&self) -> String {
        let state = self.lock();
        let settings = &state.terms.settings;
        let parties = state.parties.iter().map(|party| {
            let [received, sent] = party.bytes();
            json!({
                "name": party.name, "state": party.doing, "dropouts": party.dropouts,
                "bytes_received": received, "bytes_sent": sent,
            })
        });
        json!({
            "federation": state.terms.federation,
            "version": crate::VERSION,
            "protocol": settings.protocol,
            "aggregation": settings.aggregation,
            "rank": settings.rank,
            "max_rounds": settings.all_rounds(state.terms.groups.len()),
            "phase": state.phase,
            "round": state.curve.last().map_or(0, |point| point.round),
            "sums": state.sums,
            "epochs": state.epochs,
            "parties": parties.collect::<Vec<_>>(),
            "waiting_for": state.waiting,
            "curve": state.curve,
            "warnings": state.warnings,
            "rejected": self.log.rejections(),
        })
        .to_string()
    }

    /// In the text format of Prometheus.
    fn metrics(&self) -> String {
        let state = self.lock();
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
            let _ = writeln!(text, "# HELP partwise_{name} {help}\n# TYPE partwise_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "partwise_{name}{labels} {value}");
            }
        };
        let alone = |value: f64| vec![(String::new(), value)];
        let by_party = |of: &dyn Fn(&Standing) -> f64| -> Vec<(String, f64)> {
            let line = |party: &Standing| (format!("{{party=\"{}\"}}", party.name), of(party));
            state.parties.iter().map(line).collect()
        };
        let last = state.curve.last();
        family("round", "gauge", "Rounds done.", alone(last.map_or(0.0, |point| point.round as f64)));
        let error = last.map_or(Vec::new(), |point| alone(point.relative_error));
        family("relative_error", "gauge", "Relative error over all parties.", error);
        family("sums_total", "counter", "Sums that were opened.", alone(state.sums as f64));
        family("epochs_total", "counter", "Key exchanges.", alone(state.epochs as f64));
        let connected = |party: &Standing| f64::from(u8::from(party.live.is_some()));
        family("party_connected", "gauge", "Whether a party is connected.", by_party(&connected));
        family(
            "party_dropouts_total",
            "counter",
            "Lost connections.",
            by_party(&|party| party.dropouts as f64),
        );
        let received = |party: &Standing| party.bytes()[0] as f64;
        family("party_received_bytes_total", "counter", "Bytes from a party.", by_party(&received));
        family(
            "party_sent_bytes_total",
            "counter",
            "Bytes to a party.",
            by_party(&|party| party.bytes()[1] as f64),
        );
        let rejected = self.log.rejections().into_iter();
        let rejected = rejected.map(|(reason, count)| (format!("{{reason=\"{reason}\"}}"), count as f64));
        family("rejected_total", "counter", "What was rejected.", rejected.collect());
        text
    }

    fn answer(&self, request: &Request<Incoming>, is_loopback: bool) -> Response<Full<Bytes>> {
        let host = request.headers().get("host").map(|host| host.to_str().unwrap_or_default());
        let (status, kind, body) = match (request.method(), request.uri().path()) {
            _ if is_loopback && host.is_some_and(|host| !is_address(host)) => {
                let text = "ask for localhost or an address; another name may be another site's\n";
                (StatusCode::MISDIRECTED_REQUEST, "text/plain", text.to_string())
            }
            (&Method::GET | &Method::HEAD, "/") => {
                (StatusCode::OK, "text/html; charset=utf-8", PAGE.to_string())
            }
            (&Method::GET | &Method::HEAD, "/status.json") => {
                (StatusCode::OK, "application/json", self.json())
            }
            (&Method::GET | &Method::HEAD, "/metrics") => {
                (StatusCode::OK, "text/plain; version=0.0.4", self.metrics())
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
                // Whoever reads may leave, or read so slowly that others have no room.
                if let Err(Late { .. }) = STATUS_PAGE.limit(connection.as_mut()).await {
                    connection.as_mut().graceful_shutdown();
                    let _ = REJECT_GRACE.limit(connection).await;
                }
                drop(permit);
            });
        }
    }
}

/// Whether a `Host` header is an address or localhost, with or without a port. A site that gives its own name this
/// machine's address, to have a browser here read the page for it, cannot avoid being named.
fn is_address(host: &str) -> bool {
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, last)| port(last)).map_or(host, |(name, _)| name);
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

/// Binds an address of the page.
pub(crate) async fn bind(address: SocketAddr) -> crate::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| crate::Error::Network {
        what: format!("--status-address {address}"),
        problem: format!("{error}; choose another"),
    })
}

const PAGE: &str = include_str!("status.html");

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
