//! How ranks talk: tagged messages, and collectives built on them that sum in rank order.
//!
//! A transport implements [`Comm`]'s four required methods; it may override the collectives where it has
//! faster ones (MPI). It knows numbers and bytes, never matrices.

mod exact_sum;
mod local;
mod metered;

pub use exact_sum::{ExactSum, sum_exactly};
pub use local::{LocalComm, run_ranks};
pub use metered::Metered;

use std::ops::Range;

use bytemuck::Pod;

use crate::error::{Error, Result};

/// What a message belongs to; a rank that receives another tag than it expects is out of step.
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

/// The part of `0..length` that `rank` of `size` owns: consecutive, equal up to one, empty where there are more
/// ranks than there is to own.
pub fn owned(length: usize, rank: usize, size: usize) -> Range<usize> {
    // 128 bits: length * rank overflows 64 for sizes that a header may claim.
    let bound = |rank: usize| (length as u128 * rank as u128 / size as u128) as usize;
    bound(rank)..bound(rank + 1)
}

/// Every rank combines one segment, in rank order, and hands it to the others: each number crosses the wire
/// about twice per rank, whatever their count.
fn reduce_in_order<C: Comm + ?Sized, E: Pod>(comm: &C, data: &mut [E], combine: fn(E, E) -> E) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    if size == 1 {
        return Ok(());
    }
    let count = data.len();
    let segment = |owner: usize| owned(count, owner, size);
    let peers = || (0..size).filter(|&peer| peer != rank);
    for peer in peers() {
        comm.send(peer, Tag::Reduce, bytemuck::cast_slice(&data[segment(peer)]).to_vec())?;
    }
    let own = segment(rank);
    let mut total: Vec<E> = Vec::new();
    for peer in 0..size {
        let part =
            if peer == rank { data[own.clone()].to_vec() } else { receive_numbers(comm, peer, own.len())? };
        if peer == 0 {
            total = part;
        } else {
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum = combine(*sum, value));
        }
    }
    for peer in peers() {
        comm.send(peer, Tag::Reduce, bytemuck::cast_slice(&total).to_vec())?;
    }
    data[own].copy_from_slice(&total);
    for peer in peers() {
        let range = segment(peer);
        let part = receive_numbers(comm, peer, range.len())?;
        data[range].copy_from_slice(&part);
    }
    Ok(())
}

fn receive_numbers<C: Comm + ?Sized, E: Pod>(comm: &C, from: usize, count: usize) -> Result<Vec<E>> {
    let message = comm.receive(from, Tag::Reduce)?;
    if message.len() != count * size_of::<E>() {
        return Err(Error::Protocol {
            rank: comm.rank(),
            peer: from,
            got: format!("{} bytes", message.len()),
            expected: format!("{} bytes", count * size_of::<E>()),
        });
    }
    Ok(bytemuck::pod_collect_to_vec(&message))
}

/// Numbers of all ranks, joined in rank order: the whole factor from its row blocks.
pub fn gather_all<E: Pod>(comm: &dyn Comm, local: &[E]) -> Result<Vec<E>> {
    if comm.size() == 1 {
        return Ok(local.to_vec());
    }
    let parts = comm.all_gather(bytemuck::cast_slice(local))?;
    Ok(parts.iter().flat_map(|part| bytemuck::pod_collect_to_vec::<u8, E>(part)).collect())
}
