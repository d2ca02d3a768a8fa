//! Dishonest coordinators and parties: whatever they send, honest parties accept the same sum, or stop and
//! name the culprit.

use super::tests::{Fate, Letter, Room, share, sum};
use super::*;
use crate::error::Error;

/// Runs one sum in a room with a fate for each message; returns why parties have stopped.
fn sum_of(room: &mut Room, fate: impl FnMut(&Letter) -> Fate) {
    room.submit_all();
    room.run_to_the_end(fate);
}

/// Asserts that all of these parties have stopped with these words, and that none has accepted a sum.
fn assert_stopped(room: &Room, parties: &[u16], from: u16, words: &str) {
    assert_eq!(room.stopped.keys().copied().collect::<Vec<_>>(), parties, "{words}: {:?}", room.stopped);
    for error in room.stopped.values() {
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(matches!(error, Error::Dishonest { from: found, .. } if found.0 == from), "{from}: {error}");
    }
    assert!(room.answers.is_empty(), "{words}");
}

fn changed(words: &Words) -> Words {
    let mut words = words.clone();
    words.wide[0] = words.wide[0].wrapping_add(1);
    words
}

/// If one party receives another upload than the others, or all receive the same wrong one, it differs from
/// what was signed.
#[test]
fn a_coordinator_cannot_change_an_upload() {
    for (told, stopped) in [(vec![3], vec![3]), (vec![1, 3, 4], vec![1, 3, 4])] {
        let mut room = Room::new(4, false);
        room.submit_all();
        room.run_to_the_end(|(_, to, message)| match message {
            Message::Relay { place, party: 2, words } if told.contains(to) => {
                let (place, words) = (*place, changed(words));
                Fate::Change(Message::Relay { place, party: 2, words })
            }
            _ => Fate::Deliver,
        });
        let words = "an upload of party 2 that differs from the one it signed";
        for (party, error) in &room.stopped {
            assert!(stopped.contains(party) && error.to_string().contains(words), "{error}");
        }
        assert_eq!(room.stopped.len(), stopped.len());
        // The others have the right sum.
        for answers in room.answers.values() {
            assert_eq!(*answers, [(sum(&[1, 2, 3, 4]), vec![1, 2, 3, 4])]);
        }
    }
}

/// An order of sums that every party is told does not change the sum: the session compares it with its own, and who is told
/// another than the rest signs for another transcript.
#[test]
fn parties_open_the_sum_themselves() {
    let mut room = Room::new(4, false);
    sum_of(&mut room, |(_, _, message)| match message {
        Message::Opening(opening) => {
            let order = Some(OrderTip::default());
            Fate::Change(Message::Opening(Box::new(Opening { order, ..Opening::clone(opening) })))
        }
        _ => Fate::Deliver,
    });
    assert!(room.answers.values().all(|answers| answers[0].0 == sum(&[1, 2, 3, 4])));
}

/// The list of commitments cannot be changed, neither in one's own entry nor in another's.
#[test]
fn a_coordinator_cannot_change_a_digest() {
    for (changed, stopped, words) in [
        (2, vec![1, 3, 4], "an upload of party 2 that it did not sign"),
        (3, vec![3], "without this party's upload"),
    ] {
        let mut room = Room::new(4, false);
        sum_of(&mut room, |(_, to, message)| match message {
            Message::Survivors { place, commitments, shares } if stopped.contains(to) => {
                let mut commitments = commitments.clone();
                commitments[changed - 1].words[0] ^= 1;
                let (place, shares) = (*place, shares.clone());
                Fate::Change(Message::Survivors { place, commitments, shares })
            }
            _ => Fate::Deliver,
        });
        assert_stopped(&room, &stopped, 0, words);
    }
}

/// A coordinator and a party cannot choose that party's upload once the sum of the others is known: honest
/// parties have signed another list.
#[test]
fn an_upload_cannot_be_chosen_after_the_opening() {
    let mut room = Room::new(4, false);
    room.submit_all();
    let (cohort, identity) = (room.hub.cohort().clone(), room.identities[2].clone());
    room.run_to_the_end(|(_, to, message)| match message {
        Message::Opening(opening) if *to == 1 => {
            Fate::Change(Message::Opening(Box::new(late_upload(opening, &cohort, &identity))))
        }
        _ => Fate::Deliver,
    });
    assert_eq!(room.stopped.keys().copied().collect::<Vec<_>>(), [1]);
    assert!(room.stopped[&1].to_string().contains("a list that differs from the one it signed"));
}

/// In the first round, party 3 signs another upload after its first one.
fn late_upload(opening: &Opening, cohort: &Cohort, identity: &Identity) -> Opening {
    let mut opening = opening.clone();
    let transcript = transcript::TranscriptHash::new(cohort).with_keys(opening.keys);
    let context = keys::Context { cohort, place: opening.place, transcript: &transcript };
    let words = changed(&share(3));
    let late = &mut opening.commitments[2];
    late.words = commitment::words_digest(&words);
    late.signature = identity.sign(&context.commitment_text(late));
    opening.uploads.retain(|(party, _)| *party != 3);
    opening.uploads.push((3, words));
    opening
}

/// Signatures of too few parties open nothing, even for a party that has missed the list.
#[test]
fn a_party_that_missed_the_list_counts_its_signatures() {
    let mut room = Room::new(4, false);
    sum_of(&mut room, |(_, to, message)| match message {
        Message::Opening(_) if *to == 1 => Fate::Drop,
        _ => Fate::Deliver,
    });
    let Some(Message::Opening(whole)) = room.replies.pop() else { panic!("no opening") };
    // Party 1 restarts without its knowledge of the list.
    let identity = room.identities[0].clone();
    let mut machine = Party::new(room.hub.cohort().clone(), 1, identity, false).unwrap();
    machine.handle(Event::Submit(share(1))).unwrap();
    let opened = |opening: &Opening, machine: &mut Party| {
        let message = Message::Opening(Box::new(opening.clone()));
        machine.handle(Event::Message { from: 0, message })
    };
    let mut few = Opening::clone(&whole);
    few.signatures.truncate(2);
    let error = opened(&few, &mut machine).unwrap_err().to_string();
    assert!(error.contains("2 signatures, but 3 are needed"), "{error}");
    let late = late_upload(&whole, room.hub.cohort(), &room.identities[2]);
    let error = opened(&late, &mut machine).unwrap_err().to_string();
    assert!(
        error.contains("a list of survivors that party 1 did not sign: it was sent a different one"),
        "{error}"
    );
    let mut without = Opening::clone(&whole);
    without.uploads.pop();
    let error = opened(&without, &mut machine).unwrap_err().to_string();
    assert!(error.contains("no upload of party 4"), "{error}");
    let mut secrets = Opening::clone(&whole);
    secrets.revealed.truncate(1);
    let error = opened(&secrets, &mut machine).unwrap_err().to_string();
    assert!(error.contains("a sum without everything needed to open it"), "{error}");
    let mut twice = Opening::clone(&whole);
    let repeated = twice.revealed[0].clone();
    twice.revealed.insert(0, repeated);
    let error = opened(&twice, &mut machine).unwrap_err().to_string();
    assert!(error.contains("secrets of a party twice"), "{error}");
    let actions = opened(&whole, &mut machine).unwrap();
    assert!(matches!(&actions[..], [Action::Opened { words, .. }] if *words == sum(&[1, 2, 3, 4])));
}

/// All parties and the coordinator learn whose secrets are wrong.
#[test]
fn wrong_secrets_are_attributed() {
    for (lie, liar, stopped, words) in [
        (Lie::Share, 2, vec![1, 2, 3, 4], "a wrong share of the mask of party 1"),
        (Lie::Deal, 3, vec![1, 2, 3, 4], "inconsistent shares of its mask"),
        (Lie::Seal, 3, vec![1, 2, 4], "a share of its mask that differs from the one it signed"),
    ] {
        let mut room = Room::new(4, false);
        room.parties.get_mut(&liar).unwrap().lie = Some(lie);
        sum_of(&mut room, |_| Fate::Deliver);
        assert_stopped(&room, &stopped, liar, words);
        assert_eq!(room.blamed, if lie == Lie::Seal { vec![] } else { vec![liar] }, "{lie:?}");
    }
    // If two parties have signed different masks, one of them lies, but it is unknown which.
    let mut room = Room::new(4, false);
    room.parties.get_mut(&3).unwrap().lie = Some(Lie::Pair);
    sum_of(&mut room, |_| Fate::Deliver);
    assert_stopped(&room, &[1, 2, 3, 4], 1, "a mask shared with party 3 that differs from that party's");
}

/// The same checks hold if parties leave: the revealed secrets of their masks match what both ends have
/// signed.
#[test]
fn a_wrong_seed_of_a_mask_with_a_party_that_left() {
    let mut room = Room::new(6, true);
    room.submit_all();
    room.run_to_the_end(|(from, _, message)| match message {
        Message::Upload { .. } if *from == 6 => Fate::Lose,
        Message::Opening(opening) => {
            // A coordinator that changes a secret is exposed by the signature of its sender.
            let mut opening = Opening::clone(opening);
            opening.revealed[1].seeds[0].1[0] ^= 1;
            Fate::Change(Message::Opening(Box::new(opening)))
        }
        _ => Fate::Deliver,
    });
    assert_stopped(&room, &[1, 2, 3, 4, 5], 0, "secrets that party 2 did not reveal");
}

/// A message of one round, attempt or cohort is worthless in any other.
#[test]
fn messages_of_other_rounds_are_rejected() {
    let mut room = Room::new(4, false);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    let before = room.seen.clone();
    let of = |kind: &str, from: u16| {
        before
            .iter()
            .find(|(sender, _, message)| *sender == from && message.kind() == kind)
            .unwrap()
            .2
            .clone()
    };
    // Party 2 repeats its earlier upload under the new round's number.
    let Message::Upload { mut place, words, commitment, shares } = of("upload", 2) else { panic!() };
    place.round = 1;
    let replayed = Message::Upload { place, words: words.clone(), commitment, shares };
    let error = room.hub.handle(Event::Message { from: 2, message: replayed }).unwrap_err().to_string();
    assert!(error.contains("an upload that it has not signed"), "{error}");
    // The coordinator passes the old words on, and repeats what opened the previous sum.
    let mut stopped = Vec::new();
    for late in [false, true] {
        let mut room = Room::new(4, false);
        room.submit_all();
        room.run(|_| Fate::Deliver).unwrap();
        let Some(Message::Opening(old)) = room.replies.last().cloned() else { panic!() };
        sum_of(&mut room, |(_, to, message)| match message {
            Message::Relay { place, party: 2, .. } if *to == 1 && !late => {
                let (_, words) = old.uploads.iter().find(|(party, _)| *party == 2).unwrap().clone();
                Fate::Change(Message::Relay { place: *place, party: 2, words })
            }
            Message::Opening(_) if *to == 1 && late => {
                let place = SumId { round: 1, ..old.place };
                Fate::Change(Message::Opening(Box::new(Opening { place, ..Opening::clone(&old) })))
            }
            _ => Fate::Deliver,
        });
        stopped.push(room.stopped[&1].to_string());
        assert_eq!(room.answers[&1].len(), 1);
    }
    assert!(stopped[0].contains("an upload of party 2 that differs from the one it signed"), "{stopped:?}");
    assert!(stopped[1].contains("a list that differs from the one it signed"), "{stopped:?}");
}

/// Numbers of a noisy sum over some parties are not used in a sum over others: the coordinator waits for all
/// of them.
#[test]
fn numbers_are_only_summed_with_the_same_parties() {
    let mut room = Room::new(6, true);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    let everybody: Vec<u16> = (1..=6).collect();
    let bind = |room: &mut Room| {
        room.parties.values_mut().for_each(|party| party.promise(everybody.clone()));
    };
    bind(&mut room);
    room.lose(6);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers.len() == 1));
    assert_eq!(room.waiting, [6]);
    // The party returns, and knows of it from its journal.
    let mut machine = Party::new(room.hub.cohort().clone(), 6, room.identities[5].clone(), false).unwrap();
    machine.restore_answers(*room.parties[&1].answers());
    machine.promise(everybody.clone());
    room.parties.insert(6, machine);
    room.submit(6, share(6));
    room.tell_hub(Event::Joined(6));
    room.run(|_| Fate::Deliver).unwrap();
    assert!((1..=5).all(|party| room.answers[&party][1] == (sum(&everybody), everybody.clone())));

    // A party that was not in the noisy sum waits until the others have their sum.
    let some: Vec<u16> = (1..=5).collect();
    for party in &some {
        room.parties.get_mut(party).unwrap().promise(some.clone());
    }
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    for party in [1, 5, 6] {
        assert_eq!(room.answers[&party].last(), Some(&(sum(&some), some.clone())));
    }
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    assert!(room.answers.values().all(|answers| answers.last().unwrap().1 == everybody));

    // A party that left permanently is not waited for afterwards.
    room.lose(6);
    room.submit_all();
    room.run(|_| Fate::Deliver).unwrap();
    for bound in [true, false] {
        for party in some.iter().filter(|_| bound) {
            room.parties.get_mut(party).unwrap().promise(some.clone());
        }
        room.submit_all();
        room.run(|_| Fate::Deliver).unwrap();
    }
    assert!(some.iter().all(|party| room.answers[party].len() == 7), "{:?}", room.answers);
}

/// Who is not in a cohort opens its sums as its members do. Who was told another order of sums than the members can be shown
/// none of their later sums: what the members sign is bound to the order that they were told.
#[test]
fn whoever_was_told_another_order_is_shown_no_more() {
    let mut room = Room::new(4, false);
    let orders = [1, 2].map(|count| OrderTip { count, head: [count as u8; 32] });
    for order in orders {
        room.order = Some(order);
        sum_of(&mut room, |_| Fate::Deliver);
    }
    let openings = room.replies.iter().map(|reply| match reply {
        Message::Opening(opening) => Opening::clone(opening),
        _ => panic!("a reply to masked words"),
    });
    let openings: Vec<Opening> = openings.collect();
    let mut observer = Observer::new(room.hub.cohort().clone());
    for opening in &openings {
        let observed = observer.open(opening).unwrap();
        assert_eq!((observed.words, observed.parties), (sum(&[1, 2, 3, 4]), vec![1, 2, 3, 4]));
    }
    let mut observer = Observer::new(room.hub.cohort().clone());
    let order = Some(OrderTip { count: 5, head: [5; 32] });
    observer.open(&Opening { order, ..openings[0].clone() }).unwrap();
    let blame = observer.open(&openings[1]).err().unwrap();
    assert!(blame.problem.contains("an upload of party 1 that it did not sign"), "{}", blame.problem);
}
