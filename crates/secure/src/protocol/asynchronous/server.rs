//! The server of the asynchronous methods: U moves by ω_t = ρ / (ρ + t) towards each mean of a group that is opened.

use std::collections::BTreeMap;

use super::super::{Aggregation, Settings, TracePoint};
use super::answer::{ServerAnswer, words_of};
use crate::aggregation::Words;
use crate::fixed::{self, FLAGS, Part, PartShape, Width};
use crate::server::Answer;
use crate::session::ALL;

/// The state of a group at the server.
struct Group {
    size: usize,
    /// How many were in its last sum.
    present: usize,
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
    /// t of ω_t: the number of updates, minus those that [`Server::returned`] takes back.
    t: usize,
    u: Vec<f64>,
    ended: bool,
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
    pub fn holds(&mut self, number: u8) -> bool {
        let Some(group) = self.groups.get(&number) else { return false };
        let last = self.t + 1 >= self.limit() || group.updates + self.settings.rounds >= self.limit();
        let held = last && self.groups.iter().any(|(&other, group)| other != number && self.is_away(group));
        if let Some(group) = self.groups.get_mut(&number) {
            group.held = held;
        }
        held
    }

    /// Handles the return of a group. U has become that of the others meanwhile, so t is reset to its value
    /// when the group last contributed, but at most to half of the t that ends the run: they continue
    /// together for long enough.
    pub fn returned(&mut self, number: u8) {
        let half = self.limit() / 2;
        let away = self.groups.get(&number).filter(|group| self.is_away(group));
        let Some(heard) = away.map(|group| group.heard) else { return };
        self.t = heard.min(half);
        self.groups.values_mut().for_each(|group| group.heard = group.heard.min(self.t));
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

impl Answer for Server {
    fn answer(&mut self, cohort: u8, mut sum: Words, parties: usize, now: f64) -> Words {
        if cohort == ALL {
            if !self.ended && self.groups.values().all(|group| group.stopped) {
                self.ended = true;
                sum.narrow = words_of(&self.u_in_f32());
            }
            return sum;
        }
        // A group starts over: a party was missing, and the run is repeated.
        if self.ended && self.settings.attempts() > 1 {
            self.restart();
        }
        let Some(opened) = self.numbers(cohort, &sum, parties) else { return sum };
        self.update(cohort, &opened, now);
        let stop = self.groups.get(&cohort).is_some_and(|group| group.stopped);
        // The sum is over the groups that have contributed.
        let heard = self.groups.values().filter(|group| group.squared_error.is_some());
        let (sums, count) =
            heard.fold((0.0, 0), |(sums, count), group| (sums + group.diagonal, count + group.present));
        ServerAnswer { u: self.u_in_f32(), stop, diagonal: sums / count as f64 }.write(&mut sum);
        sum
    }
}

#[cfg(test)]
mod tests;
