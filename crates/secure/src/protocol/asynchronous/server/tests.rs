//! The server by itself, and parties whose server never ends.

use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::threads::Threads;

use super::*;
use crate::aggregation::{Cohort, Hub, Identity, Party};
use crate::entropy::entropy;
use crate::net::{DEFAULT_WAN, network};
use crate::protocol::{Local, Protocol};
use crate::server::serve;
use crate::session::{Session, SessionOptions, SystemClock};
use crate::simulate::RunParties;

fn plain(rounds: usize) -> Settings {
    let aggregation = Aggregation::Plain;
    Settings { aggregation, rounds, ..Settings::new(Protocol::AsynSd, 1) }
}

/// What the server answers a group of one, whose U has the group's number everywhere.
fn answer(server: &mut Server, group: u8) -> ServerAnswer {
    answer_in(server, group, 0)
}

/// The same, with keys of this epoch.
fn answer_in(server: &mut Server, group: u8, epoch: u32) -> ServerAnswer {
    let sum = Words { narrow: vec![f32::from(group).to_bits(); 4], wide: vec![1f64.to_bits(); 2] };
    ServerAnswer::read(&server.answer(CohortSum { cohort: group, epoch, parties: 1, words: sum }, 0.0))
}

/// A group that others keep waiting does no more rounds than all together were to do.
#[test]
fn a_group_stops_although_another_never_uploaded() {
    let settings = plain(3);
    let mut server = Server::new(&settings, &[(1, 1), (2, 1)]);
    let stops: Vec<bool> = (0..6).map(|_| answer(&mut server, 1).stop).collect();
    assert_eq!(stops, [false, false, false, false, false, true]);
    assert!(answer(&mut server, 2).stop);
}

/// The others continue without a group, but not to the end of the run; when it returns, with new keys, all continue together
/// for half of it.
#[test]
fn a_group_that_was_away_is_made_up_for() {
    let settings = plain(20);
    let mut server = Server::new(&settings, &[(1, 1), (2, 1)]);
    let answer = |server: &mut Server, group: u8, epoch: u32| {
        assert!(!server.holds(group, epoch));
        answer_in(server, group, epoch)
    };
    for _ in 0..5 {
        answer(&mut server, 1, 0);
        answer(&mut server, 2, 0);
    }
    let mut alone = 0;
    while !server.holds(1, 0) {
        assert!(!answer(&mut server, 1, 0).stop);
        alone += 1;
    }
    assert_eq!(alone, 15, "its own rounds are done");
    let mut rounds = 0;
    let last = loop {
        let (second, first) = (answer(&mut server, 2, 1), answer(&mut server, 1, 0));
        rounds += 1;
        if first.stop || second.stop {
            break second;
        }
    };
    assert_eq!(rounds, 15, "as many as were left");
    assert!((1.4..1.6).contains(&last.u[0]), "U is of both groups alike: {}", last.u[0]);
}

/// New keys after a short absence do not count, and neither does a long wait for a group that was there all the time.
#[test]
fn only_a_group_that_was_away_sets_back() {
    let settings = plain(20);
    let mut server = Server::new(&settings, &[(1, 1), (2, 1)]);
    for epoch in 0..5 {
        answer_in(&mut server, 1, epoch);
        answer(&mut server, 2);
    }
    assert_eq!(server.t, 10);
    (0..8).for_each(|_| drop(answer_in(&mut server, 1, 4)));
    answer(&mut server, 2);
    assert_eq!(server.t, 19);
}

/// Of two groups that are away, one returns: for the other all is held as before.
#[test]
fn who_returns_does_not_return_for_others() {
    let settings = plain(20);
    let mut server = Server::new(&settings, &[(1, 1), (2, 1), (3, 1)]);
    [1, 2, 3].iter().cycle().take(9).for_each(|&group| drop(answer(&mut server, group)));
    [1, 2].iter().cycle().take(20).for_each(|&group| drop(answer(&mut server, group)));
    while !server.holds(1, 0) {
        answer(&mut server, 1);
    }
    assert!(!server.holds(2, 1), "it has rounds to do");
    answer_in(&mut server, 2, 1);
    assert_eq!(server.t, 30);
    assert!(server.holds(1, 0), "the third is still away");
    answer_in(&mut server, 3, 1);
    assert_eq!(server.t, 10);
    assert!(!server.holds(1, 0));
}

/// A coordinator that never says that it is the end does not get more rounds than were agreed on.
#[test]
fn a_party_ends_when_the_coordinator_does_not() {
    let settings = &Settings { rounds: 50, ..Settings::new(Protocol::AsynSd, 2) };
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<_> = identities.iter().map(Identity::key).collect();
    let parties = RunParties { run: [1; 32], least: 0, keys: &keys };
    let cohorts = &crate::cohorts(settings, &parties, &[vec![1, 2, 3]]).unwrap();
    let mut links = network(3, DEFAULT_WAN).into_iter();
    let mut hub_link = links.next().unwrap();
    std::thread::scope(|scope| {
        let hubs = cohorts.iter().map(|cohort| (cohort.number, Hub::new(cohort.clone(), false))).collect();
        scope.spawn(move || serve(&mut hub_link, hubs, 3, &mut Server::new(settings, &[(1, 3)])).map(drop));
        for ((me, link), identity) in (1..).zip(links).zip(identities) {
            scope.spawn(move || {
                let machine = |cohort: &Cohort| Party::new(cohort.clone(), me, identity.clone(), false);
                let machines = cohorts.iter().map(|cohort| machine(cohort).unwrap()).collect();
                let mut options = SessionOptions::new(entropy().unwrap(), SystemClock::start());
                options.most_rounds = Some(4);
                let mut session = Session::join(link, machines, options).unwrap();
                let values = (0..12).map(|entry| ((entry * 7 + me) % 5) as f32).collect();
                let matrix = Dense::new(3, 4, Order::RowMajor, Values::Real(values));
                let mut local =
                    Local::new(Matrix::Dense(matrix), settings, Threads::new(1).unwrap()).unwrap();
                let error = crate::protocol::run(settings, &mut local, &mut session, 1, 1).err().unwrap();
                assert!(error.to_string().contains("no end to the rounds"), "{error}");
                session.leave().unwrap();
            });
        }
    });
}
