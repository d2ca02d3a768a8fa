//! In-process ranks on a modelled network, each with a virtual clock.
//!
//! A rank's clock advances by the processor time of its threads and by the modelled time of its collectives.
//! Nothing sleeps. One rank computes at a time, so that ranks do not compete for cache and memory: even with more
//! ranks than cores, each takes as long as on a machine of its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytemuck::pod_collect_to_vec;

use super::{Comm, Network, Numbers, Reduction, Tag};
use crate::error::Result;
use crate::threads::{PoolTime, thread_time};

/// Lets ranks take turns, in the order in which they ask.
#[derive(Default)]
pub struct TurnLock {
    turns: Mutex<Turns>,
    given: Condvar,
}

#[derive(Default)]
struct Turns {
    asked: usize,
    now: usize,
}

impl TurnLock {
    fn take(&self) {
        let mut turns = unpoisoned(&self.turns);
        let own = turns.asked;
        turns.asked += 1;
        while turns.now != own {
            turns = self.given.wait(turns).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn give(&self) {
        unpoisoned(&self.turns).now += 1;
        self.given.notify_all();
    }
}

/// Nothing that can fail is done while holding these locks.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One rank's clock, on each of some networks.
struct Clock {
    networks: Vec<Network>,
    baton: Arc<TurnLock>,
    pool: PoolTime,
    hands: Mutex<Hands>,
}

struct Hands {
    /// Seconds on each network.
    seconds: Vec<f64>,
    /// Processor time that is already counted.
    counted: f64,
}

impl Clock {
    /// The processor time of the rank: of its own thread, which calls this, and of its pool.
    fn spent(&self) -> f64 {
        thread_time() + self.pool.seconds()
    }

    /// The time now.
    fn read(&self) -> Vec<f64> {
        let mut hands = unpoisoned(&self.hands);
        let spent = self.spent();
        let more = spent - hands.counted;
        hands.seconds.iter_mut().for_each(|seconds| *seconds += more);
        hands.counted = spent;
        hands.seconds.clone()
    }

    fn set(&self, seconds: Vec<f64>) {
        let mut hands = unpoisoned(&self.hands);
        *hands = Hands { seconds, counted: self.spent() };
    }
}

impl Drop for Clock {
    /// A rank that ends, successfully or not, lets the others continue.
    fn drop(&mut self) {
        self.baton.give();
    }
}

/// A communicator that keeps its rank's clock. Groups split off share the clock. It must be created, used and
/// dropped on the rank's own thread.
pub struct Clocked<'a> {
    inner: Inner<'a>,
    clock: Arc<Clock>,
}

enum Inner<'a> {
    Borrowed(&'a dyn Comm),
    Owned(Box<dyn Comm + 'a>),
}

/// Where the clock of a collective starts.
#[derive(Clone, Copy)]
enum Begins {
    /// At the latest clock of all ranks.
    All,
    /// At the later of rank 0's clock and the own one.
    First,
}

impl<'a> Clocked<'a> {
    /// A clock at 0 on each of the networks, once this rank may compute.
    pub fn new(inner: &'a dyn Comm, networks: &[Network], baton: Arc<TurnLock>, pool: PoolTime) -> Self {
        baton.take();
        let networks = networks.to_vec();
        let hands = Mutex::new(Hands { seconds: vec![0.0; networks.len()], counted: 0.0 });
        let clock = Clock { networks, baton, pool, hands };
        clock.set(vec![0.0; clock.networks.len()]);
        Clocked { inner: Inner::Borrowed(inner), clock: Arc::new(clock) }
    }

    fn inner(&self) -> &dyn Comm {
        match &self.inner {
            Inner::Borrowed(comm) => *comm,
            Inner::Owned(comm) => comm.as_ref(),
        }
    }

    /// Waits while other ranks compute.
    fn apart<R>(&self, work: impl FnOnce(&dyn Comm) -> R) -> R {
        self.clock.baton.give();
        let result = work(self.inner());
        self.clock.baton.take();
        result
    }

    /// Receives a message, without its departure times.
    fn arrived(&self, mut now: Vec<f64>, mut message: Vec<u8>) -> Vec<u8> {
        let left = message.split_off(message.len().saturating_sub(now.len() * size_of::<f64>()));
        let left = pod_collect_to_vec::<u8, f64>(&left);
        for ((now, left), network) in now.iter_mut().zip(left).zip(&self.clock.networks) {
            *now = now.max(left + network.message(message.len()));
        }
        self.clock.set(now);
        message
    }

    /// A collective: the clocks of its ranks are aligned, and then advance by its modelled time.
    fn meet<R>(
        &self,
        begins: Begins,
        cost: impl Fn(&Network, &R) -> f64,
        work: impl FnOnce(&dyn Comm) -> Result<R>,
    ) -> Result<R> {
        if self.inner().size() == 1 {
            return work(self.inner());
        }
        let mut now = self.clock.read();
        let (clocks, result) = self.apart(|comm| -> Result<_> {
            let clocks = comm.all_gather(bytemuck::cast_slice(&now))?;
            Ok((clocks, work(comm)?))
        })?;
        let others = match begins {
            Begins::All => &clocks[..],
            Begins::First => &clocks[..1],
        };
        for other in others {
            let other = pod_collect_to_vec::<u8, f64>(other);
            now.iter_mut().zip(other).for_each(|(now, other)| *now = now.max(other));
        }
        now.iter_mut().zip(&self.clock.networks).for_each(|(now, network)| *now += cost(network, &result));
        self.clock.set(now);
        Ok(result)
    }
}

fn smallest(counts: &[usize]) -> usize {
    counts.iter().copied().min().unwrap_or(0)
}

impl Comm for Clocked<'_> {
    fn rank(&self) -> usize {
        self.inner().rank()
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    /// The message carries its departure time.
    fn send(&self, to: usize, tag: Tag, mut message: Vec<u8>) -> Result<()> {
        let now = self.clock.read();
        message.extend(bytemuck::cast_slice::<f64, u8>(&now));
        let result = self.inner().send(to, tag, message);
        self.clock.set(now);
        result
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        let now = self.clock.read();
        let message = self.apart(|comm| comm.receive(from, tag))?;
        Ok(self.arrived(now, message))
    }

    /// Clocks advance to the arrival of the messages received so far, if any.
    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        let now = self.clock.read();
        let message = self.apart(|comm| comm.try_receive(from, tag))?;
        Ok(message.map(|message| self.arrived(now, message)))
    }

    fn all_reduce(&self, reduction: Reduction, numbers: Numbers<'_>) -> Result<()> {
        let (size, bytes) = (self.size(), numbers.bytes());
        let cost = |network: &Network, (): &()| network.all_reduce(size, bytes);
        self.meet(Begins::All, cost, |comm| comm.all_reduce(reduction, numbers))
    }

    fn reduce_scatter(&self, numbers: Numbers<'_>, counts: &[usize]) -> Result<()> {
        let (size, bytes) = (self.size(), numbers.bytes());
        let each = bytes / counts.iter().sum::<usize>().max(1);
        let cost = |network: &Network, (): &()| network.reduce_scatter(size, bytes, smallest(counts) * each);
        self.meet(Begins::All, cost, |comm| comm.reduce_scatter(numbers, counts))
    }

    fn all_gather_into(&self, data: &mut [u8], counts: &[usize]) -> Result<()> {
        let size = self.size();
        let cost =
            |network: &Network, (): &()| network.all_gather(size, counts.iter().sum(), smallest(counts));
        self.meet(Begins::All, cost, |comm| comm.all_gather_into(data, counts))
    }

    fn all_gather(&self, local: &[u8]) -> Result<Vec<Vec<u8>>> {
        let cost = |network: &Network, parts: &Vec<Vec<u8>>| {
            let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
            network.all_gather(counts.len(), counts.iter().sum(), smallest(&counts))
        };
        self.meet(Begins::All, cost, |comm| comm.all_gather(local))
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        let size = self.size();
        let cost = |network: &Network, message: &Vec<u8>| network.broadcast(size, message.len());
        self.meet(Begins::First, cost, |comm| comm.broadcast(message))
    }

    fn split(&self, color: usize) -> Result<Box<dyn Comm + '_>> {
        self.clock.baton.give();
        let inner = self.inner().split(color);
        self.clock.baton.take();
        let inner = Inner::Owned(inner?);
        Ok(Box::new(Clocked { inner, clock: self.clock.clone() }))
    }

    fn clock(&self) -> Vec<f64> {
        self.clock.read()
    }
}
