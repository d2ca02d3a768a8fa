//! What a party takes from the program around it, which tests replace by something that they can repeat or disturb.

use rand::Rng;

use crate::error::Result;

/// What a party takes from the program around it, and what that may look at. Messages are named by their kinds, such as
/// `upload`; nothing of what is in them is shown.
pub trait Hooks: Send + Sync {
    /// The seed of the start of the factor that the party at this place keeps to itself.
    fn private_seed(&self, _place: u16) -> Result<u64> {
        Ok(partwise_secure::entropy()?.next_u64())
    }

    /// The seed of U's start and of sketches: what all parties have drawn together, and not what the coordinator proposes.
    fn public_seed(&self, drawn: u64, _proposed: u64) -> u64 {
        drawn
    }

    /// A message is about to be sent.
    fn sending(&self, _kind: &'static str) {}

    /// A piece of a message was sent.
    fn piece_sent(&self, _kind: &'static str) {}

    /// A message was handed over to be sent.
    fn sent(&self, _kind: &'static str) {}

    /// A message was received, and is not yet dealt with.
    fn received(&self, _kind: &'static str) {}
}

/// Seeds from the operating system, and nobody who looks.
pub struct NoHooks;

impl Hooks for NoHooks {}
