//! Decides which certificates are accepted. Its files are reloaded whenever they change, so revoking needs no
//! restart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use super::shared::Shared;
use crate::config::{FederationConfig, TlsFiles};
use crate::error::Result;
use crate::text::Fingerprint;
use crate::tls;

/// How often files are checked for changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The certificates that are accepted.
pub struct Admission {
    /// The coordinator's side of TLS.
    pub acceptor: TlsAcceptor,
    verifier: Arc<dyn ClientCertVerifier>,
    revoked: BTreeSet<Fingerprint>,
}

impl Admission {
    /// Reads the certificates and the lists of revoked ones.
    pub fn new(files: &TlsFiles, revoked: BTreeSet<Fingerprint>) -> Result<Self> {
        let verifier = tls::client_verifier(files, true)?;
        let acceptor = TlsAcceptor::from(tls::server(files)?);
        Ok(Admission { acceptor, verifier, revoked })
    }

    /// The place of the party that this certificate chain belongs to.
    pub fn place(
        &self,
        federation: &FederationConfig,
        chain: &[CertificateDer<'_>],
    ) -> Result<u16, &'static str> {
        self.admits(chain)?;
        tls::place(federation, chain.first().ok_or("no certificate")?)
    }

    /// Checks that a certificate is accepted, or is still accepted.
    pub fn admits(&self, chain: &[CertificateDer<'_>]) -> Result<(), &'static str> {
        let (own, others) = chain.split_first().ok_or("no certificate")?;
        if self.revoked.contains(&Fingerprint::of(own)) {
            return Err("a revoked certificate");
        }
        let verified = self.verifier.verify_client_cert(own, others, UnixTime::now());
        verified.map(|_| ()).map_err(|error| tls::words(&error))
    }
}

/// The modification time and size of a file.
type Stamp = Option<(SystemTime, u64)>;

/// The stamps of all files.
fn stamps(federation: &Path, files: &TlsFiles) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    let own = federation.to_path_buf();
    let TlsFiles { certificate, key, authority, revocations } = files;
    [&own, certificate, key, authority].into_iter().chain(revocations).map(stamp).collect()
}

/// Reloads the files whenever one has changed, until the runtime ends. An unusable file changes nothing.
pub async fn watch(shared: Arc<Shared>) {
    let path = &shared.federation.path;
    let mut files = shared.federation.tls.clone();
    let mut before = stamps(path, &files);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = stamps(path, &files);
        if now == before {
            continue;
        }
        before = now;
        let read = FederationConfig::read(path, false)
            .and_then(|read| Ok((Admission::new(&read.tls, read.revoked)?, read.tls)));
        match read {
            Ok((admission, changed)) => {
                files = changed;
                shared.admission.send_replace(Some(Arc::new(admission)));
                let text =
                    "reloaded certificates and revocations; other settings take effect at the next start";
                shared.log.info(text, json!({ "event": "reloaded" }));
            }
            Err(error) => {
                let text = format!("{error}; the previous certificates and revocations remain in effect");
                shared.log.warn(&text, json!({ "event": "not-reloaded" }));
            }
        }
    }
}
