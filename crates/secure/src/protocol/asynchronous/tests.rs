//! Coordinators of asynchronous runs that tell groups something else about each other than what they have opened.

use std::sync::Mutex;

use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::threads::Threads;

use super::*;
use crate::aggregation::{Cohort, Hub, Identity, Message, Opening, OrderTip, Party};
use crate::entropy::entropy;
use crate::link::{Incoming, Link};
use crate::net::{DEFAULT_WAN, NetLink, network};
use crate::protocol::{Local, Protocol};
use crate::server::serve;
use crate::session::{Journal, Kept, SessionOptions, SystemClock, addressed, parse};
use crate::simulate::RunParties;

const GROUPS: [[u16; 3]; 2] = [[1, 2, 3], [4, 5, 6]];

/// What becomes of the sums of the second group that a party of the first is told: which of them it is, and the sum.
type Tamper = fn(usize, Opening) -> Vec<Opening>;

/// A coordinator's line on which sums of the second group are tampered with, where party 1 is told them.
struct Tampering {
    link: NetLink,
    tamper: Tamper,
    seen: usize,
}

impl Link for Tampering {
    fn send(&mut self, to: u16, bytes: Vec<u8>) -> Result<()> {
        if to == 1
            && let (2, Message::Opening(opening)) = parse(0, 0, &bytes)?
        {
            self.seen += 1;
            return (self.tamper)(self.seen - 1, *opening).into_iter().try_for_each(|opening| {
                self.link.send(to, addressed(2, &Message::Opening(Box::new(opening))))
            });
        }
        self.link.send(to, bytes)
    }

    fn receive(&mut self, deadline: Option<f64>) -> Result<Incoming> {
        self.link.receive(deadline)
    }

    fn now(&self) -> f64 {
        self.link.now()
    }
}

fn settings() -> Settings {
    Settings { rounds: 8, ..Settings::new(Protocol::AsynSd, 2) }
}

/// A party's run of the whole method; its U.
fn run_party(me: u16, session: &mut Session<'_>) -> Result<Vec<f32>> {
    let values = (0..60).map(|entry| ((entry * 7 + me) % 5) as f32).collect();
    let matrix = Dense::new(6, 10, Order::RowMajor, Values::Real(values));
    let mut local = Local::<f32>::new(Matrix::Dense(matrix), &settings(), Threads::new(1)?)?;
    let group = if me < 4 { 1 } else { 2 };
    crate::protocol::run(&settings(), &mut local, session, me.into(), group)?;
    Ok(local.u)
}

/// A journal in memory, and how much of it was read.
#[derive(Default)]
struct Notes {
    kept: Vec<Kept>,
    read: usize,
}

impl Journal for &Mutex<Notes> {
    fn next(&mut self) -> Result<Option<Kept>> {
        let mut notes = self.lock().unwrap();
        notes.read += 1;
        Ok(notes.kept.get(notes.read - 1).cloned())
    }

    fn keep(&mut self, kept: &Kept) -> Result<()> {
        self.lock().unwrap().kept.push(kept.clone());
        Ok(())
    }
}

/// A line on which nothing comes.
struct Dead;

impl Link for Dead {
    fn send(&mut self, _: u16, _: Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, _: Option<f64>) -> Result<Incoming> {
        Ok(Incoming::Lost(0))
    }

    fn now(&self) -> f64 {
        0.0
    }
}

/// Party 1's U, or why it stopped, and the others' U.
fn run(tamper: Tamper) -> (Result<Vec<f32>, String>, Vec<Vec<f32>>) {
    run_noted(tamper, &Mutex::default())
}

/// Party 1 keeps a journal, from which it computes the same once more, without a coordinator.
#[test]
fn a_journal_has_all_that_a_party_has_seen() {
    let notes = Mutex::default();
    let u = run_noted(|_, opening| vec![opening], &notes).0.unwrap();
    let kept = notes.lock().unwrap().kept.len();
    assert!(notes.lock().unwrap().kept.iter().any(|kept| matches!(kept, Kept::Other(_))));
    notes.lock().unwrap().read = 0;
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..6).map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<_> = identities.iter().map(Identity::key).collect();
    let parties = RunParties { run: [1; 32], least: 0, keys: &keys };
    let cohorts = crate::cohorts(&settings(), &parties, &GROUPS.map(Vec::from)).unwrap();
    let machine = |cohort: &Cohort| Party::new(cohort.clone(), 1, identities[0].clone(), false).unwrap();
    let mut options = SessionOptions::new(entropy().unwrap(), SystemClock::start());
    options.journal = Some(Box::new(&notes));
    options.other_groups = vec![cohorts[2].clone()];
    let machines = cohorts[..2].iter().map(machine).collect();
    let mut session = Session::join(Dead, machines, options).unwrap();
    assert_eq!(run_party(1, &mut session).unwrap(), u);
    drop(session);
    assert_eq!(notes.lock().unwrap().kept.len(), kept);
}

fn run_noted(tamper: Tamper, notes: &Mutex<Notes>) -> (Result<Vec<f32>, String>, Vec<Vec<f32>>) {
    let settings = &settings();
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..6).map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<_> = identities.iter().map(Identity::key).collect();
    let parties = RunParties { run: [1; 32], least: 0, keys: &keys };
    let cohorts = &crate::cohorts(settings, &parties, &GROUPS.map(Vec::from)).unwrap();
    let mut links = network(6, DEFAULT_WAN).into_iter();
    let mut hub_link = Tampering { link: links.next().unwrap(), tamper, seen: 0 };
    let ends = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let hubs = cohorts.iter().map(|cohort| (cohort.number, Hub::new(cohort.clone(), false))).collect();
        let mut server = Server::new(settings, &[(1, 3), (2, 3)]);
        scope.spawn(move || serve(&mut hub_link, hubs, 6, &mut server).map(drop));
        for ((me, link), identity) in (1..).zip(links).zip(identities) {
            let ends = &ends;
            scope.spawn(move || {
                let group: u8 = if me < 4 { 1 } else { 2 };
                let machine = |cohort: &Cohort| Party::new(cohort.clone(), me, identity.clone(), false);
                let own = cohorts.iter().filter(|cohort| cohort.place_of(me).is_some());
                let machines = own.map(|cohort| machine(cohort).unwrap()).collect();
                let mut options = SessionOptions::new(entropy().unwrap(), SystemClock::start());
                options.other_groups = vec![cohorts[usize::from(3 - group)].clone()];
                if me == 1 {
                    options.journal = Some(Box::new(notes));
                }
                let mut session = Session::join(link, machines, options).unwrap();
                let ended = run_party(me, &mut session);
                let left = session.leave();
                let end = ended.map_err(|error| error.to_string());
                ends.lock().unwrap().push((me, end));
                drop(left);
            });
        }
    });
    let mut ends = ends.into_inner().unwrap();
    ends.sort_by_key(|(me, _)| *me);
    let first = ends.remove(0).1;
    (first, ends.into_iter().filter_map(|(_, end)| end.ok()).collect())
}

/// All parties compute the same U, and being told a sum twice changes nothing.
#[test]
fn parties_of_all_groups_compute_the_same_u() {
    let tampers: [Tamper; 2] = [|_, opening| vec![opening], |_, opening| vec![opening.clone(), opening]];
    for tamper in tampers {
        let (first, others) = run(tamper);
        let first = first.unwrap();
        assert!(others.len() == 5 && others.iter().all(|u| *u == first));
    }
}

/// Whatever else a party is told of the other group's sums, it stops.
#[test]
fn other_sums_of_other_groups_are_refused() {
    fn renumbered(opening: &Opening, by: u64) -> Opening {
        let order = opening.order.map(|tip| OrderTip { count: tip.count + by, ..tip });
        Opening { order, ..opening.clone() }
    }
    let cases: [(Tamper, &str); 7] = [
        // Left out, with what follows in its old place or moved up.
        (|which, opening| if which == 2 { vec![] } else { vec![opening] }, "left out"),
        (
            |which, opening| match which {
                0 | 1 => vec![opening],
                2 => vec![],
                _ => vec![Opening {
                    order: opening.order.map(|tip| OrderTip { count: tip.count - 1, ..tip }),
                    ..opening
                }],
            },
            "out of turn",
        ),
        // Applied twice.
        (|_, opening| vec![opening.clone(), renumbered(&opening, 1)], "out of turn"),
        // In another place.
        (|_, opening| vec![renumbered(&opening, 1)], "left out"),
        // Another sum.
        (
            |which, mut opening| {
                if which == 3 {
                    opening.uploads[1].1.wide[0] ^= 1;
                }
                vec![opening]
            },
            "an upload of party 5 that differs from the one it signed",
        ),
        (
            |_, mut opening| {
                opening.commitments[0].words[0] ^= 1;
                vec![opening]
            },
            "an upload of party 4 that it did not sign",
        ),
        // Of fewer parties than must be in it.
        (
            |_, mut opening| {
                opening.commitments.pop();
                vec![opening]
            },
            "a list of survivors that party 4 did not sign",
        ),
    ];
    for (tamper, words) in cases {
        let error = run(tamper).0.expect_err("an error");
        // A gap in the order is noticed by what comes first: the next sum, or the answer to the own group.
        let gap = ["left out", "out of turn"];
        let noticed =
            error.contains(words) || gap.contains(&words) && gap.iter().any(|gap| error.contains(gap));
        assert!(noticed, "{words}: {error}");
    }
}
