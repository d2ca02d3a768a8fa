//! The server of the asynchronous methods: U moves by ω_t = ρ / (ρ + t) towards each mean of a group that is opened. The
//! coordinator decides when a sum is applied. With masks, what follows from that is computed by every party with a server of
//! its own: it is told all sums in the order in which they are applied, and verifies them.

use std::collections::BTreeMap;

use super::super::{Aggregation, Settings, TracePoint};
use super::answer::{ServerAnswer, words_of};
use crate::aggregation::Words;
use crate::coordinator::CohortSum;
use crate::fixed::{self, FLAGS, Part, PartShape, Width};
use crate::server::Answer;
use crate::session::ALL;

/// The state of a group at the server.
struct Group {
    size: usize,
    /// How many were in its last sum.
    present: usize,
    /// The epoch of its last sum.
    epoch: u32,
    ranges: Option<Vec<i16>>,
    squared_error: Option<f64>,
    /// The sum of its members' diagonals.
    diagonal: f64,
    updates: usize,
    /// The server's t when the group last contributed.
    heard: usize,
    /// Whether the group's sum will be answered later.
    held: bool,
    stopped: bool,
}

/// What was opened of a group: the sums of its copies of U, of its errors and of its diagonals.
struct GroupSum {
    u: Vec<f64>,
    scalars: [f64; 2],
    /// How many are in it.
    parties: usize,
}

/// The server.
pub struct Server {
    settings: Settings,
    groups: BTreeMap<u8, Group>,
    updates: usize,
    /// t of ω_t, the number of updates but for those that are taken back when a group returns.
    t: usize,
    u: Vec<f64>,
    ended: bool,
    /// Whether the sum that was answered last is one of a group, or ends the run.
    is_ordered: bool,
    /// The number of rounds of the previous attempt.
    before: usize,
    /// The error over updates, from what the groups last had.
    pub trace: Vec<TracePoint>,
}

impl Server {
    /// The number and size of each group.
    pub fn new(settings: &Settings, groups: &[(u8, usize)]) -> Self {
        let group = |size| Group {
            size,
            present: size,
            epoch: 0,
            ranges: None,
            squared_error: None,
            diagonal: 0.0,
            updates: 0,
            heard: 0,
            held: false,
            stopped: false,
        };
        Server {
            settings: settings.clone(),
            groups: groups.iter().map(|&(number, size)| (number, group(size))).collect(),
            updates: 0,
            t: 0,
            u: Vec::new(),
            ended: false,
            is_ordered: false,
            before: 0,
            trace: Vec::new(),
        }
    }

    fn restart(&mut self) {
        let sizes: Vec<(u8, usize)> =
            self.groups.iter().map(|(&number, group)| (number, group.size)).collect();
        let (before, trace) = (self.before + self.rounds(), std::mem::take(&mut self.trace));
        *self = Server { before, trace, ..Server::new(&self.settings, &sizes) };
    }

    /// The mean number of exchanges per group.
    fn rounds(&self) -> usize {
        self.updates.div_ceil(self.groups.len())
    }

    /// The t at which the run ends, and after how many rounds a group does no more.
    fn limit(&self) -> usize {
        self.settings.most_rounds(self.groups.len())
    }

    /// Whether the others went on without a group: more than two rounds.
    fn is_away(&self, group: &Group) -> bool {
        !group.held && !group.stopped && self.t - group.heard > 2 * self.groups.len()
    }

    /// Whether a group is to be answered later: another is away, and this one would end the run, or would have fewer
    /// rounds left than it may need when that one is back.
    pub fn holds(&mut self, number: u8, epoch: u32) -> bool {
        let Some(group) = self.groups.get(&number) else { return false };
        let t = self.returned_t(group, epoch).unwrap_or(self.t);
        let last = t + 1 >= self.limit() || group.updates + self.settings.rounds >= self.limit();
        let held = last && self.groups.iter().any(|(&other, group)| other != number && self.is_away(group));
        if let Some(group) = self.groups.get_mut(&number) {
            group.held = held;
        }
        held
    }

    /// t when a sum comes with new keys from a group that was away. U has become that of the others meanwhile, so t is reset
    /// to its value when the group was last heard, but at most to half of what ends the run: they continue together for long
    /// enough.
    fn returned_t(&self, group: &Group, epoch: u32) -> Option<usize> {
        (group.epoch != epoch && self.is_away(group)).then(|| group.heard.min(self.limit() / 2))
    }

    fn returns(&mut self, number: u8, epoch: u32) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        // Whether it was held is the coordinator's decision, and no party knows.
        group.held = false;
        let group = &self.groups[&number];
        let t = self.returned_t(group, epoch);
        if let Some(t) = t {
            self.t = t;
            self.groups.values_mut().for_each(|group| group.heard = group.heard.min(t));
        }
        if let Some(group) = self.groups.get_mut(&number) {
            group.epoch = epoch;
        }
    }

    /// U as the parties have it.
    fn u_in_f32(&self) -> Vec<f32> {
        self.u.iter().map(|&value| value as f32).collect()
    }

    /// What the parties expect of the next sum, from U as they have it, in f32.
    fn expected(&self, scalars: [f64; 2]) -> Vec<Part> {
        let u = self.u_in_f32().into_iter().map(f64::from).collect();
        vec![Part::matrix(u, self.settings.rank), Part::scalars(&scalars)]
    }

    /// The sums of a group; `None` if these words are votes on ranges.
    fn numbers(&mut self, number: u8, sum: &Words, parties: usize) -> Option<GroupSum> {
        let group = self.groups.get_mut(&number)?;
        if self.settings.aggregation == Aggregation::Plain {
            let u = sum.narrow.iter().map(|&word| f32::from_bits(word).into()).collect();
            let scalar = |place: usize| sum.wide.get(place).map(|&word| f64::from_bits(word));
            return Some(GroupSum { u, scalars: [scalar(0)?, scalar(1)?], parties });
        }
        if sum.narrow.is_empty() {
            group.ranges = Some(fixed::agreed(sum));
            return None;
        }
        let columns = self.settings.rank;
        let is_u = sum.narrow.len().is_multiple_of(columns) && sum.wide.len() == 2 + FLAGS;
        if !is_u || !(self.u.is_empty() || self.u.len() == sum.narrow.len()) {
            return None;
        }
        let exponents = group.ranges.take().filter(|ranges| ranges.len() == columns + 2)?;
        if sum.wide.last_chunk() != Some(&[0; FLAGS]) {
            return None;
        }
        let u = PartShape { count: sum.narrow.len(), columns, width: Width::Narrow };
        let mut parts = fixed::decode(sum, &[u, PartShape::scalars(2)], &exponents, group.size);
        let scalars = parts.pop()?.values.try_into().ok()?;
        Some(GroupSum { u: parts.pop()?.values, scalars, parties })
    }

    fn update(&mut self, number: u8, sum: &GroupSum, now: f64) {
        // Wait until every group has contributed.
        let unheard = self.groups.values().any(|group| group.squared_error.is_none());
        let limit = self.limit();
        if self.t < limit || unheard {
            self.move_towards(sum);
        }
        let ranges = fixed::follow(&self.expected(sum.scalars));
        if let Some(group) = self.groups.get_mut(&number) {
            let [squared_error, diagonal] = sum.scalars;
            (group.squared_error, group.diagonal, group.ranges) =
                (Some(squared_error), diagonal, Some(ranges));
            group.updates += 1;
            group.present = sum.parties;
            group.heard = self.t;
        }
        let heard = self.groups.values().all(|group| group.squared_error.is_some());
        let stopped = self.t >= limit && heard;
        if let Some(group) = self.groups.get_mut(&number) {
            // However long others take, it does no more than the parties agreed on.
            group.stopped = stopped || group.updates >= limit;
        }
        let errors: Option<f64> = self.groups.values().map(|group| group.squared_error).sum();
        if let Some(squared_error) = errors {
            let round = self.before + self.rounds();
            let bytes = (round * self.u.len() * 8) as u64;
            self.trace.push(TracePoint { round, seconds: now, squared_error, bytes });
        }
    }

    /// Moves U towards the mean of a group.
    fn move_towards(&mut self, sum: &GroupSum) {
        let omega = self.settings.rho / (self.settings.rho + self.t as f64);
        self.u.resize(sum.u.len(), 0.0);
        for (server, sum_of_u) in self.u.iter_mut().zip(&sum.u) {
            *server = (1.0 - omega) * *server + omega * sum_of_u / sum.parties as f64;
        }
        self.updates += 1;
        self.t += 1;
    }
}

impl Server {
    /// Applies what a group has opened: numbers move U, votes tell the ranges of the numbers that follow.
    pub(super) fn apply(&mut self, sum: &CohortSum, now: f64) {
        self.returns(sum.cohort, sum.epoch);
        if let Some(opened) = self.numbers(sum.cohort, &sum.words, sum.parties) {
            self.update(sum.cohort, &opened, now);
        }
    }

    /// What a group goes on with.
    pub(super) fn state_of(&self, group: u8) -> ServerAnswer {
        let stop = self.groups.get(&group).is_some_and(|group| group.stopped);
        // The sum is over the groups that have contributed.
        let heard = self.groups.values().filter(|group| group.squared_error.is_some());
        let (sums, count) =
            heard.fold((0.0, 0), |(sums, count), group| (sums + group.diagonal, count + group.present));
        ServerAnswer { u: self.u_in_f32(), stop, diagonal: sums / count as f64 }
    }

    /// Whether no group does any more.
    pub(super) fn is_done(&self) -> bool {
        self.groups.values().all(|group| group.stopped)
    }
}

impl Answer for Server {
    fn answer(&mut self, sum: CohortSum, now: f64) -> Words {
        let is_plain = self.settings.aggregation == Aggregation::Plain;
        if sum.cohort == ALL {
            self.is_ordered = !self.ended && self.is_done();
            self.ended |= self.is_ordered;
            let mut words = sum.words;
            if self.is_ordered && is_plain {
                words.narrow = words_of(&self.u_in_f32());
            }
            return words;
        }
        // A group starts over: a party was missing, and the run is repeated.
        if self.ended && self.settings.attempts() > 1 {
            self.restart();
        }
        self.is_ordered = true;
        self.apply(&sum, now);
        let mut words = sum.words;
        if is_plain {
            self.state_of(sum.cohort).write(&mut words);
        }
        words
    }

    fn is_ordered(&self) -> bool {
        self.is_ordered
    }
}

#[cfg(test)]
mod tests;
