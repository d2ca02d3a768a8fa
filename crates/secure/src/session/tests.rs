//! Sessions on a simulated network, and on links that say what they must not.

use std::sync::Mutex;

use super::*;
use crate::aggregation::{Cohort, Hub, Identity, Message};
use crate::entropy::entropy;
use crate::link::{Incoming, Passed, Recorded, Recorder};
use crate::net::{DEFAULT_WAN, network};
use crate::server::{Answer, serve};

fn options<'a>() -> SessionOptions<'a> {
    SessionOptions::new(entropy().unwrap(), SystemClock::start())
}

/// Keeps what the coordinator opens.
struct Curious<'a>(&'a Mutex<Vec<Words>>);

impl Answer for Curious<'_> {
    fn answer(&mut self, sum: CohortSum, _: f64) -> Words {
        self.0.lock().unwrap().push(sum.words.clone());
        sum.words
    }
}

/// What party 1 keeps and sends, in order.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Recorder for Diary {
    fn passed(&self, message: &Passed<'_>) {
        if message.from == 1 {
            self.0.lock().unwrap().push(Message::kind_of(message.bytes).into());
        }
    }
}

impl Journal for &Diary {
    fn next(&mut self) -> Result<Option<Kept>> {
        Ok(None)
    }

    fn keep(&mut self, kept: &Kept) -> Result<()> {
        self.0.lock().unwrap().push(match kept {
            Kept::Answer(_) | Kept::Other(_) => "keeps an answer".into(),
            Kept::Promise { survivors, .. } => format!("keeps {survivors:?}"),
        });
        Ok(())
    }
}

/// Each party sums these numbers, one after the other; returns what it got, and what the coordinator opened.
fn sums(numbers: &[[f64; 2]], may_leave: bool, diary: &Diary) -> (Vec<Vec<f64>>, Vec<Words>) {
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = numbers.iter().map(|_| Identity::new(&mut rng)).collect();
    let members = (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
    let cohort = &Cohort { run: [1; 32], number: ALL, members, colluders: 1, least: 0, may_leave };
    let opened = Mutex::new(Vec::new());
    let mut links = network(numbers.len(), DEFAULT_WAN).into_iter();
    let mut hub_link = links.next().unwrap();
    let totals = std::thread::scope(|scope| {
        let hubs = vec![(ALL, Hub::new(cohort.clone(), false))];
        let opened = &opened;
        scope.spawn(move || serve(&mut hub_link, hubs, numbers.len(), &mut Curious(opened)).map(drop));
        let parties: Vec<_> = (1..)
            .zip(links)
            .zip(identities)
            .zip(numbers)
            .map(|(((me, link), identity), own)| {
                scope.spawn(move || {
                    let machine = Party::new(cohort.clone(), me, identity, false).unwrap();
                    let link = Recorded::new(link, me, diary);
                    let mut options = options();
                    options.journal = (me == 1).then(|| Box::new(diary) as _);
                    let mut session = Session::join(link, vec![machine], options).unwrap();
                    let mut sum = |number: f64| {
                        let parts = vec![Part::matrix(vec![number; 64], 1)];
                        session.sum(ALL, SumKind::U, parts).unwrap().parts[0][0]
                    };
                    let totals: Vec<f64> = own.iter().map(|&number| sum(number)).collect();
                    session.leave().unwrap();
                    totals
                })
            })
            .collect();
        parties.into_iter().map(|party| party.join().unwrap()).collect()
    });
    (totals, opened.into_inner().unwrap())
}

/// If one party's numbers are outside the range, the sum of the others' is not opened: together with the sum of all
/// it would reveal that party's.
#[test]
fn a_range_that_is_too_narrow_opens_noise() {
    let numbers = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1000.0]];
    let (totals, opened) = sums(&numbers, false, &Diary::default());
    for totals in totals {
        assert!((totals[0] - 4.0).abs() < 1e-6 && (totals[1] - 1003.0).abs() < 1e-3, "{totals:?}");
    }
    // Votes, the first sum, noise, votes, the second.
    let narrow: Vec<&Vec<u32>> = opened.iter().map(|words| &words.narrow).collect();
    assert_eq!(narrow.iter().map(|words| words.len()).collect::<Vec<_>>(), [0, 64, 64, 0, 64]);
    let different = |words: &[u32]| words.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!((different(narrow[1]), different(narrow[4])), (0, 0));
    assert!(different(narrow[2]) >= 62, "{:?}", narrow[2]);
    // Out of range, and not withheld.
    let flags = opened[2].wide.last_chunk::<{ fixed::FLAGS }>().unwrap();
    assert!(flags[0] != 0 && flags[1] == 0, "{flags:?}");
}

/// The sum of the flags of two parties is even as often as it is odd.
#[test]
fn the_flag_of_an_opened_range_does_not_tell_how_many_raised_it() {
    let numbers = [[1.0, 1.0], [1.0, 1.0], [1.0, 1000.0], [1.0, 1000.0]];
    let flag =
        |_| sums(&numbers, false, &Diary::default()).1[2].wide.last_chunk::<{ fixed::FLAGS }>().unwrap()[0];
    let odd = (0..40).map(flag).filter(|flag| flag % 2 == 1).count();
    assert!((1..40).contains(&odd), "{odd} of 40");
}

/// A coordinator that says the same again and again.
struct Insistent(Vec<u8>);

impl Link for Insistent {
    fn send(&mut self, _: u16, _: Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, _: Option<f64>) -> Result<Incoming> {
        Ok(Incoming::Message { from: 0, bytes: self.0.clone() })
    }

    fn now(&self) -> f64 {
        0.0
    }
}

/// Answers of a cohort that a party is not in end it, and so do more of another cohort than a run has: they would be
/// kept until its turn comes.
#[test]
fn data_that_a_coordinator_can_make_a_party_keep_is_bounded() {
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
    let members: Vec<_> = (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
    let machine = |number| {
        let (run, members) = ([1; 32], members.clone());
        let cohort = Cohort { run, number, members, colluders: 1, least: 0, may_leave: false };
        Party::new(cohort, 1, identities[0].clone(), true).unwrap()
    };
    let place = crate::aggregation::SumId { epoch: 0, round: 0, attempt: 0 };
    let words = Words { narrow: Vec::new(), wide: vec![0] };
    let reply = Message::Reply { place, survivors: vec![1, 2, 3], words };
    for (cohort, rounds, expected) in
        [(7, 5, "a cohort that this party is not in"), (1, 5, "more answers than a run has")]
    {
        let link = Insistent(addressed(cohort, &reply));
        let machines = vec![machine(ALL), machine(1)];
        let options = SessionOptions { most_rounds: Some(rounds), ..options() };
        let mut session = Session::join(link, machines, options).unwrap();
        let error = session.sum(ALL, SumKind::U, vec![Part::scalars(&[1.0])]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(session.mailbox.len(), if cohort == 1 { 35 * rounds + 1 } else { 0 });
    }
}

/// Answers with less than was asked.
struct Short;

impl Answer for Short {
    fn answer(&mut self, mut sum: CohortSum, _: f64) -> Words {
        sum.words.wide.pop();
        sum.words
    }
}

/// An answer that is too short ends a party with a word, and not by surprise. (Where words are masked there is none: each party
/// opens the sum itself.)
#[test]
fn a_short_answer_is_refused() {
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..3).map(|_| Identity::new(&mut rng)).collect();
    let members: Vec<_> = (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
    let cohort = &Cohort { run: [1; 32], number: ALL, members, colluders: 1, least: 0, may_leave: false };
    let mut links = network(3, DEFAULT_WAN).into_iter();
    let mut hub_link = links.next().unwrap();
    std::thread::scope(|scope| {
        let hubs = vec![(ALL, Hub::new(cohort.clone(), true))];
        scope.spawn(move || serve(&mut hub_link, hubs, 3, &mut Short).map(drop));
        for ((me, link), identity) in (1..).zip(links).zip(identities) {
            scope.spawn(move || {
                let machine = Party::new(cohort.clone(), me, identity, true).unwrap();
                let mut session = Session::join(link, vec![machine], options()).unwrap();
                let sum = session.sum(ALL, SumKind::Norms, vec![Part::scalars(&[1.0, 1.0])]);
                let error = sum.err().unwrap();
                assert!(error.to_string().contains("shorter than what was asked"), "{error}");
                session.leave().unwrap();
            });
        }
    });
}

/// Before masks are revealed the list is kept, where there could be another one.
#[test]
fn a_promise_is_kept_before_masks_are_revealed() {
    for may_leave in [true, false] {
        let diary = Diary::default();
        sums(&[[1.0, 2.0]; 4], may_leave, &diary);
        let diary = diary.0.into_inner().unwrap();
        let revealed: Vec<usize> =
            (0..diary.len()).filter(|&place| diary[place] == "shares of masks").collect();
        assert!(revealed.len() >= 3);
        for place in revealed {
            assert_eq!(diary[place - 1] == "keeps [1, 2, 3, 4]", may_leave, "{diary:?}");
        }
    }
}
