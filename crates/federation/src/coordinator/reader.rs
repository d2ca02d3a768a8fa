//! Reads a party's messages, piece by piece.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::driver::PartyEvent;
use super::shared::Shared;
use crate::frame::{Assembly, Frame, FromParty, Payload, Piece, read_control};
use crate::rpc::Ingoing;

/// The number of bad frames after which a connection is closed.
const MAX_BAD_FRAMES: usize = 8;

/// Reads the frames of one connection.
pub struct FrameReader<'a> {
    pub shared: &'a Arc<Shared>,
    pub place: u16,
    pub connection: u64,
    pub name: &'a str,
    pub staged: Staged,
    /// Bad frames so far.
    pub bad: usize,
}

/// A long message that is incomplete.
#[derive(Default)]
pub struct Staged {
    assembly: Assembly,
    /// Its place among the messages that are assembled at the same time.
    permit: Option<OwnedSemaphorePermit>,
    /// The deadline for the complete message.
    due: Option<Instant>,
}

impl FrameReader<'_> {
    /// Reads until the party leaves or has sent too many bad frames.
    pub async fn run(mut self, mut ingoing: Ingoing) -> Result<(), Status> {
        while let Some(bytes) = self.next(&mut ingoing).await? {
            match Frame::decode(bytes) {
                Err(reason) => self.bad(reason)?,
                Ok(Frame::Control(words)) => match read_control(&words) {
                    Err(reason) => self.bad(reason)?,
                    Ok(FromParty::Enter { .. }) => self.bad("a second first message")?,
                    Ok(words) => {
                        self.tell(|place, connection| PartyEvent::Said { place, connection, words }).await
                    }
                },
                Ok(Frame::Piece(piece)) => self.take(piece).await?,
            }
        }
        Ok(())
    }

    /// The next frame; `None` at the end.
    async fn next(&self, ingoing: &mut Ingoing) -> Result<Option<Bytes>, Status> {
        let next = match self.staged.due {
            Some(due) => timeout_at(due, ingoing.message()).await,
            // A party that computes is silent, as long as its heartbeats continue.
            None => Ok(ingoing.message().await),
        };
        match next {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(status)) if status.code() == tonic::Code::OutOfRange => {
                self.shared.log.reject("an oversized frame", self.name);
                Err(Status::invalid_argument("this is an oversized frame"))
            }
            Ok(Err(_)) => Ok(None),
            Err(_) => {
                self.shared.log.reject("a message that takes too long", self.name);
                Err(Status::deadline_exceeded("the message took too long"))
            }
        }
    }

    /// Adds a piece, and passes on the message when it is complete.
    async fn take(&mut self, piece: Piece) -> Result<(), Status> {
        if !self.staged.assembly.is_begun() && !piece.last {
            // Until there is room, this party's data waits in its connection.
            self.staged.permit = self.shared.staging.clone().acquire_owned().await.ok();
            let deadline = Duration::from_secs_f64(self.shared.federation.terms.deadline);
            self.staged.due = Some(Instant::now() + deadline);
        }
        let limit = self.shared.longest.load(Ordering::Relaxed);
        let payload = piece.payload;
        match self.staged.assembly.take(piece, limit) {
            Ok(None) => Ok(()),
            Ok(Some(bytes)) => {
                let Staged { permit, .. } = std::mem::take(&mut self.staged);
                let event = |place, connection| match payload {
                    Payload::Message => PartyEvent::Message { place, connection, bytes, permit },
                    Payload::Factor => PartyEvent::Factor { place, connection, bytes, permit },
                };
                self.tell(event).await;
                Ok(())
            }
            Err(reason) => {
                self.staged = Staged::default();
                self.bad(reason)
            }
        }
    }

    async fn tell(&self, event: impl FnOnce(u16, u64) -> PartyEvent) {
        // The driver has ended, and this connection will.
        let _ = self.shared.events.send(event(self.place, self.connection)).await;
    }

    fn bad(&mut self, reason: &'static str) -> Result<(), Status> {
        self.shared.log.reject(reason, self.name);
        self.bad += 1;
        match self.bad > MAX_BAD_FRAMES {
            true => Err(Status::invalid_argument(format!("too many messages like {reason}"))),
            false => Ok(()),
        }
    }
}
