//! Estimates a factorization on a cluster: memory, bytes and seconds, from counts and constants of the machine.
//!
//! The model follows the drivers step by step (`run::method::exact`, `run::method::dsanls`): each piece of work has
//! a number of rows or entries and a time for each, and each collective the time that [`Network`] gives. Nonzeros
//! are assumed to be spread evenly.

mod calibrate;
mod constants;
mod fit;

pub use calibrate::{Effort, calibrate};
pub use constants::Constants;
pub use fit::check;

use crate::Precision;
use crate::comm::Network;
use crate::grid::Grid;
use crate::partition::Access;
use crate::run::{Algorithm, Footprint, Layout, MatrixSize, Plan, Settings, Storage, Workload};

/// An m x n matrix, and how it is to be factorized.
#[derive(Clone, Debug)]
pub struct Job {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries; `None` for a dense matrix.
    pub nonzeros: Option<usize>,
    /// Whether the entries of a dense matrix are bytes.
    pub bytes: bool,
    /// k and the sizes of sketches; the method is ignored.
    pub settings: Settings,
    /// Ranks.
    pub nodes: usize,
    /// The process grid of the exact methods; chosen by sizes if absent.
    pub grid: Option<Grid>,
    /// The type of the arithmetic.
    pub precision: Precision,
}

/// Seconds per iteration, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Products with M.
    pub product: f64,
    /// Updating the factors.
    pub solve: f64,
    /// Gram matrices.
    pub gram: f64,
    /// Drawing and applying sketches.
    pub sketch: f64,
    /// Messages without their content.
    pub latency: f64,
    /// The content of messages, adding it, and the memory for it.
    pub transfer: f64,
}

impl Parts {
    /// All parts by name.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("product", self.product),
            ("solve", self.solve),
            ("gram", self.gram),
            ("sketch", self.sketch),
            ("latency", self.latency),
            ("transfer", self.transfer),
        ]
    }

    /// The sum of all parts.
    pub fn seconds(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }

    /// The largest part.
    pub fn bottleneck(&self) -> &'static str {
        self.named().into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }
}

/// The estimate for a method.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The method; `auto` is the exact method.
    pub algorithm: Algorithm,
    /// The process grid.
    pub grid: Grid,
    /// Seconds per iteration on the busiest rank.
    pub parts: Parts,
    /// Bytes that a rank hands to collectives per iteration.
    pub bytes: u64,
    /// Bytes in memory.
    pub memory: Footprint,
}

/// Iterations of DSANLS with subsampling that equal one exact iteration of `auto`, to the error of HALS after 20
/// iterations (`docs/performance/network.csv`): if only one side is sketched, as on tall and wide matrices (3.9 and
/// 4.0 on `mnist`), and if both are (more than 83 on `rcv1` and 77 on `dblp`, where it was not reached).
pub const SKETCHED_ITERATIONS: (f64, f64) = (4.0, 80.0);

/// Exact iterations that a start on samples saves, and iterations on each sample, measured on `mnist`.
const SPARED_BY_SAMPLES: f64 = 10.0;
const ON_A_SAMPLE: f64 = 10.0;

impl Job {
    fn k(&self) -> f64 {
        self.settings.rank as f64
    }

    /// Bytes per number.
    fn width(&self) -> f64 {
        self.precision.bytes() as f64
    }

    fn stored(&self) -> f64 {
        self.nonzeros.map_or(self.rows as f64 * self.cols as f64, |count| count as f64)
    }

    /// Bytes of this many rows of a factor.
    fn bytes_of(&self, rows: usize) -> usize {
        rows.saturating_mul(self.settings.rank).saturating_mul(self.precision.bytes() as usize)
    }

    /// One of the methods that a plan includes: `auto` (exact), `hals` and `dsanls`.
    pub fn estimate(&self, algorithm: Algorithm, network: &Network, constants: &Constants) -> Estimate {
        let mut tally = Tally { job: self, network, constants, parts: Parts::default(), bytes: 0.0 };
        let grid = match algorithm.access() {
            Access::Sampled | Access::Lines => Grid::tall(self.nodes),
            Access::Whole => self.grid.unwrap_or_else(|| Grid::choose(self.rows, self.cols, self.nodes)),
        };
        match algorithm.access() {
            Access::Sampled => tally.sketched(),
            Access::Whole | Access::Lines => tally.exact(algorithm, grid),
        }
        // A core computes half as fast in f64, and memory holds half as many numbers.
        let slower = self.width() / 4.0;
        let Parts { product, solve, gram, sketch, latency, transfer } = tally.parts;
        let (product, solve) = (product * slower, solve * slower);
        let parts = Parts { product, solve, gram: gram * slower, sketch: sketch * slower, latency, transfer };
        let memory = self.memory(algorithm, grid);
        Estimate { algorithm, grid, parts, bytes: tally.bytes.round() as u64, memory }
    }

    /// The faster of `auto`'s two methods to the same error: exact on the grid, or sketched.
    pub fn best(&self, network: &Network, constants: &Constants) -> Algorithm {
        let seconds = |algorithm| self.estimate(algorithm, network, constants).parts.seconds();
        if seconds(Algorithm::Dsanls) * self.sketched_iterations() < seconds(Algorithm::Auto) {
            Algorithm::Dsanls
        } else {
            Algorithm::Auto
        }
    }

    /// Whether a start on samples pays. Every rank receives whole samples and computes the same on them, so that
    /// more ranks do not help.
    pub fn pays_samples(&self, network: &Network, constants: &Constants) -> bool {
        let (long, short) = (self.rows.max(self.cols), self.rows.min(self.cols));
        let plan = Plan::of(long, short, self.stored() as usize, self.settings.rank);
        let on_one = |rows: usize| {
            let job = Job { rows, cols: short, nodes: 1, grid: None, ..self.clone() };
            let bytes = job.bytes_of(rows) / self.settings.rank * short;
            let computed = job.estimate(Algorithm::Auto, network, constants).parts.seconds();
            network.all_reduce(self.nodes, bytes) + ON_A_SAMPLE * computed
        };
        let samples: f64 = plan.samples().iter().map(|&rows| on_one(rows)).sum();
        samples < SPARED_BY_SAMPLES * self.estimate(Algorithm::Auto, network, constants).parts.seconds()
    }

    /// Iterations of DSANLS that equal one of `auto`'s.
    pub fn sketched_iterations(&self) -> f64 {
        let (cols, rows) = self.settings.sketch_sizes(self.rows, self.cols);
        let (one_side, both) = SKETCHED_ITERATIONS;
        if cols == self.cols || rows == self.rows { one_side } else { both }
    }

    fn storage(&self) -> Storage {
        match self.nonzeros {
            Some(count) => Storage::Sparse(count),
            None if self.bytes => Storage::Bytes,
            None => Storage::Reals,
        }
    }

    fn memory(&self, algorithm: Algorithm, grid: Grid) -> Footprint {
        let Job { rows, cols, precision, .. } = *self;
        let size = MatrixSize { rows, cols, storage: self.storage() };
        let workload =
            Workload { size, algorithm, access: algorithm.access(), rank: self.settings.rank, precision };
        workload.footprint(&Layout::Node { grid, sketch: self.settings.sketch_sizes(rows, cols) })
    }
}

/// An iteration as the sum of its parts.
struct Tally<'a> {
    job: &'a Job,
    network: &'a Network,
    constants: &'a Constants,
    parts: Parts,
    bytes: f64,
}

/// One half of a sketched iteration.
struct SketchedHalf {
    /// Rows that are updated on each process.
    own: usize,
    /// Rows of the other factor, all of them.
    length: usize,
    /// Rows of one process.
    other: usize,
    /// Rows after sketching.
    size: usize,
}

/// One half of an iteration, which updates some rows of a factor.
#[derive(Clone, Copy)]
struct Half {
    /// Rows of the factor that a rank owns.
    own: usize,
    /// Rows that its block has.
    block: usize,
    /// Ranks that share these.
    mates: usize,
    /// Rows of the other factor that a rank owns, and that its block is multiplied with.
    other_own: usize,
    other_block: usize,
    /// Ranks from which these are gathered.
    sources: usize,
    sweeps: usize,
}

impl Tally<'_> {
    /// A collective: its time on this network, and its time with empty messages.
    fn collective(&mut self, bytes: usize, cost: impl Fn(&Network) -> f64) {
        let seconds = cost(self.network);
        let empty = Network { bandwidth: f64::INFINITY, combine: 0.0, ..*self.network };
        let latency = cost(&empty).min(seconds);
        self.parts.latency += latency;
        self.parts.transfer += seconds - latency;
        self.bytes += bytes as f64;
    }

    fn all_reduce(&mut self, size: usize, bytes: usize) {
        if size > 1 {
            self.collective(bytes, |network| network.all_reduce(size, bytes));
            self.parts.transfer += bytes as f64 * self.constants.of(&self.constants.reduced, bytes as f64);
        }
    }

    fn all_gather(&mut self, size: usize, rows: usize, own: usize) {
        if size > 1 {
            let (total, own) = (self.job.bytes_of(rows), self.job.bytes_of(own).min(self.job.bytes_of(rows)));
            self.collective(own, |network| network.all_gather(size, total, own));
            self.parts.transfer += total as f64 * self.constants.of(&self.constants.gathered, total as f64);
        }
    }

    fn gram(&mut self, rows: usize) {
        self.parts.gram += rows as f64 * self.constants.at(&self.constants.gram, self.job.k());
    }

    fn exact(&mut self, algorithm: Algorithm, grid: Grid) {
        let Job { rows: m, cols: n, nodes, .. } = *self.job;
        let with_momentum = algorithm == Algorithm::Auto;
        let sweeps = match algorithm {
            Algorithm::Auto => {
                let stored = self.job.stored() as usize;
                Plan::of(m, n, stored, self.job.settings.rank).sweeps()
            }
            _ => (1, 1),
        };
        let (own_rows, own_cols) = (m.div_ceil(nodes), n.div_ceil(nodes));
        let (block_rows, block_cols) = (m.div_ceil(grid.rows), n.div_ceil(grid.cols));
        self.exact_half(Half {
            own: own_rows,
            block: block_rows,
            mates: grid.cols,
            other_own: own_cols,
            other_block: block_cols,
            sources: grid.rows,
            sweeps: sweeps.0,
        });
        self.exact_half(Half {
            own: own_cols,
            block: block_cols,
            mates: grid.rows,
            other_own: own_rows,
            other_block: block_rows,
            sources: grid.cols,
            sweeps: sweeps.1,
        });
        let gram = 8 * self.job.settings.rank * self.job.settings.rank;
        self.gram(own_rows + own_cols);
        self.all_reduce(nodes, gram);
        self.all_reduce(nodes, gram);
        self.all_reduce(nodes, 8);
        if with_momentum {
            let momentum = self.constants.at(&self.constants.momentum, self.job.k());
            self.parts.solve += (own_rows + own_cols) as f64 * momentum;
            // V's Gram matrix is computed at V and at V_y.
            self.gram(own_cols);
            self.all_reduce(nodes, gram);
        }
    }

    fn exact_half(&mut self, half: Half) {
        let Half { own, block, mates, other_own, other_block, sources, sweeps } = half;
        let (job, constants, k) = (self.job, self.constants, self.job.k());
        self.all_gather(sources, other_block, other_own);
        self.parts.product += match job.nonzeros {
            Some(stored) => {
                let footprint = job.bytes_of(other_block) as f64;
                stored as f64 / job.nodes as f64 * constants.within(&constants.gather, k, footprint)
            }
            None => {
                let (tall, wide) = if job.bytes {
                    (&constants.bytes_tall, &constants.bytes_wide)
                } else {
                    (&constants.dense_tall, &constants.dense_wide)
                };
                let table = if block >= other_block { tall } else { wide };
                block as f64 * other_block as f64 * constants.at(table, k)
            }
        };
        if mates > 1 {
            let (total, smallest) = (job.bytes_of(block), job.bytes_of(own).min(job.bytes_of(block)));
            self.collective(total, |network| network.reduce_scatter(mates, total, smallest));
            self.parts.transfer += total as f64 * constants.of(&constants.scattered, total as f64);
            // Products are stored before they are summed, and the sums are passed on.
            self.parts.product += total as f64 * (constants.fresh + constants.copy);
        }
        self.solve(own, if mates > 1 { &constants.ready } else { &constants.row }, sweeps);
    }

    fn solve(&mut self, rows: usize, row: &[f64], sweeps: usize) {
        let (constants, k) = (self.constants, self.job.k());
        let sweep = constants.at(&constants.sweep, k);
        self.parts.solve += rows as f64 * (constants.at(row, k) + sweeps as f64 * sweep);
    }

    fn sketched(&mut self) {
        let Job { rows: m, cols: n, nodes, .. } = *self.job;
        let (cols, rows) = self.job.settings.sketch_sizes(m, n);
        self.sketched_half(SketchedHalf {
            own: m.div_ceil(nodes),
            length: n,
            other: n.div_ceil(nodes),
            size: cols,
        });
        self.sketched_half(SketchedHalf {
            own: n.div_ceil(nodes),
            length: m,
            other: m.div_ceil(nodes),
            size: rows,
        });
    }

    fn sketched_half(&mut self, half: SketchedHalf) {
        let SketchedHalf { own, length, other, size } = half;
        let (job, constants, k) = (self.job, self.constants, self.job.k());
        let b = job.bytes_of(size);
        let nodes = job.nodes;
        if size == length {
            self.all_gather(nodes, length, other);
            self.parts.sketch += b as f64 * (constants.fresh + constants.copy);
        } else {
            self.all_reduce(nodes, b);
            let drawn = size as f64 * constants.draw;
            self.parts.sketch += drawn + b as f64 * (2.0 * constants.fresh + 2.0 * constants.copy);
        }
        self.gram(size);
        let share = size as f64 / length as f64;
        match job.nonzeros {
            Some(stored) => {
                let footprint = job.bytes_of(own) as f64;
                let entries = stored as f64 / nodes as f64 * share;
                self.parts.product += entries * constants.within(&constants.scatter, k, footprint);
                self.parts.product += size as f64 * constants.pick;
                self.solve(own, &constants.ready, 1);
            }
            None => {
                let table = if job.bytes { &constants.bytes_sampled } else { &constants.dense_sampled };
                self.parts.product += own as f64 * size as f64 * constants.at(table, k);
                self.solve(own, &constants.row, 1);
            }
        }
    }
}
