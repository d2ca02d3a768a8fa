//! What a session is given by whoever runs it.

use chacha20::ChaCha20Rng;

use super::{Clock, Journal};
use crate::error::Result;

/// Something that all parties know, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Announcement {
    /// ‖M‖².
    Norm(f64),
    /// Σ ‖M_r − U V_rᵀ‖² after a round.
    Error {
        /// The round.
        round: usize,
        /// Over all parties.
        squared_error: f64,
    },
    /// Somebody was missing in sums, and the run is done once more by those who are there.
    Retry,
}

/// Randomness, a clock, a journal, and who is told what.
pub struct SessionOptions<'a> {
    /// Randomness of votes and noise.
    pub entropy: ChaCha20Rng,
    /// The clock that its meter reads.
    pub clock: Box<dyn Clock + 'a>,
    /// How many times as long this party takes for the same work, where the link has a simulated clock.
    pub slowness: f64,
    /// Where answers are kept.
    pub journal: Option<Box<dyn Journal + 'a>>,
    /// Told what all know.
    pub watch: Option<Box<dyn FnMut(Announcement) + Send + 'a>>,
    /// Called before each sum with how many were answered so far; an error ends the party. Simulations lose parties so.
    pub before_sum: Option<Box<dyn FnMut(u64) -> Result<()> + Send + 'a>>,
    /// Where the coordinator says when it is the end: rounds after which it must have.
    pub most_rounds: Option<usize>,
    /// How many sums the party takes part in at most, attempts that fail and votes on ranges among them.
    pub most_sums: Option<u64>,
}

impl<'a> SessionOptions<'a> {
    /// Without a journal, and with nobody who watches.
    pub fn new(entropy: ChaCha20Rng, clock: impl Clock + 'a) -> Self {
        SessionOptions {
            entropy,
            clock: Box::new(clock),
            slowness: 1.0,
            journal: None,
            watch: None,
            before_sum: None,
            most_rounds: None,
            most_sums: None,
        }
    }
}
