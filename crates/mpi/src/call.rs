//! Common parts of all calls of the MPI library: one at a time, with checked results, and sends that complete on
//! their own.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard};

use mpi::environment::Universe;
use mpi::ffi;
use partwise::error::{Error, Result};

/// The MPI library between initialization and finalization, for one thread at a time, as agreed with it.
///
/// There is one per process, since MPI can be initialized once. Clones share it, and MPI is finalized when the last
/// one is dropped, so that no communicator outlives it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Library>>);

/// The state behind the lock.
pub struct Library {
    unfinished: Vec<Send>,
    // Dropping it finalizes MPI.
    _universe: Universe,
}

/// The sender, the receiver and the pieces of a message.
#[derive(Clone, Copy)]
pub struct Envelope {
    /// The communicator.
    pub raw: ffi::MPI_Comm,
    /// The rank that sends.
    pub from: usize,
    /// The rank that receives.
    pub to: c_int,
    /// The tag of the message.
    pub tag: c_int,
    /// The size of each piece except the last, in bytes.
    pub piece: usize,
}

/// A message in transit. MPI reads its bytes until the requests are complete.
struct Send {
    requests: Vec<ffi::MPI_Request>,
    _message: Vec<u8>,
}

// SAFETY: a request is a handle of the library, which may be used by any thread, one at a time: the lock around
// `Library` sees to that.
unsafe impl std::marker::Send for Send {}

impl Shared {
    /// The library after initialization.
    pub fn new(universe: Universe) -> Self {
        Shared(Arc::new(Mutex::new(Library { unfinished: Vec::new(), _universe: universe })))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, Library> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Converts a return code to an error with MPI's own text.
pub fn checked(rank: usize, call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0u8; 1024];
    let mut length = 0;
    // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING of any implementation (256 and 512).
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
    let text = text.get(..length.clamp(0, 1024) as usize).unwrap_or_default();
    let problem = String::from_utf8_lossy(text).trim_end_matches('\0').to_string();
    Err(Error::Transport { rank, call, problem })
}

/// A length that MPI accepts.
pub fn count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or_else(|_| unreachable!("cut to pieces before"))
}

impl Library {
    /// Starts to send a message in pieces, of which the last is shorter (possibly empty), so that the receiver
    /// recognizes the end.
    pub fn send(&mut self, envelope: Envelope, message: Vec<u8>) -> Result<()> {
        let Envelope { raw, from, to, tag, piece } = envelope;
        self.let_go(from)?;
        let mut requests = Vec::new();
        for begin in (0..=message.len()).step_by(piece) {
            let part = &message[begin..message.len().min(begin + piece)];
            // SAFETY: the bytes stay where they are, in `message`, until the request is done.
            let code = unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let bytes = part.as_ptr().cast();
                let code =
                    ffi::MPI_Isend(bytes, count(part.len()), ffi::RSMPI_UINT8_T, to, tag, raw, &mut request);
                requests.push(request);
                code
            };
            checked(from, "MPI_Isend", code)?;
        }
        self.unfinished.push(Send { requests, _message: message });
        Ok(())
    }

    /// Frees messages that have been delivered.
    fn let_go(&mut self, rank: usize) -> Result<()> {
        let mut result = Ok(());
        self.unfinished.retain_mut(|send| {
            let mut done = 0;
            // SAFETY: the requests are those of `send`; a done one is replaced by the null request, which may be
            // tested again.
            let code = unsafe {
                let statuses = ffi::RSMPI_STATUSES_IGNORE;
                ffi::MPI_Testall(count(send.requests.len()), send.requests.as_mut_ptr(), &mut done, statuses)
            };
            if let Err(error) = checked(rank, "MPI_Testall", code) {
                result = Err(error);
            }
            done == 0
        });
        result
    }

    /// Waits until every message is delivered.
    pub fn finish(&mut self, rank: usize) -> Result<()> {
        for send in &mut self.unfinished {
            // SAFETY: as in `let_go`.
            let code = unsafe {
                let statuses = ffi::RSMPI_STATUSES_IGNORE;
                ffi::MPI_Waitall(count(send.requests.len()), send.requests.as_mut_ptr(), statuses)
            };
            checked(rank, "MPI_Waitall", code)?;
        }
        self.unfinished.clear();
        Ok(())
    }
}
