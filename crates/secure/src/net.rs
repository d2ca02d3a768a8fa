//! Links within one process with a simulated clock: the time that a run would take if every party had its own
//! machine.
//!
//! Each end has its own clock. Computing advances it by the time passed to [`Link::spend`], a message arrives after
//! the line's latency and the time for its bytes, and receiving advances the receiver's clock to the arrival. An
//! end receives its next event only when no other end can send it anything that would arrive earlier, so that the
//! order of all events, and with it every result, depends only on the simulated clocks and not on the threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use partwise::comm::Network;

use crate::error::{Error, Peer, Result};
use crate::link::{Incoming, Link};

/// Lines between towns: 1 Gbit/s, 5 ms.
pub const DEFAULT_WAN: Network = Network { latency: 5e-3, bandwidth: 125e6, combine: Network::COMBINE };

/// The time of an arrival; ties are ordered by sender, then by sending. Times are not negative, so their bits have
/// the same order.
type Arrival = (u64, u16, u64);

#[derive(Clone, Copy, PartialEq)]
enum EndpointStatus {
    Running,
    /// Waits, for good or until a time.
    Waiting(Option<f64>),
    Gone,
}

struct Endpoint {
    clock: f64,
    /// The time at which the line is free to send again.
    line_free: f64,
    status: EndpointStatus,
    inbox: BTreeMap<Arrival, Incoming>,
}

impl Endpoint {
    /// The time of its next event, if it waits and no one sends it anything more.
    fn next(&self, deadline: Option<f64>) -> f64 {
        let arrival = self.inbox.keys().next().map_or(f64::INFINITY, |(bits, ..)| f64::from_bits(*bits));
        arrival.min(deadline.unwrap_or(f64::INFINITY)).max(self.clock)
    }
}

struct Net {
    line: Network,
    endpoints: Mutex<Vec<Endpoint>>,
    changed: Condvar,
}

impl Net {
    fn lock(&self) -> MutexGuard<'_, Vec<Endpoint>> {
        // Nothing panics while it holds the lock.
        self.endpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// One end of the simulated network.
pub struct NetLink {
    net: Arc<Net>,
    me: u16,
    sequence: u64,
}

/// The ends of a network with a coordinator (the first end) and this many parties.
pub fn network(parties: usize, line: Network) -> Vec<NetLink> {
    let place =
        || Endpoint { clock: 0.0, line_free: 0.0, status: EndpointStatus::Running, inbox: BTreeMap::new() };
    let endpoints = Mutex::new((0..=parties).map(|_| place()).collect());
    let net = Arc::new(Net { line, endpoints, changed: Condvar::new() });
    (0..=parties as u16).map(|me| NetLink { net: net.clone(), me, sequence: 0 }).collect()
}

impl Link for NetLink {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        let mut endpoints = self.net.lock();
        let me = &mut endpoints[usize::from(self.me)];
        me.line_free = me.clock.max(me.line_free) + bytes.len() as f64 / self.net.line.bandwidth;
        let arrival = (me.line_free + self.net.line.latency).to_bits();
        self.sequence += 1;
        let Some(receiver) =
            endpoints.get_mut(usize::from(to)).filter(|place| place.status != EndpointStatus::Gone)
        else {
            // A missing end is noticed at its next event, as on a real network.
            return Ok(());
        };
        receiver.inbox.insert((arrival, self.me, self.sequence), Incoming::Message { from: self.me, bytes });
        self.net.changed.notify_all();
        Ok(())
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        let index = usize::from(self.me);
        let mut endpoints = self.net.lock();
        endpoints[index].status = EndpointStatus::Waiting(deadline);
        self.net.changed.notify_all();
        loop {
            let next = endpoints[index].next(deadline);
            // The earliest possible arrival here from another end.
            let earliest = endpoints.iter().enumerate().filter(|(other, _)| *other != index).map(
                |(_, place)| match place.status {
                    EndpointStatus::Running => place.clock + self.net.line.latency,
                    EndpointStatus::Waiting(deadline) => place.next(deadline) + self.net.line.latency,
                    EndpointStatus::Gone => f64::INFINITY,
                },
            );
            if next <= earliest.fold(f64::INFINITY, f64::min) {
                let me = &mut endpoints[index];
                if next == f64::INFINITY {
                    // Nothing can arrive any more.
                    return Err(Error::LinkLost { who: Peer(self.me), peer: Peer(0) });
                }
                me.status = EndpointStatus::Running;
                me.clock = next;
                let due =
                    me.inbox.first_key_value().is_some_and(|((bits, ..), _)| f64::from_bits(*bits) <= next);
                let incoming = if due { me.inbox.pop_first() } else { None };
                self.net.changed.notify_all();
                return Ok(incoming.map_or(Incoming::Deadline, |(_, incoming)| incoming));
            }
            endpoints = self.net.changed.wait(endpoints).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn now(&self) -> f64 {
        self.net.lock()[usize::from(self.me)].clock
    }

    fn spend(&mut self, seconds: f64) {
        self.net.lock()[usize::from(self.me)].clock += seconds;
        self.net.changed.notify_all();
    }
}

impl Drop for NetLink {
    /// Notifies the others: all of them if it is the coordinator, otherwise the coordinator.
    fn drop(&mut self) {
        let mut endpoints = self.net.lock();
        let me = &mut endpoints[usize::from(self.me)];
        me.status = EndpointStatus::Gone;
        let arrival = (me.clock.max(me.line_free) + self.net.line.latency).to_bits();
        let told = if self.me == 0 { 1..endpoints.len() } else { 0..1 };
        for place in &mut endpoints[told] {
            place.inbox.insert((arrival, self.me, u64::MAX), Incoming::Lost(self.me));
        }
        self.net.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Network = Network { latency: 1.0, bandwidth: 10.0, combine: 0.0 };

    fn ends(parties: usize) -> Vec<NetLink> {
        network(parties, LINE)
    }

    #[test]
    fn messages_take_their_time_and_keep_their_order() {
        let mut ends = ends(1);
        let (mut party, mut hub) = (ends.remove(1), ends.remove(0));
        party.spend(2.0);
        party.send(0, vec![1; 20]).unwrap();
        party.send(0, vec![2]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || assert!(party.receive(Some(9.0)).unwrap() == Incoming::Deadline));
            assert!(hub.receive(None).unwrap() == Incoming::Message { from: 1, bytes: vec![1; 20] });
            assert_eq!(hub.now(), 5.0);
            assert!(hub.receive(None).unwrap() == Incoming::Message { from: 1, bytes: vec![2] });
            assert!((hub.now() - 5.1).abs() < 1e-12);
            assert!(hub.receive(None).unwrap() == Incoming::Lost(1));
            assert!((hub.now() - 10.0).abs() < 1e-12);
        });
    }

    /// Whatever order the threads run in, the coordinator hears the parties in the order of their clocks.
    #[test]
    fn the_order_is_that_of_the_clocks() {
        for trial in 0..20 {
            let mut ends = ends(4);
            let mut hub = ends.remove(0);
            let heard = std::thread::scope(|scope| {
                for mut end in ends {
                    scope.spawn(move || {
                        for turn in 0..5 {
                            if (u16::from(turn) + end.me + trial) % 3 == 0 {
                                std::thread::sleep(std::time::Duration::from_micros(200));
                            }
                            end.spend(f64::from(end.me));
                            end.send(0, vec![turn]).unwrap();
                        }
                    });
                }
                let mut heard = Vec::new();
                while heard.len() < 20 {
                    if let Incoming::Message { from, bytes } = hub.receive(None).unwrap() {
                        heard.push((from, bytes[0], hub.now()));
                    }
                }
                heard
            });
            assert!(heard.windows(2).all(|pair| pair[0].2 <= pair[1].2), "{heard:?}");
            let order: Vec<(u16, u8)> = heard.iter().map(|(from, turn, _)| (*from, *turn)).collect();
            assert_eq!(order[..4], [(1, 0), (1, 1), (2, 0), (1, 2)], "{order:?}");
        }
    }
}
