//! The order of the sums that all parties see, and which of them each group has not been told yet.

use std::collections::BTreeMap;

use crate::aggregation::{Message, OrderTip};
use crate::session::{ALL, addressed};

/// A sum of a group that other groups are still to be told.
struct Entry {
    cohort: u8,
    /// Its place among all answers.
    place: usize,
    /// As it is sent; nothing where the driver keeps records.
    bytes: Option<Vec<u8>>,
}

/// What a group is to be told before its answer.
pub(super) enum Untold {
    /// These messages.
    Messages(Vec<Vec<u8>>),
    /// These answers, which the driver has kept.
    Kept(Vec<usize>),
}

/// The order so far.
pub(super) struct Order {
    /// The end of the chain.
    pub tip: OrderTip,
    keeps_records: bool,
    /// How many answers there were, in and out of the order.
    answers: usize,
    entries: Vec<Entry>,
    /// Up to which answer each group was told all.
    told: BTreeMap<u8, usize>,
}

impl Order {
    /// Nothing, for these groups.
    pub fn new(groups: impl Iterator<Item = u8>) -> Self {
        Order {
            tip: OrderTip::default(),
            keeps_records: false,
            answers: 0,
            entries: Vec::new(),
            told: groups.map(|group| (group, 0)).collect(),
        }
    }

    /// Messages are not kept here: the driver keeps all answers.
    pub fn keeping_records(&mut self) {
        self.keeps_records = true;
    }

    /// Notes an answer, as it is kept.
    pub fn note(&mut self, cohort: u8, answer: &Message) {
        let place = self.answers;
        self.answers += 1;
        let Message::Opening(opening) = answer else { return };
        let Some(tip) = opening.order else { return };
        self.tip = tip;
        if cohort != ALL && self.told.len() > 1 {
            let bytes = (!self.keeps_records).then(|| addressed(cohort, answer));
            self.entries.push(Entry { cohort, place, bytes });
        }
    }

    /// What a group has not been told yet of the others.
    pub fn untold(&self, group: u8) -> Untold {
        let told = self.told.get(&group).copied().unwrap_or(0);
        let entries = self.entries.iter().filter(|entry| entry.cohort != group && entry.place >= told);
        match self.keeps_records {
            true => Untold::Kept(entries.map(|entry| entry.place).collect()),
            false => Untold::Messages(entries.filter_map(|entry| entry.bytes.clone()).collect()),
        }
    }

    /// A group has been told all.
    pub fn told(&mut self, group: u8) {
        self.told.insert(group, self.answers);
        let all = self.told.values().copied().min().unwrap_or(0);
        self.entries.retain(|entry| entry.place >= all);
    }
}
