//! What can go wrong between parties, with the data that a person needs to put it right.

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library's own.
    #[error(transparent)]
    Core(#[from] partwise::Error),
    /// Something that others could learn from, and that nobody has accepted.
    #[error("{problem}; {cure}, or accept it with {flag}")]
    Risk {
        /// What others would see.
        problem: String,
        /// How to avoid it.
        cure: String,
        /// The flag that accepts it.
        flag: &'static str,
    },
    /// The parties have too few records together, by what their first sums say, and nobody has accepted that.
    #[error("{risk}")]
    FewRecords {
        /// The risk, an [`Error::Risk`].
        risk: Box<Error>,
    },
    /// A message that breaks the protocol. Whoever notices does not go on.
    #[error(
        "{who} got from {from} {problem}; it stops here, find out why before the parties run again, under a new epoch"
    )]
    Dishonest {
        /// Who noticed.
        who: Peer,
        /// Who sent it.
        from: Peer,
        /// What is wrong with it.
        problem: String,
    },
    /// A party is gone, and the others wait for it.
    #[error("party {party} left in round {round}; {cure}")]
    Left {
        /// The party.
        party: u16,
        /// The round that lacks it.
        round: u64,
        /// What to do about it.
        cure: String,
    },
    /// A party of a simulation vanished, as it was told to.
    #[error("party {party} vanished, as it was told to")]
    Vanished {
        /// The party.
        party: u16,
    },
    /// The other end of a link is gone.
    #[error("{who} lost its connection to {peer}; its own message says why")]
    LinkLost {
        /// Who noticed.
        who: Peer,
        /// Who is gone.
        peer: Peer,
    },
    /// A value that no fixed-point range can hold.
    #[error(
        "party {party} has a value of {value:e} in {what}, beyond the largest that can be summed (1e75); rescale the matrix"
    )]
    Outside {
        /// Who has it.
        party: u16,
        /// In which sum.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// What carries messages or keeps answers has failed, and says why.
    #[error("{problem}")]
    Stopped {
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The folder of a simulation that cannot be audited.
    #[error("{problem}")]
    Folder {
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// Another rank could not go on; the words are its own.
    #[error("{problem}")]
    Elsewhere {
        /// What it said.
        problem: String,
    },
    /// The operating system has no randomness to give.
    #[error("the operating system gave no randomness for keys ({problem}); nothing is secret without it")]
    Entropy {
        /// What it said.
        problem: String,
    },
}

impl Error {
    /// An [`enum@Error`] about a parameter, as the library has it.
    pub fn parameter(name: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Core(partwise::Error::parameter(name, problem))
    }
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
