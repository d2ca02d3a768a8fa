//! `federation.toml`, the coordinator's file, and `party.toml`, a party's, with the policy that the coordinator
//! cannot override.

mod federation;
mod party;
mod policy;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use federation::{CertificateBinding, FederationConfig, PORT, check_method};
pub use party::PartyConfig;
pub use policy::Policy;

use crate::error::{Error, Result};

/// The files of the certificate, the key and the authority.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The own certificate, with intermediate ones if there are any.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authority that must have signed certificates of the other side.
    pub authority: PathBuf,
    /// Certificates that the authority has revoked.
    pub revocations: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificatesText {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    revocations: Option<PathBuf>,
}

impl CertificatesText {
    fn files(self, folder: &Path, name: &str) -> TlsFiles {
        let of = |path: Option<PathBuf>, default: &str| folder.join(path.unwrap_or(default.into()));
        TlsFiles {
            certificate: of(self.certificate, &format!("{name}.crt")),
            key: of(self.key, &format!("{name}.key")),
            authority: of(self.authority, "ca.crt"),
            revocations: self.revocations.map(|path| folder.join(path)),
        }
    }
}

/// The name in a party's certificate of the private authority.
pub fn party_dns(federation: &str, name: &str) -> String {
    format!("{name}.{federation}.partwise")
}

/// The name in the coordinator's certificate of the private authority.
pub fn coordinator_dns(federation: &str) -> String {
    format!("{federation}.partwise")
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        Error::file(path, format!("{place}{}; correct it", error.message().replace('\n', " ")))
    })
}

fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
}
