//! The order of the sums of all groups, of which a party opens each itself: those of its own group as a member, those of
//! others from what their members have signed.

use std::collections::BTreeMap;

use super::OtherSum;
use crate::aggregation::{Blame, Cohort, FixedSum, Observer, Opening, OrderTip};
use crate::coordinator::CohortSum;

/// What a party has seen of it.
pub(super) struct Order {
    tip: OrderTip,
    /// The cohorts that it is not in.
    observers: BTreeMap<u8, Observer>,
    /// Sums of other groups whose turn has not come: a party that was away is told them before its own.
    early: BTreeMap<u64, (u8, Opening)>,
    /// Sums that were not taken yet.
    sums: Vec<CohortSum>,
    /// How many of them are before the last answer of this party's own cohorts.
    ready: usize,
}

impl Order {
    pub fn new(others: Vec<Cohort>) -> Self {
        let observer = |cohort: Cohort| (cohort.number, Observer::new(cohort));
        Order {
            tip: OrderTip::default(),
            observers: others.into_iter().map(observer).collect(),
            early: BTreeMap::new(),
            sums: Vec::new(),
            ready: 0,
        }
    }

    /// The number and size of the groups that it is not in.
    pub fn others(&self) -> impl Iterator<Item = (u8, usize)> + '_ {
        self.observers.values().map(|observer| (observer.cohort().number, observer.cohort().members.len()))
    }

    pub fn observes(&self, cohort: u8) -> bool {
        self.observers.contains_key(&cohort)
    }

    /// An own sum, as the coordinator has ordered it; `sum` is nothing where only its place matters.
    pub fn own(&mut self, fixed: &FixedSum, sum: Option<CohortSum>) -> Result<OrderTip, Blame> {
        let tip = self.tip.after(&fixed.list);
        match fixed.order {
            None => return Err(Blame::new(0, "a sum without its place in the order of sums")),
            Some(claimed) if claimed.count > tip.count => {
                return Err(Blame::new(0, "an order of sums of which one is left out"));
            }
            Some(claimed) if claimed != tip => {
                return Err(Blame::new(0, "another order of sums than it has told before"));
            }
            Some(_) => {}
        }
        self.take_own(tip, sum);
        Ok(tip)
    }

    fn take_own(&mut self, tip: OrderTip, sum: Option<CohortSum>) {
        self.tip = tip;
        self.sums.extend(sum);
        self.ready = self.sums.len();
    }

    /// A sum of another group, which is kept where its turn has not come; at most `most` are.
    pub fn keep(&mut self, cohort: u8, opening: Opening, most: Option<usize>) -> Result<(), Blame> {
        let Some(claimed) = opening.order else {
            return Err(Blame::new(0, "a sum of another group without its place in the order of sums"));
        };
        // A party that was away may receive a sum that it has already applied.
        if claimed.count > self.tip.count {
            self.early.insert(claimed.count, (cohort, opening));
        }
        match most.is_some_and(|most| self.early.len() > most) {
            true => Err(Blame::new(0, "more sums of other groups than a run has")),
            false => Ok(()),
        }
    }

    /// The next sum of another group, if it is here: verified, and applied.
    pub fn next(&mut self) -> Result<Option<OtherSum>, Blame> {
        let Some((cohort, opening)) = self.early.remove(&(self.tip.count + 1)) else { return Ok(None) };
        let Some(observer) = self.observers.get_mut(&cohort) else { return Ok(None) };
        let observed = observer.open(&opening)?;
        let tip = self.tip.after(&observed.list);
        if opening.order != Some(tip) {
            return Err(Blame::new(0, "another order of sums than it has told before"));
        }
        let (epoch, parties) = (opening.place.epoch, observed.parties.len());
        let sum = CohortSum { cohort, epoch, parties, words: observed.words };
        let seen = OtherSum { sum: sum.clone(), answers: *observer.answers(), order: tip };
        self.tip = tip;
        self.sums.push(sum);
        Ok(Some(seen))
    }

    /// A sum of another group from before a restart.
    pub fn restore_other(&mut self, other: OtherSum) {
        let OtherSum { sum, answers, order } = other;
        if let Some(observer) = self.observers.get_mut(&sum.cohort) {
            observer.restore_answers(answers);
        }
        self.tip = order;
        self.sums.push(sum);
    }

    /// An own sum from before a restart.
    pub fn restore_own(&mut self, tip: OrderTip, sum: Option<CohortSum>) {
        self.take_own(tip, sum);
    }

    /// The sums before the last own answer that were not taken yet.
    pub fn take(&mut self) -> Vec<CohortSum> {
        self.sums.drain(..std::mem::take(&mut self.ready)).collect()
    }
}
