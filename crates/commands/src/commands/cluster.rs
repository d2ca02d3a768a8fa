//! Agreement between the processes of an MPI job before they continue.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use partwise::comm::{Comm, gather_all};
use partwise::error::Error;

use crate::{flags, machine};

/// An error that every process knows: process 0 prints it, and no process waits for another.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Agreed(pub String);

/// The time that the process manager has to end a process whose peers have ended, before that process prints its
/// own error.
const PATIENCE: Duration = Duration::from_secs(4);

/// The processes that work on a command: those of an MPI job, or this process alone.
#[derive(Clone, Copy)]
pub struct Team<'a>(Option<&'a dyn Comm>);

impl<'a> Team<'a> {
    pub fn new(comm: Option<&'a dyn Comm>) -> Self {
        Team(comm)
    }

    /// The communicator of the job.
    pub fn comm(&self) -> Option<&'a dyn Comm> {
        self.0
    }

    /// Whether this process prints and writes for all.
    pub fn is_chief(&self) -> bool {
        self.0.is_none_or(|comm| comm.rank() == 0)
    }

    /// The result if all processes have one; otherwise the first process's error, on every process.
    pub fn agree<R>(&self, result: Result<R>) -> Result<R> {
        match self.0 {
            None => result,
            Some(comm) => agree(comm, result),
        }
    }

    /// Broadcasts a value of process 0 to every process.
    pub fn share(&self, own: String) -> Result<String> {
        let Some(comm) = self.0 else { return Ok(own) };
        let shared = comm.broadcast(own.into_bytes()).map_err(|error| local(comm, error))?;
        Ok(String::from_utf8_lossy(&shared).into_owned())
    }

    /// The peak memory of each process of a job.
    pub fn peak_memory(&self) -> Result<Option<Vec<u64>>> {
        let peaks = self
            .0
            .map(|comm| gather_all(comm, &[machine::peak_memory()]).map_err(|error| local(comm, error)));
        peaks.transpose()
    }

    /// The error of a step that all processes took together.
    pub fn failed(&self, error: Error) -> anyhow::Error {
        match (self.0, error) {
            (None, error) => error.into(),
            (Some(_), error @ Error::Agreed { .. }) => Agreed(error.wording().named(flags::name)).into(),
            (Some(comm), error) => local(comm, error),
        }
    }
}

/// Refuses to start if a process sees a different file under the same name.
pub fn same_file(comm: &dyn Comm, print: &[u8], path: &Path) -> Result<()> {
    let prints = comm.all_gather(print)?;
    match prints.iter().position(|print| *print != prints[0]) {
        None => Ok(()),
        Some(rank) => bail!(
            "{}: process {rank} sees a different file than process 0; use a shared file system, or copy the same file \
             to each machine",
            path.display()
        ),
    }
}

/// The result if all processes have one; otherwise the first process's error, on every process.
pub fn agree<R>(comm: &dyn Comm, result: Result<R>) -> Result<R> {
    let own = result.as_ref().err().map_or(String::new(), flags::words);
    let all = comm.all_gather(own.as_bytes()).map_err(|error| local(comm, error))?;
    match (all.iter().find(|message| !message.is_empty()), result) {
        (None, Ok(value)) => Ok(value),
        (Some(message), _) => Err(Agreed(String::from_utf8_lossy(message).into_owned()).into()),
        (None, Err(error)) => Err(error),
    }
}

/// The error of this process alone. If the end of another process caused it, it is printed only if that process
/// gave no message before the process manager ends this one.
pub fn local(comm: &dyn Comm, error: Error) -> anyhow::Error {
    if let Error::Transport { .. } | Error::RankLost { .. } = error {
        std::thread::sleep(PATIENCE);
    }
    match error {
        error @ (Error::Transport { .. } | Error::RankLost { .. } | Error::Protocol { .. }) => error.into(),
        error => anyhow!("rank {}: {}", comm.rank(), error.wording().named(flags::name)),
    }
}
