//! A communicator that counts calls, bytes and seconds.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{Comm, Numbers, Reduction, Tag};
use crate::error::Result;

/// The use of one kind of collective by this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The number of calls.
    pub calls: u64,
    /// Bytes that this rank handed to the collective.
    pub bytes: u64,
    /// Seconds spent in the collective, including waiting for slower ranks.
    pub seconds: f64,
}

/// Traffic by collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meter {
    /// Sums and maxima for every rank.
    pub all_reduce: Traffic,
    /// Joined blocks of a factor.
    pub all_gather: Traffic,
    /// Sums of products, of which every rank receives its own rows.
    pub reduce_scatter: Traffic,
    /// Broadcasts from rank 0 to all ranks.
    pub broadcast: Traffic,
    /// Between two ranks.
    pub message: Traffic,
}

impl Meter {
    fn all(&self) -> [Traffic; 5] {
        [self.all_reduce, self.all_gather, self.reduce_scatter, self.broadcast, self.message]
    }

    /// Bytes handed to all collectives.
    pub fn bytes(&self) -> u64 {
        self.all().iter().map(|traffic| traffic.bytes).sum()
    }
}

/// Counts the bytes that this rank hands to collectives (the paper's measure of communication: k d for a sketched
/// step) and the time spent in them. With one rank nothing is sent or counted. Groups split off share the meter.
pub struct Metered<'a> {
    inner: Inner<'a>,
    // The lock is never contended.
    meter: Arc<Mutex<Meter>>,
}

enum Inner<'a> {
    Borrowed(&'a dyn Comm),
    Owned(Box<dyn Comm + 'a>),
}

impl<'a> Metered<'a> {
    /// A meter at zero.
    pub fn new(inner: &'a dyn Comm) -> Self {
        Metered { inner: Inner::Borrowed(inner), meter: Arc::default() }
    }

    /// The same meter for another communicator.
    pub fn sharing<'b>(&self, inner: &'b dyn Comm) -> Metered<'b> {
        Metered { inner: Inner::Borrowed(inner), meter: self.meter.clone() }
    }

    /// Counts so far.
    pub fn meter(&self) -> Meter {
        // A poisoned lock has complete counts too: nothing done under it can fail.
        *self.meter.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Bytes handed to collectives so far.
    pub fn bytes(&self) -> u64 {
        self.meter().bytes()
    }

    /// Seconds spent in collectives so far, waiting for slower ranks included.
    pub fn seconds(&self) -> f64 {
        self.meter().all().iter().map(|traffic| traffic.seconds).sum()
    }

    fn inner(&self) -> &dyn Comm {
        match &self.inner {
            Inner::Borrowed(comm) => *comm,
            Inner::Owned(comm) => comm.as_ref(),
        }
    }

    fn count<R>(
        &self,
        kind: fn(&mut Meter) -> &mut Traffic,
        bytes: usize,
        work: impl FnOnce(&dyn Comm) -> Result<R>,
    ) -> Result<R> {
        if self.inner().size() == 1 {
            return work(self.inner());
        }
        let begin = self.inner().clock()[0];
        let result = work(self.inner());
        let mut meter = self.meter.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let traffic = kind(&mut meter);
        traffic.calls += 1;
        traffic.bytes += bytes as u64;
        traffic.seconds += self.inner().clock()[0] - begin;
        result
    }
}

impl Comm for Metered<'_> {
    fn rank(&self) -> usize {
        self.inner().rank()
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.count(|meter| &mut meter.message, message.len(), |comm| comm.send(to, tag, message))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.count(|meter| &mut meter.message, 0, |comm| comm.receive(from, tag))
    }

    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.inner().try_receive(from, tag)
    }

    fn all_reduce(&self, reduction: Reduction, numbers: Numbers<'_>) -> Result<()> {
        let bytes = numbers.bytes();
        self.count(|meter| &mut meter.all_reduce, bytes, |comm| comm.all_reduce(reduction, numbers))
    }

    fn reduce_scatter(&self, numbers: Numbers<'_>, counts: &[usize]) -> Result<()> {
        let bytes = numbers.bytes();
        self.count(|meter| &mut meter.reduce_scatter, bytes, |comm| comm.reduce_scatter(numbers, counts))
    }

    fn all_gather_into(&self, data: &mut [u8], counts: &[usize]) -> Result<()> {
        let own = counts[self.rank()];
        self.count(|meter| &mut meter.all_gather, own, |comm| comm.all_gather_into(data, counts))
    }

    fn all_gather(&self, local: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.count(|meter| &mut meter.all_gather, local.len(), |comm| comm.all_gather(local))
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        self.count(|meter| &mut meter.broadcast, message.len(), |comm| comm.broadcast(message))
    }

    fn clock(&self) -> Vec<f64> {
        self.inner().clock()
    }

    fn split(&self, color: usize) -> Result<Box<dyn Comm + '_>> {
        let inner = Inner::Owned(self.inner().split(color)?);
        Ok(Box::new(Metered { inner, meter: self.meter.clone() }))
    }
}
