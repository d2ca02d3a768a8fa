//! One party's connection: its identity, and its arrival and departure.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tonic::Status;

use super::doorway::HalfOpen;
use super::driver::{Entrance, PartyEvent};
use super::outbox::{OutboxItem, write};
use super::reader::{FrameReader, Staged};
use super::shared::Shared;
use crate::deadline::{ENTER, LAST_WORDS, Late, SEND};
use crate::frame::{Frame, FromParty, ToParty, read_control};
use crate::io::Counts;
use crate::rpc::{Ingoing, Outgoing};
use crate::text::{Hex, unix_seconds};

/// The resources that the streams of a connection need to join.
#[derive(Clone)]
pub struct Joiner {
    pub shared: Arc<Shared>,
    /// The address of the other end.
    pub from: String,
    pub counts: Arc<Counts>,
    /// Signals the end of the connection.
    pub gone: watch::Receiver<()>,
    pub half_open: Arc<HalfOpen>,
}

/// The party that the certificate identifies, or what is wrong with it; `None` without TLS.
type CertifiedPlace = Option<Result<u16, &'static str>>;

impl Joiner {
    /// The function that is called for each stream of the connection.
    pub fn join(self, place: CertifiedPlace) -> impl Fn(Ingoing, Outgoing) + Clone + Send + Sync + 'static {
        move |ingoing, outgoing| {
            let joiner = self.clone();
            tokio::spawn(async move {
                let entered = enter(&joiner, place, ingoing, &outgoing).await;
                let attended = match entered {
                    Ok(None) => Ok(()),
                    Ok(Some(entered)) => attend(joiner, entered, &outgoing).await,
                    Err(status) => Err(status),
                };
                if let Err(status) = attended {
                    // A client that has left need not be told.
                    let _ = SEND.limit(outgoing.send(Err(status))).await;
                }
            });
        }
    }
}

/// A party that has identified itself.
struct Entered {
    place: u16,
    name: String,
    run: Option<[u8; 32]>,
    welcome: ToParty,
    ingoing: Ingoing,
}

/// Reads the party's identity; `None` if it only wanted to check.
async fn enter(
    joiner: &Joiner,
    place: CertifiedPlace,
    mut ingoing: Ingoing,
    outgoing: &Outgoing,
) -> Result<Option<Entered>, Status> {
    let Joiner { shared, from, .. } = joiner;
    if let Some(Err(reason)) = place {
        return Err(Status::permission_denied(format!("this is {reason}")));
    }
    let refuse = |reason: &'static str| {
        shared.log.reject(reason, from);
        Status::permission_denied(format!("this is {reason}"))
    };
    let first = ENTER.limit(ingoing.message()).await;
    let first = first.map_err(|Late { .. }| {
        shared.log.reject("a silent party", from);
        // The party may be slow, and can retry.
        Status::deadline_exceeded("this took too long")
    })?;
    let first = first.map_err(|_| refuse("a malformed first frame"))?.unwrap_or_default();
    let Ok(Frame::Control(words)) = Frame::decode(first) else {
        return Err(refuse("a malformed first frame"));
    };
    let Ok(FromParty::Enter { federation, name, run, check, .. }) = read_control(&words) else {
        return Err(refuse("an unexpected first frame"));
    };
    let terms = &shared.federation.terms;
    if federation != terms.federation {
        return Err(refuse("a party of another federation"));
    }
    let named = (1..).zip(&terms.roster).find(|(_, member)| member.name == name).map(|(place, _)| place);
    let place = match place {
        Some(Ok(place)) if named == Some(place) => place,
        None => named.ok_or_else(|| refuse("a party that is not in the roster"))?,
        Some(_) => return Err(refuse("a certificate of one party and the name of another")),
    };
    let welcome =
        ToParty::Welcome { terms: Box::new(terms.clone()), time: unix_seconds(), run: shared.run().map(Hex) };
    if check {
        let _ = SEND.limit(outgoing.send(Ok(Frame::control(&welcome).encode()))).await;
        return Ok(None);
    }
    Ok(Some(Entered { place, name, run: run.map(|run| run.0), welcome, ingoing }))
}

/// Passes messages on in both directions until the party leaves.
async fn attend(joiner: Joiner, entered: Entered, outgoing: &Outgoing) -> Result<(), Status> {
    let Joiner { shared, counts, mut gone, half_open, .. } = joiner;
    let Entered { place, name, run, welcome, ingoing } = entered;
    if !shared.take_place(place) {
        shared.log.reject("a second connection of one party", &name);
        return Err(Status::already_exists("this party is already connected"));
    }
    half_open.admit();
    let connection = shared.counter.fetch_add(1, Ordering::Relaxed);
    let (outbox, items) = mpsc::unbounded_channel();
    let _ = outbox.send(OutboxItem::Say(welcome));
    let entrance = PartyEvent::Entered(Entrance { place, connection, outbox, run, counts });
    let ended = match shared.events.send(entrance).await {
        Ok(()) => {
            let writer = tokio::spawn(write(items, outgoing.clone()));
            let staged = Staged::default();
            let reader = FrameReader { shared: &shared, place, connection, name: &name, staged, bad: 0 };
            let ended = tokio::select! {
                ended = reader.run(ingoing) => ended,
                _ = outgoing.closed() => Ok(()),
                _ = closed(&writer) => Ok(()),
                () = last_words(&mut gone) => Ok(()),
            };
            writer.abort();
            ended
        }
        Err(_) => Ok(()),
    };
    shared.free_place(place);
    let _ = shared.events.send(PartyEvent::Gone { place, connection }).await;
    ended
}

async fn closed(writer: &tokio::task::JoinHandle<()>) {
    while !writer.is_finished() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the connection has ended and everything received is read.
async fn last_words(gone: &mut watch::Receiver<()>) {
    // Nothing is ever sent.
    let _ = gone.changed().await;
    tokio::time::sleep(LAST_WORDS.limit).await;
}
