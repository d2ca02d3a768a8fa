//! Measures the machine: the kernels of an iteration at several sizes, and the network.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use super::Constants;
use crate::comm::{Comm, Numbers, Reduction, Tag, gather_shares, owned};
use crate::error::Result;
use crate::kernels::{Columns, Product, gram};
use crate::matrix::{Csr, Values};
use crate::partition::{Block, DenseBlock};
use crate::random::{Purpose, stream, uniform};
use crate::sketch::{Distribution, SketchKind};
use crate::solver::{CoordinateDescent, MovingRows, Penalty, Problem, update};
use crate::threads::{PoolTime, Threads, thread_time};

const KS: [usize; 5] = [8, 20, 50, 100, 200];

const FOOTPRINTS: [usize; 5] = [1 << 17, 1 << 20, 1 << 22, 1 << 24, 1 << 27];

/// The number of rows of a factor.
const ROWS: usize = 1 << 16;

/// The longer and the shorter side of a dense block.
const DENSE: (usize, usize) = (1 << 14, 768);

/// The number of entries of a sparse block, and of each of its rows.
const ENTRIES: usize = 1 << 18;
const A_ROW: usize = 32;

/// How thorough the measurement is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of consecutive measurements, of which the shortest counts, and of rounds, of which the median
    /// counts, since disturbances last for a while.
    pub repeats: usize,
    /// The divisor of sizes; more than 1 for trials only.
    pub divisor: usize,
}

impl Effort {
    /// Accurate enough for predictions.
    pub const FULL: Effort = Effort { repeats: 3, divisor: 1 };
}

/// A rank that is measured by the processor time of its threads, so that other work on the machine has little effect.
struct Bench {
    threads: Threads,
    pool: PoolTime,
    effort: Effort,
}

impl Bench {
    fn rows(&self) -> usize {
        ROWS / self.effort.divisor
    }

    fn entries(&self) -> usize {
        ENTRIES / self.effort.divisor
    }

    fn best(&self, mut work: impl FnMut()) -> f64 {
        // The first run has cold caches and unmapped memory.
        work();
        let now = || thread_time() + self.pool.seconds();
        let time = |_| {
            let begin = now();
            work();
            now() - begin
        };
        (0..self.effort.repeats).map(time).fold(f64::INFINITY, f64::min)
    }
}

fn numbers(count: usize) -> Vec<f32> {
    let mut rng = stream(1, Purpose::StartU, 0, 0);
    (0..count).map(|_| uniform(&mut rng) as f32).collect()
}

/// A sparse block with this many rows, and this many random entries per row.
fn sparse(rows: usize, cols: usize, entries: usize) -> Csr<f32> {
    let mut rng = stream(2, Purpose::StartU, 0, 0);
    let mut indices = Vec::with_capacity(rows * entries);
    for _ in 0..rows {
        let mut row: Vec<u32> = (0..entries).map(|_| (uniform(&mut rng) * cols as f64) as u32).collect();
        row.iter_mut().for_each(|col| *col = (*col).min(cols as u32 - 1));
        row.sort_unstable();
        indices.extend(row);
    }
    let offsets = (0..=rows).map(|row| row * entries).collect();
    Csr::new(rows, cols, offsets, indices, numbers(rows * entries))
}

fn empty(rows: usize, cols: usize) -> Arc<Csr<f32>> {
    Arc::new(Csr::new(rows, cols, vec![0; rows + 1], Vec::new(), Vec::new()))
}

/// The number of bytes that are copied, gathered and summed.
const LARGE: usize = 64 << 20;

/// Measures; every rank calls this at the same time, and the slowest counts.
pub fn calibrate(comm: &dyn Comm, threads: usize, effort: Effort) -> Result<Constants> {
    let (threads, pool) = Threads::new(threads)?.timed();
    let bench = Bench { threads, pool, effort };
    let mut rounds: Vec<Constants> = (0..effort.repeats).map(|_| bench.work(comm.size())).collect();
    let mut constants = rounds[0].clone();
    let mut found: Vec<_> = rounds.iter_mut().map(|round| times(round).into_iter()).collect();
    for time in times(&mut constants) {
        let mut all: Vec<f64> = found.iter_mut().filter_map(|round| round.next().copied()).collect();
        all.sort_by(f64::total_cmp);
        *time = all[all.len() / 2];
    }
    slowest(comm, &mut constants)?;
    // Gathered data go to new memory; reduced data are copied there first, and summed in additional memory.
    let Constants { copy, fresh, .. } = constants;
    let all = |time: f64| vec![time; FOOTPRINTS.len()];
    (constants.gathered, constants.scattered, constants.reduced) =
        (all(fresh), all(2.0 * fresh + copy), all(fresh));
    if comm.size() > 1 {
        let (latency, bandwidth) = network(comm, effort)?;
        (constants.latency, constants.bandwidth) = (Some(latency), Some(bandwidth));
        collectives(comm, effort, &mut constants)?;
    }
    Ok(constants)
}

impl Bench {
    /// The times of a rank's work, without messages.
    fn work(&self, ranks: usize) -> Constants {
        let by_k = |table: fn(&Bench, usize) -> f64| KS.iter().map(|&k| table(self, k)).collect::<Vec<f64>>();
        let row = by_k(|bench, k| bench.solve(k, 0));
        let less = |with: Vec<f64>| {
            with.iter().zip(&row).map(|(with, row)| (with - row).max(0.0)).collect::<Vec<f64>>()
        };
        let (sweep, momentum) = (less(by_k(|bench, k| bench.solve(k, 3))), less(by_k(Bench::momentum)));
        let entries = numbers(DENSE.0 / self.effort.divisor * DENSE.1);
        let bytes = entries.iter().map(|&entry| (255.0 * entry) as u8).collect::<Vec<u8>>();
        let [dense_tall, dense_wide, dense_sampled] = self.dense(&Arc::new(Values::Real(entries.into())));
        let [bytes_tall, bytes_wide, bytes_sampled] = self.dense(&Arc::new(Values::Bytes(bytes.into())));
        let mut constants = Constants {
            ranks,
            threads: self.threads.count(),
            ks: KS.iter().map(|&k| k as f64).collect(),
            footprints: FOOTPRINTS.iter().map(|&bytes| bytes as f64).collect(),
            sweep: sweep.iter().map(|three| three / 3.0).collect(),
            momentum,
            ready: by_k(Bench::ready),
            gram: by_k(Bench::gram),
            dense_tall,
            dense_wide,
            dense_sampled,
            bytes_tall,
            bytes_wide,
            bytes_sampled,
            gather: Vec::new(),
            scatter: Vec::new(),
            pick: self.pick(),
            draw: self.draw(),
            copy: self.copy(),
            fresh: self.fresh(),
            combine: self.combine(),
            gathered: Vec::new(),
            scattered: Vec::new(),
            reduced: Vec::new(),
            latency: None,
            bandwidth: None,
            row,
        };
        for (&k, &row) in KS.iter().zip(&constants.row) {
            let lines = FOOTPRINTS.map(|bytes| bytes / size_of::<f32>() / k);
            constants.gather.push(lines.iter().map(|&lines| self.gather(k, lines, row)).collect());
            constants.scatter.push(lines.iter().map(|&lines| self.scatter(k, lines)).collect());
        }
        constants
    }

    /// Seconds of a product with a block and some sweeps.
    fn half(&self, block: &Block<f32>, columns: Columns<'_>, width: usize, k: usize, sweeps: usize) -> f64 {
        let (mut factor, weights) = (numbers(block.rows() * k), numbers(width * k));
        let gram = gram(&self.threads, &factor[..64.min(block.rows()) * k], k);
        let solver = CoordinateDescent { mu: 0.0, sweeps };
        let problem = Problem { solver: &solver, gram: &gram, terms: Penalty::NONE };
        self.best(|| {
            let product = Product::new(&self.threads, block, columns, &weights, k);
            black_box(update(&self.threads, &problem, &product, MovingRows::plain(&mut factor), k));
        })
    }

    /// Seconds per row.
    fn solve(&self, k: usize, sweeps: usize) -> f64 {
        self.half(&Block::ByRow(empty(self.rows(), 1)), Columns::All, 1, k, sweeps) / self.rows() as f64
    }

    fn ready(&self, k: usize) -> f64 {
        // Enough rows to exceed the cache: the product is cleared, added to, and read again.
        let rows = 4 * self.rows();
        self.half(&Block::ByColumn(empty(1, rows)), Columns::All, 1, k, 0) / rows as f64
    }

    fn momentum(&self, k: usize) -> f64 {
        let (mut factor, mut last, weights) =
            (numbers(self.rows() * k), numbers(self.rows() * k), numbers(k));
        let solver = CoordinateDescent { mu: 0.0, sweeps: 0 };
        let problem = Problem { solver: &solver, gram: &vec![1.0; k * k], terms: Penalty::NONE };
        let block = Block::ByRow(empty(self.rows(), 1));
        let seconds = self.best(|| {
            let product = Product::new(&self.threads, &block, Columns::All, &weights, k);
            let moving = MovingRows { factor: &mut factor, momentum: Some((0.0, &mut last)) };
            black_box(update(&self.threads, &problem, &product, moving, k));
        });
        seconds / self.rows() as f64
    }

    fn gram(&self, k: usize) -> f64 {
        let factor = numbers(self.rows() * k);
        self.best(|| drop(black_box(gram(&self.threads, &factor, k)))) / self.rows() as f64
    }

    /// Seconds per entry of a tall block, a wide one, and a sampled one, by k.
    fn dense(&self, values: &Arc<Values<f32>>) -> [Vec<f64>; 3] {
        let (long, short) = (DENSE.0 / self.effort.divisor, DENSE.1);
        let block = |rows, cols, row_stride, col_stride| {
            Block::Dense(DenseBlock { rows, cols, row_stride, col_stride, values: values.clone() })
        };
        let picked: Vec<usize> = (0..short).step_by(2).collect();
        let by_k = |block: &Block<f32>, columns: Columns<'_>, width: usize| {
            KS.map(|k| self.half(block, columns, width, k, 0) / (block.rows() * width) as f64).to_vec()
        };
        [
            by_k(&block(long, short, short, 1), Columns::All, short),
            by_k(&block(short, long, 1, short), Columns::All, long),
            by_k(&block(long, short, 1, long), Columns::Some(&picked), picked.len()),
        ]
    }

    /// Seconds per entry that picks one of `lines` rows of weights.
    fn gather(&self, k: usize, lines: usize, row: f64) -> f64 {
        let rows = self.entries() / A_ROW;
        let block = Block::ByRow(Arc::new(sparse(rows, lines, A_ROW)));
        let seconds = self.half(&block, Columns::All, lines, k, 0) - row * rows as f64;
        seconds.max(0.0) / self.entries() as f64
    }

    /// Seconds of `count` columns of a sample of a tenth, each with this many entries that are added to `lines` rows.
    fn sampled(&self, k: usize, lines: usize, count: usize, entries: usize) -> f64 {
        let block = Block::ByColumn(Arc::new(sparse(10 * count, lines, entries)));
        let (nothing, weights) = (Block::ByColumn(empty(10 * count, lines)), numbers(count * k));
        // Other columns each time, as in a run, so that they come from memory.
        let pick = |turn: usize| (0..count).map(|place| 10 * place + (place * 7 + turn) % 10).collect();
        let picks: Vec<Vec<usize>> = (0..10).map(pick).collect();
        let time = |block: &Block<f32>| {
            let mut picks = picks.iter().cycle();
            self.best(|| {
                let columns = Columns::Some(picks.next().map_or(&[], Vec::as_slice));
                drop(black_box(Product::new(&self.threads, block, columns, &weights, k)))
            })
        };
        (time(&block) - time(&nothing)).max(0.0)
    }

    /// Seconds per entry that is added to one of `lines` rows of a product.
    fn scatter(&self, k: usize, lines: usize) -> f64 {
        let count = self.entries() / A_ROW;
        self.sampled(k, lines, count, A_ROW) / (count * A_ROW) as f64
    }

    /// Seconds per column of a sample, without its entries.
    fn pick(&self) -> f64 {
        let (k, count) = (8, self.entries() / A_ROW);
        let of = |entries| self.sampled(k, 1 << 10, count, entries) / count as f64;
        let (few, more) = (of(2), of(A_ROW));
        (few - 2.0 * (more - few) / (A_ROW - 2) as f64).max(0.0)
    }

    fn draw(&self) -> f64 {
        let (length, size) = (100_000, 10_000);
        let (kind, purpose) = (SketchKind::Subsample, Purpose::SketchU);
        let distribution = Distribution { kind, length, size, seed: 0, purpose };
        self.best(|| drop(black_box(distribution.choose(0)))) / size as f64
    }

    fn copy(&self) -> f64 {
        let from = vec![1u8; LARGE / self.effort.divisor];
        let mut to = vec![0u8; from.len()];
        self.best(|| black_box(&mut to).copy_from_slice(black_box(&from))) / from.len() as f64
    }

    fn fresh(&self) -> f64 {
        let bytes = LARGE / self.effort.divisor;
        self.best(|| drop(black_box(vec![1u8; bytes]))) / bytes as f64
    }

    fn combine(&self) -> f64 {
        let bytes = LARGE / 4 / self.effort.divisor;
        let (from, mut to) = (numbers(bytes / 4), numbers(bytes / 4));
        let seconds = self.best(|| {
            black_box(&mut to).iter_mut().zip(black_box(&from)).for_each(|(sum, value)| *sum += value);
        });
        seconds / bytes as f64
    }
}

/// The measured times of work.
fn times(constants: &mut Constants) -> Vec<&mut f64> {
    let Constants { row, ready, sweep, momentum, gram, .. } = constants;
    let by_k = [row, ready, sweep, momentum, gram];
    let dense = [&mut constants.dense_tall, &mut constants.dense_wide, &mut constants.dense_sampled];
    let bytes = [&mut constants.bytes_tall, &mut constants.bytes_wide, &mut constants.bytes_sampled];
    let sparse = constants.gather.iter_mut().chain(&mut constants.scatter);
    let tables = by_k.into_iter().chain(dense).chain(bytes).chain(sparse).flatten();
    let Constants { pick, draw, copy, fresh, combine, .. } = constants;
    tables.chain([pick, draw, copy, fresh, combine]).collect()
}

/// The slowest rank's value of each constant.
fn slowest(comm: &dyn Comm, constants: &mut Constants) -> Result<()> {
    let mut all = times(constants);
    let mut times: Vec<f64> = all.iter().map(|time| **time).collect();
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut times))?;
    all.iter_mut().zip(times).for_each(|(target, time)| **target = time);
    Ok(())
}

/// (latency, bandwidth) between ranks 0 and 1, 2 and 3, and so on, at the same time; the slowest pair counts.
fn network(comm: &dyn Comm, effort: Effort) -> Result<(f64, f64)> {
    let (rank, peer) = (comm.rank(), comm.rank() ^ 1);
    // Seconds of a message, half a round trip.
    let message = |bytes: usize, times: usize| -> Result<f64> {
        if peer >= comm.size() {
            return Ok(0.0);
        }
        let begin = Instant::now();
        for _ in 0..times {
            if rank < peer {
                comm.send(peer, Tag::Gather, vec![0; bytes])?;
                comm.receive(peer, Tag::Gather)?;
            } else {
                let message = comm.receive(peer, Tag::Gather)?;
                comm.send(peer, Tag::Gather, message)?;
            }
        }
        Ok(begin.elapsed().as_secs_f64() / (2 * times) as f64)
    };
    const MESSAGE: usize = 4 << 20;
    message(8, 10)?;
    let (mut latency, mut large) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..effort.repeats {
        latency = latency.min(message(8, 100)?);
        large = large.min(message(MESSAGE, 4)?);
    }
    let mut worst = [latency, large];
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut worst))?;
    let [latency, large] = worst;
    Ok((latency, MESSAGE as f64 / (large - latency).max(1e-12)))
}

/// The time per byte of each collective in addition to the network's: copies, new memory, sums that are not
/// overlapped.
fn collectives(comm: &dyn Comm, effort: Effort, constants: &mut Constants) -> Result<()> {
    let Some(network) = constants.network() else { return Ok(()) };
    // Ranks start together, and the slowest counts.
    let time = |work: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..=3 * effort.repeats {
            comm.all_gather(&[])?;
            let begin = Instant::now();
            work()?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        let mut worst = [best];
        comm.all_reduce(Reduction::Max, Numbers::F64(&mut worst))?;
        Ok(worst[0])
    };
    for (place, footprint) in FOOTPRINTS.into_iter().enumerate() {
        let (size, count) = (comm.size(), footprint / effort.divisor / size_of::<f32>());
        let counts: Vec<usize> = (0..size).map(|rank| owned(count, rank, size).len()).collect();
        let (bytes, smallest) = (4 * count, 4 * counts.iter().copied().min().unwrap_or(0));
        let own = numbers(counts[comm.rank()]);
        let gathered = time(&mut || gather_shares(comm, &own, &counts).map(|all| drop(black_box(all))))?;
        let mut sums = numbers(count);
        let scattered = time(&mut || comm.reduce_scatter(Numbers::F32(&mut sums), &counts))?;
        let reduced = time(&mut || comm.all_reduce(Reduction::Sum, Numbers::F32(&mut sums)))?;
        let beside = |measured: f64, modelled: f64| (measured - modelled).max(0.0) / bytes as f64;
        constants.gathered[place] = beside(gathered, network.all_gather(size, bytes, smallest));
        constants.scattered[place] = beside(scattered, network.reduce_scatter(size, bytes, smallest));
        constants.reduced[place] = beside(reduced, network.all_reduce(size, bytes));
    }
    Ok(())
}
