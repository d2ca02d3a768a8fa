//! The coordinator at work: the hubs of all cohorts on one link.

use std::collections::{BTreeMap, BTreeSet};

use crate::aggregation::{Action, Cohort, Event, Hub, Words};
use crate::error::{Error, Peer, Result};
use crate::link::{Incoming, Link, Recorder};
use crate::session::{addressed, parse};

/// What the coordinator makes of opened sums.
pub trait Answer: Send {
    /// The answer to a sum over so many parties, at this time.
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words;
}

/// Tells all parties the sums, and does nothing else: enough for the synchronous methods.
pub struct Echo;

impl Answer for Echo {
    fn answer(&mut self, _: u8, sum: Words, _: usize, _: f64) -> Words {
        sum
    }
}

/// Answers as another does, and lets a recorder see what was opened.
pub struct Noted<'a> {
    /// Who answers.
    pub answer: &'a mut dyn Answer,
    /// Who takes note.
    pub recorder: &'a dyn Recorder,
}

impl Answer for Noted<'_> {
    fn answer(&mut self, cohort: u8, sum: Words, parties: usize, now: f64) -> Words {
        self.recorder.opened(cohort, &sum);
        self.answer.answer(cohort, sum, parties, now)
    }
}

/// What the coordinator has at the end.
pub struct Served {
    /// The hubs, by the number of their cohort.
    pub hubs: BTreeMap<u8, Hub>,
    /// Bytes that it sent.
    pub bytes: u64,
}

/// Serves until every party that is still there has said that it needs nothing more.
pub fn serve(
    link: &mut dyn Link,
    hubs: Vec<(u8, Hub)>,
    parties: usize,
    answer: &mut dyn Answer,
) -> Result<Served> {
    let mut bytes_sent = 0;
    let mut hubs: BTreeMap<u8, Hub> = hubs.into_iter().collect();
    let mut done: BTreeSet<u16> = BTreeSet::new();
    while done.len() < parties {
        match link.receive(None)? {
            Incoming::Message { from, bytes } if bytes.is_empty() => {
                done.insert(from);
            }
            Incoming::Message { from, bytes } => {
                let (number, message) = parse(0, from, &bytes)?;
                let Some(hub) = hubs.get_mut(&number) else {
                    let problem = format!("a message for cohort {number}, which does not exist");
                    return Err(Error::Dishonest { who: Peer(0), from: Peer(from), problem });
                };
                let actions = hub.handle(Event::Message { from, message })?;
                bytes_sent += act(link, number, hub, actions, answer)?;
            }
            Incoming::Lost(party) if done.contains(&party) => {}
            Incoming::Lost(party) => {
                done.insert(party);
                for (number, hub) in &mut hubs {
                    let actions = hub.handle(Event::Lost(party))?;
                    bytes_sent += act(link, *number, hub, actions, answer)?;
                }
            }
            Incoming::Joined(party) => {
                done.remove(&party);
                for (number, hub) in &mut hubs {
                    let actions = hub.handle(Event::Joined(party))?;
                    bytes_sent += act(link, *number, hub, actions, answer)?;
                }
            }
            Incoming::Deadline => {}
        }
    }
    Ok(Served { hubs, bytes: bytes_sent })
}

/// Does what a hub wants done; returns how many bytes that sent.
fn act(
    link: &mut dyn Link,
    number: u8,
    hub: &mut Hub,
    actions: Vec<Action>,
    answer: &mut dyn Answer,
) -> Result<u64> {
    let mut sent = 0;
    for action in actions {
        match action {
            Action::Send { to, message } => {
                let bytes = addressed(number, &message);
                sent += bytes.len() as u64;
                link.send(to, bytes)?;
            }
            Action::Tell { to, message } => {
                let bytes = addressed(number, &message);
                sent += (bytes.len() * to.len()) as u64;
                to.into_iter().try_for_each(|party| link.send(party, bytes.clone()))?;
            }
            // Needs a journal of all answers, as a federation's coordinator has.
            Action::CatchUp { to, .. } => return Err(Error::LinkLost { who: Peer(0), peer: Peer(to) }),
            Action::Opened { words, cohort } => {
                let words = answer.answer(number, words, cohort.len(), link.now());
                let actions = hub.handle(Event::Answer(words))?;
                sent += act(link, number, hub, actions, answer)?;
            }
            Action::Waiting { party, round } => {
                return Err(Error::Left { party, round, cure: cure(hub.cohort()) });
            }
        }
    }
    Ok(sent)
}

/// What to do about a party that left.
fn cure(cohort: &Cohort) -> String {
    match cohort.leavers() {
        0 => "so few parties tolerate no dropout; run again when it is back".into(),
        leavers if cohort.may_leave => format!(
            "a sum tolerates the loss of {leavers}, before anybody has taken masks off; run again when it is back"
        ),
        leavers => format!(
            "the others wait for it, since a sum without it would show nearly what it had; run again when it is back, \
             or go on without up to {leavers} with --accept-that-going-on-shows-the-leaver"
        ),
    }
}
