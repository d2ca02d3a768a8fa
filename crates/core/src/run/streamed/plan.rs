//! How a file is cut into blocks within a budget of memory.

use std::ops::Range;

use crate::Real;
use crate::error::{Error, Result};
use crate::io::stream::Stream;
use crate::kernels::DEPTH;
use crate::run::memory::{Footprint, Layout, MatrixSize, Workload};
use crate::run::method::Algorithm;
use crate::wording::Wording;

/// Larger blocks read no faster, and the first of a pass is read while nothing is computed.
const LARGEST_BLOCK: u64 = 64 << 20;

/// The memory limit of a streamed run, and what it needs in addition to the blocks.
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

    /// What is taken of the memory, but for the blocks.
    fn footprint<T: Real>(&self, stream: &Stream) -> Footprint {
        let Demand { rank, copies, threads, .. } = *self;
        let size = MatrixSize::of_stream(stream);
        // All methods take the same on a stream.
        let workload = Workload { size, algorithm: Algorithm::Auto, rank, precision: T::PRECISION };
        let kept = stream.bytes_kept().saturating_add(self.kept);
        let layout = Layout::Streamed { threads, copies, line_length: stream.line_length(), kept };
        workload.footprint(&layout)
    }
}

/// A file, cut into blocks.
pub struct Cut {
    pub blocks: Vec<Range<usize>>,
    /// Bytes of the largest.
    pub block_bytes: u64,
    /// What the run takes, two blocks included.
    pub footprint: Footprint,
}

/// Cuts a file into blocks that fit the memory.
pub fn blocks<T: Real>(stream: &Stream, demand: &Demand) -> Result<Cut> {
    let lines = stream.lines();
    let longest = if stream.is_sparse() {
        (0..lines).map(|line| stream.bytes_of::<T>(line..line + 1)).max().unwrap_or(0)
    } else {
        stream.bytes_of::<T>(0..1)
    };
    let footprint = demand.footprint::<T>(stream);
    let room = demand.memory.saturating_sub(footprint.most()) / 2;
    if longest > room {
        return Err(Error::Memory {
            what: format!(
                "{}: holding the factors and two lines of the matrix at a time",
                stream.path().display()
            ),
            needed: footprint.most().saturating_add(2 * longest),
            available: demand.memory,
            cure: Wording::new("raise ")
                .field("memory")
                .text(", lower ")
                .field("rank")
                .text(", or use ")
                .choice("precision", "f32"),
        });
    }
    // Half of it again: the allocator may keep what a block had before it grew.
    let fitting = (room / 2).min(demand.largest_block).max(longest);
    let blocks = cut::<T>(stream, fitting);
    let block_bytes = blocks.iter().map(|lines| stream.bytes_of::<T>(lines.clone())).max().unwrap_or(0);
    Ok(Cut { blocks, block_bytes, footprint: Footprint { matrix: 2 * block_bytes, ..footprint } })
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
