//! What messages take on a network that is not there: latency, bandwidth, and MPI's collective algorithms.
//!
//! Formulas are those of Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in
//! MPICH". A message of b bytes takes α + b β; a node sends and receives one message at a time, both at once, and pairs of
//! nodes do not disturb each other; adding up costs γ a byte. Where a library has several algorithms for a collective, it
//! chooses by size, and the model takes the one that is cheapest here.

use std::fmt;
use std::str::FromStr;

/// A network between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Seconds of a message without content, α.
    pub latency: f64,
    /// Bytes a second that a node can send, and receive, 1/β; may be infinite.
    pub bandwidth: f64,
    /// Seconds to add a byte of numbers to others, γ.
    pub combine: f64,
}

impl Network {
    /// γ of a core of these days, where nobody has measured it.
    pub const COMBINE: f64 = 0.15e-9;

    fn transfer(&self, bytes: f64) -> f64 {
        // Not a product with 1/β: nothing over no limit is nothing.
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

    /// `total` bytes, of which every rank has a part, the smallest so large, on all ranks: recursive doubling, or Bruck's
    /// algorithm.
    pub fn all_gather(&self, size: usize, total: usize, smallest: usize) -> f64 {
        if size <= 1 {
            return 0.0;
        }
        steps(size) * self.latency + self.transfer((total - smallest) as f64)
    }

    /// The sums of `total` bytes, of which every rank gets a part, the smallest so large: recursive halving, or an exchange
    /// between all pairs.
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

    /// How ranks pair up when their number is no power of two: those beyond it hand their numbers over before, and get
    /// the result behind.
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
    /// Seconds for handing over.
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

const UNITS: [(&str, f64); 4] = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];

/// How many there are in a second: unlike their lengths these are exact.
const TIMES: [(&str, f64); 5] = [("ns", 1e9), ("us", 1e6), ("µs", 1e6), ("ms", 1e3), ("s", 1.0)];

/// Bytes a second.
fn rate(text: &str) -> Option<f64> {
    if text == "unlimited" {
        return Some(f64::INFINITY);
    }
    let (number, per_byte) = match text.strip_suffix("bit/s") {
        Some(number) => (number, 8.0),
        None => (text.strip_suffix("B/s")?, 1.0),
    };
    let scaled = UNITS.iter().find_map(|(unit, scale)| Some((number.strip_suffix(unit)?, *scale)));
    let (number, scale) = scaled.unwrap_or((number, 1.0));
    number.trim().parse::<f64>().ok().map(|number| number * scale / per_byte)
}

fn time(text: &str) -> Option<f64> {
    let (number, unit) = TIMES.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    number.trim().parse::<f64>().ok().map(|number| number / unit)
}

impl FromStr for Network {
    type Err = String;

    /// `1Gbit/s,100us`: bandwidth and latency; `unlimited` is no limit, and alone no latency either.
    fn from_str(text: &str) -> Result<Self, String> {
        let (bandwidth, latency) = text.split_once(',').unwrap_or((text, ""));
        let bandwidth = rate(bandwidth.trim()).filter(|rate| *rate > 0.0);
        let latency = match (bandwidth, latency.trim()) {
            (Some(f64::INFINITY), "") => Some(0.0),
            (_, latency) => time(latency).filter(|time| (0.0..f64::INFINITY).contains(time)),
        };
        match (bandwidth, latency) {
            (Some(bandwidth), Some(latency)) => Ok(Network { latency, bandwidth, combine: Self::COMBINE }),
            _ => Err("a network is its bandwidth and its latency, such as 1Gbit/s,100us or 10GB/s,2us, or unlimited"
                .into()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Seven digits are more than anybody knows of a network.
        let number = |value: f64| format!("{value:.6e}").parse::<f64>().unwrap_or(value);
        if self.bandwidth.is_infinite() {
            write!(f, "unlimited")?;
            if self.latency == 0.0 {
                return Ok(());
            }
        } else {
            let bits = 8.0 * self.bandwidth;
            let (unit, scale) = UNITS.iter().rfind(|(_, scale)| bits >= *scale).unwrap_or(&("", 1.0));
            write!(f, "{}{unit}bit/s", number(bits / scale))?;
        }
        let (unit, per_second) = [TIMES[4], TIMES[3], TIMES[1]]
            .into_iter()
            .find(|(_, per_second)| self.latency * per_second >= 1.0)
            .unwrap_or(TIMES[0]);
        write!(f, ",{}{unit}", number(self.latency * per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: Network = Network { latency: 3.0, bandwidth: 0.5, combine: 0.25 };

    #[test]
    fn by_hand() {
        // 8 ranks, 16 bytes: doubling 3 (3 + 32 + 4); Rabenseifner 2 * 3 * 3 + 7/8 (2 * 32 + 4); a ring 2 * 7 * 3 + the same.
        assert_eq!(NET.all_reduce(8, 16), 18.0 + 59.5);
        assert_eq!(NET.all_reduce(8, 0), 9.0);
        // 5 ranks: 4 of them after one message, and one more behind; or a ring.
        assert_eq!(NET.all_reduce(5, 0), 6.0 + 2.0 * 3.0);
        assert_eq!(NET.all_reduce(5, 1000), 2.0 * 4.0 * 3.0 + 0.8 * (2.0 * 2000.0 + 250.0));
        assert_eq!(NET.all_gather(8, 80, 10), 3.0 * 3.0 + 140.0);
        assert_eq!(NET.all_gather(5, 50, 10), 3.0 * 3.0 + 80.0);
        assert_eq!(NET.reduce_scatter(4, 40, 10), 2.0 * 3.0 + 60.0 + 7.5);
        assert_eq!(NET.reduce_scatter(5, 50, 10), 4.0 * 3.0 + 80.0 + 10.0);
        assert_eq!(NET.broadcast(8, 2), 3.0 * (3.0 + 4.0));
        assert_eq!(NET.broadcast(8, 800), (3.0 + 7.0) * 3.0 + 2.0 * 0.875 * 1600.0);
        assert_eq!(NET.message(10), 23.0);
        for cost in
            [NET.all_reduce(1, 9), NET.all_gather(1, 9, 9), NET.reduce_scatter(1, 9, 9), NET.broadcast(1, 9)]
        {
            assert_eq!(cost, 0.0);
        }
    }

    /// Clocks of ranks that send messages to each other, one by one.
    struct Ranks {
        clocks: Vec<f64>,
        net: Network,
    }

    impl Ranks {
        fn new(size: usize) -> Self {
            Ranks { clocks: vec![0.0; size], net: NET }
        }

        /// All at once: (from, to, bytes), and whether what arrives is added to what is there.
        fn round(&mut self, messages: &[(usize, usize, f64)], adds: bool) {
            let before = self.clocks.clone();
            for &(from, to, bytes) in messages {
                let added = if adds { self.net.combine * bytes } else { 0.0 };
                let arrival = before[from].max(before[to]) + self.net.latency + bytes / self.net.bandwidth;
                self.clocks[to] = self.clocks[to].max(arrival + added);
                self.clocks[from] = self.clocks[from].max(arrival);
            }
        }

        /// Pairs at `distance` among the first `even` ranks.
        fn pairs(&mut self, even: usize, distance: usize, bytes: f64, adds: bool) {
            let messages: Vec<_> = (0..even).map(|rank| (rank, rank ^ distance, bytes)).collect();
            self.round(&messages, adds);
        }

        fn fold(&mut self, even: usize, bytes: f64, back: bool) {
            let beyond = even..self.clocks.len();
            let messages: Vec<_> = beyond
                .map(|rank| if back { (rank - even, rank, bytes) } else { (rank, rank - even, bytes) })
                .collect();
            self.round(&messages, !back);
        }

        fn ring(&mut self, bytes: f64, adds: bool) {
            let size = self.clocks.len();
            let messages: Vec<_> = (0..size).map(|rank| (rank, (rank + 1) % size, bytes)).collect();
            (1..size).for_each(|_| self.round(&messages, adds));
        }

        fn end(&self) -> f64 {
            self.clocks.iter().copied().fold(0.0, f64::max)
        }
    }

    fn doubling(size: usize, n: f64) -> f64 {
        let (mut ranks, even) = (Ranks::new(size), 1usize << size.ilog2());
        ranks.fold(even, n, false);
        (0..even.ilog2()).for_each(|step| ranks.pairs(even, 1 << step, n, true));
        ranks.fold(even, n, true);
        ranks.end()
    }

    fn rabenseifner(size: usize, n: f64) -> f64 {
        let (mut ranks, even) = (Ranks::new(size), 1usize << size.ilog2());
        let halves: Vec<usize> = (0..even.ilog2()).map(|step| even >> (step + 1)).collect();
        ranks.fold(even, n, false);
        for &distance in &halves {
            ranks.pairs(even, distance, n * distance as f64 / even as f64, true);
        }
        for &distance in halves.iter().rev() {
            ranks.pairs(even, distance, n * distance as f64 / even as f64, false);
        }
        ranks.fold(even, n, true);
        ranks.end()
    }

    fn ring(size: usize, n: f64) -> f64 {
        let mut ranks = Ranks::new(size);
        ranks.ring(n / size as f64, true);
        ranks.ring(n / size as f64, false);
        ranks.end()
    }

    /// Bruck's algorithm: in step s every rank sends what it has, up to 2^s parts, to the one 2^s before it.
    fn bruck(size: usize, part: f64) -> f64 {
        let mut ranks = Ranks::new(size);
        let mut have = 1;
        while have < size {
            let sent = have.min(size - have);
            let messages: Vec<_> =
                (0..size).map(|rank| (rank, (rank + size - have) % size, sent as f64 * part)).collect();
            ranks.round(&messages, false);
            have += sent;
        }
        ranks.end()
    }

    fn tree(size: usize, n: f64) -> f64 {
        let mut ranks = Ranks::new(size);
        let mut have = 1;
        while have < size {
            let messages: Vec<_> = (have..size.min(2 * have)).map(|rank| (rank - have, rank, n)).collect();
            ranks.round(&messages, false);
            have *= 2;
        }
        ranks.end()
    }

    fn exchange(size: usize, part: f64) -> f64 {
        let mut ranks = Ranks::new(size);
        for apart in 1..size {
            let messages: Vec<_> = (0..size).map(|rank| (rank, (rank + apart) % size, part)).collect();
            ranks.round(&messages, true);
        }
        ranks.end()
    }

    #[test]
    fn formulas_are_what_messages_add_up_to() {
        for size in 2..=17 {
            for part in [0, 1, 7, 1000] {
                let bytes = part * size;
                let n = bytes as f64;
                let near = |name: &str, formula: f64, simulated: f64| {
                    assert!(
                        (formula - simulated).abs() <= 1e-9 * simulated,
                        "{name}, {size} ranks, {bytes} bytes: {formula}, {simulated}"
                    );
                };
                let cheapest = doubling(size, n).min(rabenseifner(size, n)).min(ring(size, n));
                near("all-reduce", NET.all_reduce(size, bytes), cheapest);
                near("all-gather", NET.all_gather(size, bytes, part), bruck(size, part as f64));
                let scatter = NET.reduce_scatter(size, bytes, part);
                if size.is_power_of_two() {
                    let mut ranks = Ranks::new(size);
                    for step in 0..size.ilog2() {
                        ranks.pairs(size, size >> (step + 1), n / f64::from(2 << step), true);
                    }
                    near("reduce-scatter", scatter, ranks.end());
                } else {
                    assert!(scatter <= exchange(size, part as f64) * (1.0 + 1e-9));
                }
                if part <= 1 {
                    near("broadcast", NET.broadcast(size, part), tree(size, part as f64));
                }
            }
        }
    }

    #[test]
    fn more_bytes_take_longer() {
        for size in 2..20 {
            let costs = |bytes: usize| {
                [
                    NET.all_reduce(size, bytes),
                    NET.all_gather(size, bytes * size, bytes),
                    NET.reduce_scatter(size, bytes * size, bytes),
                    NET.broadcast(size, bytes),
                ]
            };
            for bytes in 0..50 {
                for (less, more) in costs(bytes).into_iter().zip(costs(bytes + 1)) {
                    assert!(less < more, "{size} ranks, {bytes} bytes: {less}, {more}");
                }
            }
        }
    }

    #[test]
    fn networks_are_read_and_written() {
        let read = |text: &str| text.parse::<Network>().map(|net| (net.bandwidth, net.latency));
        assert_eq!(read("1Gbit/s,100us"), Ok((1.25e8, 1e-4)));
        assert_eq!(read("100Mbit/s, 1ms"), Ok((1.25e7, 1e-3)));
        assert_eq!(read("12.5GB/s,1.5µs"), Ok((1.25e10, 1.5e-6)));
        assert_eq!(read("unlimited"), Ok((f64::INFINITY, 0.0)));
        assert_eq!(read("unlimited,5us"), Ok((f64::INFINITY, 5e-6)));
        for text in
            ["1Gbit/s,100us", "100Gbit/s,5us", "unlimited", "unlimited,50us", "1.5Mbit/s,2ms", "64bit/s,0ns"]
        {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "fast",
            "1Gbit/s",
            "1Gbit/s,",
            "1Gbit/s,100",
            "0Gbit/s,1us",
            "-1Gbit/s,1us",
            "1Gbit/s,-1us",
            "nanbit/s,1us",
            "1Gb/s,1us",
            "1Gbit/s,infs",
            "1Gbit/s,1us,1us",
            ",1us",
        ] {
            let message = bad.parse::<Network>().unwrap_err();
            assert!(message.contains("such as 1Gbit/s,100us"), "{bad}");
        }
    }
}
