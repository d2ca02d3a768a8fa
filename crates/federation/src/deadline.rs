//! How long each wait on the network may take, all in one place. Waiting until the other side has computed, or until others
//! have come, may take days and has no deadline of its own: it ends when heartbeats stop ([`crate::io::Alive`]).

use std::future::Future;
use std::time::Duration;

/// A wait, and the longest that it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    what: &'static str,
    /// The longest that it may take.
    pub limit: Duration,
}

/// A wait that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} took longer than {seconds} s")]
pub struct Late {
    what: &'static str,
    seconds: u64,
}

/// Looking up the address of a host name.
pub const RESOLVE: Deadline = Deadline::new("looking up its address", 10);

/// Connecting to one address.
pub const CONNECT: Deadline = Deadline::new("connecting", 10);

/// The TLS handshake, as a party sees it.
pub const HANDSHAKE: Deadline = Deadline::new("the TLS handshake", 10);

/// The same as the coordinator sees it, which has others at its door.
pub const ADMIT: Deadline = Deadline::new("the TLS handshake", 3);

/// From a connection to its stream, on either side; before two heartbeats of a party are missed, which would end it first.
pub const OPEN: Deadline = Deadline::new("opening a stream", 8);

/// From a stream to what the party says first.
pub const ENTER: Deadline = Deadline::new("the first frame", 10);

/// From there to the coordinator's answer.
pub const WELCOME: Deadline = Deadline::new("the coordinator's answer", 20);

/// Sending a frame while no terms are known; afterwards see [`sending`].
pub const SEND: Deadline = Deadline::new("sending", 60);

/// How long a rejected connection stays open, so that its party reads why.
pub const REJECT_GRACE: Deadline = Deadline::new("leaving", 3);

/// Reading what the other side said before its connection ended.
pub const LAST_WORDS: Deadline = Deadline::new("reading the last words", 1);

/// Until all parties have left after the end, and until the coordinator has heard that a party refuses the run.
pub const LEAVE: Deadline = Deadline::new("leaving", 5);

/// A connection to the status page. A browser opens another.
pub const STATUS_PAGE: Deadline = Deadline::new("reading the status page", 60);

/// Until a coordinator's threads have sent what they have, and ended.
pub const SHUTDOWN: Deadline = Deadline::new("ending", 2);

/// The same of a party's, which may be looking up a name: whoever cancels it does not wait for that.
pub const CANCELLED: Duration = Duration::from_millis(500);

/// The interval of a party's heartbeats; the coordinator's is in its terms.
pub const PARTY_HEARTBEAT: Duration = Duration::from_secs(5);

/// How long a connection may be silent: HTTP/2 gives it up after two heartbeats, and this where it cannot.
pub fn silence(heartbeat: Duration) -> Duration {
    3 * heartbeat
}

/// Sending a frame to a coordinator that takes a few long messages at a time: each of the others may take the terms'
/// deadline.
pub fn sending(deadline: f64, parties: usize) -> Deadline {
    let others = Duration::try_from_secs_f64(deadline * parties as f64).unwrap_or(Duration::MAX);
    Deadline { limit: others.max(SEND.limit), ..SEND }
}

impl Deadline {
    const fn new(what: &'static str, seconds: u64) -> Self {
        Deadline { what, limit: Duration::from_secs(seconds) }
    }

    /// Waits, but not longer.
    pub async fn limit<F: Future>(self, future: F) -> Result<F::Output, Late> {
        tokio::time::timeout(self.limit, future).await.map_err(|_| self.late())
    }

    /// What is said when it took too long.
    pub fn late(self) -> Late {
        Late { what: self.what, seconds: self.limit.as_secs() }
    }
}
