//! Time, which is passed in: the clock for meters, and the cost of work on a simulated clock.

use std::time::{Duration, Instant};

/// A clock that only moves forward.
pub trait Clock: Send {
    /// The time since some moment before.
    fn now(&self) -> Duration;
}

/// The clock of the operating system.
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Seconds of the simulated clock for a multiplication, and for a byte of a mask: a core of these days.
const SECONDS_PER_MULTIPLICATION: f64 = 2e-10;
const SECONDS_PER_MASK_BYTE: f64 = 1e-9;

/// The cost of a party's work on a simulated clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// How many times as long it takes for the same work.
    pub slowness: f64,
}

impl Speed {
    /// Seconds for this many multiplications.
    pub fn of_work(self, multiplications: f64) -> f64 {
        multiplications * SECONDS_PER_MULTIPLICATION * self.slowness
    }

    /// Seconds for the masks between this many parties on words with this many bytes.
    pub fn of_masks(self, bytes: usize, parties: usize) -> f64 {
        bytes as f64 * (parties + 1) as f64 * SECONDS_PER_MASK_BYTE * self.slowness
    }
}
