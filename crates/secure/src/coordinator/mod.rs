//! The coordinator of all cohorts as a state machine: its input are events on links, its output are actions. It has no
//! sockets, no clocks and no files.
//!
//! Two drivers feed it. [`crate::server`] does so over links between threads and ranks, where any error ends the
//! run. A federation's coordinator does so over a network: it drops bad messages, keeps the records in a journal, and
//! looks for parties that keep the others waiting.

mod action;
mod answer;
mod order;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use action::{CoordinatorAction, CoordinatorRecord, Violation};
pub use answer::{Answer, CohortSum, Echo};

use crate::aggregation::{Action, Blame, Cohort, Event, Hub, Message, Words};
use crate::error::{Error, Result};
use crate::link::Incoming;
use crate::session::{ALL, addressed, parse};
use order::{Order, Untold};

/// The time of the last event in a cohort.
struct Activity {
    last: f64,
    /// Whether its inactivity was reported since then.
    is_reported: bool,
}

/// The actions that follow from one event.
struct Turn {
    now: f64,
    actions: Vec<CoordinatorAction>,
}

/// The coordinator of all cohorts of a run.
pub struct Coordinator<'a> {
    hubs: BTreeMap<u8, Hub>,
    answer: Box<dyn Answer + 'a>,
    keeps_records: bool,
    /// Sums that are answered when another cohort is back.
    held: Vec<CohortSum>,
    order: Order,
    activity: BTreeMap<u8, Activity>,
    /// The last epoch of each cohort before a restart.
    restored_epochs: BTreeMap<u8, u32>,
}

impl<'a> Coordinator<'a> {
    /// The coordinator of these hubs, each with the number of its cohort.
    pub fn new(hubs: Vec<(u8, Hub)>, answer: impl Answer + 'a) -> Self {
        let groups = hubs.iter().map(|(number, _)| *number).filter(|number| *number != ALL);
        let mut coordinator = Coordinator {
            order: Order::new(groups),
            hubs: hubs.into_iter().collect(),
            answer: Box::new(answer),
            keeps_records: false,
            held: Vec::new(),
            activity: BTreeMap::new(),
            restored_epochs: BTreeMap::new(),
        };
        coordinator.all_active(0.0);
        coordinator
    }

    /// From here on, actions include the records that a restart needs.
    pub fn keeping_records(mut self) -> Self {
        self.keeps_records = true;
        self.order.keeping_records();
        self
    }

    /// Restores a record from before a restart. Records come in order, and before [`Coordinator::restart`].
    pub fn restore(&mut self, record: CoordinatorRecord) {
        match record {
            CoordinatorRecord::Epoch { cohort, epoch } => {
                self.restored_epochs.insert(cohort, epoch);
            }
            CoordinatorRecord::Promise { cohort, survivors } => {
                if let Some(hub) = self.hubs.get_mut(&cohort) {
                    hub.promise(survivors);
                }
            }
            CoordinatorRecord::Answer { cohort, now, reply, sum } => {
                if let Some(hub) = self.hubs.get_mut(&cohort) {
                    hub.record_answer(&reply);
                }
                self.order.note(cohort, &reply);
                if is_ordered(&reply) {
                    self.told(cohort);
                }
                if let (Some(words), Some(parties), Some(epoch)) = (sum, reply.parties(), reply.epoch()) {
                    self.answer.answer(CohortSum { cohort, epoch, parties: parties.len(), words }, now);
                }
            }
        }
    }

    /// After a restart no party is connected, and all keys are void.
    pub fn restart(&mut self, now: f64) {
        for (cohort, hub) in &mut self.hubs {
            hub.restart(self.restored_epochs.get(cohort).copied().unwrap_or(0));
        }
        self.all_active(now);
    }

    /// Handles an event on a link at this time; returns the actions to perform.
    pub fn handle(&mut self, incoming: Incoming, now: f64) -> Result<Vec<CoordinatorAction>> {
        let mut turn = Turn { now, actions: Vec::new() };
        match incoming {
            Incoming::Message { from, bytes } => {
                let parsed = parse(0, from, &bytes);
                drop(bytes);
                match parsed {
                    Ok((cohort, message)) => {
                        self.deliver(cohort, from, Event::Message { from, message }, &mut turn)?;
                    }
                    Err(_) => turn.reject(from, Violation::Malformed),
                }
            }
            Incoming::Lost(party) => self.deliver_to_all(|| Event::Lost(party), &mut turn)?,
            Incoming::Joined(party) => self.deliver_to_all(|| Event::Joined(party), &mut turn)?,
            Incoming::Deadline => {}
        }
        Ok(turn.actions)
    }

    /// Parties that have kept a cohort waiting for longer than `patience` seconds. Each cohort is reported once
    /// until its next event.
    pub fn overdue(&mut self, now: f64, patience: f64) -> BTreeSet<u16> {
        let mut overdue = BTreeSet::new();
        let is_quiet = |activity: &Activity| !activity.is_reported && now - activity.last > patience;
        let quiet = self.activity.iter().filter(|(_, activity)| is_quiet(activity));
        for number in quiet.map(|(number, _)| *number).collect::<Vec<u8>>() {
            let mut awaited = self.hubs.get(&number).map(Hub::awaited).unwrap_or_default();
            // A party whose group is at a sum is not at the sum of all.
            awaited.retain(|party| number != ALL || self.has_quiet_groups(*party, now, patience));
            if let (false, Some(activity)) = (awaited.is_empty(), self.activity.get_mut(&number)) {
                activity.is_reported = true;
                overdue.extend(awaited);
            }
        }
        overdue
    }

    /// The cohort of this number.
    pub fn cohort(&self, number: u8) -> Option<&Cohort> {
        self.hubs.get(&number).map(Hub::cohort)
    }

    /// The hubs, by the number of their cohort.
    pub fn into_hubs(self) -> BTreeMap<u8, Hub> {
        self.hubs
    }

    fn all_active(&mut self, now: f64) {
        let activity = |number: &u8| (*number, Activity { last: now, is_reported: false });
        self.activity = self.hubs.keys().map(activity).collect();
    }

    fn is_active(&mut self, cohort: u8, now: f64) {
        self.activity.insert(cohort, Activity { last: now, is_reported: false });
    }

    fn is_quiet(&self, cohort: u8, now: f64, patience: f64) -> bool {
        self.activity.get(&cohort).is_some_and(|activity| now - activity.last > patience)
    }

    /// Whether all groups of a party, if there are groups, have been inactive for `patience` seconds.
    fn has_quiet_groups(&self, party: u16, now: f64, patience: f64) -> bool {
        let is_member = |hub: &Hub| hub.cohort().members.iter().any(|(member, _)| *member == party);
        let mut groups = self.hubs.iter().filter(|(number, hub)| **number != ALL && is_member(hub));
        groups.all(|(number, hub)| hub.is_idle() && self.is_quiet(*number, now, patience))
    }

    fn deliver_to_all(&mut self, event: impl Fn() -> Event, turn: &mut Turn) -> Result<()> {
        let numbers: Vec<u8> = self.hubs.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.deliver(number, 0, event(), turn))
    }

    /// Passes an event to a hub.
    fn deliver(&mut self, number: u8, from: u16, event: Event, turn: &mut Turn) -> Result<()> {
        let Some(hub) = self.hubs.get_mut(&number) else {
            turn.reject(from, Violation::UnknownCohort(number));
            return Ok(());
        };
        let handled = hub.handle(event);
        let ignored = hub.ignored.drain(..);
        turn.actions.extend(ignored.map(|(from, reason)| CoordinatorAction::Ignored { from, reason }));
        match handled {
            Ok(actions) => {
                if !actions.is_empty() {
                    self.is_active(number, turn.now);
                }
                self.act(number, actions, turn)
            }
            Err(Error::Dishonest { problem, .. }) => {
                turn.reject(from, Violation::Protocol(problem));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Does what a hub wants done.
    fn act(&mut self, number: u8, actions: Vec<Action>, turn: &mut Turn) -> Result<()> {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    turn.actions
                        .push(CoordinatorAction::Send { to: vec![to], bytes: addressed(number, &message) });
                }
                Action::Tell { to, message } => self.tell(number, to, message, turn),
                Action::CatchUp { to, round } => {
                    turn.actions.push(CoordinatorAction::CatchUp { to, cohort: number, round });
                }
                Action::Opened { words, cohort, .. } => {
                    let epoch = self.hubs.get(&number).map_or(0, Hub::epoch);
                    self.opened(CohortSum { cohort: number, epoch, parties: cohort.len(), words }, turn)?;
                }
                Action::Keep(answer) => self.keep(number, answer, None, turn),
                Action::Blame(Blame { from, problem }) => {
                    turn.reject(from, Violation::Protocol(problem));
                }
                Action::Waiting { party, round } => {
                    turn.actions.push(CoordinatorAction::Wait { cohort: number, party, round });
                }
            }
        }
        // Immediately: a group that is back may do all its rounds before the next event.
        for opened in std::mem::take(&mut self.held) {
            self.opened(opened, turn)?;
        }
        Ok(())
    }

    /// A sum was opened: it is answered, unless another cohort is waited for.
    fn opened(&mut self, sum: CohortSum, turn: &mut Turn) -> Result<()> {
        let cohort = sum.cohort;
        if self.answer.holds(cohort, sum.epoch) {
            self.held.push(sum);
            return Ok(());
        }
        self.is_active(cohort, turn.now);
        let mut kept = (self.keeps_records && self.answer.computes()).then(|| sum.words.clone());
        let words = self.answer.answer(sum, turn.now);
        let after = self.answer.is_ordered().then_some(self.order.tip);
        let Some(hub) = self.hubs.get_mut(&cohort) else { return Ok(()) };
        for action in hub.handle(Event::Answer { words, after })? {
            match action {
                Action::Keep(answer) => {
                    self.order.note(cohort, &answer);
                    self.keep(cohort, answer, kept.take(), turn);
                }
                Action::Tell { to, message } => {
                    if is_ordered(&message) {
                        self.tell_others(cohort, &to, turn);
                    }
                    self.tell(cohort, to, message, turn);
                }
                _ => {}
            }
        }
        turn.actions.extend(self.answer.last_line().map(CoordinatorAction::Evaluated));
        Ok(())
    }

    /// Keeps an answer for a restart, and for parties that miss it.
    fn keep(&mut self, cohort: u8, answer: Message, sum: Option<Words>, turn: &mut Turn) {
        if self.keeps_records {
            let record = CoordinatorRecord::Answer { cohort, now: turn.now, reply: answer, sum };
            turn.actions.push(CoordinatorAction::Record(record));
        }
    }

    /// Sends an answer to parties, after recording what a restart needs.
    fn tell(&mut self, cohort: u8, to: Vec<u16>, message: Message, turn: &mut Turn) {
        if self.keeps_records {
            turn.actions.extend(self.record(cohort, &message).map(CoordinatorAction::Record));
        }
        turn.actions.push(CoordinatorAction::Send { to, bytes: addressed(cohort, &message) });
    }

    /// Before an answer of a cohort that has a place in the order of sums, each of its parties is told the sums of other
    /// groups that it has not seen: it computes itself what follows from all of them.
    fn tell_others(&mut self, cohort: u8, to: &[u16], turn: &mut Turn) {
        for group in self.groups_of(cohort) {
            let Some(hub) = self.hubs.get(&group) else { continue };
            let members = to.iter().copied().filter(|party| hub.cohort().place_of(*party).is_some());
            let to: Vec<u16> = members.collect();
            match self.order.untold(group) {
                Untold::Messages(messages) => {
                    let send = |bytes| CoordinatorAction::Send { to: to.clone(), bytes };
                    turn.actions.extend(messages.into_iter().map(send));
                }
                Untold::Kept(answers) if answers.is_empty() => {}
                Untold::Kept(answers) => turn.actions.push(CoordinatorAction::PassOn { to, answers }),
            }
        }
        self.told(cohort);
    }

    fn told(&mut self, cohort: u8) {
        self.groups_of(cohort).into_iter().for_each(|group| self.order.told(group));
    }

    /// A group, or all of them for the cohort of all parties.
    fn groups_of(&self, cohort: u8) -> Vec<u8> {
        match cohort {
            ALL => self.hubs.keys().copied().filter(|number| *number != ALL).collect(),
            group => vec![group],
        }
    }

    /// The part of a message to several parties that a restart needs, apart from answers.
    fn record(&self, cohort: u8, message: &Message) -> Option<CoordinatorRecord> {
        match *message {
            Message::NewEpoch { epoch } => Some(CoordinatorRecord::Epoch { cohort, epoch }),
            Message::Echoes { .. } => {
                let hub = self.hubs.get(&cohort).filter(|hub| hub.cohort().may_leave)?;
                let survivors = hub.promised().unwrap_or_default().to_vec();
                Some(CoordinatorRecord::Promise { cohort, survivors })
            }
            _ => None,
        }
    }
}

/// Whether an answer has a place in the order of sums.
fn is_ordered(answer: &Message) -> bool {
    matches!(answer, Message::Opening(opening) if opening.order.is_some())
}

impl Turn {
    fn reject(&mut self, from: u16, violation: Violation) {
        self.actions.push(CoordinatorAction::Rejected { from, violation });
    }
}
