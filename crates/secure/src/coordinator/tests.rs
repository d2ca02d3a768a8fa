//! Parties in one room with a coordinator, without links and clocks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::aggregation::{Identity, Party};
use crate::entropy::entropy;

const PARTIES: u16 = 3;

fn cohort(identities: &[Identity], number: u8) -> Cohort {
    let members = (1..).zip(identities).map(|(party, identity)| (party, identity.key())).collect();
    Cohort { run: [1; 32], number, members, colluders: 1, least: 0, may_leave: false }
}

struct Room {
    coordinator: Coordinator<'static>,
    cohort: Cohort,
    parties: BTreeMap<u16, Party>,
    now: f64,
    /// All that the coordinator wanted done.
    actions: Vec<CoordinatorAction>,
    opened: Vec<Words>,
}

impl Room {
    /// A cohort in which all have joined.
    fn new(answer: impl Answer + 'static) -> Room {
        let mut rng = entropy().unwrap();
        let identities: Vec<Identity> = (0..PARTIES).map(|_| Identity::new(&mut rng)).collect();
        let cohort = cohort(&identities, ALL);
        let hub = Hub::new(cohort.clone(), false);
        let party = |(party, identity): (u16, &Identity)| {
            (party, Party::new(cohort.clone(), party, identity.clone(), false).unwrap())
        };
        let mut room = Room {
            coordinator: Coordinator::new(vec![(ALL, hub)], answer).keeping_records(),
            parties: (1..).zip(&identities).map(party).collect(),
            cohort,
            now: 0.0,
            actions: Vec::new(),
            opened: Vec::new(),
        };
        for party in 1..=PARTIES {
            let actions = room.parties.get_mut(&party).unwrap().begin();
            room.of_party(party, actions);
        }
        room
    }

    fn of_party(&mut self, party: u16, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { message, .. } => {
                    self.bring(Incoming::Message { from: party, bytes: addressed(ALL, &message) });
                }
                Action::Opened { words, .. } => self.opened.push(words),
                _ => {}
            }
        }
    }

    /// Passes an event to the coordinator and delivers its messages.
    fn bring(&mut self, incoming: Incoming) {
        let mut events = VecDeque::from([incoming]);
        while let Some(incoming) = events.pop_front() {
            let actions = self.coordinator.handle(incoming, self.now).unwrap();
            for action in actions {
                if let CoordinatorAction::Send { to, bytes } = &action {
                    for party in to {
                        let (_, message) = parse(*party, 0, bytes).unwrap();
                        let machine = self.parties.get_mut(party).unwrap();
                        for action in machine.handle(Event::Message { from: 0, message }).unwrap() {
                            match action {
                                Action::Send { message, .. } => events.push_back(Incoming::Message {
                                    from: *party,
                                    bytes: addressed(ALL, &message),
                                }),
                                Action::Opened { words, .. } => self.opened.push(words),
                                _ => {}
                            }
                        }
                    }
                }
                self.actions.push(action);
            }
        }
    }

    fn submit(&mut self, party: u16) {
        let words = Words { narrow: vec![u32::from(party)], wide: Vec::new() };
        let actions = self.parties.get_mut(&party).unwrap().handle(Event::Submit(words)).unwrap();
        self.of_party(party, actions);
    }

    fn submit_all(&mut self) {
        (1..=PARTIES).for_each(|party| self.submit(party));
    }

    fn records(&self) -> Vec<CoordinatorRecord> {
        let record = |action: &CoordinatorAction| match action {
            CoordinatorAction::Record(record) => Some(record.clone()),
            _ => None,
        };
        self.actions.iter().filter_map(record).collect()
    }
}

fn sum() -> Words {
    Words { narrow: vec![(1..=PARTIES).map(u32::from).sum()], wide: Vec::new() }
}

#[test]
fn an_answer_is_recorded_before_it_is_sent() {
    let mut room = Room::new(Echo);
    room.now = 7.0;
    room.submit_all();
    assert_eq!(room.opened, [sum(), sum(), sum()]);
    let record = room.actions.iter().position(|action| {
        matches!(
            action,
            CoordinatorAction::Record(CoordinatorRecord::Answer { now: 7.0, sum: None, cohort: ALL, .. })
        )
    });
    let told = room.actions.iter().rposition(|action| matches!(action, CoordinatorAction::Send { .. }));
    assert_eq!(told, record.map(|place| place + 1));
}

#[test]
fn bad_messages_are_rejected_and_change_nothing() {
    let mut room = Room::new(Echo);
    let place = crate::aggregation::SumId { epoch: 5, round: 5, attempt: 0 };
    let early = Message::Upload { place, words: sum(), commitment: None, shares: Vec::new() };
    for bytes in [vec![77; 9], Vec::new(), addressed(9, &early), addressed(ALL, &early)] {
        room.bring(Incoming::Message { from: 2, bytes });
    }
    let rejected = room.actions.drain(..).filter_map(|action| match action {
        CoordinatorAction::Rejected { from, violation } => Some((from, violation.reason())),
        _ => None,
    });
    let expected = [
        Violation::Malformed,
        Violation::Malformed,
        Violation::UnknownCohort(9),
        Violation::Protocol(String::new()),
    ];
    assert_eq!(rejected.collect::<Vec<_>>(), expected.map(|violation| (2, violation.reason())));
    room.submit_all();
    assert_eq!(room.opened, [sum(), sum(), sum()]);
}

#[test]
fn a_restart_resumes_from_the_records() {
    let mut room = Room::new(Echo);
    room.submit_all();
    room.bring(Incoming::Lost(2));
    room.bring(Incoming::Joined(2));
    let records = room.records();
    let epochs = records.iter().filter(|record| matches!(record, CoordinatorRecord::Epoch { .. })).count();
    assert_eq!((records.len(), epochs), (2, 1));
    let hub = Hub::new(room.cohort.clone(), false);
    let mut restarted = Coordinator::new(vec![(ALL, hub)], Echo);
    records.into_iter().for_each(|record| restarted.restore(record));
    restarted.restart(9.0);
    let hub = &restarted.into_hubs()[&ALL];
    assert_eq!((hub.rounds(), hub.epoch()), (1, 1));
}

#[test]
fn a_party_that_delays_the_others_is_overdue_once() {
    let mut room = Room::new(Echo);
    room.now = 10.0;
    // All may be computing.
    assert!(room.coordinator.overdue(1000.0, 5.0).is_empty());
    room.submit(1);
    room.submit(3);
    assert!(room.coordinator.overdue(12.0, 15.0).is_empty());
    assert_eq!(room.coordinator.overdue(100.0, 5.0), BTreeSet::from([2]));
    assert!(room.coordinator.overdue(200.0, 5.0).is_empty());
    room.now = 300.0;
    room.submit(2);
    assert_eq!(room.opened.len(), 3);
}

/// A server that answers on request.
struct Held(Arc<Mutex<bool>>);

impl Answer for Held {
    fn answer(&mut self, sum: CohortSum, _: f64) -> Words {
        sum.words
    }

    fn holds(&mut self, _: u8, _: u32) -> bool {
        *self.0.lock().unwrap()
    }

    fn computes(&self) -> bool {
        true
    }
}

#[test]
fn a_held_sum_is_answered_with_the_next_event_that_allows_it() {
    let held = Arc::new(Mutex::new(true));
    let mut room = Room::new(Held(held.clone()));
    room.submit_all();
    assert!(room.opened.is_empty());
    *held.lock().unwrap() = false;
    room.bring(Incoming::Joined(9));
    assert_eq!(room.opened.len(), 3);
    let kept = room.records().into_iter().find_map(|record| match record {
        CoordinatorRecord::Answer { sum, .. } => sum,
        _ => None,
    });
    assert_eq!(kept, Some(sum()));
}
