//! A hash over all that the coordinator has told, from which masks are derived: over all answers so far, and for the masks
//! of an epoch over its keys too. (Keys of epochs that are over are left out, so that whoever missed one can come back.)

use sha2::{Digest, Sha256};

use super::Place;

/// The hash so far: the same at all parties as long as all were told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transcript([u8; 32]);

impl Transcript {
    /// Of a cohort that has heard nothing.
    pub fn new(run: &[u8; 32], cohort: u8) -> Self {
        Transcript([0; 32]).and(&[b"partwise transcript 1", run, &[cohort]])
    }

    /// After a key exchange.
    pub fn joined(self, epoch: u32, roster: &[u8]) -> Self {
        self.and(&[b"roster", &epoch.to_le_bytes(), roster])
    }

    /// After a sum over `cohort` that was answered with `answer`.
    pub fn opened(self, place: Place, cohort: &[u16], answer: &[u8]) -> Self {
        let cohort: Vec<u8> = cohort.iter().flat_map(|party| party.to_le_bytes()).collect();
        self.and(&[b"opened", &place.bytes(), &cohort, answer])
    }

    /// As it was noted down.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Transcript(bytes)
    }

    /// The hash.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn and(self, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(self.0);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Transcript(hash.finalize().into())
    }
}
