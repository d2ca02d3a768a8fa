//! The coordinator over links between threads or ranks: a party that violates the protocol or leaves ends the run.

use std::collections::{BTreeMap, BTreeSet};

use partwise::wording::Wording;

use crate::aggregation::{Cohort, Hub, Words};
pub use crate::coordinator::{Answer, CohortSum, Echo};
use crate::coordinator::{Coordinator, CoordinatorAction};
use crate::error::{Error, Peer, Result};
use crate::link::{Incoming, Link, Recorder};

/// Forwards to another server, and passes opened sums to a recorder.
pub struct Noted<'a> {
    /// Determines the answers.
    pub answer: &'a mut dyn Answer,
    /// Records the messages.
    pub recorder: &'a dyn Recorder,
}

impl Answer for Noted<'_> {
    fn answer(&mut self, sum: CohortSum, now: f64) -> Words {
        self.recorder.opened(sum.cohort, &sum.words);
        self.answer.answer(sum, now)
    }

    fn is_ordered(&self) -> bool {
        self.answer.is_ordered()
    }
}

/// The result of the coordinator.
pub struct Served {
    /// The hubs, by the number of their cohort.
    pub hubs: BTreeMap<u8, Hub>,
    /// Bytes that the coordinator sent.
    pub bytes: u64,
}

/// Serves until every remaining party needs nothing more.
pub fn serve(
    link: &mut dyn Link,
    hubs: Vec<(u8, Hub)>,
    parties: usize,
    answer: &mut dyn Answer,
) -> Result<Served> {
    let mut coordinator = Coordinator::new(hubs, answer);
    let mut bytes_sent = 0;
    let mut done: BTreeSet<u16> = BTreeSet::new();
    while done.len() < parties {
        let incoming = link.receive(None)?;
        match &incoming {
            Incoming::Message { from, bytes } if bytes.is_empty() => {
                done.insert(*from);
                continue;
            }
            Incoming::Lost(party) if !done.insert(*party) => continue,
            Incoming::Joined(party) => {
                done.remove(party);
            }
            _ => {}
        }
        for action in coordinator.handle(incoming, link.now())? {
            bytes_sent += act(link, &coordinator, action)?;
        }
    }
    Ok(Served { hubs: coordinator.into_hubs(), bytes: bytes_sent })
}

/// Does what the coordinator wants done; returns how many bytes that sent.
fn act(link: &mut dyn Link, coordinator: &Coordinator<'_>, action: CoordinatorAction) -> Result<u64> {
    match action {
        CoordinatorAction::Send { mut to, bytes } => {
            let sent = (bytes.len() * to.len()) as u64;
            let last = to.pop();
            to.into_iter().try_for_each(|party| link.send(party, bytes.clone()))?;
            last.map_or(Ok(()), |party| link.send(party, bytes))?;
            Ok(sent)
        }
        // Needs a journal of all answers, as a federation's coordinator has.
        CoordinatorAction::CatchUp { to, .. } => Err(Error::LinkLost { who: Peer(0), peer: Peer(to) }),
        CoordinatorAction::Wait { cohort, party, round } => {
            let cure = coordinator.cohort(cohort).map(cure).unwrap_or_default();
            Err(Error::Left { party, round, cure })
        }
        CoordinatorAction::Rejected { from, violation } => {
            Err(Error::Dishonest { who: Peer(0), from: Peer(from), problem: violation.problem() })
        }
        CoordinatorAction::Record(_)
        | CoordinatorAction::PassOn { .. }
        | CoordinatorAction::Evaluated(_)
        | CoordinatorAction::Ignored { .. } => Ok(0),
    }
}

/// The remedy for a party that left.
fn cure(cohort: &Cohort) -> Wording {
    match cohort.leavers() {
        0 => "so few parties tolerate no dropout; run again when it is back".into(),
        leavers if cohort.may_leave => format!(
            "a sum tolerates the loss of {leavers} before masks are removed; run again when it is back"
        )
        .into(),
        leavers => Wording::new(format!(
            "the others wait for it, because a sum without it would reveal nearly its contribution; run again when it \
             is back, or continue without up to {leavers} with "
        ))
        .field("accepted.going_on_shows_the_leaver"),
    }
}
