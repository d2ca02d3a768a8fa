//! `federation.toml`, the coordinator's file, and `party.toml`, a party's, with the policy that the coordinator cannot widen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use partwise_secure::protocol::{Aggregation, Protocol, Settings};
use partwise_secure::{cohorts, groups};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agreement::{Member, Terms, wrong_setting};
use crate::error::{Error, Result};
use crate::text::{Fingerprint, check_name};

/// The port that is used unless another is named.
pub const PORT: u16 = 7400;

/// Certificate, key and authority, as files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The own certificate, with intermediate ones if there are any.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Whom certificates of the other side must be signed by.
    pub authority: PathBuf,
}

/// How a party of the roster is known by its certificate.
#[derive(Clone, Debug)]
pub struct Bound {
    /// A name that the certificate is for.
    pub dns: String,
    /// The certificate itself, where it is pinned.
    pub certificate: Option<Fingerprint>,
}

/// A coordinator's configuration.
#[derive(Clone, Debug)]
pub struct Federation {
    /// The file.
    pub path: PathBuf,
    /// What parties are told.
    pub terms: Terms,
    /// Where to listen.
    pub address: String,
    /// Where what a restart needs is kept.
    pub state: PathBuf,
    /// Certificates.
    pub tls: TlsFiles,
    /// By place: how certificates are bound to parties.
    pub bound: Vec<Bound>,
    /// Certificates that are no good any more.
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificatesText {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
}

impl CertificatesText {
    fn files(self, folder: &Path, name: &str) -> TlsFiles {
        let of = |path: Option<PathBuf>, default: &str| folder.join(path.unwrap_or(default.into()));
        TlsFiles {
            certificate: of(self.certificate, &format!("{name}.crt")),
            key: of(self.key, &format!("{name}.key")),
            authority: of(self.authority, "ca.crt"),
        }
    }
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

/// The name that a party's certificate of the private authority is for.
pub fn party_dns(federation: &str, name: &str) -> String {
    format!("{name}.{federation}.partwise")
}

/// The same of the coordinator's.
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

/// The method's settings: its defaults, with what the file says instead.
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
            None => return Err(format!("[method]: there is no {name}; remove it")),
        }
    }
    for name in accept {
        match all["accepted"].get_mut(name.replace('-', "_")) {
            Some(place) => *place = Value::Bool(true),
            None => return Err(format!("accept: there is no risk {name:?}; remove it")),
        }
    }
    let mut settings: Settings = serde_json::from_value(all).map_err(wrong)?;
    settings.default_damping(|name| table.contains_key(name));
    settings.check_given(table.keys().map(String::as_str)).map_err(|error| wrong_setting(error.into()))?;
    Ok(settings)
}

/// Whether these lines can be a federation's `[method]`.
pub fn check_method(lines: &str, accept: &[String]) -> Result<()> {
    let table = toml::from_str(lines);
    let table =
        table.map_err(|error| format!("[method]: {}; correct it", error.message().replace('\n', " ")));
    let checked = table.and_then(|table| settings(&table, accept));
    checked.map(drop).map_err(|problem| Error::State { problem })
}

impl Federation {
    /// Reads and checks the file. `continue_without` is the command line's.
    pub fn read(path: &Path, continue_without: bool) -> Result<Self> {
        let text: FederationText = read(path)?;
        let wrong = |problem: String| Error::file(path, problem);
        let mut settings = settings(&text.method, &text.accept).map_err(wrong)?;
        settings.accepted.going_on_shows_the_leaver |= continue_without;
        let parties = text.party.len();
        if parties == 2 && !settings.accepted.two_parties_see_each_other {
            return Err(wrong(
                "with two parties each sees the other's share; find a third, or write accept = \
                 [\"two-parties-see-each-other\"]"
                    .into(),
            ));
        }
        for (place, party) in text.party.iter().enumerate() {
            let same = |other: &MemberText| {
                let certificate = party.certificate.is_some() && other.certificate == party.certificate;
                certificate || party.dns.is_some() && other.dns == party.dns
            };
            if text.party[..place].iter().any(same) {
                let problem = "is there twice, by dns or certificate";
                return Err(wrong(format!("party {} {problem}", party.name)));
            }
        }
        let smallest = if parties == 2 { 2 } else { settings.colluders.saturating_add(2) };
        let slowness: Vec<f64> = text.party.iter().map(|party| 1.0 / party.speed.unwrap_or(1.0)).collect();
        if slowness.iter().any(|slowness| !(*slowness > 0.0 && slowness.is_finite())) {
            return Err(wrong("speed: must be a number above 0".into()));
        }
        // Speeds form the groups of the asynchronous methods, and nothing else.
        if let Some(party) = text.party.iter().find(|party| party.speed.is_some()) {
            let unused = settings.check_given(["speed"]).map_err(|error| wrong_setting(error.into()));
            unused.map_err(|problem| wrong(problem.replace("[method]", &format!("party {}", party.name))))?;
        }
        let folder = folder(path);
        let bound = text.party.iter().map(|party| Bound {
            dns: party.dns.clone().unwrap_or_else(|| party_dns(&text.federation, &party.name)),
            certificate: party.certificate,
        });
        let bound = bound.collect();
        let member = |party: &MemberText| Member { name: party.name.clone(), identity: party.identity };
        let terms = Terms {
            federation: text.federation,
            groups: groups(&settings, &slowness),
            settings,
            roster: text.party.iter().map(member).collect(),
            cohort: text.cohort.unwrap_or(smallest),
            deadline: text.deadline.unwrap_or(300.0),
            heartbeat: text.heartbeat.unwrap_or(10.0),
        };
        terms.check().map_err(wrong)?;
        Ok(Federation {
            path: path.into(),
            address: text.address.unwrap_or_else(|| format!("127.0.0.1:{PORT}")),
            state: folder.join(text.state.unwrap_or("state".into())),
            tls: text.certificates.files(&folder, "coordinator"),
            bound,
            revoked: text.revoked.into_iter().collect(),
            terms,
        })
    }
}

/// What a party allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The methods.
    pub protocols: Vec<Protocol>,
    /// How shares may travel.
    pub aggregation: Vec<Aggregation>,
    /// How many must be in every sum.
    pub minimum_cohort: usize,
    /// How many parties must be assumed to collude.
    pub minimum_colluders: usize,
    /// The most rounds.
    pub maximum_rounds: usize,
    /// Whether the others may go on when somebody has left, which shows nearly what it had.
    pub continue_without: bool,
    /// Further risks that are accepted, by name.
    pub accept: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        use Protocol::*;
        Policy {
            protocols: vec![SynSd, SynSsdU, SynSsdV, SynSsdUv, AsynSd, AsynSsdV],
            aggregation: vec![Aggregation::Secure],
            minimum_cohort: 3,
            minimum_colluders: 1,
            maximum_rounds: Settings::ROUNDS,
            continue_without: false,
            accept: Vec::new(),
        }
    }
}

/// A party's configuration.
#[derive(Clone, Debug)]
pub struct Party {
    /// The file.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// The federation.
    pub federation: String,
    /// Where the coordinator listens.
    pub coordinator: String,
    /// The name that the coordinator's certificate is for.
    pub server_name: String,
    /// Certificates.
    pub tls: TlsFiles,
    /// The identity key's file.
    pub identity: PathBuf,
    /// Where its journal and ledger are.
    pub state: PathBuf,
    /// What it allows.
    pub policy: Policy,
    /// The others, by name, with the fingerprints of their identity keys.
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

impl Party {
    /// Reads and checks the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text: PartyText = read(path)?;
        for name in [&text.name, &text.federation] {
            check_name(name).map_err(|problem| Error::file(path, problem))?;
        }
        let folder = folder(path);
        Ok(Party {
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

    /// This party's place, if the terms are what it allows.
    pub fn accept(&self, terms: &Terms, own: &Fingerprint) -> Result<u16> {
        let refuse = |asked: String, allowed: String| {
            let file = self.path.display().to_string();
            Err(Error::Policy { file, asked, allowed })
        };
        terms
            .check()
            .map_err(|problem| Error::Dishonest { problem: format!("terms that are none: {problem}") })?;
        let (settings, policy) = (&terms.settings, &self.policy);
        let words = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        if terms.federation != self.federation {
            return refuse(format!("the federation {}", terms.federation), self.federation.clone());
        }
        if !policy.protocols.contains(&settings.protocol) {
            let asked = words(serde_json::to_string(&settings.protocol));
            return refuse(format!("the protocol {asked}"), words(serde_json::to_string(&policy.protocols)));
        }
        if !policy.aggregation.contains(&settings.aggregation) {
            let asked = words(serde_json::to_string(&settings.aggregation));
            let allowed = words(serde_json::to_string(&policy.aggregation));
            return refuse(format!("the aggregation {asked}"), allowed);
        }
        // A sum over all is over no fewer than all, unless parties may leave.
        let may_leave = settings.accepted.going_on_shows_the_leaver;
        let groups = terms.groups.iter().map(Vec::len).min().unwrap_or(terms.roster.len());
        let smallest = if may_leave { terms.cohort.min(groups) } else { groups };
        if smallest < policy.minimum_cohort {
            return refuse(
                format!("sums over {smallest} parties"),
                format!("{} or more", policy.minimum_cohort),
            );
        }
        if settings.colluders < policy.minimum_colluders {
            return refuse(
                format!("colluders = {}", settings.colluders),
                format!("{} or more", policy.minimum_colluders),
            );
        }
        let rounds = settings.all_rounds(terms.groups.len());
        if rounds > policy.maximum_rounds {
            let second = if may_leave { ", those of a second attempt among them" } else { "" };
            return refuse(format!("{rounds} rounds{second}"), format!("{} at most", policy.maximum_rounds));
        }
        if may_leave && !policy.continue_without {
            return refuse("to go on when somebody has left".into(), "no such thing".into());
        }
        let accepted = serde_json::to_value(settings.accepted).unwrap_or_default();
        let risks = accepted.as_object().into_iter().flatten();
        for (risk, _) in
            risks.filter(|(risk, on)| **on == Value::Bool(true) && *risk != "going_on_shows_the_leaver")
        {
            let risk = risk.replace('_', "-");
            if !policy.accept.contains(&risk) {
                return refuse(format!("to accept that {}", risk.replace('-', " ")), "no such thing".into());
            }
        }
        self.place(terms, own)
    }

    /// The roster is the pinned one.
    fn place(&self, terms: &Terms, own: &Fingerprint) -> Result<u16> {
        let refuse = |asked: String, allowed: String| {
            let file = self.path.display().to_string();
            Err(Error::Policy { file, asked, allowed })
        };
        for member in terms.roster.iter().filter(|member| member.name != self.name) {
            match self.peers.get(&member.name) {
                Some(pinned) if *pinned == member.identity => {}
                Some(pinned) => {
                    return refuse(
                        format!("{} with the identity {}", member.name, member.identity),
                        pinned.to_string(),
                    );
                }
                None => {
                    return refuse(
                        format!("{} as another party, with the identity {}", member.name, member.identity),
                        "only those in [peers]".into(),
                    );
                }
            }
        }
        match (1..).zip(&terms.roster).find(|(_, member)| member.name == self.name) {
            Some((place, member)) if member.identity == *own => Ok(place),
            Some((_, member)) => {
                refuse(format!("the identity {} for this party", member.identity), format!("its own, {own}"))
            }
            None => refuse("a roster without this party".into(), format!("one with {}", self.name)),
        }
    }
}

impl Terms {
    /// The cohorts of a run of this name between parties of these keys.
    pub fn cohorts(
        &self,
        run: [u8; 32],
        keys: &[partwise_secure::aggregation::IdentityKey],
    ) -> Result<Vec<partwise_secure::aggregation::Cohort>> {
        Ok(cohorts(&self.settings, (run, self.cohort), keys, &self.groups)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The federation of three parties with these lines under [method]; `more` belongs to the last party.
    fn federation(method: &str, more: &str) -> Result<Federation> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("federation.toml");
        let party = |name: &str, digit: &str| {
            format!("[[party]]\nname = \"{name}\"\nidentity = \"sha256:{}\"\n", digit.repeat(64))
        };
        let parties = [("a", "1"), ("b", "2"), ("c", "3")].map(|(name, digit)| party(name, digit)).concat();
        fs::write(&path, format!("federation = \"demo\"\n[method]\n{method}{parties}{more}")).unwrap();
        Federation::read(&path, false)
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
    fn a_speed_is_refused_where_nobody_uses_it() {
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
