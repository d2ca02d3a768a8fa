//! Cuts a file into blocks within a memory budget.

use std::ops::Range;

use crate::Real;
use crate::error::{Error, Result};
use crate::io::stream::Stream;
use crate::kernels::DEPTH;
use crate::partition::Access;
use crate::run::memory::{Footprint, Layout, MatrixSize, Workload};
use crate::run::method::Algorithm;
use crate::wording::Wording;

/// Larger blocks are not read faster, and the first block of a pass is read while nothing is computed.
const LARGEST_BLOCK: u64 = 64 << 20;

/// The memory limit of a streamed run, and what it needs in addition to the blocks.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// The budget in bytes.
    pub memory: u64,
    /// k.
    pub rank: usize,
    /// The number of copies of U and V: the current ones, a given start, a checkpoint being written, ...
    pub copies: u64,
    /// Bytes that the caller holds, such as labels.
    pub kept: u64,
    /// Threads that compute.
    pub threads: usize,
    /// The maximum size of a block in bytes.
    pub largest_block: u64,
    /// Whether another matrix is formed from each block: the ratios of the Kullback-Leibler divergence.
    pub ratios: bool,
}

impl Demand {
    /// A run with one copy of its factors and nothing else.
    pub fn new(memory: u64, rank: usize, threads: usize) -> Self {
        Demand { memory, rank, copies: 1, kept: 0, threads, largest_block: LARGEST_BLOCK, ratios: false }
    }

    /// The memory of everything except the blocks.
    fn footprint<T: Real>(&self, stream: &Stream) -> Footprint {
        let Demand { rank, copies, threads, .. } = *self;
        let size = MatrixSize::of_stream(stream);
        // All methods need the same memory on a stream.
        let workload = Workload {
            size,
            algorithm: Algorithm::Auto,
            access: if self.ratios { Access::Lines } else { Access::Whole },
            rank,
            precision: T::PRECISION,
        };
        let kept = stream.bytes_kept().saturating_add(self.kept);
        let layout = Layout::Streamed { threads, copies, line_length: stream.line_length(), kept };
        workload.footprint(&layout)
    }
}

/// A file, cut into blocks.
pub struct Cut {
    pub blocks: Vec<Range<usize>>,
    /// Bytes of the largest block.
    pub block_bytes: u64,
    /// The memory of the run, two blocks and what is formed from one included.
    pub footprint: Footprint,
}

/// Cuts a file into blocks that fit in memory.
pub fn blocks<T: Real>(stream: &Stream, demand: &Demand) -> Result<Cut> {
    let lines = stream.lines();
    let longest = if stream.is_sparse() {
        (0..lines).map(|line| stream.bytes_of::<T>(line..line + 1)).max().unwrap_or(0)
    } else {
        stream.bytes_of::<T>(0..1)
    };
    let footprint = demand.footprint::<T>(stream);
    // Bytes of what is formed from a block, as a multiple of it.
    let ratios = match (demand.ratios, stream.is_bytes()) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => T::PRECISION.bytes(),
    };
    let room = demand.memory.saturating_sub(footprint.most()) / (2 + ratios);
    if longest > room {
        return Err(Error::Memory {
            what: format!("{}: streaming it", stream.path().display()),
            needed: footprint.most().saturating_add((2 + ratios) * longest),
            available: demand.memory,
            cure: Wording::new("raise ")
                .field("memory")
                .text(", lower ")
                .field("rank")
                .text(", or use ")
                .choice("precision", "f32"),
        });
    }
    // Plus a half: the allocator may keep the memory that a block had before it grew.
    let fitting = (room / 2).min(demand.largest_block).max(longest);
    let blocks = cut::<T>(stream, fitting);
    let block_bytes = blocks.iter().map(|lines| stream.bytes_of::<T>(lines.clone())).max().unwrap_or(0);
    Ok(Cut { blocks, block_bytes, footprint: Footprint { matrix: (2 + ratios) * block_bytes, ..footprint } })
}

/// Cuts lines into blocks of at most `bytes`, at least one line each. Dense blocks have a multiple of [`DEPTH`]
/// lines if that fits, so that sums over them have the bits of a product in memory.
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
