//! How a party replaces its identity key between runs: it writes a hand-over file that both keys sign, and
//! every other party and the coordinator accept it by replacing the fingerprint that they have pinned.

use std::fs;
use std::path::{Path, PathBuf};

use partwise_secure::aggregation::{Identity, IdentityKey};
use partwise_secure::encoding::{Field, encode};
use rand::Rng;
use zeroize::Zeroizing;

use crate::certificates::{read_identity, renew_request};
use crate::config::{FederationConfig, PartyConfig};
use crate::coordinator::journal_path;
use crate::error::{Error, Result};
use crate::party::StateFolder;
use crate::private;
use crate::text::{Fingerprint, Hex};

/// A hand-over from one identity key to another.
struct Handover {
    federation: String,
    party: String,
    from: Hex<32>,
    to: Hex<32>,
    /// The signatures of the old key and of the new one.
    signatures: [Hex<64>; 2],
}

/// The first line of a hand-over file.
const TITLE: &str = "partwise handover 1";
const LINES: [&str; 6] =
    ["federation", "party", "from", "to", "signed by the old key", "signed by the new key"];

impl Handover {
    fn signed_bytes(&self) -> Vec<u8> {
        let fields = [
            Field::new("federation", &self.federation[..]),
            Field::new("party", &self.party[..]),
            Field::new("from", self.from.0),
            Field::new("to", self.to.0),
        ];
        encode("partwise handover", 1, &fields)
    }

    fn new(party: &PartyConfig, from: &Identity, to: &Identity) -> Self {
        let mut handover = Handover {
            federation: party.federation.clone(),
            party: party.name.clone(),
            from: Hex(*from.key().bytes()),
            to: Hex(*to.key().bytes()),
            signatures: [Hex([0; 64]); 2],
        };
        let bytes = handover.signed_bytes();
        handover.signatures = [Hex(from.sign(&bytes)), Hex(to.sign(&bytes))];
        handover
    }

    fn text(&self) -> String {
        let [old, new] = self.signatures.map(|signature| signature.to_string());
        let (from, to) = (self.from.to_string(), self.to.to_string());
        let values = [&self.federation, &self.party, &from, &to, &old, &new];
        LINES
            .iter()
            .zip(values)
            .fold(format!("{TITLE}\n"), |text, (name, value)| text + name + ": " + value + "\n")
    }

    /// Reads a hand-over file, and checks both signatures.
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(Error::io(path))?;
        let wrong = |problem: &str| Error::file(path, format!("{problem}; ask the party for the file again"));
        if text.lines().next().map(str::trim) != Some(TITLE) {
            return Err(wrong("is not a hand-over of an identity key"));
        }
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(|value| value.trim().to_string()).ok_or_else(|| wrong(&format!("has no line {name:?}")))
        };
        let [federation, party, from, to, old, new] = LINES.map(value);
        let malformed = |problem: String| wrong(&format!("has a value that {problem}"));
        let handover = Handover {
            federation: federation?,
            party: party?,
            from: from?.parse().map_err(malformed)?,
            to: to?.parse().map_err(malformed)?,
            signatures: [old?.parse().map_err(malformed)?, new?.parse().map_err(malformed)?],
        };
        let bytes = handover.signed_bytes();
        let keys = [&handover.from, &handover.to].map(|key| IdentityKey::from_bytes(&key.0));
        let signed = keys.into_iter().zip(&handover.signatures);
        if !signed.into_iter().all(|(key, by)| key.is_some_and(|key| key.has_signed(&bytes, &by.0))) {
            return Err(wrong("is not signed by both keys"));
        }
        Ok(handover)
    }
}

/// The result of replacing a party's identity key.
pub struct Rotated {
    /// The hand-over file for all others.
    pub handover: PathBuf,
    /// The fingerprint of the new identity.
    pub identity: Fingerprint,
}

/// Replaces a party's identity key. An interrupted replacement is completed.
pub fn rotate(party: &PartyConfig) -> Result<Rotated> {
    let state = StateFolder::open(&party.state)?;
    if state.journal().exists() {
        let problem = "belongs to a run in progress; finish it before the identity key is replaced";
        return Err(Error::file(state.journal(), problem));
    }
    let old = read_identity(&party.identity)?;
    let next = party.identity.with_extension("next");
    if !next.exists() {
        let mut secret = Zeroizing::new([0; 32]);
        partwise_secure::entropy()?.fill_bytes(&mut *secret);
        let text = Zeroizing::new(format!("{}\n", Hex(*secret)));
        private::replace(&next, text.as_bytes()).map_err(Error::io(&next))?;
    }
    let new = read_identity(&next)?;
    let identity = Fingerprint::of(new.key().bytes());
    let folder = party.identity.parent().unwrap_or(Path::new("."));
    let handover = folder.join(format!("{}-{}.handover", party.name, &Hex(identity.0).to_string()[..8]));
    let text = Handover::new(party, &old, &new).text();
    fs::write(&handover, text).map_err(Error::io(&handover))?;
    renew_request(&folder.join(format!("{}.request", party.name)), &new)?;
    fs::rename(&next, &party.identity).map_err(Error::io(&party.identity))?;
    private::sync_folder(folder).map_err(Error::io(folder))?;
    Ok(Rotated { handover, identity })
}

/// The result of accepting a hand-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The party.
    pub party: String,
    /// The fingerprint of its new identity.
    pub identity: Fingerprint,
}

/// Accepts another party's hand-over in a party's configuration.
pub fn accept_at_party(party: &PartyConfig, handover: &Path) -> Result<Accepted> {
    let journal = StateFolder::open(&party.state)?.journal();
    let pinned = |name: &str| party.peers.get(name).copied();
    Accepting { file: &party.path, federation: &party.federation, journal }.accept(handover, pinned)
}

/// Accepts a party's hand-over in the coordinator's configuration.
pub fn accept_at_coordinator(federation: &FederationConfig, handover: &Path) -> Result<Accepted> {
    let roster = &federation.terms.roster;
    let pinned = |name: &str| Some(roster.iter().find(|member| member.name == name)?.identity);
    let name = &federation.terms.federation;
    let journal = journal_path(federation);
    Accepting { file: &federation.path, federation: name, journal }.accept(handover, pinned)
}

/// The configuration in which a hand-over is accepted.
struct Accepting<'a> {
    file: &'a Path,
    federation: &'a str,
    journal: PathBuf,
}

impl Accepting<'_> {
    fn accept(self, path: &Path, pinned: impl Fn(&str) -> Option<Fingerprint>) -> Result<Accepted> {
        let handover = Handover::read(path)?;
        let wrong = |problem: String| Err(Error::file(path, problem));
        if handover.federation != self.federation {
            return wrong(format!(
                "belongs to the federation {}, not {}",
                handover.federation, self.federation
            ));
        }
        let [from, to] = [&handover.from, &handover.to].map(|key| Fingerprint::of(&key.0));
        let party = handover.party;
        let accepted = Accepted { party: party.clone(), identity: to };
        match pinned(&party) {
            Some(known) if known == to => return Ok(accepted),
            Some(known) if known == from => {}
            Some(known) => {
                return wrong(format!(
                    "hands over from {from}, but {} has {known} for {party}; accept an earlier hand-over first, \
                     or ask {party}",
                    self.file.display()
                ));
            }
            None => return wrong(format!("belongs to {party}, which is not in {}", self.file.display())),
        }
        if self.journal.exists() {
            let problem = "belongs to a run in progress; finish it before another identity is accepted";
            return Err(Error::file(self.journal, problem));
        }
        let text = fs::read_to_string(self.file).map_err(Error::io(self.file))?;
        let changed = text.replace(&from.to_string(), &to.to_string());
        let permissions = fs::metadata(self.file).map_err(Error::io(self.file))?.permissions();
        private::replace(self.file, changed.as_bytes()).map_err(Error::io(self.file))?;
        fs::set_permissions(self.file, permissions).map_err(Error::io(self.file))?;
        Ok(accepted)
    }
}
