//! A party's part in a key exchange.

use std::collections::BTreeMap;

use super::{Party, PartyState};
use crate::aggregation::keys::{EpochKey, hello_text};
use crate::aggregation::wire::{Hello, roster_bytes};
use crate::aggregation::{Action, Message};
use crate::error::Result;

impl Party {
    /// Joins with a new key. An attempt in progress is abandoned, and its words are masked again.
    pub(super) fn join(&mut self, epoch: u32) -> Vec<Action> {
        let key = match std::mem::replace(&mut self.state, PartyState::Ready) {
            PartyState::Joining(key) if epoch == self.place.epoch => key,
            _ => EpochKey::new(&mut self.entropy),
        };
        if epoch > self.place.epoch {
            self.place.attempt += 1;
        }
        self.place.epoch = epoch;
        self.pairs.clear();
        self.relayed.clear();
        let (party, round, public) = (self.me, self.place.round, key.public());
        let signature = self.identity.sign(&hello_text(&self.cohort, party, epoch, round, &public));
        self.state = PartyState::Joining(key);
        Self::send(Message::Hello { epoch, hello: Hello { party, round, key: public, signature } })
    }

    pub(super) fn roster(&mut self, hellos: &[Hello]) -> Result<Vec<Action>> {
        let PartyState::Joining(key) = &self.state else {
            return Err(self.broken("a second list of keys in one epoch"));
        };
        if !hellos.windows(2).all(|pair| pair[0].party < pair[1].party) {
            return Err(self.broken("a list of keys that names a party twice"));
        }
        let mut pairs = BTreeMap::new();
        let mut present = false;
        for hello in hellos {
            if self.cohort.place_of(hello.party).is_none() {
                return Err(
                    self.broken(format!("a key of party {}, which is not of this cohort", hello.party))
                );
            }
            let text = hello_text(&self.cohort, hello.party, self.place.epoch, hello.round, &hello.key);
            if !self.cohort.has_signed(hello.party, &text, &hello.signature) {
                return Err(self.broken(format!("a key that party {} has not signed", hello.party)));
            }
            if hello.party == self.me {
                present = hello.key == key.public();
            } else {
                let pair = key.pair(&hello.key).ok_or_else(|| self.broken("a key that shares no secret"))?;
                pairs.insert(hello.party, pair);
            }
        }
        self.enough(hellos.len(), "keys")?;
        if !present {
            return Err(self.broken("a list of keys without its own"));
        }
        self.pairs = pairs;
        self.transcript = self.transcript.joined(self.place.epoch, &roster_bytes(hellos));
        self.state = PartyState::Ready;
        Ok(if self.pending.is_some() { self.upload() } else { Vec::new() })
    }
}
