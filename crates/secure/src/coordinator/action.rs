//! The actions that the coordinator requests.

use crate::aggregation::{Message, Words};
use crate::protocol::TracePoint;

/// What a restart needs of a coordinator, in the order in which it happened.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorRecord {
    /// A new epoch has begun.
    Epoch {
        /// The cohort.
        cohort: u8,
        /// The epoch's number.
        epoch: u32,
    },
    /// Parties for whom masks are about to be revealed in this round, if these may be only part of the
    /// cohort.
    Promise {
        /// The cohort.
        cohort: u8,
        /// The parties.
        survivors: Vec<u16>,
    },
    /// A sum was opened and answered.
    Answer {
        /// The cohort.
        cohort: u8,
        /// The time in seconds of the run.
        now: f64,
        /// The answer: a [`Message::Opening`] with all uploads, or a [`Message::Reply`] without masks.
        reply: Message,
        /// The sum, if it differs from the answer.
        sum: Option<Words>,
    },
}

/// What is wrong with a message. It changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The bytes are not a valid message.
    Malformed,
    /// The message is for a cohort that does not exist.
    UnknownCohort(u8),
    /// The message violates the protocol as described.
    Protocol(String),
}

impl Violation {
    /// One of a few sentences, to count by.
    pub fn reason(&self) -> &'static str {
        match self {
            Violation::Malformed => "a malformed message",
            Violation::UnknownCohort(_) => "a message for a cohort that does not exist",
            Violation::Protocol(_) => "a message that breaks the protocol",
        }
    }

    /// The description of the violation.
    pub fn problem(self) -> String {
        match self {
            Violation::Malformed => "a malformed message".into(),
            Violation::UnknownCohort(number) => {
                format!("a message for cohort {number}, which does not exist")
            }
            Violation::Protocol(problem) => problem,
        }
    }
}

/// An action for the driver; actions are performed in order.
pub enum CoordinatorAction {
    /// Store this before the following actions.
    Record(CoordinatorRecord),
    /// Send these bytes to each of these parties.
    Send {
        /// The receivers.
        to: Vec<u16>,
        /// A message with the number of its cohort.
        bytes: Vec<u8>,
    },
    /// Send this party all answers of a cohort from a round on, which it has missed.
    CatchUp {
        /// The party.
        to: u16,
        /// The cohort.
        cohort: u8,
        /// The first round whose answer it lacks.
        round: u64,
    },
    /// Send these parties answers of cohorts that they are not in, by their places among all that were to be stored.
    PassOn {
        /// The parties.
        to: Vec<u16>,
        /// The places.
        answers: Vec<usize>,
    },
    /// A cohort's round cannot be closed without this party.
    Wait {
        /// The cohort.
        cohort: u8,
        /// The party.
        party: u16,
        /// The round.
        round: u64,
    },
    /// The error after a round is known.
    Evaluated(TracePoint),
    /// A message came too late or in the wrong size, as it may happen to an honest party; it was ignored.
    Ignored {
        /// The sender.
        from: u16,
        /// Why.
        reason: &'static str,
    },
    /// A message that no honest party sends was ignored.
    Rejected {
        /// The sender.
        from: u16,
        /// The violation.
        violation: Violation,
    },
}
