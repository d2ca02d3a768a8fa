//! [`Comm`] on top of MPI's collectives.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use mpi::ffi;
use partwise::comm::{Comm, Numbers, Reduction, Tag, shares};
use partwise::error::{Error, Result};

use crate::call::{Envelope, Shared, checked, count};

/// How sums are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// By Partwise, in rank order: the same bits on any network.
    Ordered,
    /// By MPI, in its own order.
    Native,
}

/// The maximum number of bytes or elements per call: MPI counts with 31 bits.
const MOST: usize = c_int::MAX as usize;

/// The ranks of an MPI communicator.
pub struct MpiComm {
    library: Shared,
    raw: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    sums: Sums,
    most: usize,
    began: Instant,
}

// SAFETY: the handle is used only while the lock of the library is held, and the library was initialized for that
// (MPI_THREAD_SERIALIZED).
unsafe impl Send for MpiComm {}
// SAFETY: as above.
unsafe impl Sync for MpiComm {}

/// The same ranks with messages only, so that collectives are those of [`Comm`].
struct Plain<'a>(&'a MpiComm);

fn word(tag: Tag) -> c_int {
    match tag {
        Tag::Reduce => 1,
        Tag::Gather => 2,
        Tag::Broadcast => 3,
    }
}

impl MpiComm {
    /// A duplicate communicator with the same ranks, so that no other messages interfere.
    pub(crate) fn duplicate(library: &Shared, of: ffi::MPI_Comm, sums: Sums) -> Result<Self> {
        let _locked = library.lock();
        // SAFETY: `of` is a communicator, and the result is used only if the call went well.
        let raw = unsafe {
            let mut raw = ffi::RSMPI_COMM_NULL;
            checked(0, "MPI_Comm_dup", ffi::MPI_Comm_dup(of, &mut raw))?;
            raw
        };
        let (rank, size) = Self::rank_and_size(raw)?;
        let (library, began) = (library.clone(), Instant::now());
        Ok(MpiComm { library, raw, rank, size, sums, most: MOST, began })
    }

    /// This rank's number and the number of ranks; to be called under the lock of the library.
    fn rank_and_size(raw: ffi::MPI_Comm) -> Result<(usize, usize)> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `raw` is a communicator.
        unsafe {
            checked(0, "MPI_Comm_rank", ffi::MPI_Comm_rank(raw, &mut rank))?;
            checked(0, "MPI_Comm_size", ffi::MPI_Comm_size(raw, &mut size))?;
        }
        Ok((rank as usize, size as usize))
    }

    /// The same communicator with a limit on bytes or elements per call, for tests of the splitting.
    pub fn with_most(self, most: usize) -> Self {
        MpiComm { most: most.clamp(1, MOST), ..self }
    }

    fn checked(&self, call: &'static str, code: c_int) -> Result<()> {
        checked(self.rank, call, code)
    }

    /// MPI's number of a rank.
    fn place(rank: usize) -> c_int {
        count(rank)
    }

    fn sum_natively<E: Copy>(
        &self,
        data: &mut [E],
        element: ffi::MPI_Datatype,
        operation: ffi::MPI_Op,
    ) -> Result<()> {
        let _locked = self.library.lock();
        for part in data.chunks_mut(self.most) {
            let given = part.to_vec();
            // SAFETY: both buffers hold as many elements of that type as the count says, and do not overlap.
            let code = unsafe {
                let (given, taken) = (given.as_ptr().cast(), part.as_mut_ptr().cast());
                ffi::MPI_Allreduce(given, taken, count(part.len()), element, operation, self.raw)
            };
            self.checked("MPI_Allreduce", code)?;
        }
        Ok(())
    }

    fn scatter_natively<E: Copy>(
        &self,
        data: &mut [E],
        counts: &[usize],
        element: ffi::MPI_Datatype,
    ) -> Result<()> {
        // Pointers of empty slices are not valid addresses, and one of them equals MPI_IN_PLACE in Open MPI.
        if data.is_empty() {
            return Ok(());
        }
        let given = data.to_vec();
        let own = &mut data[shares(counts)[self.rank].clone()];
        let counts: Vec<c_int> = counts.iter().map(|&length| count(length)).collect();
        let _locked = self.library.lock();
        // SAFETY: the given buffer holds the sum of the counts, the taken one this rank's count, of elements of that
        // type; they do not overlap.
        let code = unsafe {
            let (given, taken) = (given.as_ptr().cast(), own.as_mut_ptr().cast());
            ffi::MPI_Reduce_scatter(given, taken, counts.as_ptr(), element, ffi::RSMPI_SUM, self.raw)
        };
        self.checked("MPI_Reduce_scatter", code)
    }

    /// Broadcasts the bytes of rank 0.
    fn spread(&self, bytes: &mut [u8]) -> Result<()> {
        let _locked = self.library.lock();
        for part in bytes.chunks_mut(self.most) {
            // SAFETY: the buffer has as many bytes as the count says.
            let code = unsafe {
                let start: *mut c_void = part.as_mut_ptr().cast();
                ffi::MPI_Bcast(start, count(part.len()), ffi::RSMPI_UINT8_T, 0, self.raw)
            };
            self.checked("MPI_Bcast", code)?;
        }
        Ok(())
    }

    /// Gathers one number per rank.
    fn lengths(&self, own: usize) -> Result<Vec<usize>> {
        let own = own as u64;
        let mut all = vec![0u64; self.size];
        let _locked = self.library.lock();
        // SAFETY: one number is given, and there is room for one of every rank.
        let code = unsafe {
            let (given, taken) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            let number = ffi::RSMPI_UINT64_T;
            ffi::MPI_Allgather(given, 1, number, taken, 1, number, self.raw)
        };
        self.checked("MPI_Allgather", code)?;
        Ok(all.into_iter().map(|length| length as usize).collect())
    }
}

impl Comm for MpiComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        let (to, tag) = (Self::place(to), word(tag));
        let envelope = Envelope { raw: self.raw, from: self.rank, to, tag, piece: self.most };
        self.library.lock().send(envelope, message)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        let _locked = self.library.lock();
        let mut message = Vec::new();
        loop {
            let mut length = 0;
            // SAFETY: a status is plain numbers, filled by MPI_Probe.
            let got = unsafe {
                let mut status = std::mem::zeroed();
                let any = ffi::RSMPI_ANY_TAG;
                self.checked("MPI_Probe", ffi::MPI_Probe(Self::place(from), any, self.raw, &mut status))?;
                self.checked("MPI_Get_count", ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut length))?;
                status.MPI_TAG
            };
            if got != word(tag) {
                let (got, expected) = (format!("message kind {got}"), format!("{tag:?}"));
                return Err(Error::Protocol { rank: self.rank, peer: from, got, expected });
            }
            let begin = message.len();
            message.resize(begin + length as usize, 0u8);
            // SAFETY: there is room for the message that was just seen; with one thread at a time no other can take
            // it in between.
            let code = unsafe {
                let room = message[begin..].as_mut_ptr().cast();
                let status = ffi::RSMPI_STATUS_IGNORE;
                let byte = ffi::RSMPI_UINT8_T;
                ffi::MPI_Recv(room, length, byte, Self::place(from), got, self.raw, status)
            };
            self.checked("MPI_Recv", code)?;
            if (length as usize) < self.most {
                return Ok(message);
            }
        }
    }

    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        let mut there = 0;
        {
            let _locked = self.library.lock();
            // SAFETY: a status may be ignored; `there` is written to.
            let code = unsafe {
                let (any, status) = (ffi::RSMPI_ANY_TAG, ffi::RSMPI_STATUS_IGNORE);
                ffi::MPI_Iprobe(Self::place(from), any, self.raw, &mut there, status)
            };
            self.checked("MPI_Iprobe", code)?;
        }
        if there == 0 { Ok(None) } else { self.receive(from, tag).map(Some) }
    }

    fn clock(&self) -> Vec<f64> {
        vec![self.began.elapsed().as_secs_f64()]
    }

    fn all_reduce(&self, reduction: Reduction, numbers: Numbers<'_>) -> Result<()> {
        // SAFETY: these are constants of the library.
        let (single, double, operation) = unsafe {
            let operation = match reduction {
                Reduction::Sum => ffi::RSMPI_SUM,
                Reduction::Max => ffi::RSMPI_MAX,
            };
            (ffi::RSMPI_FLOAT, ffi::RSMPI_DOUBLE, operation)
        };
        match (numbers, self.sums) {
            (Numbers::F32(data), Sums::Native) => self.sum_natively(data, single, operation),
            (Numbers::F64(data), Sums::Native) => self.sum_natively(data, double, operation),
            // MPI has no integers of 128 bits.
            (numbers, _) => Plain(self).all_reduce(reduction, numbers),
        }
    }

    fn reduce_scatter(&self, numbers: Numbers<'_>, counts: &[usize]) -> Result<()> {
        // SAFETY: these are constants of the library.
        let (single, double) = unsafe { (ffi::RSMPI_FLOAT, ffi::RSMPI_DOUBLE) };
        let native = self.sums == Sums::Native && counts.iter().sum::<usize>() <= self.most;
        match numbers {
            Numbers::F32(data) if native => self.scatter_natively(data, counts, single),
            Numbers::F64(data) if native => self.scatter_natively(data, counts, double),
            numbers => Plain(self).reduce_scatter(numbers, counts),
        }
    }

    fn all_gather_into(&self, data: &mut [u8], counts: &[usize]) -> Result<()> {
        if data.len() > self.most {
            return Plain(self).all_gather_into(data, counts);
        }
        // As in `scatter_natively`, also for a share that is empty while others are not.
        if data.is_empty() {
            return Ok(());
        }
        let places = shares(counts);
        let mut own = Vec::with_capacity(counts[self.rank] + 1);
        own.extend_from_slice(&data[places[self.rank].clone()]);
        let begins: Vec<c_int> = places.iter().map(|place| count(place.start)).collect();
        let counts: Vec<c_int> = counts.iter().map(|&length| count(length)).collect();
        let _locked = self.library.lock();
        // SAFETY: the given buffer is a copy of this rank's share; `data` has room for all of them at their places.
        let code = unsafe {
            let byte = ffi::RSMPI_UINT8_T;
            let (given, taken) = (own.as_ptr().cast(), data.as_mut_ptr().cast());
            let (lengths, begins) = (counts.as_ptr(), begins.as_ptr());
            ffi::MPI_Allgatherv(given, count(own.len()), byte, taken, lengths, begins, byte, self.raw)
        };
        self.checked("MPI_Allgatherv", code)
    }

    fn all_gather(&self, local: &[u8]) -> Result<Vec<Vec<u8>>> {
        let counts = self.lengths(local.len())?;
        let places = shares(&counts);
        let mut all = vec![0; counts.iter().sum()];
        all[places[self.rank].clone()].copy_from_slice(local);
        self.all_gather_into(&mut all, &counts)?;
        Ok(places.into_iter().map(|place| all[place].to_vec()).collect())
    }

    fn broadcast(&self, mut message: Vec<u8>) -> Result<Vec<u8>> {
        let mut length = (message.len() as u64).to_le_bytes();
        self.spread(&mut length)?;
        message.resize(u64::from_le_bytes(length) as usize, 0);
        self.spread(&mut message)?;
        Ok(message)
    }

    // The communicator is not freed before MPI is finalized: freeing is collective, and a rank that fails must not
    // wait for the others.
    fn split(&self, color: usize) -> Result<Box<dyn Comm + '_>> {
        let _locked = self.library.lock();
        // SAFETY: the result is used only if the call went well.
        let raw = unsafe {
            let mut raw = ffi::RSMPI_COMM_NULL;
            let code = ffi::MPI_Comm_split(self.raw, count(color), Self::place(self.rank), &mut raw);
            self.checked("MPI_Comm_split", code)?;
            raw
        };
        let (rank, size) = Self::rank_and_size(raw)?;
        let library = self.library.clone();
        Ok(Box::new(MpiComm { library, raw, rank, size, ..*self }))
    }
}

impl Comm for Plain<'_> {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn send(&self, to: usize, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.0.send(to, tag, message)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.0.receive(from, tag)
    }

    fn try_receive(&self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.0.try_receive(from, tag)
    }

    fn clock(&self) -> Vec<f64> {
        self.0.clock()
    }
}
