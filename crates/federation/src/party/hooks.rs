//! Hooks that tests use to reproduce or disturb a party.

use rand::Rng;

use crate::error::Result;

/// The hooks of a party. Messages are identified by their kinds, such as `upload`; their content is not accessible.
pub trait Hooks: Send + Sync {
    /// The seed of the start of this party's private factor.
    fn private_seed(&self, _place: u16) -> Result<u64> {
        Ok(partwise_secure::entropy()?.next_u64())
    }

    /// The seed of U's start and of sketches, to which all parties have contributed, and not what the
    /// coordinator proposes.
    fn public_seed(&self, drawn: u64, _proposed: u64) -> u64 {
        drawn
    }

    /// A message is about to be sent.
    fn sending(&self, _kind: &'static str) {}

    /// A piece of a message was sent.
    fn piece_sent(&self, _kind: &'static str) {}

    /// A message was handed over to be sent.
    fn sent(&self, _kind: &'static str) {}

    /// A message was received and is not yet handled.
    fn received(&self, _kind: &'static str) {}
}

/// The default: seeds from the operating system, no other effect.
pub struct NoHooks;

impl Hooks for NoHooks {}
