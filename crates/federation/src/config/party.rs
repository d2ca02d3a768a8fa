//! A party's configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CertificatesText, Policy, TlsFiles, coordinator_dns, folder, read};
use crate::error::{Error, Result};
use crate::text::{Fingerprint, check_name};

/// A party's configuration.
#[derive(Clone, Debug)]
pub struct PartyConfig {
    /// The file.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// The federation.
    pub federation: String,
    /// The address of the coordinator.
    pub coordinator: String,
    /// The name in the coordinator's certificate.
    pub server_name: String,
    /// Certificates.
    pub tls: TlsFiles,
    /// The file of the identity key.
    pub identity: PathBuf,
    /// The folder of its journal and ledger.
    pub state: PathBuf,
    /// Its policy.
    pub policy: Policy,
    /// The other parties by name, with the fingerprints of their identity keys.
    pub peers: BTreeMap<String, Fingerprint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartyText {
    name: String,
    federation: String,
    coordinator: String,
    server_name: Option<String>,
    identity: Option<PathBuf>,
    state: Option<PathBuf>,
    #[serde(default)]
    certificates: CertificatesText,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    peers: BTreeMap<String, Fingerprint>,
}

impl PartyConfig {
    /// Reads and checks the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text: PartyText = read(path)?;
        for name in [&text.name, &text.federation] {
            check_name(name).map_err(|problem| Error::file(path, problem))?;
        }
        let folder = folder(path);
        Ok(PartyConfig {
            path: path.into(),
            coordinator: text.coordinator,
            server_name: text.server_name.unwrap_or_else(|| coordinator_dns(&text.federation)),
            tls: text.certificates.files(&folder, &text.name),
            identity: folder.join(text.identity.unwrap_or("identity.key".into())),
            state: folder.join(text.state.unwrap_or("state".into())),
            policy: text.policy,
            peers: text.peers,
            name: text.name,
            federation: text.federation,
        })
    }
}
