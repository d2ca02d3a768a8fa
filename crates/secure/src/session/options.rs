//! The options of a session.

use chacha20::ChaCha20Rng;

use super::{Clock, Journal};
use crate::aggregation::Cohort;
use crate::error::Result;
use crate::fixed::Part;
use crate::protocol::leak::OpenedSketches;
use crate::safeguards::Safeguards;
use crate::sum::SumKind;

/// A progress report, of values that all parties know.
#[derive(Clone, Debug)]
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
    /// What became of features that few records have. It is for this party's eyes alone.
    Features {
        /// Features that no party has from here on.
        left_out: usize,
        /// Features that this party has in too few records, and treats as if it had none: from 0.
        zeroed: Vec<usize>,
    },
    /// A party was missing from sums, and the run is repeated by those who are present.
    Retry,
}

/// A sum that a party takes part in next.
pub struct NextSum<'a> {
    /// How many sums were answered so far.
    pub answered: u64,
    /// What is summed.
    pub kind: SumKind,
    /// What the party has.
    pub parts: &'a mut Vec<Part>,
}

/// What is called before each sum.
pub type BeforeSum<'a> = Box<dyn FnMut(NextSum<'_>) -> Result<()> + Send + 'a>;

/// Randomness, a clock, a journal, and a progress callback.
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
    /// Called before each sum; an error ends the party. Simulations lose parties so, and let them upload other numbers.
    pub before_sum: Option<BeforeSum<'a>>,
    /// Where the coordinator says when it is the end: rounds after which it must have.
    pub most_rounds: Option<usize>,
    /// What this party checks by itself.
    pub safeguards: Safeguards,
    /// Sketches of the same records that earlier runs have opened.
    pub sketches_before: Vec<OpenedSketches>,
    /// Where sums are those of groups: the groups that this party is not in.
    pub other_groups: Vec<Cohort>,
    /// How many sums the party takes part in at most, attempts that fail and votes on ranges among them.
    pub most_sums: Option<u64>,
}

impl<'a> SessionOptions<'a> {
    /// Without a journal and a progress callback.
    pub fn new(entropy: ChaCha20Rng, clock: impl Clock + 'a) -> Self {
        SessionOptions {
            entropy,
            clock: Box::new(clock),
            slowness: 1.0,
            journal: None,
            watch: None,
            before_sum: None,
            most_rounds: None,
            safeguards: Safeguards::of_sums(),
            sketches_before: Vec::new(),
            other_groups: Vec::new(),
            most_sums: None,
        }
    }
}
