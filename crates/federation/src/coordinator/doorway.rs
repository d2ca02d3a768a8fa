//! Connections that are not authenticated yet: their limit, and which of them is closed to make room for
//! another.
//!
//! No new connection is rejected: if there is no room, another half-open connection is closed. It is chosen
//! from the address with the most connections, so that a flood from one address evicts its own. Silent
//! connections are closed before those that have sent data, and an address from which no party has connected
//! weighs more than one that has shown a valid certificate. A connection with a party's certificate leaves
//! this table for the places reserved for that party.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::Rng;
use tokio::sync::Notify;

use crate::io::Counts;

/// The maximum number of half-open connections.
pub const MAX_HALF_OPEN: usize = 64;

/// The maximum number of half-open connections per address: several parties may share one, and restart at the
/// same time.
pub const MAX_HALF_OPEN_OF_ADDRESS: usize = 32;

/// The weight of a connection from an address from which no party has connected, relative to one that has
/// shown a valid certificate: enough for a party that restarts, and too little for a flood from a party's
/// address.
const STRANGENESS: usize = 8;

/// The maximum number of remembered addresses of parties.
const MAX_FAMILIAR: usize = 1024;

/// An IPv4 address, or the prefix that one IPv6 subscriber has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Network(IpAddr);

impl Network {
    fn of(address: IpAddr) -> Self {
        Network(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }
}

struct Waiting {
    network: Network,
    counts: Arc<Counts>,
    evicted: Arc<Notify>,
}

impl Waiting {
    fn is_silent(&self) -> bool {
        self.counts.received.load(Ordering::Relaxed) == 0
    }
}

struct Table {
    next: u64,
    /// Half-open connections by number, in the order of their arrival.
    waiting: BTreeMap<u64, Waiting>,
    familiar: BTreeSet<Network>,
    rng: Box<dyn Rng + Send>,
}

/// All half-open connections.
pub struct Doorway {
    most: usize,
    table: Mutex<Table>,
}

impl Doorway {
    /// A table with room for `most` connections.
    pub fn new(most: usize, rng: impl Rng + Send + 'static) -> Arc<Self> {
        let table =
            Table { next: 0, waiting: BTreeMap::new(), familiar: BTreeSet::new(), rng: Box::new(rng) };
        Arc::new(Doorway { most, table: Mutex::new(table) })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, and closes another if there is no room.
    pub fn enter(self: &Arc<Self>, from: IpAddr, counts: Arc<Counts>) -> HalfOpen {
        let mut table = self.lock();
        let network = Network::of(from);
        if let Some(victim) = table.victim(network, self.most)
            && let Some(waiting) = table.waiting.remove(&victim)
        {
            waiting.evicted.notify_one();
        }
        let number = table.next;
        table.next += 1;
        let evicted = Arc::new(Notify::new());
        table.waiting.insert(number, Waiting { network, counts, evicted: evicted.clone() });
        HalfOpen { doorway: self.clone(), number, evicted }
    }
}

impl Table {
    /// The connection to close for a new one from this network, if one must be closed.
    fn victim(&mut self, network: Network, most: usize) -> Option<u64> {
        let mut by_network: BTreeMap<Network, Vec<u64>> = BTreeMap::new();
        for (number, waiting) in &self.waiting {
            by_network.entry(waiting.network).or_default().push(*number);
        }
        let own = by_network.get(&network).map_or(0, Vec::len);
        let crowd = if own >= MAX_HALF_OPEN_OF_ADDRESS {
            by_network.remove(&network)?
        } else if self.waiting.len() >= most {
            let weight = |network: &Network| if self.familiar.contains(network) { 1 } else { STRANGENESS };
            by_network.into_iter().max_by_key(|(network, crowd)| weight(network) * crowd.len())?.1
        } else {
            return None;
        };
        let silent = crowd.iter().copied().find(|number| self.waiting[number].is_silent());
        // A connection that has sent data may be a party's, and a flooding client must not be able to predict
        // the victim.
        silent.or_else(|| Some(crowd[(self.rng.next_u64() % crowd.len() as u64) as usize]))
    }
}

/// A connection that is not authenticated yet.
pub struct HalfOpen {
    doorway: Arc<Doorway>,
    number: u64,
    evicted: Arc<Notify>,
}

impl HalfOpen {
    /// Resolves when the connection must make room for another.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Removes the connection from the table once it has shown a party's certificate.
    pub fn admit(&self) {
        let mut table = self.doorway.lock();
        let Some(waiting) = table.waiting.remove(&self.number) else { return };
        if table.familiar.len() >= MAX_FAMILIAR {
            table.familiar.clear();
        }
        table.familiar.insert(waiting.network);
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let mut table = self.doorway.lock();
        table.waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> impl Rng + Send + 'static {
        partwise_secure::entropy().unwrap()
    }

    fn counts(received: u64) -> Arc<Counts> {
        Arc::new(Counts { received: received.into(), ..Counts::default() })
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn is_open(half_open: &HalfOpen) -> bool {
        half_open.doorway.lock().waiting.contains_key(&half_open.number)
    }

    #[test]
    fn a_flood_evicts_its_own_connections_and_silent_ones_first() {
        let doorway = Doorway::new(MAX_HALF_OPEN, rng());
        // Two parties behind the flooding address, and one elsewhere; all have sent data.
        let parties = [1, 1, 2].map(|last| doorway.enter(address(last), counts(9)));
        let flood: Vec<_> = (0..500).map(|_| doorway.enter(address(1), counts(0))).collect();
        assert!(parties.iter().all(is_open));
        assert_eq!(flood.iter().filter(|half_open| is_open(half_open)).count(), MAX_HALF_OPEN_OF_ADDRESS - 2);
        // The newest of the silent connections remain.
        assert!(flood[470..].iter().all(is_open));
    }

    #[test]
    fn addresses_of_parties_are_remembered() {
        let doorway = Doorway::new(MAX_HALF_OPEN, rng());
        doorway.enter(address(1), counts(9)).admit();
        let party = doorway.enter(address(1), counts(0));
        let strangers: Vec<_> =
            (0..200u8).map(|last| doorway.enter([198, 51, 100, last].into(), counts(5))).collect();
        assert!(is_open(&party));
        let open = strangers.iter().filter(|half_open| is_open(half_open)).count();
        assert_eq!(open, MAX_HALF_OPEN - 1);
        drop(strangers);
        // Floods from where parties are do not keep a stranger out, who may be a party too.
        doorway.enter(address(2), counts(9)).admit();
        let floods: Vec<_> = (0..60).map(|count| doorway.enter(address(1 + count % 2), counts(5))).collect();
        let newcomer = doorway.enter(address(9), counts(0));
        let more: Vec<_> = (0..60).map(|count| doorway.enter(address(1 + count % 2), counts(5))).collect();
        assert!(is_open(&newcomer));
        drop((party, floods, newcomer, more));
        assert!(doorway.lock().waiting.is_empty());
        let prefix = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(prefix("2001:db8::1"), prefix("2001:db8::ffff:2"));
        assert_ne!(prefix("2001:db8::1"), prefix("2001:db8:0:1::1"));
        assert_eq!(prefix("::ffff:192.0.2.1"), Network(address(1)));
    }

    /// If all connections have sent data, the victim among those of an address is random.
    #[test]
    fn any_connection_that_has_sent_data_may_be_evicted() {
        let survived = (0..200).filter(|_| {
            let doorway = Doorway::new(MAX_HALF_OPEN, rng());
            let party = doorway.enter(address(1), counts(9));
            let _flood: Vec<_> = (0..63).map(|_| doorway.enter(address(1), counts(9))).collect();
            is_open(&party)
        });
        // The expected share that remains is (31 / 32)^32, about 72 of them.
        assert!((20..150).contains(&survived.count()));
    }
}
