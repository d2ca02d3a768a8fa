//! Checks before a coordinator runs.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use partwise::wording::Wording;

use super::admission::Admission;
use super::journal_path;
use crate::config::FederationConfig;
use crate::error::{Error, Result};
use crate::{private, tls};

/// Checks the configuration, the certificates, the clock, the address and the state, and shares nothing.
pub fn check(federation: &FederationConfig, insecure: bool) -> Result<Vec<Wording>> {
    let mut said = Vec::new();
    let terms = &federation.terms;
    let names: Vec<&str> = terms.roster.iter().map(|member| &member.name[..]).collect();
    said.push(format!("configuration: {} parties ({})", names.len(), names.join(", ")).into());
    if insecure {
        said.push(Wording::new("certificates: none (").field("insecure").text(")"));
    } else {
        Admission::new(&federation.tls, federation.revoked.clone())?;
        tls::check_server(federation)?;
        said.push("certificates and clock: valid".into());
    }
    let listener = TcpListener::bind(&address(federation, insecure)?[..]);
    listener.map_err(|error| cannot_listen(federation, &error))?;
    said.push(format!("address: can listen on {}", federation.address).into());
    private::make_folder(&federation.state).map_err(Error::io(&federation.state))?;
    said.push(match journal_path(federation).exists() {
        true => format!("state: a run is in progress in {}", federation.state.display()).into(),
        false => format!("state: {} can be written", federation.state.display()).into(),
    });
    Ok(said)
}

pub(super) fn cannot_listen(federation: &FederationConfig, error: &std::io::Error) -> Error {
    Error::Network {
        what: format!("address {}", federation.address),
        problem: format!("cannot listen: {error}; choose another address in {}", federation.path.display()),
    }
}

pub(super) fn address(federation: &FederationConfig, insecure: bool) -> Result<Vec<SocketAddr>> {
    let addresses = federation.address.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let addresses = addresses.map_err(|error| cannot_listen(federation, &error))?;
    if insecure && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Error::Exposed { peer: "address", address: federation.address.clone() });
    }
    Ok(addresses)
}
