//! Parties and a hub in one room: every message passes through the test, which may tamper with it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::wire::Hello;
use super::*;
use crate::entropy::entropy;
use crate::error::{Error, Peer};

thread_local! {
    /// Every mask that a party of this test applied.
    static MASKS: RefCell<Vec<(u16, [u8; 32])>> = const { RefCell::new(Vec::new()) };
}

/// Called whenever a party masks its words.
pub fn note_mask(party: u16, seed: &[u8; 32]) {
    MASKS.with_borrow_mut(|masks| masks.push((party, *seed)));
}

/// Who a message is from, who it is for, and the message.
pub(super) type Letter = (u16, u16, Message);

pub(super) struct Room {
    pub parties: BTreeMap<u16, Party>,
    pub hub: Hub,
    letters: VecDeque<Letter>,
    /// What each party was answered.
    pub answers: BTreeMap<u16, Vec<(Words, Vec<u16>)>>,
    pub waiting: Vec<u16>,
    pub blamed: Vec<u16>,
    pub seen: Vec<Letter>,
    /// Why parties have stopped.
    pub stopped: BTreeMap<u16, Error>,
    /// All that the hub has answered.
    pub replies: Vec<Message>,
    pub identities: Vec<Identity>,
    /// The order of sums before the next one, where that has a place there.
    pub order: Option<OrderTip>,
}

fn cohort(parties: u16, colluders: usize, may_leave: bool) -> (Cohort, Vec<Identity>) {
    let mut rng = entropy().unwrap();
    let identities: Vec<Identity> = (0..parties).map(|_| Identity::new(&mut rng)).collect();
    let members = (1..).zip(&identities).map(|(party, identity)| (party, identity.key())).collect();
    (Cohort { run: [9; 32], number: 0, members, colluders, least: 0, may_leave }, identities)
}

impl Room {
    pub fn new(parties: u16, may_leave: bool) -> Room {
        let room = Room::with(parties, may_leave, false);
        room.hub.cohort().check().unwrap();
        room
    }

    pub fn with(parties: u16, may_leave: bool, plain: bool) -> Room {
        let (cohort, identities) = cohort(parties, 1, may_leave);
        let mut room = Room {
            parties: BTreeMap::new(),
            hub: Hub::new(cohort.clone(), plain),
            letters: VecDeque::new(),
            answers: BTreeMap::new(),
            waiting: Vec::new(),
            blamed: Vec::new(),
            stopped: BTreeMap::new(),
            seen: Vec::new(),
            replies: Vec::new(),
            identities: identities.clone(),
            order: None,
        };
        for (party, identity) in (1..).zip(identities) {
            let mut machine = Party::new(cohort.clone(), party, identity, plain).unwrap();
            let actions = machine.begin();
            room.parties.insert(party, machine);
            room.act(party, actions);
        }
        room.run(|_| Fate::Deliver).unwrap();
        room
    }

    pub fn act(&mut self, who: u16, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message } => self.letters.push_back((who, to, message)),
                Action::Tell { to, message } => {
                    to.into_iter().for_each(|to| self.letters.push_back((who, to, message.clone())));
                }
                Action::Keep(answer) => self.replies.push(answer),
                Action::Blame(blame) => self.blamed.push(blame.from),
                Action::CatchUp { to, round } => {
                    let missed = self.replies[round as usize..].iter();
                    missed.for_each(|message| self.letters.push_back((who, to, message.clone())));
                }
                Action::Opened { words, .. } if who == 0 => {
                    let actions = self.hub.handle(Event::Answer { words, after: self.order }).unwrap();
                    self.act(0, actions);
                }
                Action::Opened { words, cohort, .. } => {
                    self.answers.entry(who).or_default().push((words, cohort))
                }
                Action::Waiting { party, .. } => self.waiting.push(party),
            }
        }
    }

    pub fn submit(&mut self, party: u16, words: Words) {
        let actions = self.parties.get_mut(&party).unwrap().handle(Event::Submit(words)).unwrap();
        self.act(party, actions);
    }

    /// All submit party x 1000 + i.
    pub fn submit_all(&mut self) {
        let parties: Vec<u16> = self.parties.keys().copied().collect();
        parties.into_iter().for_each(|party| self.submit(party, share(party)));
    }

    pub fn lose(&mut self, party: u16) {
        self.parties.remove(&party);
        self.tell_hub(Event::Lost(party));
    }

    pub fn tell_hub(&mut self, event: Event) {
        let actions = self.hub.handle(event).unwrap();
        self.act(0, actions);
    }

    /// Delivers letters until there are none; parties that detect a violation stop with an error.
    pub fn run_to_the_end(&mut self, mut fate: impl FnMut(&Letter) -> Fate) {
        while let Err(error) = self.run(&mut fate) {
            let Error::Dishonest { who: Peer(who), .. } = error else { panic!("{error}") };
            assert_ne!(who, 0, "{error}");
            self.parties.remove(&who);
            self.stopped.insert(who, error);
        }
    }

    /// Delivers letters until there are none.
    pub fn run(&mut self, mut fate: impl FnMut(&Letter) -> Fate) -> Result<()> {
        while let Some(letter) = self.letters.pop_front() {
            let (from, to, message) = match fate(&letter) {
                Fate::Deliver => letter,
                Fate::Drop => continue,
                Fate::Change(message) => (letter.0, letter.1, message),
                Fate::Lose => {
                    self.lose(letter.0);
                    continue;
                }
            };
            self.seen.push((from, to, message.clone()));
            let event = Event::Message { from, message };
            let actions = match to {
                0 => self.hub.handle(event)?,
                to => match self.parties.get_mut(&to) {
                    Some(party) => party.handle(event)?,
                    None => continue,
                },
            };
            self.act(to, actions);
        }
        Ok(())
    }
}

pub(super) enum Fate {
    Deliver,
    Drop,
    Change(Message),
    /// The sender is gone before this is sent.
    Lose,
}

pub(super) fn share(party: u16) -> Words {
    Words {
        narrow: (0..10).map(|i| u32::from(party) * 1000 + i).collect(),
        wide: (0..3).map(|i| u64::from(party) << 40 | i).collect(),
    }
}

pub(super) fn sum(parties: &[u16]) -> Words {
    let mut sum = share(1).zeros_like();
    parties.iter().for_each(|&party| sum.add(&share(party)));
    sum
}

/// A party knows whether its sums are opened without a missing party.
#[test]
fn who_may_be_missing_is_known_before() {
    let may_miss = |parties, may_leave, plain| {
        let (cohort, identities) = cohort(parties, 1, may_leave);
        Party::new(cohort, 1, identities[0].clone(), plain).unwrap().may_miss()
    };
    assert!(may_miss(4, true, false) && may_miss(8, true, false) && may_miss(2, true, true));
    assert!(!may_miss(3, true, false) && !may_miss(1, true, true) && !may_miss(8, false, false));
}

#[test]
fn sums_are_those_of_the_words_and_uploads_look_like_noise() {
    for parties in [3, 4, 7] {
        let mut room = Room::new(parties, false);
        for round in 0..3 {
            room.submit_all();
            room.run(|_| Fate::Deliver).unwrap();
            let everybody: Vec<u16> = (1..=parties).collect();
            for answers in room.answers.values() {
                assert_eq!(answers[round], (sum(&everybody), everybody.clone()));
            }
        }
        let told: BTreeSet<[u8; 32]> = room.parties.values().map(|party| *party.transcript()).collect();
        assert_eq!(told, BTreeSet::from([*room.hub.transcript()]));
        for (from, _, message) in &room.seen {
            if let Message::Upload { words, .. } = message {
                let plain = share(*from);
                assert!(words.narrow.iter().zip(&plain.narrow).filter(|(a, b)| a == b).count() <= 1);
                assert!(words.wide.iter().zip(&plain.wide).all(|(a, b)| a != b));
            }
        }
    }
}

#[test]
fn no_mask_stream_is_used_twice() {
    MASKS.with_borrow_mut(Vec::clear);
    let mut room = Room::new(5, true);
    for _ in 0..4 {
        room.submit_all();
        room.run(|_| Fate::Deliver).unwrap();
    }
    // An attempt that is aborted, and repeated in a new epoch.
    room.submit_all();
    room.run(|letter| if matches!(letter.2, Message::Echo { .. }) { Fate::Drop } else { Fate::Deliver })
        .unwrap();
    room.tell_hub(Event::Joined(2));
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers.len() == 5));
    // And without party 5.
    room.lose(5);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert!((1..=4).all(|party| room.answers[&party].last().unwrap().0 == sum(&[1, 2, 3, 4])));

    let masks = MASKS.with_borrow(Clone::clone);
    // Five parties, six attempts, and one with four: each with a mask for every other of the roster, and its own.
    assert_eq!(masks.len(), 5 * 6 * 5 + 4 * 5);
    let mut users: BTreeMap<[u8; 32], Vec<u16>> = BTreeMap::new();
    masks.iter().for_each(|(party, seed)| users.entry(*seed).or_default().push(*party));
    for users in users.values() {
        // The two ends of a pair, or one party alone; party 5's pairwise masks in the end were its peers' only.
        assert!(users.len() <= 2 && users.first() != users.get(1), "{users:?}");
    }
    assert_eq!(users.values().filter(|users| users.len() == 1).count(), 5 * 6 + 4 + 4);
}

/// Whenever parties leave, what is opened is the sum over those whose words arrived.
#[test]
fn dropouts_at_every_step() {
    type Step = fn(&Message) -> bool;
    let steps: [(Step, bool); 3] = [
        (|message| matches!(message, Message::Upload { .. }), false),
        (|message| matches!(message, Message::Echo { .. }), true),
        (|message| matches!(message, Message::Unmask { .. }), true),
    ];
    for (step, counted) in steps {
        let mut room = Room::new(6, true);
        room.submit_all();
        room.run(|(from, _, message)| if *from <= 2 && step(message) { Fate::Lose } else { Fate::Deliver })
            .unwrap();
        let expected: &[u16] = if counted { &[1, 2, 3, 4, 5, 6] } else { &[3, 4, 5, 6] };
        for party in 3..=6 {
            assert_eq!(room.answers[&party], [(sum(expected), expected.to_vec())]);
        }
        // The next sum is without them.
        room.submit_all();
        room.run(|_| Fate::Deliver).unwrap();
        assert_eq!(room.answers[&3][1], (sum(&[3, 4, 5, 6]), vec![3, 4, 5, 6]));
        assert!(room.waiting.is_empty());
    }
}

/// One party leaves before its words, another after them: the mask between the two is unknown, and the others, who
/// have revealed what opens the sum with the second, open none without it. All wait until it is back; a party that
/// returns meanwhile and is not in that sum joins with the next one.
#[test]
fn two_that_leave_at_different_steps() {
    let mut room = Room::new(6, true);
    room.submit_all();
    room.run(|(from, _, message)| match message {
        Message::Upload { .. } if *from == 1 => Fate::Drop,
        Message::Unmask { .. } if *from == 2 => Fate::Drop,
        _ => Fate::Deliver,
    })
    .unwrap();
    // Nothing is closed while party 1 may still return.
    room.tell_hub(Event::Lost(1));
    room.run(|(from, _, message)| match message {
        Message::Unmask { .. } if *from == 2 => Fate::Drop,
        _ => Fate::Deliver,
    })
    .unwrap();
    room.tell_hub(Event::Lost(2));
    assert_eq!(room.waiting, [2]);
    assert!(room.answers.is_empty());
    room.tell_hub(Event::Joined(1));
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.is_empty());
    room.tell_hub(Event::Joined(2));
    room.run(|_| Fate::Deliver).unwrap();
    for party in 2..=6 {
        assert_eq!(room.answers[&party], [(sum(&[2, 3, 4, 5, 6]), vec![2, 3, 4, 5, 6])]);
    }
    // Party 1 is still in the round that it missed: the last answer comes first, then all sum together.
    assert_eq!(room.answers[&1], [(sum(&[2, 3, 4, 5, 6]), vec![2, 3, 4, 5, 6])]);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    for answers in room.answers.values() {
        assert_eq!(answers[1], (sum(&[1, 2, 3, 4, 5, 6]), vec![1, 2, 3, 4, 5, 6]));
    }
    let told: BTreeSet<[u8; 32]> = room.parties.values().map(|party| *party.transcript()).collect();
    assert_eq!(told, BTreeSet::from([*room.hub.transcript()]));
}

/// A party that leaves before the others have signed leaves too few signatures: they are not distributed, and all
/// wait.
#[test]
fn one_that_leaves_before_the_others_sign() {
    for may_leave in [false, true] {
        let mut room = Room::new(3, may_leave);
        room.submit_all();
        let mut signatures = Vec::new();
        room.run(|letter| match &letter.2 {
            Message::Echo { .. } => {
                signatures.push((letter.0, letter.2.clone()));
                Fate::Drop
            }
            _ => Fate::Deliver,
        })
        .unwrap();
        room.tell_hub(Event::Lost(2));
        for (from, message) in signatures.into_iter().filter(|(from, _)| *from != 2) {
            room.tell_hub(Event::Message { from, message });
        }
        room.run(|_| Fate::Deliver).unwrap();
        assert_eq!(room.waiting, [2]);
        room.tell_hub(Event::Joined(2));
        room.run(|_| Fate::Deliver).unwrap();
        for party in 1..=3 {
            assert_eq!(room.answers[&party], [(sum(&[1, 2, 3]), vec![1, 2, 3])]);
        }
    }
}

/// A list of keys that did not reach a party before it left: in the next epoch all agree again.
#[test]
fn a_list_of_keys_that_was_lost() {
    let mut room = Room::new(4, false);
    room.tell_hub(Event::Joined(2));
    room.run(|(_, to, message)| match message {
        Message::Roster { .. } if *to == 2 => Fate::Drop,
        _ => Fate::Deliver,
    })
    .unwrap();
    room.tell_hub(Event::Lost(2));
    room.tell_hub(Event::Joined(2));
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    for party in 1..=4 {
        assert_eq!(room.answers[&party], [(sum(&[1, 2, 3, 4]), vec![1, 2, 3, 4])]);
    }
    let told: BTreeSet<[u8; 32]> = room.parties.values().map(|party| *party.transcript()).collect();
    assert_eq!(told, BTreeSet::from([*room.hub.transcript()]));
}

/// A coordinator that requests the words of a round again, without party 3: the answers of the others to that list.
/// The real coordinator would not do that.
fn second_sum(room: &mut Room) -> Vec<Result<Vec<Action>>> {
    let mut hellos = Vec::new();
    for (&party, machine) in &mut room.parties {
        let message = Message::NewEpoch { epoch: 1 };
        for action in machine.handle(Event::Message { from: 0, message }).unwrap() {
            if let (Action::Send { message: Message::Hello { hello, .. }, .. }, true) = (action, party != 3) {
                hellos.push(hello);
            }
        }
    }
    let place = SumId { epoch: 1, round: 0, attempt: 1 };
    let mut sealed: BTreeMap<u16, PartyShares> = BTreeMap::new();
    let mut commitments = Vec::new();
    for (&from, machine) in room.parties.iter_mut().filter(|(party, _)| **party != 3) {
        let message = Message::Roster { place, hellos: hellos.clone() };
        for action in machine.handle(Event::Message { from: 0, message }).unwrap() {
            if let Action::Send { message: Message::Upload { shares, commitment, .. }, .. } = action {
                commitments.push(*commitment.unwrap());
                shares.into_iter().for_each(|(to, share)| sealed.entry(to).or_default().push((from, share)));
            }
        }
    }
    let answer = |(party, shares)| {
        let message = Message::Survivors { place, commitments: commitments.clone(), shares };
        room.parties.get_mut(&party).unwrap().handle(Event::Message { from: 0, message })
    };
    sealed.into_iter().map(answer).collect()
}

/// A party that has revealed masks for one list answers no other in that round, because the difference would be one
/// party's words. This also holds if it was restarted meanwhile, and knows of the list only from its journal.
#[test]
fn one_sum_a_round_whatever_the_attempt() {
    // All stay; all restart; all restart without having noted their lists, to see that it is these that help.
    for (restarts, noted) in [(false, true), (true, true), (true, false)] {
        let mut room = Room::new(6, true);
        room.submit_all();
        room.run(|letter| if matches!(letter.2, Message::Opening(_)) { Fate::Drop } else { Fate::Deliver })
            .unwrap();
        let cohort = room.hub.cohort().clone();
        for (party, identity) in (1..).zip(room.identities.clone()).filter(|_| restarts) {
            let list = room.parties[&party].promised().unwrap().to_vec();
            assert_eq!(list, [1, 2, 3, 4, 5, 6]);
            let mut machine = Party::new(cohort.clone(), party, identity, false).unwrap();
            if noted {
                machine.promise(list);
            }
            room.parties.insert(party, machine);
            room.submit(party, share(party));
        }
        let answers = second_sum(&mut room);
        assert_eq!(answers.len(), 5);
        for answer in answers {
            let refused = answer.err().map(|error| error.to_string()).unwrap_or_default();
            let words = "differs from the one for which it revealed masks";
            assert_eq!(refused.contains(words), noted, "{refused}");
        }
    }
}

/// A coordinator that restarts after masks may have been revealed asks for the same list, and for no other.
#[test]
fn a_coordinator_keeps_its_promise_through_a_restart() {
    let mut room = Room::new(6, true);
    room.submit_all();
    // Party 1 leaves before its words, and party 2 after them: all wait for party 2.
    room.run(|(from, _, message)| match message {
        Message::Upload { .. } if *from == 1 => Fate::Lose,
        Message::Unmask { .. } if *from == 2 => Fate::Drop,
        _ => Fate::Deliver,
    })
    .unwrap();
    let (promised, epoch) = (room.hub.promised().unwrap().to_vec(), room.hub.epoch());
    assert_eq!(promised, [2, 3, 4, 5, 6]);
    room.hub = Hub::new(room.hub.cohort().clone(), false);
    room.hub.promise(promised);
    room.hub.restart(epoch);
    let mut machine = Party::new(room.hub.cohort().clone(), 1, room.identities[0].clone(), false).unwrap();
    let actions = machine.begin();
    room.parties.insert(1, machine);
    room.act(1, actions);
    room.submit(1, share(1));
    for party in [1, 3, 4, 5, 6, 2] {
        assert!(room.answers.is_empty());
        room.tell_hub(Event::Joined(party));
        room.run(|_| Fate::Deliver).unwrap();
    }
    for answers in room.answers.values() {
        assert_eq!(*answers, [(sum(&[2, 3, 4, 5, 6]), vec![2, 3, 4, 5, 6])]);
    }
    assert_eq!(room.answers.len(), 6);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers[1].0 == sum(&[1, 2, 3, 4, 5, 6])));
}

/// Sizes that no sum of the run has are rejected; of two possible ones, the one that most parties sent is right,
/// whatever the order of arrival.
#[test]
fn words_of_a_wrong_size_change_nothing() {
    let mut room = Room::new(4, false);
    let sizes = [(10, 3), (0, 7)].map(|(narrow, wide)| WordCount { narrow, wide });
    room.hub.expect(sizes.to_vec());
    let place = SumId { epoch: 0, round: 0, attempt: 0 };
    let upload = |narrow: usize, wide: usize| {
        let words = Words { narrow: vec![1; narrow], wide: vec![2; wide] };
        let message = Message::Upload { place, words, commitment: None, shares: Vec::new() };
        Event::Message { from: 3, message }
    };
    let error = room.hub.handle(upload(3, 0)).unwrap_err();
    assert!(error.to_string().contains("whose size matches no sum of this run"), "{error}");
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers[0].0 == sum(&[1, 2, 3, 4])));

    room.submit(3, Words { narrow: Vec::new(), wide: vec![2; 7] });
    room.run(|_| Fate::Deliver).unwrap();
    let (_, _, message) = room.seen.iter().rfind(|(_, _, message)| message.kind() == "upload").unwrap();
    let error = room.hub.handle(Event::Message { from: 3, message: message.clone() }).unwrap_err();
    assert!(error.to_string().contains("a second upload for one attempt"), "{error}");
    [1, 2, 4].into_iter().for_each(|party| room.submit(party, share(party)));
    room.run(|_| Fate::Deliver).unwrap();
    assert_eq!(room.hub.ignored, [(3, "words of another size than most have")]);
    assert_eq!(room.waiting, [3]);
    // It comes back to its senses.
    let mut machine = Party::new(room.hub.cohort().clone(), 3, room.identities[2].clone(), false).unwrap();
    machine.restore_answers(*room.parties[&1].answers());
    room.parties.insert(3, machine);
    room.submit(3, share(3));
    room.tell_hub(Event::Lost(3));
    room.tell_hub(Event::Joined(3));
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers[1].0 == sum(&[1, 2, 3, 4])));
}

/// Without masks too a party may leave and come back, also one that is a cohort of its own; sums do not depend on who came
/// first.
#[test]
fn plain_sums_with_parties_that_come_back() {
    for (parties, may_leave) in [(1, false), (1, true), (3, false), (4, true)] {
        let mut room = Room::with(parties, may_leave, true);
        let term = |party: u16| Words {
            narrow: vec![(0.1f32 * f32::from(party)).to_bits()],
            wide: vec![(1.0 / f64::from(party)).to_bits()],
        };
        let mut total = plain::PlainSum::One(term(1));
        (2..=parties).for_each(|party| total.add(&term(party)));
        let total = total.into_words();
        for round in 0..3 {
            // The last one is first, then away, in the second round after its upload and in the third before.
            (1..=parties).rev().for_each(|party| room.submit(party, term(party)));
            let mut dropped = false;
            room.run(|(from, _, message)| match message {
                Message::Upload { .. } if round == 2 && *from == parties && !dropped => {
                    dropped = true;
                    Fate::Drop
                }
                Message::Upload { .. } if round == 1 && *from == 1 && !dropped => {
                    dropped = true;
                    Fate::Drop
                }
                _ => Fate::Deliver,
            })
            .unwrap();
            if round > 0 {
                let away = if round == 1 { 1 } else { parties };
                room.tell_hub(Event::Joined(away));
                room.run(|_| Fate::Deliver).unwrap();
            }
            for answers in room.answers.values() {
                assert_eq!(answers.len(), round + 1, "{parties} {may_leave}");
                assert_eq!(answers[round].0, total);
            }
        }
    }
}

/// Cohorts that differ in who is in them, or in its rules, have different masks.
#[test]
fn masks_depend_on_the_cohort() {
    let (one, _) = cohort(4, 1, false);
    let (other_keys, _) = cohort(4, 1, false);
    let others = [
        other_keys,
        Cohort { may_leave: true, ..one.clone() },
        Cohort { colluders: 2, ..one.clone() },
        Cohort { number: 1, ..one.clone() },
        Cohort { run: [8; 32], ..one.clone() },
    ];
    for other in others {
        assert_ne!(Hub::new(one.clone(), false).transcript(), Hub::new(other, false).transcript());
    }
}

/// No printable representation shows words, seeds or shares.
#[test]
fn secrets_are_not_printed() {
    let place = SumId { epoch: 0, round: 0, attempt: 0 };
    let (shares, seeds) = (vec![(1, vec![231; 33])], vec![(2, [231; 32])]);
    let revealed = Revealed { party: 1, shares, seeds, signature: [1; 64] };
    let message = Message::Unmask { place, revealed };
    let words = Words { narrow: vec![231; 3], wide: vec![231; 2] };
    let printed =
        format!("{:?} {:?} {:?}", Event::Message { from: 1, message }, Event::Submit(words.clone()), words);
    assert!(!printed.contains("231") && printed.contains("shares of masks"), "{printed}");
}

/// A list of survivors without one of them.
fn without(message: &Message, party: u16) -> Message {
    let Message::Survivors { place, commitments, shares } = message.clone() else { panic!("no list") };
    let commitments = commitments.into_iter().filter(|commitment| commitment.party != party).collect();
    Message::Survivors { place, commitments, shares }
}

/// By default a round without all parties is not closed, and no party would sign it.
#[test]
fn without_leave_all_wait() {
    let mut room = Room::new(5, false);
    room.submit_all();
    room.run(|(from, _, message)| match message {
        Message::Upload { .. } if *from == 4 => Fate::Lose,
        _ => Fate::Deliver,
    })
    .unwrap();
    assert_eq!(room.waiting.first(), Some(&4));
    assert!(room.answers.is_empty());

    let mut room = Room::new(5, false);
    room.submit_all();
    let error = room
        .run(|(_, _, message)| match message {
            Message::Survivors { .. } => Fate::Change(without(message, 4)),
            _ => Fate::Deliver,
        })
        .unwrap_err();
    assert!(error.to_string().contains("a sum of 4 parties, but at least 5 are required"), "{error}");
}

/// The parties keep their place; the attempt in progress starts over.
#[test]
fn the_coordinator_may_restart() {
    let mut room = Room::new(4, false);
    let cohort = room.hub.cohort().clone();
    for left in ["upload", "signature", "shares of masks", "opening"] {
        let before = room.answers.get(&1).map_or(0, Vec::len);
        room.submit_all();
        room.run(|(_, _, message)| match message {
            message if message.kind() == left => Fate::Drop,
            _ => Fate::Deliver,
        })
        .unwrap();
        let epoch = room.hub.epoch();
        room.hub = Hub::new(cohort.clone(), false);
        room.replies.iter().for_each(|reply| room.hub.record_answer(reply));
        room.hub.restart(epoch);
        for party in 1..=4 {
            let actions = room.hub.handle(Event::Joined(party)).unwrap();
            room.act(0, actions);
        }
        room.run(|_| Fate::Deliver).unwrap();
        assert!(room.answers.values().all(|answers| answers.len() == before + 1), "{left}");
        assert!(room.answers.values().all(|answers| answers[before].0 == sum(&[1, 2, 3, 4])), "{left}");
        assert!(room.parties.values().all(|party| party.transcript() == room.hub.transcript()));
    }
}

/// Where some may be missing, those who come back one by one after a restart are given no list of keys that is too short.
#[test]
fn after_a_restart_too_few_keys_are_no_list() {
    let mut room = Room::new(5, true);
    let cohort = room.hub.cohort().clone();
    room.submit_all();
    room.run(|(_, _, message)| if message.kind() == "upload" { Fate::Drop } else { Fate::Deliver }).unwrap();
    let epoch = room.hub.epoch();
    room.hub = Hub::new(cohort, false);
    room.hub.restart(epoch);
    for party in 1..=5 {
        assert!(room.hub.awaited().is_empty() && room.answers.is_empty() || party == 5);
        room.tell_hub(Event::Joined(party));
        room.run(|_| Fate::Deliver).unwrap();
    }
    assert!(room.answers.values().all(|answers| answers.len() == 1 && answers[0].1.len() >= 4));
    assert_eq!(room.answers.len(), 5);
}

/// Before the first upload no party is waiting; then those who have uploaded wait for the others.
#[test]
fn who_is_awaited() {
    let mut room = Room::new(4, false);
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.hub.is_idle() && room.hub.awaited().is_empty());
    room.submit(2, sum(&[2]));
    room.run(|_| Fate::Deliver).unwrap();
    assert!(!room.hub.is_idle());
    assert_eq!(room.hub.awaited(), [1, 3, 4]);
}

/// A party that was away without losing its place joins a new epoch, and the round is done with all.
#[test]
fn a_returning_party_is_waited_for() {
    let mut room = Room::new(4, false);
    for lost_reply in [false, true] {
        let before = room.answers.get(&1).map_or(0, Vec::len);
        room.submit_all();
        // Party 2's line breaks: its upload, or the answer, is lost.
        room.run(|(from, to, message)| match message {
            Message::Upload { .. } if *from == 2 && !lost_reply => Fate::Drop,
            Message::Opening(_) if *to == 2 && lost_reply => Fate::Drop,
            _ => Fate::Deliver,
        })
        .unwrap();
        room.tell_hub(Event::Lost(2));
        room.tell_hub(Event::Joined(2));
        room.run(|_| Fate::Deliver).unwrap();
        for answers in room.answers.values() {
            assert_eq!(answers.len(), before + 1);
            assert_eq!(answers[before], (sum(&[1, 2, 3, 4]), vec![1, 2, 3, 4]));
        }
    }
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert_eq!(room.answers[&2].len(), 3);
}

#[test]
fn too_few_survivors_open_nothing() {
    let mut room = Room::new(5, true);
    room.submit_all();
    room.run(|(from, _, message)| match message {
        Message::Upload { .. } if *from <= 2 => Fate::Lose,
        _ => Fate::Deliver,
    })
    .unwrap();
    assert!(!room.waiting.is_empty() && room.answers.is_empty());
}

#[test]
fn thresholds() {
    for (parties, colluders, threshold, leavers) in [
        (3, 1, 3, 0),
        (4, 1, 3, 1),
        (5, 1, 4, 1),
        (6, 1, 4, 2),
        (10, 1, 6, 4),
        (10, 4, 8, 2),
        (50, 1, 26, 24),
        (2, 0, 2, 0),
    ] {
        let (cohort, _) = cohort(parties, colluders, true);
        assert_eq!((cohort.threshold(), cohort.leavers()), (threshold, leavers), "{parties} {colluders}");
        // Two lists cannot both be signed often enough, though c sign both.
        assert!(2 * threshold > usize::from(parties) + colluders);
        cohort.check().unwrap();
    }
    for (parties, colluders) in [(2, 1), (5, 4), (256, 1)] {
        assert!(cohort(parties, colluders, true).0.check().is_err());
    }
}

/// If they are told of different survivors, parties see signatures that do not match their list, and reveal
/// nothing.
#[test]
fn different_lists_of_survivors_are_noticed() {
    let mut room = Room::new(6, true);
    room.hub.careless = true;
    room.submit_all();
    let error = room
        .run(|(_, to, message)| match message {
            Message::Survivors { .. } if *to <= 3 => Fate::Change(without(message, 6)),
            _ => Fate::Deliver,
        })
        .unwrap_err();
    assert!(error.to_string().contains("was sent a different one"), "{error}");
    assert!(room.seen.iter().all(|(_, _, message)| !matches!(message, Message::Unmask { .. })));

    // A coordinator that keeps back the signatures that would show it has too few.
    let mut room = Room::new(6, true);
    room.hub.careless = true;
    room.submit_all();
    let error = room
        .run(|(_, to, message)| match message {
            Message::Survivors { .. } if *to <= 3 => Fate::Change(without(message, 6)),
            Message::Echoes { place, signatures } => {
                let told_the_same = |party: u16| (party <= 3) == (*to <= 3);
                let signatures =
                    signatures.iter().filter(|(party, _)| told_the_same(*party)).copied().collect();
                Fate::Change(Message::Echoes { place: *place, signatures })
            }
            _ => Fate::Deliver,
        })
        .unwrap_err();
    assert!(error.to_string().contains("3 signatures, but 4 are needed"), "{error}");
}

/// A coordinator that tells one party another order of sums opens noise from then on.
#[test]
fn an_inconsistent_coordinator_gets_noise() {
    let mut room = Room::new(4, false);
    room.submit_all();
    room.run(|(_, to, message)| match message {
        Message::Opening(opening) if *to == 3 => {
            let order = Some(OrderTip::default());
            Fate::Change(Message::Opening(Box::new(Opening { order, ..Opening::clone(opening) })))
        }
        _ => Fate::Deliver,
    })
    .unwrap();
    room.submit_all();
    room.hub.careless = true;
    // The attempt fails before any noise is opened: party 3 signs for a different transcript.
    let error = room.run(|_| Fate::Deliver).unwrap_err();
    assert!(matches!(error, Error::Dishonest { from: Peer(0), .. }), "{error}");

    // And if it could open all self-masks, the pairwise masks would still stand: take the uploads, and the parties' own
    // seeds off them.
    let masks = MASKS.with_borrow(Clone::clone);
    let uploads: Vec<&Letter> = room
        .seen
        .iter()
        .filter(|(_, _, message)| matches!(message, Message::Upload { place, .. } if place.round == 1))
        .collect();
    assert_eq!(uploads.len(), 4);
    let mut opened = share(1).zeros_like();
    for (from, _, message) in uploads {
        let Message::Upload { words, .. } = message else { continue };
        opened.add(words);
        let own = masks.iter().rev().find(|(party, _)| party == from).map(|(_, seed)| seed).unwrap();
        mask::apply(own, mask::Sign::Subtract, &mut opened);
    }
    let wrong = opened.narrow.iter().zip(&sum(&[1, 2, 3, 4]).narrow).filter(|(a, b)| a != b).count();
    assert!(wrong >= 9, "{opened:?}");
}

/// With parties that were told the same, it is the sum. (So the test above tests something.)
#[test]
fn a_consistent_coordinator_gets_the_sum() {
    MASKS.with_borrow_mut(Vec::clear);
    let mut room = Room::new(4, false);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    room.submit_all();
    room.run(|letter| if matches!(letter.2, Message::Survivors { .. }) { Fate::Drop } else { Fate::Deliver })
        .unwrap();
    let masks = MASKS.with_borrow(Clone::clone);
    let mut opened = share(1).zeros_like();
    for (from, _, message) in &room.seen {
        if let Message::Upload { words, place, .. } = message
            && place.round == 1
        {
            opened.add(words);
            let own = masks.iter().rev().find(|(party, _)| party == from).map(|(_, seed)| seed).unwrap();
            mask::apply(own, mask::Sign::Subtract, &mut opened);
        }
    }
    assert_eq!(opened, sum(&[1, 2, 3, 4]));
}

/// For each peer and attempt a party reveals its share or its seed, and after one list no other.
#[test]
fn never_both_kinds_and_never_two_lists() {
    let mut room = Room::new(6, true);
    room.submit_all();
    room.run(|(from, _, message)| match message {
        Message::Upload { .. } if *from == 6 => Fate::Lose,
        _ => Fate::Deliver,
    })
    .unwrap();
    let mut unmasked = 0;
    for (_, _, message) in &room.seen {
        if let Message::Unmask { revealed, .. } = message {
            let shares: Vec<u16> = revealed.shares.iter().map(|(party, _)| *party).collect();
            let seeds: Vec<u16> = revealed.seeds.iter().map(|(party, _)| *party).collect();
            assert_eq!((shares, seeds), (vec![1, 2, 3, 4, 5], vec![6]));
            unmasked += 1;
        }
    }
    assert_eq!(unmasked, 5);

    // A second list, before and after the first was answered.
    for step in [false, true] {
        let mut room = Room::new(6, true);
        room.submit_all();
        let mut first = None;
        room.run(|(_, to, message)| match message {
            Message::Survivors { .. } if *to == 1 => {
                first = Some(message.clone());
                Fate::Deliver
            }
            Message::Echoes { .. } if !step => Fate::Drop,
            Message::Opening(_) => Fate::Drop,
            _ => Fate::Deliver,
        })
        .unwrap();
        let second = without(&first.unwrap(), 6);
        let party = room.parties.get_mut(&1).unwrap();
        let error = party.handle(Event::Message { from: 0, message: second }).unwrap_err();
        assert!(error.to_string().contains("a second list of survivors"), "{error}");
    }
}

#[test]
fn keys_that_others_did_not_sign_are_refused() {
    let forged = |change: fn(&mut Vec<Hello>)| {
        let (cohort, identities) = cohort(4, 1, false);
        let mut hellos = Vec::new();
        let mut parties: Vec<Party> = Vec::new();
        for (party, identity) in (1..).zip(identities) {
            let mut machine = Party::new(cohort.clone(), party, identity, false).unwrap();
            for action in machine.begin() {
                if let Action::Send { message: Message::Hello { hello, .. }, .. } = action {
                    hellos.push(hello);
                }
            }
            parties.push(machine);
        }
        change(&mut hellos);
        let message = Message::Roster { place: SumId { epoch: 0, round: 0, attempt: 0 }, hellos };
        parties[0].handle(Event::Message { from: 0, message }).map(|_| ()).unwrap_err().to_string()
    };
    assert!(forged(|hellos| hellos[1].key[3] ^= 1).contains("party 2 has not signed"));
    assert!(forged(|hellos| hellos[1] = hellos[2].clone()).contains("a party twice"));
    assert!(forged(|hellos| hellos[2].party = 9).contains("a party twice"));
    assert!(forged(|hellos| hellos[3].party = 9).contains("not of this cohort"));
    assert!(forged(|hellos| hellos.truncate(3)).contains("keys of 3 parties, but at least 4 are required"));
}

/// No input from the wire makes a state machine panic.
#[test]
fn messages_out_of_turn_are_errors() {
    let mut room = Room::new(3, false);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    let seen = room.seen.clone();
    for (from, to, message) in seen {
        let event = Event::Message { from, message };
        let _ = match to {
            0 => room.hub.handle(event).map(|_| ()),
            to => room.parties.get_mut(&to).unwrap().handle(event).map(|_| ()),
        };
    }
}

/// Published vectors, through the crates as they are used here.
mod vectors {
    use hkdf::Hkdf;
    use sha2::{Digest, Sha256};

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
        std::array::from_fn(|i| digits[2 * i] << 4 | digits[2 * i + 1])
    }

    /// RFC 7748, 5.2.
    #[test]
    fn x25519() {
        let scalar = bytes("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let point = bytes("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let product = bytes("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(x25519_dalek::x25519(scalar, point), product);
    }

    /// RFC 5869, A.1.
    #[test]
    fn hkdf() {
        let (salt, info) = (bytes::<13>("000102030405060708090a0b0c"), bytes::<10>("f0f1f2f3f4f5f6f7f8f9"));
        let (key, hkdf) = Hkdf::<Sha256>::extract(Some(&salt), &[0x0b; 22]);
        assert_eq!(key[..], bytes::<32>("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
        let mut output = [0; 42];
        hkdf.expand(&info, &mut output).unwrap();
        assert_eq!(
            output,
            bytes("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
        );
    }

    /// RFC 8032, 7.1, test 2.
    #[test]
    fn ed25519() {
        use ed25519_dalek::Signer;
        let secret = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let key = ed25519_dalek::SigningKey::from_bytes(&secret);
        let public: [u8; 32] = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        assert_eq!(key.verifying_key().to_bytes(), public);
        let signature: [u8; 64] = bytes(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        );
        assert_eq!(key.sign(&[0x72]).to_bytes(), signature);
    }

    /// Shares of a 128-bit key that secrets.js made (GF(256) with 0x11d, as here): its test of shares of version 0.1.8, five
    /// of ten. It puts a 1 before the key.
    #[test]
    fn shamir() {
        let key = bytes::<16>("82585c749a3db7f73009d0d6107dd650");
        let shares = [
            "0111001e523b02029c58aceebead70329000",
            "02eeb362b5be82beae3499f09bd7f9f19b1c",
            "03d5f7e5216d716a172ebe0af46ca81684f4",
            "04e1fa5670ee4c919ffd9f8c71f32a7bfbb0",
            "050bd6ac05ceb3eeffcbbe251932ece37657",
            "064bb52a3db02b1962ff879d32bc56de4455",
            "078a5f11d20cbf8d907c1d295bbda1ee900a",
            "08808ff7fae45529eb13b1e9d78faeab435f",
            "09f3b0585740fd80830c355fa501a8057733",
            "0aeca744ec715290906c995aac371ed118c2",
        ]
        .map(|share| blahaj::Share::try_from(&bytes::<18>(share)[..]).unwrap());
        for five in [&shares[..5], &shares[5..]] {
            assert_eq!(blahaj::Sharks(5).recover(five).unwrap(), [&[1], &key[..]].concat());
        }
        assert_ne!(blahaj::Sharks(4).recover(&shares[..4]).unwrap(), [&[1], &key[..]].concat());
    }

    /// FIPS 180-4, "abc".
    #[test]
    fn sha256() {
        let expected: [u8; 32] = bytes("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(<[u8; 32]>::from(Sha256::digest(b"abc")), expected);
    }
}
