//! The deadlines of all waits on the network, in one place. Waiting until the other side has computed, or until
//! others have connected, may take days and has no deadline: it ends when heartbeats stop ([`crate::io::Alive`]).

use std::future::Future;
use std::time::Duration;

/// A wait with its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    what: &'static str,
    /// The longest duration of the wait.
    pub limit: Duration,
}

/// A wait that exceeded its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} took longer than {seconds} s")]
pub struct Late {
    what: &'static str,
    seconds: u64,
}

/// Looking up the address of a host name.
pub const RESOLVE: Deadline = Deadline::new("resolving its address", 10);

/// Connecting to one address.
pub const CONNECT: Deadline = Deadline::new("connecting", 10);

/// The TLS handshake, for a party.
pub const HANDSHAKE: Deadline = Deadline::new("the TLS handshake", 10);

/// The TLS handshake, for the coordinator, which other clients are waiting for.
pub const ADMIT: Deadline = Deadline::new("the TLS handshake", 3);

/// From a connection to its stream; shorter than two heartbeats of a party.
pub const OPEN: Deadline = Deadline::new("opening a stream", 8);

/// From the opening of a stream to the party's first message.
pub const ENTER: Deadline = Deadline::new("the first frame", 10);

/// From the party's first message to the coordinator's answer.
pub const WELCOME: Deadline = Deadline::new("the coordinator's answer", 20);

/// Sending a frame before the terms are known; afterwards see [`sending`].
pub const SEND: Deadline = Deadline::new("sending", 60);

/// How long a rejected connection stays open, so that its party can read the reason.
pub const REJECT_GRACE: Deadline = Deadline::new("leaving", 3);

/// Reading the last message of a connection that the other side closed.
pub const LAST_WORDS: Deadline = Deadline::new("reading the last message", 1);

/// Until all parties have left after the end, and until the coordinator has learned that a party refuses the run.
pub const LEAVE: Deadline = Deadline::new("leaving", 5);

/// A connection to the status page; browsers open another when needed.
pub const STATUS_PAGE: Deadline = Deadline::new("reading the status page", 60);

/// Until the coordinator's threads have sent their data and ended.
pub const SHUTDOWN: Deadline = Deadline::new("ending", 2);

/// Until a party's threads have ended; they may be resolving a name, which is not waited for.
pub const CANCELLED: Duration = Duration::from_millis(500);

/// The interval of a party's heartbeats; the coordinator's is in its terms.
pub const PARTY_HEARTBEAT: Duration = Duration::from_secs(5);

/// The longest silence on a connection: HTTP/2 closes it after two heartbeats, and this deadline applies where it
/// cannot.
pub fn silence(heartbeat: Duration) -> Duration {
    3 * heartbeat
}

/// The deadline for sending a frame to a coordinator that receives a few long messages at a time, each within the
/// terms' deadline.
pub fn sending(deadline: f64, parties: usize) -> Deadline {
    let others = Duration::try_from_secs_f64(deadline * parties as f64).unwrap_or(Duration::MAX);
    Deadline { limit: others.max(SEND.limit), ..SEND }
}

impl Deadline {
    const fn new(what: &'static str, seconds: u64) -> Self {
        Deadline { what, limit: Duration::from_secs(seconds) }
    }

    /// Waits for a future until the deadline.
    pub async fn limit<F: Future>(self, future: F) -> Result<F::Output, Late> {
        tokio::time::timeout(self.limit, future).await.map_err(|_| self.late())
    }

    /// The error for an exceeded deadline.
    pub fn late(self) -> Late {
        Late { what: self.what, seconds: self.limit.as_secs() }
    }
}
