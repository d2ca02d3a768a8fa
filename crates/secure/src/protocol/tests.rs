//! Second attempts, and the names of the protocols.

use partwise::matrix::{Dense, Matrix, Order, Values};
use partwise::threads::Threads;

use super::*;
use crate::aggregation::{Hub, Identity, Party};
use crate::entropy::entropy;
use crate::server::{Echo, serve};
use crate::session::{SessionOptions, SystemClock};
use crate::simulate::{RunParties, Vanishing, cohorts};

/// The outcome of a synchronous run of these parties; `None` for one that disconnects.
fn run_all(
    settings: &Settings,
    parts: Vec<Matrix<f32>>,
    seed_of: impl Fn(u16) -> u64 + Copy + Send,
    vanishes: Option<Vanishing>,
) -> Vec<Option<(Ended, Local<f32>)>> {
    let plain = settings.aggregation == Aggregation::Plain;
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = parts.iter().map(|_| Identity::new(&mut rng)).collect();
    let keys: Vec<_> = identities.iter().map(Identity::key).collect();
    let parties = RunParties { run: [1; 32], least: 0, keys: &keys };
    let cohort = &cohorts(settings, &parties, &[]).unwrap()[0];
    let count = parts.len();
    let mut links = crate::net::network(count, crate::net::DEFAULT_WAN).into_iter();
    let mut hub_link = links.next().unwrap();
    std::thread::scope(|scope| {
        let hubs = vec![(ALL, Hub::new(cohort.clone(), plain))];
        scope.spawn(move || serve(&mut hub_link, hubs, count, &mut Echo).map(drop));
        let parties = (1..).zip(parts).zip(links).zip(identities).map(|(((me, part), link), identity)| {
            scope.spawn(move || {
                let machine = Party::new(cohort.clone(), me, identity, plain).unwrap();
                let mut options = SessionOptions::new(entropy().unwrap(), SystemClock::start());
                options.before_sum = vanishes.filter(|vanishing| vanishing.party == me).map(Vanishing::hook);
                let mut session = Session::join(link, vec![machine], options).unwrap();
                let mut local = Local::new(part, settings, Threads::new(1).unwrap()).unwrap();
                let ended = run(settings, &mut local, &mut session, seed_of(me), ALL).ok()?;
                session.leave().unwrap();
                Some((ended, local))
            })
        });
        let parties: Vec<_> = parties.collect();
        parties.into_iter().map(|party| party.join().unwrap()).collect()
    })
}

/// After a party has left, the second attempt is the run that the others would have had without it, to the bit; and
/// the better of both is the result.
#[test]
fn the_second_attempt_is_an_undisturbed_run_of_those_who_are_there() {
    let part = |party: usize| {
        // The same numbers in another order, so that the mean at the start does not depend on which party is
        // missing.
        let values = (0..600).map(|entry| ((entry * [7, 11, 13, 17, 19][party]) % 600 % 17) as f32);
        Matrix::Dense(Dense::new(20, 30, Order::RowMajor, Values::Real(values.collect())))
    };
    let parts = |count: usize| (0..count).map(part).collect::<Vec<_>>();
    for protocol in [Protocol::Pooled, Protocol::SynSd, Protocol::SynSsdUv, Protocol::DsanlsLimited] {
        let mut settings = Settings { rounds: 12, tolerance: 0.0, ..Settings::new(protocol, 3) };
        settings.accepted.going_on_shows_the_leaver = true;
        // In fixed point the sums of four and of five are rounded differently.
        settings.aggregation = Aggregation::Plain;
        let first_seed = |party: u16| 100 + u64::from(party);
        let anew = |party: u16| party_seed(first_seed(party), "partwise anew", party);
        for sums in [0, 1, 2, 7] {
            let disturbed = run_all(&settings, parts(5), first_seed, Some(Vanishing { party: 5, sums }));
            let undisturbed = run_all(&settings, parts(4), anew, None);
            assert!(disturbed[4].is_none());
            for (end, expected) in disturbed[..4].iter().zip(&undisturbed) {
                let ((ended, local), expected) = (end.as_ref().unwrap(), expected.as_ref().unwrap());
                let &[first, second] = &ended.attempts[..] else { panic!("{protocol:?} {sums}: no second") };
                assert_eq!(second, expected.0.squared_error, "{protocol:?} {sums}");
                assert_eq!(ended.squared_error, first.min(second), "{protocol:?} {sums}");
                let same = (local.u == expected.1.u, local.v == expected.1.v);
                assert_eq!(same, (second < first, second < first), "{protocol:?} {sums}");
                assert_eq!(local.squared_error().unwrap(), ended.own_squared_error);
                assert!(ended.trace.last().is_none_or(|line| line.round <= ended.rounds));
                assert!(ended.trace.is_sorted_by_key(|line| line.round));
                assert!(ended.rounds > expected.0.rounds, "{protocol:?} {sums}");
            }
        }
        // No party was missing.
        assert!(run_all(&settings, parts(5), first_seed, None)[0].as_ref().unwrap().0.attempts.is_empty());
    }
}

/// Names are those that serde writes, and each is one protocol's.
#[test]
fn names_are_those_in_files() {
    for (protocol, name) in Protocol::ALL.into_iter().zip(Protocol::NAMES) {
        assert_eq!(serde_json::to_value(protocol).unwrap(), name);
        assert_eq!(serde_json::from_value::<Protocol>(name.into()).unwrap(), protocol);
        assert_eq!(protocol.name(), name);
    }
}
