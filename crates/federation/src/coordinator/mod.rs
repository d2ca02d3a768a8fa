//! The coordinator: it accepts connections, recognizes parties by their certificates, leads them to an agreement,
//! and serves the sums. It stores U and the error curve, and nothing of any party.

mod admission;
mod answering;
mod check;
mod connection;
mod doorway;
mod driver;
mod gathering;
mod listener;
mod outbox;
mod reader;
mod results;
mod running;
mod shared;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use partwise_secure::protocol::Stop;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use admission::Admission;
pub use check::check;
use check::{address, cannot_listen};
use driver::Driver;
use shared::Shared;

use crate::config::FederationConfig;
use crate::deadline::SHUTDOWN;
use crate::error::{Error, Result};
use crate::log::EventLog;
use crate::status::CurvePoint;
use crate::{private, status, tls};

/// The options of a coordinator.
pub struct CoordinatorOptions {
    /// Whether to run without TLS, on loopback only.
    pub insecure: bool,
    /// The address of the status page.
    pub status_address: Option<SocketAddr>,
    /// The log.
    pub log: Arc<EventLog>,
    /// In tests, the messages of a dishonest coordinator.
    #[cfg(test)]
    pub tamper: Option<Tamper>,
}

/// What a dishonest coordinator of a test sends to a place instead of the bytes of a message.
#[cfg(test)]
pub type Tamper = Arc<dyn Fn(u16, &[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// The result of the coordinator.
pub struct FederationOutcome {
    /// U, as the bytes of an .npy file.
    pub factor: Vec<u8>,
    /// The relative error over all parties.
    pub relative_error: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// The errors of both attempts, if the run was repeated; the better one counts.
    pub attempts: Vec<f64>,
    /// Why it ended.
    pub stopped_by: Stop,
    /// The error over rounds.
    pub trace: Vec<CurvePoint>,
    /// The run's digest.
    pub run: String,
    /// The parties that have their results.
    pub finished: Vec<String>,
    /// Whether all of them have the same U.
    pub agreed: bool,
    /// The parties without a result.
    pub missing: Vec<String>,
    /// Bytes received from and sent to each party.
    pub bytes: Vec<[u64; 2]>,
    /// Number of opened sums.
    pub sums: u64,
    /// Key exchanges.
    pub epochs: u64,
    /// The number of features.
    pub features: usize,
    journal: PathBuf,
}

impl FederationOutcome {
    /// Removes what only a restart would need, once the results are safe.
    pub fn forget(&self) -> Result<()> {
        std::fs::remove_file(&self.journal).map_err(Error::io(&self.journal))
    }
}

pub(crate) fn journal_path(federation: &FederationConfig) -> PathBuf {
    federation.state.join("coordinator.journal")
}

/// Runs to the end.
pub fn run(federation: FederationConfig, options: CoordinatorOptions) -> Result<FederationOutcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::State { problem: format!("cannot start threads: {error}") })?;
    private::make_folder(&federation.state).map_err(Error::io(&federation.state))?;
    let admission = match options.insecure {
        true => None,
        false => {
            tls::check_server(&federation)?;
            Some(Admission::new(&federation.tls, federation.revoked.clone())?)
        }
    };
    let addresses = address(&federation, options.insecure)?;
    let (events, inbox) = mpsc::channel(64);
    let shared = Shared::new(federation, options.log, events, admission)?;
    #[cfg(test)]
    let shared = shared.dishonest(options.tamper);
    let shared = Arc::new(shared);
    let driver = Driver::new(shared.clone(), runtime.handle().clone(), inbox)?;
    runtime.block_on(listen(&shared, &addresses, options.status_address))?;
    let outcome = driver.run();
    runtime.shutdown_timeout(SHUTDOWN.limit);
    outcome
}

/// Starts accepting connections and serving the status page.
async fn listen(
    shared: &Arc<Shared>,
    addresses: &[SocketAddr],
    status_address: Option<SocketAddr>,
) -> Result<()> {
    let listener = TcpListener::bind(addresses).await;
    let listener = listener.map_err(|error| cannot_listen(&shared.federation, &error))?;
    let bound = listener.local_addr().map_err(|error| cannot_listen(&shared.federation, &error))?;
    if let Some(address) = status_address {
        let page = status::bind(address).await?;
        let address = page.local_addr().unwrap_or(address);
        let text = format!("status page on http://{address}/");
        shared.log.info(&text, json!({ "event": "status", "address": address }));
        tokio::spawn(shared.status.clone().serve(page));
    }
    shared.log.info(&format!("listening on {bound}"), json!({ "event": "listening", "address": bound }));
    tokio::spawn(listener::accept(shared.clone(), listener));
    if shared.admission.borrow().is_some() {
        tokio::spawn(admission::watch(shared.clone()));
    }
    Ok(())
}
