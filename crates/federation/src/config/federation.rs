//! The coordinator's configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use partwise_secure::groups;
use partwise_secure::protocol::{Protocol, Settings};
use serde::Deserialize;
use serde_json::Value;

use super::{CertificatesText, TlsFiles, folder, party_dns, read};
use crate::agreement::{Member, Terms, wrong_setting};
use crate::error::{Error, Result};
use crate::text::Fingerprint;

/// The default port.
pub const PORT: u16 = 7400;

/// How a party is recognized by its certificate.
#[derive(Clone, Debug)]
pub struct CertificateBinding {
    /// A name that the certificate is for.
    pub dns: String,
    /// The certificate itself, if it is pinned.
    pub certificate: Option<Fingerprint>,
}

/// A coordinator's configuration.
#[derive(Clone, Debug)]
pub struct FederationConfig {
    /// The file.
    pub path: PathBuf,
    /// The terms that parties receive.
    pub terms: Terms,
    /// The address to listen on.
    pub address: String,
    /// The folder for what a restart needs.
    pub state: PathBuf,
    /// Certificates.
    pub tls: TlsFiles,
    /// The certificate of each party, by place.
    pub bindings: Vec<CertificateBinding>,
    /// Revoked certificates.
    pub revoked: BTreeSet<Fingerprint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FederationText {
    federation: String,
    address: Option<String>,
    state: Option<PathBuf>,
    cohort: Option<usize>,
    deadline: Option<f64>,
    heartbeat: Option<f64>,
    method: toml::Table,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    certificates: CertificatesText,
    #[serde(default)]
    revoked: Vec<Fingerprint>,
    #[serde(default)]
    party: Vec<MemberText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberText {
    name: String,
    identity: Fingerprint,
    dns: Option<String>,
    certificate: Option<Fingerprint>,
    speed: Option<f64>,
}

/// The settings of the protocol: its defaults, changed by the file.
fn settings(table: &toml::Table, accept: &[String]) -> Result<Settings, String> {
    let wrong = |error: serde_json::Error| format!("[method]: {error}");
    let given = serde_json::to_value(table).map_err(wrong)?;
    let of = |name: &str| given.get(name).cloned().ok_or(format!("[method]: {name} is missing; add it"));
    let protocol: Protocol = serde_json::from_value(of("protocol")?).map_err(wrong)?;
    let rank: usize = serde_json::from_value(of("rank")?).map_err(wrong)?;
    let mut all = serde_json::to_value(Settings::new(protocol, rank)).map_err(wrong)?;
    for (name, value) in given.as_object().into_iter().flatten() {
        match all.get_mut(name).filter(|_| name != "accepted") {
            Some(place) => *place = value.clone(),
            None => return Err(format!("[method]: {name} is unknown; remove it")),
        }
    }
    for name in accept {
        match all["accepted"].get_mut(name.replace('-', "_")) {
            Some(place) => *place = Value::Bool(true),
            None => return Err(format!("accept: the risk {name:?} is unknown; remove it")),
        }
    }
    let mut settings: Settings = serde_json::from_value(all).map_err(wrong)?;
    settings.default_damping(|name| table.contains_key(name));
    settings.check_given(table.keys().map(String::as_str)).map_err(|error| wrong_setting(error.into()))?;
    Ok(settings)
}

/// Validates the lines of a federation's `[method]`.
pub fn check_method(lines: &str, accept: &[String]) -> Result<()> {
    let table = toml::from_str(lines);
    let table =
        table.map_err(|error| format!("[method]: {}; correct it", error.message().replace('\n', " ")));
    let checked = table.and_then(|table| settings(&table, accept));
    checked.map(drop).map_err(|problem| Error::State { problem })
}

impl FederationConfig {
    /// Reads and checks the file. `continue_without` accepts the risk that continuing reveals the leaver, whatever
    /// the file says.
    pub fn read(path: &Path, continue_without: bool) -> Result<Self> {
        let text: FederationText = read(path)?;
        let wrong = |problem: String| Error::file(path, problem);
        let mut settings = settings(&text.method, &text.accept).map_err(wrong)?;
        settings.accepted.going_on_shows_the_leaver |= continue_without;
        check_parties(&text.party, &settings).map_err(wrong)?;
        let slowness: Vec<f64> = text.party.iter().map(|party| 1.0 / party.speed.unwrap_or(1.0)).collect();
        if slowness.iter().any(|slowness| !(*slowness > 0.0 && slowness.is_finite())) {
            return Err(wrong("speed: must be a number above 0".into()));
        }
        // Speeds form the groups of asynchronous protocols, and have no other use.
        if let Some(party) = text.party.iter().find(|party| party.speed.is_some()) {
            let unused = settings.check_given(["speed"]).map_err(|error| wrong_setting(error.into()));
            unused.map_err(|problem| wrong(problem.replace("[method]", &format!("party {}", party.name))))?;
        }
        let folder = folder(path);
        let binding = |party: &MemberText| CertificateBinding {
            dns: party.dns.clone().unwrap_or_else(|| party_dns(&text.federation, &party.name)),
            certificate: party.certificate,
        };
        let bindings = text.party.iter().map(binding).collect();
        let member = |party: &MemberText| Member { name: party.name.clone(), identity: party.identity };
        let roster: Vec<Member> = text.party.iter().map(member).collect();
        let terms = Terms {
            federation: text.federation,
            groups: groups(&settings, &slowness),
            cohort: text.cohort.unwrap_or_else(|| Terms::smallest_cohort(roster.len(), &settings)),
            settings,
            roster,
            deadline: text.deadline.unwrap_or(300.0),
            heartbeat: text.heartbeat.unwrap_or(10.0),
        };
        terms.check().map_err(wrong)?;
        Ok(FederationConfig {
            path: path.into(),
            address: text.address.unwrap_or_else(|| format!("127.0.0.1:{PORT}")),
            state: folder.join(text.state.unwrap_or("state".into())),
            tls: text.certificates.files(&folder, "coordinator"),
            bindings,
            revoked: text.revoked.into_iter().collect(),
            terms,
        })
    }
}

/// Checks that certificates distinguish the parties, and that two parties accept their risk.
fn check_parties(parties: &[MemberText], settings: &Settings) -> Result<(), String> {
    if parties.len() == 2 && !settings.accepted.two_parties_see_each_other {
        return Err(
            "with two parties each can compute the other's contribution; find a third, or write accept = \
             [\"two-parties-see-each-other\"]"
                .into(),
        );
    }
    for (place, party) in parties.iter().enumerate() {
        let same = |other: &MemberText| {
            let certificate = party.certificate.is_some() && other.certificate == party.certificate;
            certificate || party.dns.is_some() && other.dns == party.dns
        };
        if parties[..place].iter().any(same) {
            return Err(format!("party {} is listed twice, by dns or certificate", party.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The federation of three parties with these lines under [method]; `more` belongs to the last party.
    fn federation(method: &str, more: &str) -> Result<FederationConfig> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("federation.toml");
        let party = |name: &str, digit: &str| {
            format!("[[party]]\nname = \"{name}\"\nidentity = \"sha256:{}\"\n", digit.repeat(64))
        };
        let parties = [("a", "1"), ("b", "2"), ("c", "3")].map(|(name, digit)| party(name, digit)).concat();
        fs::write(&path, format!("federation = \"demo\"\n[method]\n{method}{parties}{more}")).unwrap();
        FederationConfig::read(&path, false)
    }

    fn problem(method: &str, more: &str) -> String {
        match federation(method, more) {
            Ok(_) => String::new(),
            Err(Error::File { problem, .. }) => problem,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn lines_of_the_method_that_it_ignores_are_refused_by_key() {
        let pooled = "protocol = \"pooled\"\nrank = 3\n";
        assert_eq!(problem(pooled, ""), "");
        let ignored = problem(&format!("{pooled}inner = 3\n"), "");
        assert!(ignored.starts_with("[method]: inner: pooled does not use it"), "{ignored}");
        let ignored = problem("protocol = \"syn-sd\"\nrank = 3\nsketch_records = { Count = 5 }\n", "");
        assert!(ignored.starts_with("[method]: sketch_records: syn-sd does not use it"), "{ignored}");
        let wrong = problem("protocol = \"asyn-sd\"\nrank = 3\nrho = 0.0\n", "");
        assert!(wrong.starts_with("[method]: rho: 0 is out of range"), "{wrong}");
    }

    #[test]
    fn an_unused_speed_is_refused() {
        let ignored = problem("protocol = \"syn-sd\"\nrank = 3\n", "speed = 2.0\n");
        assert!(ignored.starts_with("party c: speed: syn-sd does not use it"), "{ignored}");
        assert!(ignored.ends_with("choose asyn-sd or asyn-ssd-v"), "{ignored}");
        let asynchronous = "protocol = \"asyn-sd\"\nrank = 3\n";
        assert_eq!(problem(asynchronous, "speed = 2.0\n"), "");
        let wrong = problem(asynchronous, "speed = 0.0\n");
        assert!(wrong.starts_with("speed: must be a number above 0"), "{wrong}");
    }

    #[test]
    fn damping_that_is_not_given_is_that_of_the_solver() {
        let damping = |lines: &str| {
            let method = format!("protocol = \"syn-sd\"\nrank = 3\n{lines}");
            let settings = federation(&method, "").unwrap().terms.settings;
            (settings.alpha, settings.beta)
        };
        assert_eq!(damping(""), (0.1, 0.02));
        assert_eq!(damping("solver = \"pgd\"\n"), (2.0, 0.002));
        assert_eq!(damping("solver = \"pgd\"\nalpha = 3.0\n"), (3.0, 0.002));
    }
}
