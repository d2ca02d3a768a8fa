//! A party's configuration.

use std::collections::BTreeMap;
use std::env;
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
    /// The party's name.
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
    /// The folder of the party's journal and of the list of what it sent.
    pub state: PathBuf,
    /// The folder of the ledgers of the party's data, which outlast the federation.
    pub ledgers: PathBuf,
    /// The party's policy.
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
    ledgers: Option<PathBuf>,
    #[serde(default)]
    certificates: CertificatesText,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    peers: BTreeMap<String, Fingerprint>,
}

/// The default folder of this user: below `XDG_STATE_HOME`, or `.local/state` in the home folder.
fn usual_ledgers() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(folder("HOME").or_else(|| folder("USERPROFILE"))?.join(".local/state"));
    let state = folder("XDG_STATE_HOME").or_else(home)?;
    Some(state.join("partwise").join("ledgers"))
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
            ledgers: match text.ledgers {
                Some(ledgers) => folder.join(ledgers),
                None => usual_ledgers().ok_or_else(|| {
                    Error::file(
                        path,
                        "this user has no home folder for ledgers; name one, ledgers = \"/some/folder\"",
                    )
                })?,
            },
            policy: text.policy,
            peers: text.peers,
            name: text.name,
            federation: text.federation,
        })
    }
}
