//! Messages on a link: each with the number of the cohort that it belongs to.

use crate::aggregation::Message;
use crate::error::{Error, Peer, Result};

/// A message with the number of the cohort that it belongs to.
pub fn addressed(cohort: u8, message: &Message) -> Vec<u8> {
    let mut bytes = message.encode();
    bytes.push(cohort);
    bytes
}

/// The cohort and the message of bytes that `me` received.
pub fn parse(me: u16, from: u16, bytes: &[u8]) -> Result<(u8, Message)> {
    let message = bytes.split_last().and_then(|(cohort, rest)| Some((*cohort, Message::decode(rest)?)));
    message.ok_or_else(|| Error::Dishonest {
        who: Peer(me),
        from: Peer(from),
        problem: "a malformed message".into(),
    })
}
