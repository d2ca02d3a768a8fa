//! A subset of the ranks of a communicator, as a communicator.

use super::{Comm, Tag};
use crate::error::{Error, Result};

/// Some ranks of another communicator. Messages between two ranks keep their order whatever group they belong to, so
/// that groups may overlap as long as all ranks use them in the same order.
pub struct Group<'a, C: ?Sized> {
    inner: &'a C,
    members: Vec<usize>,
    rank: usize,
}

impl<'a, C: Comm + ?Sized> Group<'a, C> {
    /// The ranks that gave the same color.
    pub fn of_color(inner: &'a C, color: usize) -> Result<Self> {
        let members = same_color(inner, color)?;
        let rank = members.partition_point(|&member| member < inner.rank());
        Ok(Group { inner, members, rank })
    }
}

/// The ranks of `comm` that gave the same color.
fn same_color<C: Comm + ?Sized>(comm: &C, color: usize) -> Result<Vec<usize>> {
    let color = (color as u64).to_le_bytes();
    let colors = comm.all_gather(&color)?;
    Ok((0..comm.size()).filter(|&rank| colors[rank] == color).collect())
}

impl<C: Comm + ?Sized> Comm for Group<'_, C> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.inner.send(self.members[to], tag, message)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.inner.receive(self.members[from], tag)
    }

    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.inner.try_receive(self.members[from], tag)
    }

    fn clock(&self) -> Vec<f64> {
        self.inner.clock()
    }

    fn split(&self, color: usize) -> Result<Box<dyn Comm + '_>> {
        let chosen = same_color(self, color)?;
        let rank = chosen.partition_point(|&rank| rank < self.rank);
        let members = chosen.into_iter().map(|rank| self.members[rank]).collect();
        Ok(Box::new(Group { inner: self.inner, members, rank }))
    }
}

/// A single rank. It never waits, so its clock does not advance.
pub struct Alone;

impl Comm for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn send(&self, to: usize, _tag: Tag, _message: Vec<u8>) -> Result<()> {
        Err(Error::RankLost { rank: 0, peer: to })
    }

    fn receive(&self, from: usize, _tag: Tag) -> Result<Vec<u8>> {
        Err(Error::RankLost { rank: 0, peer: from })
    }

    fn try_receive(&self, from: usize, _tag: Tag) -> Result<Option<Vec<u8>>> {
        Err(Error::RankLost { rank: 0, peer: from })
    }

    fn clock(&self) -> Vec<f64> {
        vec![0.0]
    }
}
