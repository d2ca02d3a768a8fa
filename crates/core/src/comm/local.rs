//! Ranks as threads of this process, with a channel between each pair.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Instant;

use super::{Comm, Tag};
use crate::error::{Error, Result};

type Message = (Tag, Vec<u8>);

/// One in-process rank's end of the channels.
pub struct LocalComm {
    rank: usize,
    senders: Vec<Sender<Message>>,
    // A receiver serves one thread at a time, so the lock is never contended.
    receivers: Vec<Mutex<Receiver<Message>>>,
    began: Instant,
}

impl LocalComm {
    /// The communicators of a group.
    pub fn group(size: usize) -> Vec<LocalComm> {
        let began = Instant::now();
        let end = |rank| LocalComm { rank, senders: Vec::new(), receivers: Vec::new(), began };
        let mut ends: Vec<LocalComm> = (0..size).map(end).collect();
        for to in 0..size {
            for from in 0..size {
                let (sender, receiver) = channel();
                ends[from].senders.push(sender);
                ends[to].receivers.push(Mutex::new(receiver));
            }
        }
        ends
    }

    fn lost(&self, peer: usize) -> Error {
        Error::RankLost { rank: self.rank, peer }
    }

    fn tagged(&self, from: usize, tag: Tag, received: Message) -> Result<Vec<u8>> {
        let (got, message) = received;
        if got != tag {
            let (got, expected) = (format!("{got:?}"), format!("{tag:?}"));
            return Err(Error::Protocol { rank: self.rank, peer: from, got, expected });
        }
        Ok(message)
    }
}

impl Comm for LocalComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.senders.len()
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.senders[to].send((tag, message)).map_err(|_| self.lost(to))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        let receiver = self.receivers[from].lock().map_err(|_| self.lost(from))?;
        self.tagged(from, tag, receiver.recv().map_err(|_| self.lost(from))?)
    }

    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        let receiver = self.receivers[from].lock().map_err(|_| self.lost(from))?;
        match receiver.try_recv() {
            Ok(message) => self.tagged(from, tag, message).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.lost(from)),
        }
    }

    fn clock(&self) -> Vec<f64> {
        vec![self.began.elapsed().as_secs_f64()]
    }
}

/// Runs `work` once for each input, with one thread and one rank each, and returns the results by rank. A single
/// rank runs on the calling thread, which may be the one that handles signals. If one fails, the others notice at
/// their next message; the original error is returned.
pub fn run_ranks<I: Send, R: Send>(
    inputs: Vec<I>,
    work: impl Fn(&LocalComm, I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let ends = LocalComm::group(inputs.len());
    let work = &work;
    if inputs.len() == 1 {
        return ends.iter().zip(inputs).map(|(comm, input)| work(comm, input)).collect();
    }
    let results: Vec<Result<R>> = std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .zip(inputs)
            .enumerate()
            .map(|(rank, (comm, input))| {
                let name = format!("rank {rank}");
                // The communicator moves into the thread, so that dropping it at the end notifies the others.
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || work(&comm, input))
            })
            .collect();
        let count = threads.len();
        let failed =
            |error| Error::parameter("nodes", format!("cannot start {count} workers ({error}); use fewer"));
        threads
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => Err(failed(error)),
            })
            .collect()
    });
    let mut values = Vec::new();
    let mut cause = None;
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(lost @ Error::RankLost { .. }) => {
                cause.get_or_insert(lost);
            }
            Err(error) => return Err(error),
        }
    }
    cause.map_or(Ok(values), Err)
}
