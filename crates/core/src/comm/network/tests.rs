use super::*;

const NET: Network = Network { latency: 3.0, bandwidth: 0.5, combine: 0.25 };

#[test]
fn by_hand() {
    // 8 ranks, 16 bytes: doubling 3 (3 + 32 + 4); Rabenseifner 2 * 3 * 3 + 7/8 (2 * 32 + 4); a ring 2 * 7 * 3 + the same.
    assert_eq!(NET.all_reduce(8, 16), 18.0 + 59.5);
    assert_eq!(NET.all_reduce(8, 0), 9.0);
    // 5 ranks: 4 of them after one message, and one more at the end; or a ring.
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
fn formulas_match_the_sum_of_messages() {
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
