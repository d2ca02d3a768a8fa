//! Models the time of messages on a network: latency, bandwidth, and MPI's collective algorithms.
//!
//! The formulas are those of Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication
//! Operations in MPICH". A message of b bytes takes α + b β; a node sends and receives one message at a time, both
//! at once, and pairs of nodes do not disturb each other; adding costs γ per byte. If a library has several
//! algorithms for a collective, the model takes the cheapest.

#[cfg(test)]
mod tests;
mod text;

/// A network between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Seconds of an empty message, α.
    pub latency: f64,
    /// Bytes per second that a node can send, and receive, 1/β; may be infinite.
    pub bandwidth: f64,
    /// Seconds to add a byte of numbers to others, γ.
    pub combine: f64,
}

impl Network {
    /// γ of a current core, if none was measured.
    pub const COMBINE: f64 = 0.15e-9;

    fn transfer(&self, bytes: f64) -> f64 {
        // Not a product with 1/β, because 0 bytes take no time even without a limit.
        bytes / self.bandwidth
    }

    /// One message.
    pub fn message(&self, bytes: usize) -> f64 {
        self.latency + self.transfer(bytes as f64)
    }

    /// The sum of `bytes` from each of `size` ranks, on all of them: recursive doubling, Rabenseifner's reduce-scatter
    /// and all-gather, or a ring.
    pub fn all_reduce(&self, size: usize, bytes: usize) -> f64 {
        if size <= 1 {
            return 0.0;
        }
        let Halving { steps, left, fold } = self.halving(size, bytes);
        let n = bytes as f64;
        let both = 2.0 * self.transfer(n) + self.combine * n;
        let doubling = fold + steps * (self.message(bytes) + self.combine * n);
        let rabenseifner = fold + 2.0 * steps * self.latency + left * both;
        let ring = 2.0 * (size - 1) as f64 * self.latency + share(size) * both;
        doubling.min(rabenseifner).min(ring)
    }

    /// Gathers `total` bytes, of which every rank has a part (the smallest of `smallest` bytes), on all ranks:
    /// recursive doubling, or Bruck's algorithm.
    pub fn all_gather(&self, size: usize, total: usize, smallest: usize) -> f64 {
        if size <= 1 {
            return 0.0;
        }
        steps(size) * self.latency + self.transfer((total - smallest) as f64)
    }

    /// Sums `total` bytes, of which every rank receives a part (the smallest of `smallest` bytes): recursive
    /// halving, or an exchange between all pairs.
    pub fn reduce_scatter(&self, size: usize, total: usize, smallest: usize) -> f64 {
        if size <= 1 {
            return 0.0;
        }
        let moved = |bytes: f64| self.transfer(bytes) + self.combine * bytes;
        let received = (total - smallest) as f64;
        let pairs = (size - 1) as f64 * self.latency + moved(received);
        let halving = if size.is_power_of_two() {
            steps(size) * self.latency + moved(received)
        } else {
            let Halving { steps, left, .. } = self.halving(size, total);
            let (n, part) = (total as f64, total as f64 / size as f64);
            (2.0 + steps) * self.latency + (1.0 + left) * moved(n) + self.transfer(part)
        };
        pairs.min(halving)
    }

    /// `bytes` of one rank, on all: a binomial tree, or van de Geijn's scatter and all-gather.
    pub fn broadcast(&self, size: usize, bytes: usize) -> f64 {
        if size <= 1 {
            return 0.0;
        }
        let tree = steps(size) * self.message(bytes);
        let apart = (steps(size) + (size - 1) as f64) * self.latency
            + 2.0 * share(size) * self.transfer(bytes as f64);
        tree.min(apart)
    }

    /// How ranks pair up if their number is not a power of two: the additional ranks send their numbers first and
    /// receive the result at the end.
    fn halving(&self, size: usize, bytes: usize) -> Halving {
        let even = 1usize << size.ilog2();
        let fold = if even == size { 0.0 } else { 2.0 * self.message(bytes) + self.combine * bytes as f64 };
        Halving { steps: steps(even), left: share(even), fold }
    }
}

struct Halving {
    /// ⌊lg p⌋.
    steps: f64,
    /// (p' − 1) / p', p' the power of two.
    left: f64,
    /// Seconds for these additional messages.
    fold: f64,
}

/// ⌈lg p⌉.
fn steps(size: usize) -> f64 {
    f64::from(size.next_power_of_two().ilog2())
}

/// (p − 1) / p.
fn share(size: usize) -> f64 {
    (size - 1) as f64 / size as f64
}
