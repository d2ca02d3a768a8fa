//! Messages that arrive early for a cohort; they are kept until their turn comes.

use std::collections::{BTreeMap, VecDeque};

use crate::aggregation::Message;

/// Messages that were not handled yet, by cohort.
#[derive(Default)]
pub(super) struct Mailbox {
    messages: BTreeMap<u8, VecDeque<Message>>,
}

/// What to do with a message that has arrived.
pub(super) enum Delivery {
    /// Handle it now.
    Now(Message),
    /// It was kept for later.
    Later,
    /// There are more of that cohort than a run has.
    Overflow,
}

impl Mailbox {
    /// Keeps a message that arrives early or after another kept one; `most` limits their number.
    pub fn deliver(&mut self, cohort: u8, message: Message, is_early: bool, most: Option<usize>) -> Delivery {
        let kept = self.messages.entry(cohort).or_default();
        if kept.is_empty() && !is_early {
            return Delivery::Now(message);
        }
        if most.is_some_and(|most| kept.len() > most) {
            return Delivery::Overflow;
        }
        kept.push_back(message);
        Delivery::Later
    }

    /// The oldest message of a cohort.
    pub fn take(&mut self, cohort: u8) -> Option<Message> {
        self.messages.get_mut(&cohort)?.pop_front()
    }

    /// How many messages are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.messages.values().map(VecDeque::len).sum()
    }
}
