//! One test suite for all transports: in-process ranks in this crate's tests, and MPI in its own crate under a real
//! `mpirun`.

use super::{Comm, Numbers, Reduction, Tag, gather_all, gather_shares, owned, shares, sum_exactly};
use crate::error::{Error, Result};

/// Runs the whole suite; every rank calls it at the same time. The error names the first deviation. With `ordered`,
/// sums must be those in rank order, to the bit.
pub fn check(comm: &dyn Comm, ordered: bool) -> Result<()> {
    let suite = Suite { comm, ordered };
    suite.messages()?;
    for length in [0, 1, 2, 7, 64, 1000, 70_001] {
        suite.sums(length)?;
        suite.maxima(length)?;
        suite.scatter(length)?;
        suite.gather(length)?;
        suite.broadcast(length)?;
    }
    suite.exact()?;
    suite.groups()
}

struct Suite<'a> {
    comm: &'a dyn Comm,
    ordered: bool,
}

impl Suite<'_> {
    fn expect(&self, holds: bool, what: &str) -> Result<()> {
        if holds {
            return Ok(());
        }
        let (rank, got) = (self.comm.rank(), what.to_string());
        Err(Error::Protocol { rank, peer: rank, got, expected: "what the transport must do".into() })
    }

    /// A number that every rank can compute for every other; sums of such numbers depend on their order.
    fn number(rank: usize, place: usize) -> f64 {
        ((place * 37 + rank * 101) % 1009) as f64 * 10f64.powi((rank % 5) as i32 * 3 - 6) + 0.1
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    /// All-to-all messages of many lengths, more than can be in transit unbuffered, arrive complete and in order.
    fn messages(&self) -> Result<()> {
        const LENGTHS: [usize; 7] = [0, 1, 64, 65, 4096, 1 << 17, 3];
        let (comm, rank) = (self.comm, self.comm.rank());
        let byte = |from: usize, to: usize, round: usize| (from * 31 + to * 7 + round) as u8;
        for (round, &length) in LENGTHS.iter().enumerate() {
            for peer in (0..self.size()).filter(|&peer| peer != rank) {
                comm.send(peer, Tag::Gather, vec![byte(rank, peer, round); length])?;
            }
        }
        for (round, &length) in LENGTHS.iter().enumerate() {
            for peer in (0..self.size()).filter(|&peer| peer != rank) {
                let message =
                    if round % 2 == 0 { comm.receive(peer, Tag::Gather)? } else { self.polled(peer)? };
                let right =
                    message.len() == length && message.iter().all(|&got| got == byte(peer, rank, round));
                self.expect(right, &format!("message {round} from rank {peer}"))?;
            }
        }
        Ok(())
    }

    /// Polls for the next message of a rank.
    fn polled(&self, peer: usize) -> Result<Vec<u8>> {
        loop {
            if let Some(message) = self.comm.try_receive(peer, Tag::Gather)? {
                return Ok(message);
            }
            std::thread::yield_now();
        }
    }

    /// The sum in rank order.
    fn sum<E: Copy + std::ops::Add<Output = E>>(&self, term: impl Fn(usize) -> E) -> E {
        (1..self.size()).fold(term(0), |sum, rank| sum + term(rank))
    }

    /// Whether all ranks have the same bits.
    fn agree(&self, bytes: &[u8], what: &str) -> Result<()> {
        let all = self.comm.all_gather(bytes)?;
        self.expect(all.iter().all(|other| other == bytes), &format!("ranks differ in {what}"))
    }

    fn near(&self, got: f64, expected: f64, unit: f64) -> bool {
        got == expected || !self.ordered && (got - expected).abs() <= 8.0 * unit * expected.abs()
    }

    fn sums(&self, length: usize) -> Result<()> {
        let rank = self.comm.rank();
        let mut wide: Vec<f64> = (0..length).map(|place| Self::number(rank, place)).collect();
        self.comm.all_reduce(Reduction::Sum, Numbers::F64(&mut wide))?;
        let right =
            |place: usize| self.near(wide[place], self.sum(|rank| Self::number(rank, place)), f64::EPSILON);
        self.expect((0..length).all(right), &format!("the sum of {length} f64"))?;
        self.agree(bytemuck::cast_slice(&wide), "a sum of f64")?;

        let narrow = |rank, place| Self::number(rank, place) as f32;
        let mut sums: Vec<f32> = (0..length).map(|place| narrow(rank, place)).collect();
        self.comm.all_reduce(Reduction::Sum, Numbers::F32(&mut sums))?;
        let right = |place: usize| {
            let expected = self.sum(|rank| narrow(rank, place));
            self.near(sums[place].into(), expected.into(), f32::EPSILON.into())
        };
        self.expect((0..length).all(right), &format!("the sum of {length} f32"))?;
        self.agree(bytemuck::cast_slice(&sums), "a sum of f32")?;

        let mut whole: Vec<i128> = (0..length).map(|place| (place as i128 + 1) << (90 + rank % 8)).collect();
        self.comm.all_reduce(Reduction::Sum, Numbers::I128(&mut whole))?;
        let right = |place: usize| whole[place] == self.sum(|rank| (place as i128 + 1) << (90 + rank % 8));
        self.expect((0..length).all(right), &format!("the sum of {length} i128"))
    }

    fn maxima(&self, length: usize) -> Result<()> {
        let mut numbers: Vec<f64> = (0..length).map(|place| Self::number(self.comm.rank(), place)).collect();
        self.comm.all_reduce(Reduction::Max, Numbers::F64(&mut numbers))?;
        let largest = |place| (0..self.size()).map(|rank| Self::number(rank, place)).fold(0.0, f64::max);
        let right = (0..length).all(|place| numbers[place] == largest(place));
        self.expect(right, &format!("the largest of {length} f64"))
    }

    /// Uneven shares of `length` numbers, one of them empty if there are several.
    fn counts(&self, length: usize) -> Vec<usize> {
        let last = self.size() - 1;
        let count = |rank: usize| match rank {
            0 if last > 0 => 0,
            rank => owned(length, rank - usize::from(last > 0), last.max(1)).len(),
        };
        (0..self.size()).map(count).collect()
    }

    fn scatter(&self, length: usize) -> Result<()> {
        let (rank, counts) = (self.comm.rank(), self.counts(length));
        let own = shares(&counts)[rank].clone();
        let mut wide: Vec<f64> = (0..length).map(|place| Self::number(rank, place)).collect();
        self.comm.reduce_scatter(Numbers::F64(&mut wide), &counts)?;
        let right =
            |place: usize| self.near(wide[place], self.sum(|rank| Self::number(rank, place)), f64::EPSILON);
        self.expect(own.clone().all(right), &format!("the share of a sum of {length} f64"))?;
        let mut narrow: Vec<f32> = (0..length).map(|place| Self::number(rank, place) as f32).collect();
        self.comm.reduce_scatter(Numbers::F32(&mut narrow), &counts)?;
        let right = |place: usize| {
            let expected = self.sum(|rank| Self::number(rank, place) as f32);
            self.near(narrow[place].into(), expected.into(), f32::EPSILON.into())
        };
        self.expect(own.clone().all(right), &format!("the share of a sum of {length} f32"))
    }

    fn gather(&self, length: usize) -> Result<()> {
        let (rank, counts) = (self.comm.rank(), self.counts(length));
        let own = shares(&counts)[rank].clone();
        let all: Vec<f64> = (0..length).map(|place| Self::number(0, place)).collect();
        let known = gather_shares(self.comm, &all[own.clone()], &counts)?;
        self.expect(known == all, &format!("{length} numbers gathered by known shares"))?;
        let unknown = gather_all(self.comm, &all[own])?;
        self.expect(unknown == all, &format!("{length} numbers gathered"))
    }

    fn broadcast(&self, length: usize) -> Result<()> {
        let message: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        let given = if self.comm.rank() == 0 { message.clone() } else { Vec::new() };
        let got = self.comm.broadcast(given)?;
        self.expect(got == message, &format!("a broadcast of {length} bytes"))
    }

    fn exact(&self) -> Result<()> {
        let terms = [Self::number(self.comm.rank(), 5), -3.5];
        let [sum] = sum_exactly(self.comm, [&terms])?;
        self.agree(&sum.to_le_bytes(), "an exact sum")
    }

    /// Groups of every other rank, and groups of two within the whole, used at the same time.
    fn groups(&self) -> Result<()> {
        let rank = self.comm.rank();
        let alternate = self.comm.split(rank % 2)?;
        let pairs = self.comm.split(rank / 2)?;
        for (group, mates) in [
            (&alternate, (rank % 2..self.size()).step_by(2).collect::<Vec<_>>()),
            (&pairs, (rank / 2 * 2..self.size().min(rank / 2 * 2 + 2)).collect()),
        ] {
            self.expect(group.size() == mates.len() && mates[group.rank()] == rank, "the ranks of a group")?;
            let mut sum = [rank as f64];
            group.all_reduce(Reduction::Sum, Numbers::F64(&mut sum))?;
            self.expect(sum[0] == mates.iter().sum::<usize>() as f64, "the sum over a group")?;
            let all = gather_all(group.as_ref(), &[rank as u64])?;
            let right = all.iter().zip(&mates).all(|(&got, &mate)| got == mate as u64);
            self.expect(all.len() == mates.len() && right, "what a group gathered")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metered, run_ranks};
    use super::*;

    #[test]
    fn in_process_ranks_conform() {
        for size in 1..6 {
            run_ranks(vec![(); size], |comm, ()| check(comm, true)).unwrap();
        }
    }

    #[test]
    fn meters_and_groups_conform() {
        run_ranks(vec![(); 3], |comm, ()| check(&Metered::new(comm), true)).unwrap();
        run_ranks(vec![(); 5], |comm, ()| {
            let group = comm.split(comm.rank() % 2)?;
            check(group.as_ref(), true)
        })
        .unwrap();
    }

    /// A transport that loses the last byte of a long message.
    struct Lossy<'a>(&'a dyn Comm);

    impl Comm for Lossy<'_> {
        fn rank(&self) -> usize {
            self.0.rank()
        }

        fn size(&self) -> usize {
            self.0.size()
        }

        fn send(&self, to: usize, tag: Tag, mut message: Vec<u8>) -> Result<()> {
            message.truncate(100_000);
            self.0.send(to, tag, message)
        }

        fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
            self.0.receive(from, tag)
        }

        fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
            self.0.try_receive(from, tag)
        }

        fn clock(&self) -> Vec<f64> {
            self.0.clock()
        }
    }

    #[test]
    fn the_suite_notices_a_transport_that_loses_bytes() {
        assert!(run_ranks(vec![(); 2], |comm, ()| check(&Lossy(comm), true)).is_err());
    }
}
