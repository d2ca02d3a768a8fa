//! What can go wrong between parties, with the data that a person needs to put it right.

use partwise::wording::Wording;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate. Fields have the names that they have in the settings; [`Error::wording`] keeps these apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library's own.
    #[error(transparent)]
    Core(#[from] partwise::Error),
    /// A risk that was not accepted.
    #[error("{}", risk(problem, cure, accept))]
    Risk {
        /// What others would learn.
        problem: String,
        /// How to avoid it.
        cure: Wording,
        /// The field of [`Accepted`](crate::risk::Accepted) that accepts it.
        accept: &'static str,
    },
    /// All parties together have too few records, according to the first sums, and the risk was not accepted.
    #[error("{risk}")]
    FewRecords {
        /// The risk, an [`Error::Risk`].
        risk: Box<Error>,
    },
    /// A message that violates the protocol. Its receiver stops.
    #[error(
        "{who} received from {from} {problem} and stops; find out why before the parties run again, under a new epoch"
    )]
    Dishonest {
        /// The participant that detected the violation.
        who: Peer,
        /// The sender of the message.
        from: Peer,
        /// The description of the violation.
        problem: String,
    },
    /// An opened sum that is impossible if all parties follow the protocol.
    #[error(
        "{who} received an implausible sum of {sum}: {problem}; it stops, because another participant may not \
         follow the protocol; find out why before the parties run again"
    )]
    Implausible {
        /// The participant that detected it.
        who: Peer,
        /// The kind of the sum.
        sum: &'static str,
        /// The reason why the sum is implausible.
        problem: String,
    },
    /// A party's gate withheld its numbers, and all parties stop. Only that party knows that it was its gate,
    /// and why.
    #[error(
        "{who} stops: {}; talk to the other parties before another run with the same terms",
        reason.as_deref().unwrap_or("the gate of a party has withheld its numbers, and only that party's log \
         has the reason")
    )]
    Withheld {
        /// The party that reports the error.
        who: Peer,
        /// The reason, if it was this party's own gate.
        reason: Option<String>,
    },
    /// A party is gone, and the others wait for it.
    #[error("{}{cure}", begin_left(*party, *round))]
    Left {
        /// The party.
        party: u16,
        /// The round that lacks it.
        round: u64,
        /// The remedy.
        cure: Wording,
    },
    /// A party of a simulation vanished, as it was told to.
    #[error("party {party} disconnected, as requested")]
    Vanished {
        /// The party.
        party: u16,
    },
    /// The other end of a link is gone.
    #[error("{who} lost its connection to {peer}, whose own message says why")]
    LinkLost {
        /// The participant that detected the loss.
        who: Peer,
        /// The participant that is gone.
        peer: Peer,
    },
    /// A value that no fixed-point range can hold.
    #[error(
        "party {party} has a value of {value:e} in {what}, but the largest that can be summed is 1e75; rescale \
         the matrix"
    )]
    Outside {
        /// The party with the value.
        party: u16,
        /// The kind of the sum.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// Numbers are repeatedly outside the ranges that were agreed on for them.
    #[error(
        "the sum of {what} was out of the range that all parties had just agreed on, {votes} times: an unknown \
         party is dishonest or its program is faulty; find out which before the parties run again"
    )]
    Ranges {
        /// The kind of the sum.
        what: &'static str,
        /// The number of votes on ranges.
        votes: u32,
    },
    /// A run takes more sums than allowed.
    #[error(
        "this party has taken part in {sums} sums including failed attempts, and its limit does not allow \
         more; find out why they were repeated before the parties run again"
    )]
    TooManySums {
        /// The number of sums.
        sums: u64,
    },
    /// The transport or the journal failed, with this message.
    #[error("{problem}")]
    Stopped {
        /// The problem and its remedy.
        problem: Wording,
    },
    /// The folder of a simulation that cannot be audited.
    #[error("{problem}")]
    Folder {
        /// The problem and its remedy.
        problem: Wording,
    },
    /// Another rank failed; the message is its own.
    #[error("{problem}")]
    Elsewhere {
        /// The message of the other rank.
        problem: Wording,
    },
    /// The operating system has no randomness to give.
    #[error(
        "the operating system provides no randomness for keys ({problem}); repair it, because nothing is secret \
         without it"
    )]
    Entropy {
        /// The message of the operating system.
        problem: String,
    },
}

impl Error {
    /// An [`enum@Error`] about a parameter, as the library has it.
    pub fn parameter(name: impl Into<String>, problem: impl Into<Wording>) -> Error {
        Error::Core(partwise::Error::parameter(name, problem))
    }

    /// The error message with its fields marked.
    pub fn wording(&self) -> Wording {
        match self {
            Error::Core(error) => error.wording(),
            Error::Risk { problem, cure, accept } => risk(problem, cure, accept),
            Error::FewRecords { risk } => risk.wording(),
            Error::Left { party, round, cure } => Wording::new(begin_left(*party, *round)).then(cure.clone()),
            Error::Stopped { problem } | Error::Folder { problem } | Error::Elsewhere { problem } => {
                problem.clone()
            }
            others => others.to_string().into(),
        }
    }
}

fn begin_left(party: u16, round: u64) -> String {
    format!("party {party} left in round {round}; ")
}

fn risk(problem: &str, cure: &Wording, accept: &str) -> Wording {
    let accept = format!("accepted.{accept}");
    Wording::new(format!("{problem}; ")).then(cure.clone()).text(", or accept it with ").field(accept)
}

/// One end of a link: 0 is the coordinator, parties count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer(pub u16);

impl std::fmt::Display for Peer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => out.write_str("the coordinator"),
            party => write!(out, "party {party}"),
        }
    }
}
