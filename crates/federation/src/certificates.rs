//! Keys and certificates: a private authority for a federation, certificate requests, and the certificates that it
//! issues.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use partwise_secure::aggregation::{Identity, IdentityKey};
use rand::Rng;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use crate::config::{coordinator_dns, party_dns};
use crate::error::{Error, Result};
use crate::private;
use crate::text::{Fingerprint, Hex};

/// Validity of certificates and of authorities in days.
pub const DAYS: u32 = 365;
const AUTHORITY_DAYS: i64 = 3650;

fn wrong(path: &Path) -> impl FnOnce(rcgen::Error) -> Error {
    move |error| Error::file(path, format!("{error}; create it again"))
}

/// Writes a new file; a secret one is readable by its owner only.
pub fn write_new(path: &Path, text: &str, secret: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    let opened = if secret { private::open(&mut options, path) } else { options.open(path) };
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(Error::io(path))
}

fn params(name: &str, days: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    // Tolerates small differences between clocks.
    params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(days);
    params
}

/// Creates a private authority, and the coordinator's certificate for these additional host names: `ca.crt`,
/// `ca.key`, `coordinator.crt`, `coordinator.key`.
pub fn make_authority(folder: &Path, federation: &str, hosts: &[String], days: u32) -> Result<()> {
    let path = folder.join("ca.crt");
    let key = KeyPair::generate().map_err(wrong(&path))?;
    let mut authority = params(&format!("Partwise federation {federation}"), AUTHORITY_DAYS);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&key).map_err(wrong(&path))?;
    write_new(&path, &certificate.pem(), false)?;
    write_new(&folder.join("ca.key"), &Zeroizing::new(key.serialize_pem()), true)?;

    let path = folder.join("coordinator.crt");
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().map_err(wrong(&path))?;
    let mut own = params(&coordinator_dns(federation), days.into());
    let mut names = vec![coordinator_dns(federation)];
    names.extend_from_slice(hosts);
    own.subject_alt_names = names
        .iter()
        .map(|name| match name.parse() {
            Ok(address) => Ok(SanType::IpAddress(address)),
            Err(_) => Ok(SanType::DnsName(name.as_str().try_into()?)),
        })
        .collect::<Result<_, rcgen::Error>>()
        .map_err(wrong(&path))?;
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = own.signed_by(&key, &issuer).map_err(wrong(&path))?;
    write_new(&path, &certificate.pem(), false)?;
    write_new(&folder.join("coordinator.key"), &Zeroizing::new(key.serialize_pem()), true)
}

const IDENTITY: &str = "partwise identity ";
const SIGNATURE: &str = "partwise signature ";

/// The text of a request that the identity key signs, independent of line breaks. Identity keys are public: without
/// the signature anyone could request a certificate in the name of another party.
fn request_text(request: &str) -> Vec<u8> {
    let signs = request.chars().filter(|sign| !sign.is_whitespace());
    "partwise request 1 ".chars().chain(signs).collect::<String>().into_bytes()
}

/// Creates a party's keys: `NAME.key`, `identity.key`, and the request `NAME.request`. Returns the fingerprint of
/// the identity key.
pub fn make_request(folder: &Path, federation: &str, name: &str) -> Result<Fingerprint> {
    let path = folder.join(format!("{name}.request"));
    let key = KeyPair::generate().map_err(wrong(&path))?;
    let mut request = CertificateParams::new([party_dns(federation, name)]).map_err(wrong(&path))?;
    request.distinguished_name.push(DnType::CommonName, name);
    let request = request.serialize_request(&key).map_err(wrong(&path))?;
    write_new(&folder.join(format!("{name}.key")), &Zeroizing::new(key.serialize_pem()), true)?;
    let mut secret = Zeroizing::new([0; 32]);
    partwise_secure::entropy()?.fill_bytes(&mut *secret);
    let identity = Identity::from_secret(&secret);
    write_new(&folder.join("identity.key"), &Zeroizing::new(format!("{}\n", Hex(*secret))), true)?;
    let public = *identity.key().bytes();
    let request = request.pem().map_err(wrong(&path))?;
    write_new(&path, &signed_request(&request, &identity), false)?;
    Ok(Fingerprint::of(&public))
}

/// A request with the identity that signs it.
fn signed_request(request: &str, identity: &Identity) -> String {
    let signature = identity.sign(&request_text(request));
    format!("{request}{IDENTITY}{}\n{SIGNATURE}{}\n", Hex(*identity.key().bytes()), Hex(signature))
}

/// Replaces the identity in a request, if the request exists.
pub(crate) fn renew_request(path: &Path, identity: &Identity) -> Result<()> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(Error::io(path))?,
    };
    let request = text.split_once(IDENTITY).map_or(&text[..], |(request, _)| request);
    fs::write(path, signed_request(request, identity)).map_err(Error::io(path))
}

/// Reads the identity key in a file.
pub fn read_identity(path: &Path) -> Result<Identity> {
    let text = Zeroizing::new(fs::read_to_string(path).map_err(Error::io(path))?);
    let secret = text.trim().parse::<Hex<32>>().map(|hex| Zeroizing::new(hex.0));
    let secret = secret.map_err(|problem| Error::file(path, format!("an identity key {problem}")))?;
    Ok(Identity::from_secret(&secret))
}

/// The authority's answer to a request.
pub struct Signed {
    /// The party.
    pub name: String,
    /// The fingerprint of its identity key.
    pub identity: Fingerprint,
    /// The certificate in PEM format.
    pub certificate: String,
}

/// Signs the request of a party of `federation` with the authority in `folder`.
pub fn sign(folder: &Path, federation: &str, request: &Path, days: u32) -> Result<Signed> {
    let text = fs::read_to_string(request).map_err(Error::io(request))?;
    let line = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
    let identity = line(IDENTITY).map(str::parse::<Hex<32>>);
    let (Some(Ok(identity)), Some((before, _))) = (identity, text.split_once(IDENTITY)) else {
        return Err(Error::file(
            request,
            "it contains no identity key; give the file that `partwise party init` wrote",
        ));
    };
    let signed =
        line(SIGNATURE).and_then(|signature| signature.parse::<Hex<64>>().ok()).is_some_and(|signature| {
            let key = IdentityKey::from_bytes(&identity.0);
            key.is_some_and(|key| key.has_signed(&request_text(before), &signature.0))
        });
    if !signed {
        let problem = "the request is not signed by its own identity key; ask the party for a new one";
        return Err(Error::file(request, problem));
    }
    // This checks the signature on the request.
    let mut asked = CertificateSigningRequestParams::from_pem(before).map_err(|error| {
        Error::file(request, format!("not a certificate request ({error}); ask the party for a new one"))
    })?;
    let [SanType::DnsName(dns)] = &asked.params.subject_alt_names[..] else {
        return Err(Error::file(
            request,
            "the request must be for one name; create it with `partwise party init`",
        ));
    };
    let suffix = party_dns(federation, "");
    let name = dns.as_ref().strip_suffix(&suffix).unwrap_or_default().to_string();
    if crate::text::check_name(&name).is_err() {
        return Err(Error::file(
            request,
            format!(
                "the request is for {}, which is not a party of {federation}; create it for this federation",
                dns.as_ref()
            ),
        ));
    }
    let authority = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).map(Zeroizing::new).map_err(Error::io(path))
    };
    let bad = |error| wrong(&folder.join("ca.key"))(error);
    let key = KeyPair::from_pem(&authority("ca.key")?).map_err(bad)?;
    let issuer = Issuer::from_ca_cert_pem(&authority("ca.crt")?, key).map_err(bad)?;
    // Only the name and the key are taken from the request.
    let mut granted = params(&name, days.into());
    granted.subject_alt_names = asked.params.subject_alt_names.clone();
    granted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    granted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    asked.params = granted;
    let certificate = asked.signed_by(&issuer).map_err(wrong(request))?.pem();
    Ok(Signed { name, identity: Fingerprint::of(&identity.0), certificate })
}
