//! A communicator that counts what passes through it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Comm, Numbers, Reduction, Tag};
use crate::error::Result;

/// Counts the bytes that this rank hands to collectives (the paper's measure of communication: k d for a
/// sketched step) and the time spent in them. With one rank nothing is sent, and nothing counted.
pub struct Metered<'a> {
    inner: &'a dyn Comm,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

impl<'a> Metered<'a> {
    /// A meter at zero.
    pub fn new(inner: &'a dyn Comm) -> Self {
        Metered { inner, bytes: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) }
    }

    /// Bytes handed to collectives so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Seconds spent in collectives so far, waiting for slower ranks included.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9
    }

    fn count<R>(&self, bytes: usize, work: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.inner.size() == 1 {
            return work();
        }
        let begin = Instant::now();
        let result = work();
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.nanoseconds.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

impl Comm for Metered<'_> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.count(message.len(), || self.inner.send(to, tag, message))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.count(0, || self.inner.receive(from, tag))
    }

    fn all_reduce(&self, reduction: Reduction, numbers: Numbers<'_>) -> Result<()> {
        self.count(numbers.bytes(), || self.inner.all_reduce(reduction, numbers))
    }

    fn all_gather(&self, local: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.count(local.len(), || self.inner.all_gather(local))
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        self.count(message.len(), || self.inner.broadcast(message))
    }
}
