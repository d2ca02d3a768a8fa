//! TLS 1.3 with authentication on both sides, and the party that a certificate identifies.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

use crate::config::{FederationConfig, PartyConfig, TlsFiles};
use crate::error::{Error, Result};
use crate::text::Fingerprint;

/// gRPC requires HTTP/2.
const PROTOCOL: &[u8] = b"h2";

struct Loaded {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn load(files: &TlsFiles) -> Result<Loaded> {
    let mut roots = RootCertStore::empty();
    for root in pem_items(&files.authority)? {
        let added = roots.add(root);
        added.map_err(|error| {
            Error::file(&files.authority, format!("not an authority's certificate ({error})"))
        })?;
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        rustls::pki_types::pem::Error::Io(error) => Error::io(&files.key)(error),
        error => Error::file(&files.key, format!("it contains no private key ({error}); give a PEM file")),
    })?;
    Ok(Loaded {
        provider: Arc::new(ring::default_provider()),
        roots: Arc::new(roots),
        chain: pem_items(&files.certificate)?,
        key,
    })
}

fn unusable(files: &TlsFiles) -> impl FnOnce(rustls::Error) -> Error {
    let path = files.certificate.clone();
    move |error| {
        Error::file(path, format!("{}; give a certificate and the key that belongs to it", words(&error)))
    }
}

/// The verifier of parties' certificates: the authority and, if requested, its lists of revoked certificates.
pub fn client_verifier(files: &TlsFiles, with_revocations: bool) -> Result<Arc<dyn ClientCertVerifier>> {
    let Loaded { provider, roots, .. } = load(files)?;
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
    if let Some(lists) = revocations(files)?.filter(|_| with_revocations) {
        // Lists of intermediate authorities may be missing.
        builder =
            builder.with_crls(lists).only_check_end_entity_revocation().allow_unknown_revocation_status();
    }
    let built = builder.build();
    built.map_err(|error| unverifiable(files, &error))
}

/// The verifier of the coordinator's certificate.
fn server_verifier(files: &TlsFiles) -> Result<Arc<WebPkiServerVerifier>> {
    let Loaded { provider, roots, .. } = load(files)?;
    let mut builder = WebPkiServerVerifier::builder_with_provider(roots, provider);
    if let Some(lists) = revocations(files)? {
        builder =
            builder.with_crls(lists).only_check_end_entity_revocation().allow_unknown_revocation_status();
    }
    builder.build().map_err(|error| unverifiable(files, &error))
}

fn unverifiable(files: &TlsFiles, error: &VerifierBuilderError) -> Error {
    let at = files.revocations.as_ref().unwrap_or(&files.authority);
    Error::file(at, format!("{error}; correct it"))
}

/// The lists of revoked certificates, if a file is configured.
fn revocations(files: &TlsFiles) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>> {
    files.revocations.as_deref().map(pem_items).transpose()
}

/// All items of one kind in a PEM file, at least one.
fn pem_items<T: PemObject>(path: &Path) -> Result<Vec<T>> {
    let read = T::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(Error::file(path, "contains no item of the expected kind; give a PEM file")),
        Err(rustls::pki_types::pem::Error::Io(error)) => Err(Error::io(path)(error)),
        Err(error) => Err(Error::file(path, format!("not a PEM file ({error}); give one"))),
    }
}

/// The coordinator's configuration. Its own certificate is checked here, before the first party does.
///
/// Revoked certificates pass the handshake, so that the reason can be sent to their parties, but nothing
/// else.
pub fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let verifier = client_verifier(files, false)?;
    let Loaded { provider, chain, key, .. } = load(files)?;
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(unusable(files))?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain, key).map_err(unusable(files))?;
    config.alpn_protocols = vec![PROTOCOL.into()];
    // Every connection presents its certificate.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// A party's configuration.
pub fn client(files: &TlsFiles) -> Result<Arc<ClientConfig>> {
    let Loaded { provider, chain, key, .. } = load(files)?;
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(unusable(files))?.with_webpki_verifier(server_verifier(files)?);
    let mut config = builder.with_client_auth_cert(chain, key).map_err(unusable(files))?;
    config.alpn_protocols = vec![PROTOCOL.into()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// Whether the other side will accept the coordinator's certificate.
pub fn check_server(federation: &FederationConfig) -> Result<()> {
    let files = &federation.tls;
    let chain = load(files)?.chain;
    let verifier = server_verifier(files)?;
    let name = server_name(&crate::config::coordinator_dns(&federation.terms.federation))?;
    match verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now()) {
        // Parties may expect the name of an externally issued certificate.
        Ok(_) | Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => Ok(()),
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })) => Ok(()),
        Err(error) => Err(unusable(files)(error)),
    }
}

/// Whether the coordinator will accept a party's certificate, as far as the party can check.
pub fn check_client(party: &PartyConfig) -> Result<()> {
    let files = &party.tls;
    let chain = load(files)?.chain;
    let checked = client_verifier(files, true)?.verify_client_cert(&chain[0], &chain[1..], UnixTime::now());
    checked.map(|_| ()).map_err(unusable(files))
}

/// A name that a certificate can have.
pub fn server_name(name: &str) -> Result<ServerName<'static>> {
    ServerName::try_from(name.to_string()).map_err(|_| Error::Network {
        what: name.into(),
        problem: "is not a host name; correct server_name".into(),
    })
}

/// The party that a certificate identifies. Its signature and validity were checked before.
pub fn place(federation: &FederationConfig, certificate: &CertificateDer<'_>) -> Result<u16, &'static str> {
    let fingerprint = Fingerprint::of(certificate);
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return Err("an unreadable certificate");
    };
    let is_for = |dns: &str| {
        ServerName::try_from(dns).is_ok_and(|name| parsed.verify_is_valid_for_subject_name(&name).is_ok())
    };
    let found = (1..).zip(&federation.bindings).find(|(_, binding)| match binding.certificate {
        Some(pinned) => pinned == fingerprint,
        None => is_for(&binding.dns),
    });
    found.map(|(place, _)| place).ok_or("a certificate for no party of this federation")
}

/// The reason of a failed handshake, from a fixed set.
pub fn words(error: &rustls::Error) -> &'static str {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "an expired certificate"
        }
        rustls::Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "a certificate that is not yet valid"
        }
        // Another authority has the same name but a different key.
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "a certificate of an unknown authority"
        }
        rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "a certificate for another name"
        }
        rustls::Error::InvalidCertificate(Bad::Revoked) => "a revoked certificate",
        rustls::Error::InvalidCertificate(_) => "a certificate that is not valid",
        rustls::Error::NoCertificatesPresented => "no certificate",
        rustls::Error::InconsistentKeys(_) => "a certificate and a key that do not match",
        rustls::Error::PeerIncompatible(_) => "a client without TLS 1.3",
        _ => "a handshake other than TLS 1.3",
    }
}

/// The reason of a failed handshake, from an error of the stream.
pub fn words_of(error: &std::io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => words(error),
        None => "an abandoned connection",
    }
}
