//! Communication between ranks: tagged messages, and collectives built on them that sum in rank order.
//!
//! A transport implements the six required methods of [`Comm`]; it may override the collectives if it has faster
//! ones (MPI). It transfers numbers and bytes, never matrices. Every transport must pass [`conformance`].

mod agree;
mod clocked;
pub mod conformance;
mod exact_sum;
mod group;
mod local;
mod metered;
mod network;

pub use agree::agree;
pub use clocked::{Clocked, TurnLock};
pub use exact_sum::{ExactSum, sum_exactly};
pub use group::{Alone, Group};
pub use local::{LocalComm, run_ranks};
pub use metered::{Meter, Metered, Traffic};
pub use network::Network;

use std::ops::Range;

use bytemuck::Pod;

use crate::error::{Error, Result};

/// The purpose of a message; a rank that receives an unexpected tag is out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A piece of an all-reduce.
    Reduce,
    /// A piece of an all-gather.
    Gather,
    /// A broadcast.
    Broadcast,
}

/// How an all-reduce combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum, in rank order.
    Sum,
    /// The largest.
    Max,
}

/// The numbers of an all-reduce, in place.
#[derive(Debug)]
pub enum Numbers<'a> {
    /// Single precision.
    F32(&'a mut [f32]),
    /// Double precision.
    F64(&'a mut [f64]),
    /// Fixed point, for sums that must not depend on the order.
    I128(&'a mut [i128]),
}

impl Numbers<'_> {
    /// Bytes of payload.
    pub fn bytes(&self) -> usize {
        match self {
            Numbers::F32(data) => size_of_val(*data),
            Numbers::F64(data) => size_of_val(*data),
            Numbers::I128(data) => size_of_val(*data),
        }
    }
}

/// A fixed group of ranks that trust each other.
pub trait Comm: Send + Sync {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn size(&self) -> usize;
    /// Sends; messages between two ranks arrive in the order in which they were sent.
    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()>;
    /// Waits for the next message of a rank.
    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>>;
    /// The next message of a rank, if it has arrived.
    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>>;
    /// Seconds on this rank's clock, for differences between two times: the real clock, or on modelled networks one
    /// for each of them.
    fn clock(&self) -> Vec<f64>;

    /// Combines the numbers of all ranks; every rank gets the same bits.
    fn all_reduce(&self, reduction: Reduction, numbers: Numbers<'_>) -> Result<()> {
        match (numbers, reduction) {
            (Numbers::F32(data), Reduction::Sum) => reduce_in_order(self, data, |a, b| a + b),
            (Numbers::F32(data), Reduction::Max) => reduce_in_order(self, data, f32::max),
            (Numbers::F64(data), Reduction::Sum) => reduce_in_order(self, data, |a, b| a + b),
            (Numbers::F64(data), Reduction::Max) => reduce_in_order(self, data, f64::max),
            (Numbers::I128(data), Reduction::Sum) => reduce_in_order(self, data, |a, b| a.wrapping_add(b)),
            (Numbers::I128(data), Reduction::Max) => reduce_in_order(self, data, |a, b| a.max(b)),
        }
    }

    /// Sums the numbers of all ranks and leaves each rank its share: the shares are consecutive in rank order, with
    /// lengths `counts`. The rest of `numbers` is undefined afterwards.
    fn reduce_scatter(&self, numbers: Numbers<'_>, counts: &[usize]) -> Result<()> {
        match numbers {
            Numbers::F32(data) => sum_shares(self, data, counts),
            Numbers::F64(data) => sum_shares(self, data, counts),
            Numbers::I128(data) => sum_shares(self, data, counts),
        }
    }

    /// Completes `data`, of which every rank has its own share in place, with `counts` bytes each: the shares are
    /// consecutive in rank order.
    fn all_gather_into(&self, data: &mut [u8], counts: &[usize]) -> Result<()> {
        let places = shares(counts);
        let rank = self.rank();
        for peer in (0..self.size()).filter(|&peer| peer != rank) {
            self.send(peer, Tag::Gather, data[places[rank].clone()].to_vec())?;
        }
        for peer in (0..self.size()).filter(|&peer| peer != rank) {
            let part = self.receive(peer, Tag::Gather)?;
            check_length(self, peer, part.len(), counts[peer])?;
            data[places[peer].clone()].copy_from_slice(&part);
        }
        Ok(())
    }

    /// The ranks that gave the same color, as a communicator, in the same order.
    fn split(&self, color: usize) -> Result<Box<dyn Comm + '_>> {
        Ok(Box::new(Group::of_color(self, color)?))
    }

    /// The bytes of all ranks, by rank.
    fn all_gather(&self, local: &[u8]) -> Result<Vec<Vec<u8>>> {
        for peer in (0..self.size()).filter(|&peer| peer != self.rank()) {
            self.send(peer, Tag::Gather, local.to_vec())?;
        }
        (0..self.size())
            .map(
                |peer| if peer == self.rank() { Ok(local.to_vec()) } else { self.receive(peer, Tag::Gather) },
            )
            .collect()
    }

    /// Rank 0's bytes, on every rank.
    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        if self.rank() != 0 {
            return self.receive(0, Tag::Broadcast);
        }
        for peer in 1..self.size() {
            self.send(peer, Tag::Broadcast, message.clone())?;
        }
        Ok(message)
    }
}

/// The part of `0..length` that `rank` of `size` owns: consecutive, equal up to one, empty if there are more ranks
/// than elements.
pub fn owned(length: usize, rank: usize, size: usize) -> Range<usize> {
    // 128 bits, because length * rank can overflow 64 for sizes that a header claims.
    let bound = |rank: usize| (length as u128 * rank as u128 / size as u128) as usize;
    bound(rank)..bound(rank + 1)
}

/// Consecutive ranges with the given lengths.
pub fn shares(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |count: &usize| {
        end += count;
        end - count..end
    };
    counts.iter().map(range).collect()
}

/// Every rank combines one segment, in rank order, and sends it to the others: each number is transferred about
/// twice per rank, for any number of ranks.
fn reduce_in_order<C: Comm + ?Sized, E: Pod>(comm: &C, data: &mut [E], combine: fn(E, E) -> E) -> Result<()> {
    let (rank, size, length) = (comm.rank(), comm.size(), data.len());
    if size == 1 {
        return Ok(());
    }
    let counts: Vec<usize> = (0..size).map(|owner| owned(length, owner, size).len()).collect();
    combine_shares(comm, data, &counts, combine)?;
    let places = shares(&counts);
    let peers = || (0..size).filter(|&peer| peer != rank);
    for peer in peers() {
        comm.send(peer, Tag::Reduce, bytemuck::cast_slice(&data[places[rank].clone()]).to_vec())?;
    }
    for peer in peers() {
        let part = receive_numbers(comm, peer, counts[peer])?;
        data[places[peer].clone()].copy_from_slice(&part);
    }
    Ok(())
}

fn sum_shares<C: Comm + ?Sized, E: Pod + std::ops::Add<Output = E>>(
    comm: &C,
    data: &mut [E],
    counts: &[usize],
) -> Result<()> {
    combine_shares(comm, data, counts, |a, b| a + b)
}

/// Every rank combines its own share, in rank order.
fn combine_shares<C: Comm + ?Sized, E: Pod>(
    comm: &C,
    data: &mut [E],
    counts: &[usize],
    combine: fn(E, E) -> E,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let places = shares(counts);
    for peer in (0..size).filter(|&peer| peer != rank) {
        comm.send(peer, Tag::Reduce, bytemuck::cast_slice(&data[places[peer].clone()]).to_vec())?;
    }
    let own = &mut data[places[rank].clone()];
    let mut total: Vec<E> = Vec::new();
    for peer in 0..size {
        let part = if peer == rank { own.to_vec() } else { receive_numbers(comm, peer, own.len())? };
        if peer == 0 {
            total = part;
        } else {
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum = combine(*sum, value));
        }
    }
    own.copy_from_slice(&total);
    Ok(())
}

fn check_length<C: Comm + ?Sized>(comm: &C, peer: usize, got: usize, expected: usize) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    let (got, expected) = (format!("{got} bytes"), format!("{expected} bytes"));
    Err(Error::Protocol { rank: comm.rank(), peer, got, expected })
}

fn receive_numbers<C: Comm + ?Sized, E: Pod>(comm: &C, from: usize, count: usize) -> Result<Vec<E>> {
    let message = comm.receive(from, Tag::Reduce)?;
    check_length(comm, from, message.len(), count * size_of::<E>())?;
    Ok(bytemuck::pod_collect_to_vec(&message))
}

/// Numbers of all ranks, joined in rank order.
pub fn gather_all<E: Pod>(comm: &dyn Comm, local: &[E]) -> Result<Vec<E>> {
    if comm.size() == 1 {
        return Ok(local.to_vec());
    }
    let parts = comm.all_gather(bytemuck::cast_slice(local))?;
    Ok(parts.iter().flat_map(|part| bytemuck::pod_collect_to_vec::<u8, E>(part)).collect())
}

/// Numbers of which each rank has the share that `counts` says, joined in rank order.
pub fn gather_shares<E: Pod>(comm: &dyn Comm, local: &[E], counts: &[usize]) -> Result<Vec<E>> {
    let mut all = vec![E::zeroed(); counts.iter().sum()];
    all[shares(counts)[comm.rank()].clone()].copy_from_slice(local);
    let bytes: Vec<usize> = counts.iter().map(|count| count * size_of::<E>()).collect();
    comm.all_gather_into(bytemuck::cast_slice_mut(&mut all), &bytes)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_owned_once() {
        for length in 0..40 {
            for size in 1..12 {
                let ranges: Vec<_> = (0..size).map(|rank| owned(length, rank, size)).collect();
                assert_eq!(
                    ranges.iter().cloned().flatten().collect::<Vec<_>>(),
                    (0..length).collect::<Vec<_>>()
                );
                let longest = ranges.iter().map(|range| range.len()).max().unwrap();
                assert!(longest <= length.div_ceil(size));
            }
        }
        assert_eq!(owned(usize::MAX, 2, 3).end, usize::MAX);
    }
}
