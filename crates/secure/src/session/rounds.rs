//! The rounds of a sum: what goes out, what comes in, and what an answer leads to.

use super::mailbox::Delivery;
use super::replay::Restored;
use super::votes::{Coding, Pending, Reading};
use super::{ALL, Answered, Opened, Session, Total, addressed, parse};
use crate::aggregation::{Action, Event, FixedSum, Message, OrderTip, Party, Words};
use crate::coordinator::CohortSum;
use crate::error::{Error, Peer, Result};
use crate::fixed;
use crate::link::{Asked, Incoming};
use crate::plausible::OpenedSum;
use crate::sum::SumKind;

/// The maximum number of further votes on ranges for one sum. After a vote, the numbers of every honest party
/// are in range, except those of a party that was absent during the vote.
const MAX_REVOTES: u32 = 3;

/// The number of messages per round to a party, apart from the others' masked words: an absent party may have
/// missed all answers of a run, which may be done twice.
const MESSAGES_PER_ROUND: usize = 32;

impl Session<'_> {
    /// Masks and sends the words of this round: votes on ranges if none are known, otherwise the numbers.
    pub(super) fn submit(&mut self) -> Result<()> {
        let begin = self.clock.now();
        let Some(Pending { cohort, kind, .. }) = self.pending else { return Err(self.out_of_turn()) };
        let size = self.size(cohort);
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let exponents = self.ranges.of(cohort, kind);
        pending.voting = !self.plain && exponents.is_none();
        if self.replay.is_active() {
            return Ok(());
        }
        let coding = Coding { plain: self.plain, exponents, parties: size };
        let words = pending.words(self.me, &coding, &mut self.entropy)?;
        self.meter.masking += self.clock.now().saturating_sub(begin);
        self.link.asks(&Asked {
            party: self.me,
            cohort,
            size,
            kind,
            attempt: self.attempt,
            voting: pending.voting,
            parts: &pending.parts,
            exponents: exponents.unwrap_or_default(),
            words: &words,
        });
        if !self.plain {
            self.link.spend(self.speed.of_masks(words.bytes(), size));
        }
        if !self.live {
            self.begin()?;
        }
        self.handle(cohort, Event::Submit(words))
    }

    fn handle(&mut self, number: u8, event: Event) -> Result<()> {
        let begin = self.clock.now();
        let Some(party) = self.machines.get_mut(&number) else { return Err(self.out_of_turn()) };
        let actions = party.handle(event)?;
        self.meter.masking += self.clock.now().saturating_sub(begin);
        self.act(number, actions)
    }

    pub(super) fn act(&mut self, number: u8, actions: Vec<Action>) -> Result<()> {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    match &message {
                        Message::Unmask { .. } => self.keep_promise(number)?,
                        Message::Upload { .. } => self.count_attempt()?,
                        _ => {}
                    }
                    let bytes = addressed(number, &message);
                    self.meter.round_trips += 1;
                    self.meter.bytes += bytes.len() as u64;
                    self.link.send(to, bytes)?;
                }
                Action::Opened { words, fixed, cohort } => {
                    let (epoch, order) = self.place_in_order(number, fixed, &words, cohort.len())?;
                    self.opened = Some(Opened { cohort: number, parties: cohort, words, epoch, order });
                }
                // The coordinator's.
                Action::Waiting { .. }
                | Action::Tell { .. }
                | Action::CatchUp { .. }
                | Action::Keep(_)
                | Action::Blame(_) => {}
            }
        }
        Ok(())
    }

    /// Counts attempts at sums, so that a party cannot be made to repeat them indefinitely.
    fn count_attempt(&mut self) -> Result<()> {
        self.attempts += 1;
        match self.most_sums.filter(|most| self.attempts > *most) {
            None => Ok(()),
            Some(sums) => Err(Error::TooManySums { sums }),
        }
    }

    /// Handles messages until the sum has arrived, or until the deadline.
    pub(super) fn next(&mut self, deadline: Option<f64>) -> Result<Option<Total>> {
        loop {
            let opened = if let Some(opened) = self.opened.take() {
                self.keep_answer(&opened)?;
                Some(opened)
            } else if self.replay.is_active() {
                if deadline.is_some() && self.replay.is_awaited() {
                    return Ok(None);
                }
                self.recall()?
            } else {
                None
            };
            if let Some(opened) = opened {
                match self.finish(opened)? {
                    Some(total) => return Ok(Some(total)),
                    None => continue,
                }
            }
            self.see_others()?;
            if let Some((cohort, message)) = self.stashed() {
                self.handle(cohort, Event::Message { from: 0, message })?;
                continue;
            }
            let begin = self.clock.now();
            let incoming = self.link.receive(deadline)?;
            self.meter.waiting += self.clock.now().saturating_sub(begin);
            match incoming {
                Incoming::Message { from, bytes } => self.receive(from, &bytes)?,
                Incoming::Lost(peer) => {
                    return Err(Error::LinkLost { who: Peer(self.me), peer: Peer(peer) });
                }
                Incoming::Joined(_) => {}
                Incoming::Deadline => {
                    self.replay.note_poll();
                    return Ok(None);
                }
            }
        }
    }

    /// A message from the link: it is handled, or kept where this party is not at its cohort yet.
    fn receive(&mut self, from: u16, bytes: &[u8]) -> Result<()> {
        self.meter.bytes += bytes.len() as u64;
        let begin = self.clock.now();
        let (number, message) = parse(self.me, from, bytes)?;
        self.meter.masking += self.clock.now().saturating_sub(begin);
        if !self.machines.contains_key(&number) {
            return self.receive_other(number, message);
        }
        let is_early = matches!(message, Message::Reply { .. } | Message::Opening(_))
            && self.pending.as_ref().is_none_or(|pending| pending.cohort != number);
        let parties = self.size(number);
        let most = self.most_rounds.map(|rounds| rounds.saturating_mul(MESSAGES_PER_ROUND + parties));
        match self.mailbox.deliver(number, message, is_early, most) {
            Delivery::Now(message) => self.handle(number, Event::Message { from, message }),
            Delivery::Later => Ok(()),
            Delivery::Overflow => Err(self.dishonest("more answers than a run has")),
        }
    }

    /// A message of a cohort that this party is not in: all that opens a sum of another group.
    fn receive_other(&mut self, number: u8, message: Message) -> Result<()> {
        let most = self.most_rounds.map(|rounds| rounds.saturating_mul(MESSAGES_PER_ROUND));
        let me = self.me;
        match (&mut self.order, message) {
            (Some(order), Message::Opening(opening)) if order.observes(number) => {
                order.keep(number, *opening, most).map_err(|blame| blame.noticed_by(me))
            }
            _ => Err(self.dishonest("a message of a cohort that this party is not in")),
        }
    }

    /// Opens and notes the sums of other groups whose turn it is.
    fn see_others(&mut self) -> Result<()> {
        let begin = self.clock.now();
        while let Some(order) = &mut self.order
            && let Some(other) = order.next().map_err(|blame| blame.noticed_by(self.me))?
        {
            self.replay.keep_other(other)?;
        }
        self.meter.masking += self.clock.now().saturating_sub(begin);
        Ok(())
    }

    /// The epoch of a sum, and its place in the order of sums, which this party has computed itself.
    fn place_in_order(
        &mut self,
        cohort: u8,
        fixed: Option<FixedSum>,
        words: &Words,
        parties: usize,
    ) -> Result<(u32, Option<OrderTip>)> {
        let Some(fixed) = fixed else { return Ok((0, None)) };
        let is_end = self.pending.as_ref().is_some_and(|pending| pending.kind == SumKind::End);
        let me = self.me;
        match &mut self.order {
            Some(order) if cohort != ALL || is_end => {
                let (epoch, words) = (fixed.epoch, words.clone());
                let sum = (cohort != ALL).then_some(CohortSum { cohort, epoch, parties, words });
                let tip = order.own(&fixed, sum).map_err(|blame| blame.noticed_by(me))?;
                Ok((epoch, Some(tip)))
            }
            _ if fixed.order.is_some() => {
                Err(self.dishonest("a place in the order of sums for one that has none"))
            }
            _ => Ok((fixed.epoch, None)),
        }
    }

    /// Takes out a message that arrived early for the current sum.
    fn stashed(&mut self) -> Option<(u8, Message)> {
        let cohort = self.pending.as_ref()?.cohort;
        Some((cohort, self.mailbox.take(cohort)?))
    }

    /// Notes an answer in the journal.
    fn keep_answer(&mut self, opened: &Opened) -> Result<()> {
        let Some(party) = self.machines.get(&opened.cohort) else { return Ok(()) };
        let Opened { cohort, parties, words, epoch, order } = opened;
        let answers = *party.answers();
        self.replay.keep_answer(|polls| Answered {
            cohort: *cohort,
            parties: parties.clone(),
            polls,
            answers,
            words: words.clone(),
            epoch: *epoch,
            order: *order,
        })
    }

    /// Stores for whom masks are about to be revealed.
    fn keep_promise(&mut self, cohort: u8) -> Result<()> {
        match self.machines.get(&cohort).and_then(Party::promised) {
            Some(survivors) => self.replay.keep_promise(cohort, survivors),
            None => Ok(()),
        }
    }

    /// Reads the journal up to its next answer.
    pub(super) fn look_up(&mut self) -> Result<()> {
        let (machines, order) = (&mut self.machines, &mut self.order);
        self.replay.advance(|restored| match restored {
            Restored::Promise(cohort, survivors) => {
                if let Some(party) = machines.get_mut(&cohort) {
                    party.promise(survivors);
                }
            }
            Restored::Other(other) => {
                if let Some(order) = order {
                    order.restore_other(other);
                }
            }
        })
    }

    /// Takes the next answer from the journal.
    fn recall(&mut self) -> Result<Option<Opened>> {
        let Some(kept) = self.replay.take() else { return Ok(None) };
        self.attempts += 1;
        if let Some(party) = self.machines.get_mut(&kept.cohort) {
            party.restore_answers(kept.answers);
        }
        let Answered { cohort, parties, words, epoch, order: tip, .. } = kept;
        if let (Some(order), Some(tip)) = (&mut self.order, tip) {
            let (words, parties) = (words.clone(), parties.len());
            order.restore_own(tip, (cohort != ALL).then_some(CohortSum { cohort, epoch, parties, words }));
        }
        self.look_up()?;
        Ok(Some(Opened { cohort, parties, words, epoch, order: tip }))
    }

    /// The numbers of a sum; `None` if it was a vote on ranges, or showed that they are too narrow.
    fn finish(&mut self, opened: Opened) -> Result<Option<Total>> {
        let begin = self.clock.now();
        self.meter.sums += 1;
        let Opened { cohort, parties: present, words, .. } = opened;
        let size = self.size(cohort);
        self.incomplete |= present.len() < size;
        let Some(pending) = &mut self.pending else { return Err(self.out_of_turn()) };
        let kind = pending.kind;
        if !pending.fits(&words, self.plain) {
            return Err(self.dishonest("an answer that is shorter than what was asked"));
        }
        let coding = Coding { plain: self.plain, exponents: self.ranges.of(cohort, kind), parties: size };
        let is_included = present.contains(&self.me);
        let parts = match pending.read(&words, &coding) {
            Reading::Bare(parts) => {
                self.check(&parts, present.len(), is_included)?;
                parts
            }
            Reading::Agreed(exponents) => {
                let is_bound = pending.revotes > 0;
                self.check_exponents(kind, &exponents)?;
                self.ranges.set(cohort, kind, exponents);
                return self.vote_again(cohort, present, is_bound);
            }
            Reading::Outside => {
                pending.revotes += 1;
                if pending.revotes > MAX_REVOTES {
                    return Err(Error::Ranges { what: kind.label(), votes: MAX_REVOTES });
                }
                self.ranges.forget(cohort, kind);
                return self.vote_again(cohort, present, true);
            }
            Reading::Withheld => return Err(self.stopped()),
            Reading::Numbers(opened) => {
                let ranges = fixed::follow(&opened);
                let parts: Vec<_> = opened.into_iter().map(|part| part.values).collect();
                self.check(&parts, present.len(), is_included)?;
                self.ranges.set(cohort, kind, ranges);
                parts
            }
        };
        let (parties, answer) = (present.len(), self.plain.then_some(words));
        self.pending = None;
        self.meter.masking += self.clock.now().saturating_sub(begin);
        Ok(Some(Total { parts, parties, answer }))
    }

    /// Starts the next round of the same sum. If numbers were out of range, it must be among the same
    /// parties: a participant whose noise is known to it has seen the sum of the others, and in a sum without
    /// one of them the same numbers would reveal what that party contributed.
    fn vote_again(&mut self, cohort: u8, present: Vec<u16>, is_bound: bool) -> Result<Option<Total>> {
        if let Some(party) = self.machines.get_mut(&cohort)
            && is_bound
            && present.contains(&self.me)
        {
            party.promise(present);
        }
        self.submit().map(|()| None)
    }

    /// Rejects a range that no honest party needs.
    fn check_exponents(&self, kind: SumKind, exponents: &[i16]) -> Result<()> {
        let most = self.safeguards.exponent;
        match exponents.iter().max() {
            Some(&largest) if largest > most => {
                let problem = format!("a range of 2^{largest}, but this party allows at most 2^{most}");
                Err(self.implausible(kind, problem))
            }
            _ => Ok(()),
        }
    }

    /// Rejects an impossible sum.
    fn check(&mut self, total: &[Vec<f64>], parties: usize, is_included: bool) -> Result<()> {
        let Some(pending) = &self.pending else { return Err(self.out_of_turn()) };
        let (cohort, kind) = (pending.cohort, pending.kind);
        if kind.is_flag() {
            return Ok(());
        }
        let exponents = self.ranges.of(cohort, kind).filter(|_| !self.plain);
        let precision = fixed::precision(&pending.shapes(), exponents, self.size(cohort));
        let sum = OpenedSum {
            kind,
            own: is_included.then_some(&*pending.parts),
            total,
            precision: &precision,
            parties,
            is_answered: self.plain && cohort != ALL,
        };
        self.known.check(&sum).map_err(|problem| self.implausible(kind, problem))
    }
}
