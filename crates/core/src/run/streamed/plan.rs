//! How a file is cut into blocks within a budget of memory.

use std::ops::Range;

use crate::Real;
use crate::error::{Error, Result};
use crate::io::stream::Stream;
use crate::kernels::{DEPTH, TILE};

/// What the program itself takes, and what every thread of it does beside.
const OWN: u64 = 8 << 20;
const OWN_THREAD: u64 = 1 << 20;

/// Larger blocks read no faster, and the first of a pass is read while nothing is computed.
const LARGEST_BLOCK: u64 = 64 << 20;

/// What a streamed run may take, and what it needs beside the blocks.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Bytes for everything.
    pub memory: u64,
    /// k.
    pub rank: usize,
    /// How often U and V are held at once: their own, a given start, a checkpoint being written, ...
    pub copies: u64,
    /// Bytes that the caller holds, for labels for instance.
    pub kept: u64,
    /// Threads that compute.
    pub threads: usize,
    /// Bytes of a block at most.
    pub largest_block: u64,
}

impl Demand {
    /// A run that holds its factors once and nothing else.
    pub fn new(memory: u64, rank: usize, threads: usize) -> Self {
        Demand { memory, rank, copies: 1, kept: 0, threads, largest_block: LARGEST_BLOCK }
    }

    /// Bytes for all but the blocks.
    fn beside<T: Real>(&self, stream: &Stream) -> u64 {
        let (m, n, k) = (stream.rows() as u64, stream.cols() as u64, self.rank as u64);
        let threads = self.threads as u64;
        let width = T::PRECISION.bytes();
        let factors = (m + n).saturating_mul(k).saturating_mul(width * self.copies);
        let sums = (stream.line_length() as u64).saturating_mul(k).saturating_mul(width);
        // Sums of rows and columns are there before factors are; which of them are empty stays.
        let survey = (m + n).saturating_mul(16);
        // Partial sums of a Gram matrix, a thread's own, and what a method keeps.
        let grams = k.saturating_mul(k).saturating_mul(8 * (38 + 2 * threads));
        let tiles = threads.saturating_mul(OWN_THREAD + 4 * TILE as u64 * k * 8);
        let flags = 2 * (m + n);
        [survey.max(factors.saturating_add(sums)), grams, tiles, flags, stream.bytes_kept(), self.kept]
            .into_iter()
            .fold(OWN, u64::saturating_add)
    }
}

/// The blocks, and the bytes of the largest.
pub fn blocks<T: Real>(stream: &Stream, demand: &Demand) -> Result<(Vec<Range<usize>>, u64)> {
    let lines = stream.lines();
    let longest = if stream.is_sparse() {
        (0..lines).map(|line| stream.bytes_of::<T>(line..line + 1)).max().unwrap_or(0)
    } else {
        stream.bytes_of::<T>(0..1)
    };
    let beside = demand.beside::<T>(stream);
    let room = demand.memory.saturating_sub(beside) / 2;
    if longest > room {
        return Err(Error::Memory {
            what: format!("{}: the factors and two lines of the matrix at a time", stream.path().display()),
            needed: beside.saturating_add(2 * longest),
            available: demand.memory,
            cure: "raise --memory, lower --rank, or use --precision f32",
        });
    }
    // Half of it again: the allocator may keep what a block had before it grew.
    let fitting = (room / 2).min(demand.largest_block).max(longest);
    let blocks = cut::<T>(stream, fitting);
    let largest = blocks.iter().map(|lines| stream.bytes_of::<T>(lines.clone())).max().unwrap_or(0);
    Ok((blocks, largest))
}

/// Lines cut into blocks of at most `bytes`, which is at least a line. Dense ones have a multiple of [`DEPTH`] lines
/// where that fits, for which sums over them have the bits of a product in memory.
fn cut<T: Real>(stream: &Stream, bytes: u64) -> Vec<Range<usize>> {
    let lines = stream.lines();
    let mut blocks = Vec::new();
    let mut begin = 0;
    if !stream.is_sparse() {
        let fit = (bytes / stream.bytes_of::<T>(0..1).max(1)).min(lines as u64) as usize;
        let unit = [lines, DEPTH, 1].into_iter().find(|&unit| fit >= unit).unwrap_or(1);
        let height = fit / unit * unit;
        return (0..lines).step_by(height).map(|begin| begin..lines.min(begin + height)).collect();
    }
    for line in 0..lines {
        if stream.bytes_of::<T>(begin..line + 1) > bytes {
            blocks.push(begin..line);
            begin = line;
        }
    }
    blocks.push(begin..lines);
    blocks
}
