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
        /// The squared error over all parties.
        squared_error: f64,
    },
    /// Features that were removed because few records have them. The report is private to this party.
    Features {
        /// The number of features that no party has from now on.
        left_out: usize,
        /// Features, numbered from 0, that this party has in too few records and treats as absent.
        zeroed: Vec<usize>,
    },
    /// A party was missing from sums, and the run is repeated by those who are present.
    Retry,
}

/// The sum in which a party takes part next.
pub struct NextSum<'a> {
    /// The number of sums answered so far.
    pub answered: u64,
    /// The kind of the sum.
    pub kind: SumKind,
    /// The party's contribution.
    pub parts: &'a mut Vec<Part>,
}

/// A function that is called before each sum.
pub type BeforeSum<'a> = Box<dyn FnMut(NextSum<'_>) -> Result<()> + Send + 'a>;

/// Randomness, a clock, a journal, and a progress callback.
pub struct SessionOptions<'a> {
    /// Randomness of votes and noise.
    pub entropy: ChaCha20Rng,
    /// The clock that its meter reads.
    pub clock: Box<dyn Clock + 'a>,
    /// How many times as long this party takes for the same work, where the link has a simulated clock.
    pub slowness: f64,
    /// The journal in which answers are stored.
    pub journal: Option<Box<dyn Journal + 'a>>,
    /// Told what all know.
    pub watch: Option<Box<dyn FnMut(Announcement) + Send + 'a>>,
    /// Called before each sum; an error ends the party. Simulations use it to remove parties and to change
    /// their uploads.
    pub before_sum: Option<BeforeSum<'a>>,
    /// Where the coordinator says when it is the end: rounds after which it must have.
    pub most_rounds: Option<usize>,
    /// The limits that this party checks by itself.
    pub safeguards: Safeguards,
    /// Sketches of the same records that earlier runs opened.
    pub sketches_before: Vec<OpenedSketches>,
    /// Where sums are those of groups: the groups that this party is not in.
    pub other_groups: Vec<Cohort>,
    /// The maximum number of sums in which the party takes part, failed attempts and votes on ranges
    /// included.
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
