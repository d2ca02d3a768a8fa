//! The heads of ledgers that a party remembers: those of its own, and those that the others have reported.
//!
//! A party tells each other party what it remembers of that party's ledger. The other party compares this
//! with its own chain; if it is not part of it, the ledger was replaced by an old copy. A party that
//! remembers a longer ledger than reported objects as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::DataLedger;
use crate::error::{Error, Result};
use crate::private;
use crate::text::{Fingerprint, Hex};

/// A position in a ledger's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The number of entries.
    pub entries: u64,
    /// The hash of the last of these entries.
    pub hash: Hex<32>,
}

/// The end of a ledger's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    /// The ledger's random name.
    pub ledger: Hex<32>,
    /// The number of entries.
    pub entries: u64,
    /// The hash of the last entry.
    pub hash: Hex<32>,
}

impl LedgerHead {
    /// The position of this head.
    pub fn seen(&self) -> Seen {
        Seen { entries: self.entries, hash: self.hash }
    }

    /// Whether a ledger that was at `earlier` may be here now, as far as the heads show.
    pub fn may_follow(&self, earlier: &Seen) -> bool {
        self.entries > earlier.entries || self.seen() == *earlier
    }
}

/// The hashes of a ledger's entries.
#[derive(Clone, Debug)]
pub struct LedgerHistory {
    /// The ledger's random name.
    pub ledger: Hex<32>,
    /// The hash of each entry.
    pub hashes: Vec<Fingerprint>,
}

impl LedgerHistory {
    /// The history of a ledger that does not exist.
    pub fn none() -> Self {
        LedgerHistory { ledger: Hex([0; 32]), hashes: Vec::new() }
    }

    /// The head of the ledger.
    pub fn head(&self) -> LedgerHead {
        let hash = Hex(self.hashes.last().map_or([0; 32], |hash| hash.0));
        LedgerHead { ledger: self.ledger, entries: self.hashes.len() as u64, hash }
    }

    /// Whether the ledger has ever been at this position.
    pub fn contains(&self, seen: &Seen) -> bool {
        let place = usize::try_from(seen.entries).ok().and_then(|entries| entries.checked_sub(1));
        place.and_then(|place| self.hashes.get(place)).is_some_and(|hash| hash.0 == seen.hash.0)
    }
}

/// The heads that a party remembers, stored in a file.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    path: PathBuf,
    known: Known,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// Own ledgers, by the digest of the data in hexadecimal.
    own: BTreeMap<String, LedgerHead>,
    /// Ledgers of other parties, by the party's name, with one head for each ledger.
    peers: BTreeMap<String, Vec<LedgerHead>>,
}

/// The name of the file in a party's state.
const NAME: &str = "heads.json";

/// The maximum number of remembered ledgers per party, because a party could report any number.
const MOST: usize = 1000;

impl Heads {
    /// Reads the remembered heads.
    pub fn read(state: &Path) -> Result<Self> {
        let path = state.join(NAME);
        let known = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                Error::file(
                    &path,
                    format!(
                        "is damaged ({error}); restore it, or remove it to forget the ledgers of all parties"
                    ),
                )
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Known::default(),
            Err(error) => return Err(Error::io(&path)(error)),
        };
        Ok(Heads { path, known })
    }

    /// The remembered position of another party's ledger.
    pub fn of_peer(&self, name: &str, ledger: Hex<32>) -> Option<Seen> {
        let heads = self.known.peers.get(name)?;
        heads.iter().find(|head| head.ledger == ledger).map(LedgerHead::seen)
    }

    /// Whether other ledgers of this party are remembered, but not this one.
    pub fn is_new(&self, name: &str, ledger: Hex<32>) -> bool {
        self.known.peers.contains_key(name) && self.of_peer(name, ledger).is_none()
    }

    /// Remembers the heads that other parties have reported, by name.
    pub fn remember_peers<'n>(&mut self, heads: impl Iterator<Item = (&'n str, LedgerHead)>) -> Result<()> {
        for (name, head) in heads {
            let of_peer = self.known.peers.entry(name.into()).or_default();
            of_peer.retain(|known| known.ledger != head.ledger);
            of_peer.push(head);
            let excess = of_peer.len().saturating_sub(MOST);
            of_peer.drain(..excess);
        }
        self.write()
    }

    /// Checks that an own ledger continues the one that this party remembers.
    pub fn check_own(&self, data: &Fingerprint, history: &LedgerHistory, path: &Path) -> Result<()> {
        let Some(head) = self.known.own.get(&Hex(data.0).to_string()) else { return Ok(()) };
        if head.ledger == history.ledger && history.contains(&head.seen()) {
            return Ok(());
        }
        let problem = format!(
            "is not the newest ledger of these data, which had {} entries; restore the newest copy, or, if it \
             is lost, remove {} to start without it",
            head.entries,
            self.path.display()
        );
        Err(Error::file(path, problem))
    }

    /// Remembers the head of an own ledger.
    pub fn remember_own(&mut self, ledger: &DataLedger) -> Result<()> {
        self.known.own.insert(Hex(ledger.data().digest.0).to_string(), ledger.history().head());
        self.write()
    }

    /// Writes the file atomically.
    fn write(&self) -> Result<()> {
        let text = serde_json::to_vec(&self.known).unwrap_or_default();
        private::replace(&self.path, &text).map_err(Error::io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(ledger: u8, entries: u64, hash: u8) -> LedgerHead {
        LedgerHead { ledger: Hex([ledger; 32]), entries, hash: Hex([hash; 32]) }
    }

    #[test]
    fn heads_are_restored_and_forks_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let mut heads = Heads::read(folder.path()).unwrap();
        let told = [("b", head(1, 3, 3)), ("b", head(2, 9, 9)), ("b", head(1, 5, 5))];
        heads.remember_peers(told.into_iter()).unwrap();
        let heads = Heads::read(folder.path()).unwrap();
        assert_eq!(heads.of_peer("b", Hex([1; 32])), Some(head(1, 5, 5).seen()));
        assert_eq!(heads.of_peer("b", Hex([2; 32])), Some(head(2, 9, 9).seen()));
        assert!(heads.of_peer("c", Hex([1; 32])).is_none());
        assert!(heads.is_new("b", Hex([3; 32])) && !heads.is_new("c", Hex([3; 32])));
        let seen = head(1, 5, 5).seen();
        assert!(head(1, 5, 5).may_follow(&seen) && head(1, 6, 0).may_follow(&seen));
        assert!(!head(1, 5, 4).may_follow(&seen) && !head(1, 4, 5).may_follow(&seen));
        let hashes = (1..=6).map(|entry| Fingerprint([entry; 32])).collect();
        let history = LedgerHistory { ledger: Hex([1; 32]), hashes };
        assert!(history.contains(&seen));
        for other in [head(1, 5, 6), head(1, 0, 0), head(1, 7, 7)] {
            assert!(!history.contains(&other.seen()), "{other:?}");
        }
        std::fs::write(folder.path().join(NAME), "{").unwrap();
        assert!(Heads::read(folder.path()).is_err());
    }
}
