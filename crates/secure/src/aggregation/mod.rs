//! Secure aggregation: the coordinator learns the sum of the contributions of a cohort's parties, but no
//! contribution.
//!
//! It follows Bonawitz et al. 2017, "Practical secure aggregation for privacy-preserving machine learning". In each
//! round a party adds to its words a mask for every other party of the cohort, which that party subtracts, and a mask
//! of its own, whose seed is shared among the others (Shamir). It signs digests of the masked words and of all these
//! secrets. The coordinator passes on the words and the list of what all have signed; the parties sign that list, verify
//! that enough others signed the same one, and only then reveal what removes the masks: shares of the self-masks of
//! those on the list, and this round's pairwise seeds with those who are not. Every party opens the sum itself. There
//! are two state machines, [`Party`] and [`Hub`], each `handle(Event) -> Vec<Action>`; their drivers have the links and
//! the clocks.
//!
//! This differs from the paper in two ways. Keys are never shared: a survivor reveals the pairwise seed of
//! one round. Masks are derived from the transcript, everything that the coordinator has sent so far, so that
//! the masks of parties that were told different things do not cancel.

pub(crate) mod commitment;
mod hub;
mod keys;
mod mask;
mod observer;
pub(crate) mod opening;
mod order;
mod party;
mod plain;
mod sharing;
#[cfg(test)]
mod tests;
mod transcript;
#[cfg(test)]
mod verification_tests;
pub mod wire;
mod words;

pub use commitment::{Blame, Commitment, Revealed};
pub use hub::Hub;
pub use keys::{Identity, IdentityKey};
pub use observer::{ObservedSum, Observer};
pub use opening::Opening;
pub use order::{OrderTip, TIP_BYTES};
#[cfg(test)]
pub(crate) use party::Lie;
pub use party::Party;
pub use wire::Message;
pub use words::{WordCount, Words};

use crate::error::{Error, Result};

/// Shares of a secret, sealed or open, and the party that each is for.
pub(crate) type PartyShares = Vec<(u16, Vec<u8>)>;

/// The parties that sum together, and the parameters on which all of them agreed.
#[derive(Clone, Debug)]
pub struct Cohort {
    /// A hash of the run: of all parameters that the parties agreed on.
    pub run: [u8; 32],
    /// Which of the run's cohorts this is.
    pub number: u8,
    /// The parties, ascending, with the keys that they are known by.
    pub members: Vec<(u16, IdentityKey)>,
    /// c, how many parties are assumed to collude with each other and the coordinator.
    pub colluders: usize,
    /// The minimum number of parties in a sum, if it is more than c + 2.
    pub least: usize,
    /// Whether a sum without one that left is accepted; by default all wait for it.
    pub may_leave: bool,
}

impl Cohort {
    /// How many must sign a list of survivors, and reveal: floor((N + c) / 2) + 1. Two lists cannot both have that many
    /// signatures, even where c parties sign both.
    pub fn threshold(&self) -> usize {
        (self.members.len() + self.colluders) / 2 + 1
    }

    /// How many must be in a sum: what c colluders cannot subtract must still be a sum of two.
    pub fn smallest(&self) -> usize {
        self.least.max(self.colluders + 2)
    }

    /// How many may leave a round before it cannot be opened.
    pub fn leavers(&self) -> usize {
        self.members.len().saturating_sub(self.threshold().max(self.smallest()))
    }

    /// How many must be in a sum where parties may leave.
    fn quorum(&self, plain: bool) -> usize {
        match plain {
            // Without masks nothing is hidden, however large the sum.
            true => self.least.clamp(1, self.members.len().max(1)),
            false => self.threshold().max(self.smallest()),
        }
    }

    /// How many must be in a sum: without leave to go on, all.
    pub(crate) fn needed(&self, plain: bool) -> usize {
        match self.may_leave {
            true => self.quorum(plain),
            false => self.members.len(),
        }
    }

    /// Whether such a cohort hides anything.
    pub fn check(&self) -> Result<()> {
        let parties = self.members.len();
        if parties < self.smallest() || parties > usize::from(u8::MAX) {
            let problem = format!(
                "{parties} parties cannot hide their contributions from {} that collude; use {} to 255",
                self.colluders,
                self.smallest()
            );
            return Err(Error::parameter("colluders", problem));
        }
        Ok(())
    }

    pub(crate) fn place_of(&self, party: u16) -> Option<usize> {
        self.members.iter().position(|(member, _)| *member == party)
    }
}

/// Which attempt at which sum. Masks are derived from all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumId {
    /// Counts key exchanges: a party that restarts makes a new epoch.
    pub epoch: u32,
    /// Counts sums.
    pub round: u64,
    /// Counts attempts at this sum.
    pub attempt: u32,
}

impl SumId {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.round.to_le_bytes());
        bytes[12..].copy_from_slice(&self.attempt.to_le_bytes());
        bytes
    }
}

/// An event for a state machine.
#[derive(Debug)]
pub enum Event {
    /// A message came.
    Message {
        /// The sender; 0 is the coordinator.
        from: u16,
        /// The message.
        message: Message,
    },
    /// A party has left.
    Lost(u16),
    /// A party has reconnected, without its keys.
    Joined(u16),
    /// For a party: these words are to be summed.
    Submit(Words),
    /// For the hub: answer the sum that was opened.
    Answer {
        /// What to tell parties whose words are not masked; others open the sum themselves.
        words: Words,
        /// The order of sums before this one, where it has a place there.
        after: Option<OrderTip>,
    },
}

/// What fixed a sum that a party has opened.
#[derive(Clone, Copy, Debug)]
pub struct FixedSum {
    /// The epoch that it was opened in.
    pub epoch: u32,
    /// The digest of the list of commitments.
    pub list: [u8; 32],
    /// The order of sums with it, where it has a place there.
    pub order: Option<OrderTip>,
}

/// An action that a state machine requests.
#[derive(Debug)]
pub enum Action {
    /// Send this.
    Send {
        /// The receiver; 0 is the coordinator.
        to: u16,
        /// What to send.
        message: Message,
    },
    /// Send this to each of these.
    Tell {
        /// The receivers.
        to: Vec<u16>,
        /// What to send.
        message: Message,
    },
    /// At the hub: keep this answer for parties that miss it.
    Keep(Message),
    /// At the hub: a party broke the protocol, so that this sum cannot be opened.
    Blame(Blame),
    /// At the hub: send this party all answers from a round on, which it has missed.
    CatchUp {
        /// The party.
        to: u16,
        /// The first round whose answer it lacks.
        round: u64,
    },
    /// The sum. At the hub it wants an [`Event::Answer`].
    Opened {
        /// The words.
        words: Words,
        /// At a party: what fixed the sum, and the place that it was given in the order of sums.
        fixed: Option<FixedSum>,
        /// The parties whose words are in the sum.
        cohort: Vec<u16>,
    },
    /// The round cannot be closed without this party, for which all wait.
    Waiting {
        /// The party.
        party: u16,
        /// The round.
        round: u64,
    },
}
