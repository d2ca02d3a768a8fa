//! Randomness of secrets: from the operating system, never from the run's seed.

use chacha20::ChaCha20Rng;
use rand::SeedableRng;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// A generator keyed by the operating system, for keys, self-masks and shares. ChaCha20 wipes itself when dropped.
pub fn entropy() -> Result<ChaCha20Rng> {
    let mut seed = Zeroizing::new([0u8; 32]);
    getrandom::fill(&mut *seed).map_err(|error| Error::Entropy { problem: error.to_string() })?;
    Ok(ChaCha20Rng::from_seed(*seed))
}
