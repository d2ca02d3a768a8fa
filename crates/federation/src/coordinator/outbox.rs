//! The queue of messages to a party.

use std::path::PathBuf;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::frame::{Frame, Payload, ToParty};
use crate::journal::{StoredAnswer, read_answer};
use crate::rpc::Outgoing;

/// An outgoing item.
pub enum OutboxItem {
    /// A control message.
    Say(ToParty),
    /// A message of the protocols.
    Message(Bytes),
    /// Answers from the coordinator's journal.
    Answers { path: PathBuf, answers: Vec<StoredAnswer> },
    /// Nothing more.
    Close,
}

/// The sending end of a party's queue.
pub type Outbox = mpsc::UnboundedSender<OutboxItem>;

/// Sends items one after another, in pieces. A party that computes reads nothing meanwhile, as long as its
/// heartbeats continue.
pub async fn write(mut items: mpsc::UnboundedReceiver<OutboxItem>, outgoing: Outgoing) {
    while let Some(item) = items.recv().await {
        let sent = match item {
            OutboxItem::Say(words) => outgoing.send(Ok(Frame::control(&words).encode())).await.is_ok(),
            OutboxItem::Message(bytes) => send(&outgoing, bytes).await,
            OutboxItem::Answers { path, answers } => {
                let mut sent = true;
                for answer in answers {
                    let path = path.clone();
                    let read = tokio::task::spawn_blocking(move || read_answer(&path, answer)).await;
                    let Ok(Ok(bytes)) = read else { return };
                    sent = sent && send(&outgoing, bytes).await;
                }
                sent
            }
            OutboxItem::Close => return,
        };
        if !sent {
            return;
        }
    }
}

async fn send(outgoing: &Outgoing, bytes: Bytes) -> bool {
    for frame in Frame::pieces(Payload::Message, bytes) {
        if outgoing.send(Ok(frame.encode())).await.is_err() {
            return false;
        }
    }
    true
}
