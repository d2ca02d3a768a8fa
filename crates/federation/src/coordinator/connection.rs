//! One party's connection: who it is, what it sends piece by piece, and what is sent to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::Shared;
use super::driver::Event;
use crate::deadline::{ENTER, LAST_WORDS, Late, SEND};
use crate::frame::{Assembly, Frame, FromParty, Long, ToParty, read_control};
use crate::io::Counts;
use crate::journal::read_answer;
use crate::rpc::{Ingoing, Outgoing};
use crate::text::{Hex, unix_seconds};

/// Bad frames after which a connection is closed.
const BAD_FRAMES: usize = 8;

/// What is to be sent to a party.
pub enum Item {
    /// Words of control.
    Say(ToParty),
    /// A message of the methods.
    Message(Bytes),
    /// Answers from the coordinator's journal.
    Answers { path: PathBuf, cohort: u8, places: Vec<(u64, usize)> },
    /// Nothing more.
    Close,
}

/// What a party's outgoing items go into.
pub type Outbox = mpsc::UnboundedSender<Item>;

/// What is called for each stream of a connection, which is there until `gone` changes. `place` is what the certificate
/// says; without TLS there is none.
pub fn joiner(
    shared: Arc<Shared>,
    place: Option<Result<u16, &'static str>>,
    from: String,
    counts: Arc<Counts>,
    gone: watch::Receiver<()>,
) -> impl Fn(Ingoing, Outgoing) + Clone + Send + Sync + 'static {
    move |ingoing, outgoing| {
        let (shared, from, counts, gone) = (shared.clone(), from.clone(), counts.clone(), gone.clone());
        tokio::spawn(async move {
            let entered = enter(&shared, place, &from, ingoing, &outgoing).await;
            let attended = match entered {
                Ok(None) => Ok(()),
                Ok(Some(entered)) => attend(&shared, entered, counts, gone, &outgoing).await,
                Err(status) => Err(status),
            };
            if let Err(status) = attended {
                // Whoever is not there any more need not know.
                let _ = SEND.limit(outgoing.send(Err(status))).await;
            }
        });
    }
}

/// A party that has said who it is.
struct Entered {
    place: u16,
    name: String,
    run: Option<[u8; 32]>,
    welcome: ToParty,
    ingoing: Ingoing,
}

/// Reads who it is; nothing if that was all it wanted.
async fn enter(
    shared: &Arc<Shared>,
    place: Option<Result<u16, &'static str>>,
    from: &str,
    mut ingoing: Ingoing,
    outgoing: &Outgoing,
) -> Result<Option<Entered>, Status> {
    if let Some(Err(reason)) = place {
        return Err(Status::permission_denied(format!("this is {reason}")));
    }
    let refuse = |reason: &'static str| {
        shared.log.reject(reason, from);
        Status::permission_denied(format!("this is {reason}"))
    };
    let first = ENTER.limit(ingoing.message()).await;
    let first = first.map_err(|Late { .. }| {
        shared.log.reject("a party that says nothing", from);
        // It may be slow, and try again.
        Status::deadline_exceeded("this took too long")
    })?;
    let first = first.map_err(|_| refuse("a first frame that is none"))?.unwrap_or_default();
    let Ok(Frame::Control(words)) = Frame::decode(first) else {
        return Err(refuse("a first frame that is none"));
    };
    let Ok(FromParty::Enter { federation, name, run, check, .. }) = read_control(&words) else {
        return Err(refuse("a first frame that does not enter"));
    };
    let terms = &shared.federation.terms;
    if federation != terms.federation {
        return Err(refuse("a party of another federation"));
    }
    let named = (1..).zip(&terms.roster).find(|(_, member)| member.name == name).map(|(place, _)| place);
    let place = match place {
        Some(Ok(place)) if named == Some(place) => place,
        None => named.ok_or_else(|| refuse("a party that is not of the roster"))?,
        Some(_) => return Err(refuse("a certificate of one party and the name of another")),
    };
    let current = *shared.run.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let welcome =
        ToParty::Welcome { terms: Box::new(terms.clone()), time: unix_seconds(), run: current.map(Hex) };
    if check {
        let _ = SEND.limit(outgoing.send(Ok(Frame::control(&welcome).encode()))).await;
        return Ok(None);
    }
    Ok(Some(Entered { place, name, run: run.map(|run| run.0), welcome, ingoing }))
}

/// Passes on what the party says and what it is told, until it leaves.
async fn attend(
    shared: &Arc<Shared>,
    entered: Entered,
    counts: Arc<Counts>,
    mut gone: watch::Receiver<()>,
    outgoing: &Outgoing,
) -> Result<(), Status> {
    let Entered { place, name, run, welcome, ingoing } = entered;
    if !shared.take_place(place) {
        shared.log.reject("a second connection of one party", &name);
        return Err(Status::already_exists("this party is connected already"));
    }
    let connection = shared.counter.fetch_add(1, Ordering::Relaxed);
    let (outbox, items) = mpsc::unbounded_channel();
    let _ = outbox.send(Item::Say(welcome));
    let entered = Event::Entered { place, connection, outbox, run, counts };
    let ended = match shared.events.send(entered).await {
        Ok(()) => {
            let writer = tokio::spawn(write(items, outgoing.clone()));
            let reader = Reader { shared, place, connection, name: &name, bad: 0 };
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
    let _ = shared.events.send(Event::Gone { place, connection }).await;
    ended
}

async fn closed(writer: &tokio::task::JoinHandle<()>) {
    while !writer.is_finished() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Until the connection is gone, and what came over it should be read.
async fn last_words(gone: &mut watch::Receiver<()>) {
    // Nothing is ever sent.
    let _ = gone.changed().await;
    tokio::time::sleep(LAST_WORDS.limit).await;
}

/// Sends items one after another, in pieces. A party that computes reads nothing meanwhile, for as long as its heartbeats
/// go on.
async fn write(mut items: mpsc::UnboundedReceiver<Item>, outgoing: Outgoing) {
    while let Some(item) = items.recv().await {
        let sent = match item {
            Item::Say(words) => outgoing.send(Ok(Frame::control(&words).encode())).await.is_ok(),
            Item::Message(bytes) => send(&outgoing, bytes).await,
            Item::Answers { path, cohort, places } => {
                let mut sent = true;
                for place in places {
                    let (path, read) = (path.clone(), move |path: PathBuf| read_answer(&path, cohort, place));
                    let answer = tokio::task::spawn_blocking(move || read(path)).await;
                    let Ok(Ok(answer)) = answer else { return };
                    sent = sent && send(&outgoing, answer).await;
                }
                sent
            }
            Item::Close => return,
        };
        if !sent {
            return;
        }
    }
}

async fn send(outgoing: &Outgoing, bytes: Bytes) -> bool {
    for frame in Frame::pieces(Long::Message, bytes) {
        if outgoing.send(Ok(frame.encode())).await.is_err() {
            return false;
        }
    }
    true
}

struct Reader<'a> {
    shared: &'a Arc<Shared>,
    place: u16,
    connection: u64,
    name: &'a str,
    bad: usize,
}

impl Reader<'_> {
    /// Reads until the party leaves, or has sent too much that is none.
    async fn run(mut self, mut ingoing: Ingoing) -> Result<(), Status> {
        let mut assembly = Assembly::default();
        let mut permit = None;
        let mut due = None;
        let deadline = Duration::from_secs_f64(self.shared.federation.terms.deadline);
        loop {
            let next = match due {
                Some(due) => timeout_at(due, ingoing.message()).await,
                None => Ok(ingoing.message().await),
            };
            let bytes = match next {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(status)) if status.code() == tonic::Code::OutOfRange => {
                    self.shared.log.reject("an oversized frame", self.name);
                    return Err(Status::invalid_argument("this is an oversized frame"));
                }
                Ok(Err(_)) => return Ok(()),
                Err(_) => {
                    self.shared.log.reject("a message that takes too long", self.name);
                    return Err(Status::deadline_exceeded("the message took too long"));
                }
            };
            match Frame::decode(bytes) {
                Err(reason) => self.bad(reason)?,
                Ok(Frame::Control(words)) => match read_control(&words) {
                    Err(reason) => self.bad(reason)?,
                    Ok(FromParty::Enter { .. }) => self.bad("a second beginning")?,
                    Ok(words) => {
                        self.tell(|place, connection| Event::Said { place, connection, words }).await
                    }
                },
                Ok(Frame::Piece { long, last, bytes }) => {
                    if !assembly.is_begun() && !last {
                        // Until there is room the party's line waits, and what it sends stays with it.
                        permit = self.shared.staging.clone().acquire_owned().await.ok();
                        due = Some(Instant::now() + deadline);
                    }
                    let limit = self.shared.longest.load(Ordering::Relaxed);
                    match assembly.take((long, last, bytes), limit) {
                        Ok(None) => {}
                        Ok(Some(whole)) => {
                            let permit = permit.take();
                            due = None;
                            let event = |place, connection| match long {
                                Long::Message => Event::Message { place, connection, bytes: whole, permit },
                                Long::Factor => Event::Factor { place, connection, bytes: whole, permit },
                            };
                            self.tell(event).await;
                        }
                        Err(reason) => {
                            (permit, due) = (None, None);
                            self.bad(reason)?;
                        }
                    }
                }
            }
        }
    }

    async fn tell(&self, event: impl FnOnce(u16, u64) -> Event) {
        let _ = self.shared.events.send(event(self.place, self.connection)).await;
    }

    fn bad(&mut self, reason: &'static str) -> Result<(), Status> {
        self.shared.log.reject(reason, self.name);
        self.bad += 1;
        match self.bad > BAD_FRAMES {
            true => Err(Status::invalid_argument(format!("too much like {reason}"))),
            false => Ok(()),
        }
    }
}
