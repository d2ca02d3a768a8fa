//! The memory of a factorization, by sizes alone: one model for in-process workers, for one process of a cluster
//! (which `plan` estimates and an MPI process is limited to) and for a streamed matrix.

use super::method::Algorithm;
use crate::grid::Grid;
use crate::io::stream::Stream;
use crate::kernels::TILE;
use crate::matrix::{Csr, Matrix, Observed, Shape, Values};
use crate::partition::{Access, Block, Shard};
use crate::{Precision, Real};

/// How the entries of a matrix are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// All of them, one byte each.
    Bytes,
    /// All of them, in the precision of the arithmetic.
    Reals,
    /// Some entries with their positions.
    Sparse(usize),
}

impl Storage {
    fn of<T>(values: &Values<T>) -> Self {
        if matches!(values, Values::Bytes(_)) { Storage::Bytes } else { Storage::Reals }
    }
}

/// The size of a matrix, and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSize {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// How its entries are held.
    pub storage: Storage,
}

impl MatrixSize {
    /// The size of a matrix in memory.
    pub fn of<T: Real>(matrix: &Matrix<T>) -> Self {
        let storage = match matrix {
            Matrix::Dense(dense) => Storage::of(dense.values()),
            Matrix::Sparse(csr) => Storage::Sparse(csr.stored()),
        };
        MatrixSize { rows: matrix.rows(), cols: matrix.cols(), storage }
    }

    /// The size of weighted entries.
    pub fn of_observed<T: Real>(observed: &Observed<T>) -> Self {
        let stored = observed.values().stored() * if observed.is_weighted() { 2 } else { 1 };
        MatrixSize { rows: observed.rows(), cols: observed.cols(), storage: Storage::Sparse(stored) }
    }

    /// The size without the kind of storage.
    pub fn shape(self) -> Shape {
        Shape { rows: self.rows, cols: self.cols }
    }

    /// The size of a streamed matrix, as if it were read as a whole.
    pub fn of_stream(stream: &Stream) -> Self {
        let storage = match (stream.is_sparse(), stream.is_bytes()) {
            (true, _) => Storage::Sparse(stream.stored()),
            (false, true) => Storage::Bytes,
            (false, false) => Storage::Reals,
        };
        MatrixSize { rows: stream.rows(), cols: stream.cols(), storage }
    }

    /// The size of the whole matrix of which a rank has a part.
    pub fn of_shard<T: Real>(shard: &Shard<T>) -> Self {
        let storage = match &shard.by_rows {
            Block::Dense(block) => Storage::of(&block.values),
            Block::ByRow(_) | Block::ByColumn(_) | Block::Observed(_) => Storage::Sparse(shard.stored),
        };
        MatrixSize { rows: shard.rows, cols: shard.cols, storage }
    }

    /// m + n, the rows of both factors.
    fn sides(&self) -> u64 {
        (self.rows as u64).saturating_add(self.cols as u64)
    }

    fn longer(&self) -> u64 {
        self.rows.max(self.cols) as u64
    }
}

/// The matrix and the parameters that determine the memory of a factorization.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The matrix.
    pub size: MatrixSize,
    /// The method.
    pub algorithm: Algorithm,
    /// How it reads M: [`Settings::access`](super::Settings::access).
    pub access: Access,
    /// k.
    pub rank: usize,
    /// The type of the arithmetic.
    pub precision: Precision,
}

/// How the data are distributed.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// Workers of one process, which distributes the matrix to them.
    Workers(usize),
    /// One process of a cluster, which reads only its part.
    Node {
        /// The process grid.
        grid: Grid,
        /// Columns and rows of M that sketches keep.
        sketch: (usize, usize),
    },
    /// One process that streams the matrix.
    Streamed {
        /// Threads that compute.
        threads: usize,
        /// The number of copies of U and V.
        copies: u64,
        /// Length of a line of the file.
        line_length: usize,
        /// Bytes that are kept of the file, and by the caller.
        kept: u64,
    },
}

/// Bytes in one process, or on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The parts of M; for a streamed matrix, two of its blocks.
    pub matrix: u64,
    /// Rows of factors, products, sketches, while it iterates.
    pub iterating: u64,
    /// Both factors, gathered on one process for saving.
    pub saving: u64,
}

impl Footprint {
    /// The peak.
    pub fn most(&self) -> u64 {
        self.matrix.saturating_add(self.working())
    }

    /// Bytes of all but M, at most.
    pub fn working(&self) -> u64 {
        self.iterating.max(self.saving)
    }
}

/// The maximum number of partial sums of a Gram matrix, and of Gram matrices that a rank keeps.
const PARTIAL_GRAMS: u64 = 32;
const KEPT_GRAMS: u64 = 6;

/// The memory of the program itself and of each thread, where a limit applies to the whole process.
const OWN: u64 = 8 << 20;
const OWN_THREAD: u64 = 1 << 20;

impl Workload {
    /// The memory of one process.
    pub fn footprint(&self, layout: &Layout) -> Footprint {
        match *layout {
            Layout::Workers(workers) => self.on_workers(workers),
            Layout::Node { grid, sketch } => self.on_node(grid, sketch.0.max(sketch.1)),
            Layout::Streamed { threads, copies, line_length, kept } => {
                let iterating = self.streamed(threads as u64, copies, line_length as u64);
                Footprint { matrix: 0, iterating: iterating.saturating_add(kept), saving: 0 }
            }
        }
    }

    fn width(&self) -> u64 {
        self.precision.bytes()
    }

    /// Bytes of this many rows of a factor.
    fn factor(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.rank as u64).saturating_mul(self.width())
    }

    /// Bytes of this many k x k matrices in f64.
    fn grams(&self, count: u64) -> u64 {
        (self.rank as u64).saturating_mul(self.rank as u64).saturating_mul(8 * count)
    }

    /// Bytes of a dense entry.
    fn entry(&self) -> u64 {
        if self.size.storage == Storage::Bytes { 1 } else { self.width() }
    }

    /// Bytes of compressed rows.
    fn csr(&self, rows: usize, stored: usize) -> u64 {
        match self.precision {
            Precision::F32 => Csr::<f32>::bytes_for(rows, stored),
            Precision::F64 => Csr::<f64>::bytes_for(rows, stored),
        }
    }

    /// The stored parts of M (including the distribution to several workers), the factors, and what is computed.
    fn on_workers(&self, workers: usize) -> Footprint {
        let MatrixSize { rows, cols, storage } = self.size;
        let matrix = match storage {
            Storage::Bytes | Storage::Reals => {
                let copies = match (workers, self.access) {
                    (1, Access::Whole | Access::Lines) => 1,
                    (1, Access::Sampled) => 2,
                    _ => 3,
                };
                (rows as u64).saturating_mul(cols as u64).saturating_mul(copies * self.entry())
            }
            // M and its transpose, twice while they are distributed.
            Storage::Sparse(stored) => {
                (self.csr(rows, stored) + self.csr(cols, stored)) * if workers == 1 { 1 } else { 2 }
            }
        };
        let (workers, rank) = (workers as u64, self.rank as u64);
        let factors = self.factor(self.size.sides()).saturating_mul(2);
        // Each worker's gathered copy of one factor, in f64 too while the error is evaluated.
        let gathered = self.size.longer().saturating_mul(rank).saturating_mul(workers * (self.width() + 8));
        // These matter if k is far above the sides of M.
        let partial = (self.size.longer() / workers.max(1)).div_ceil(64).min(PARTIAL_GRAMS);
        let grams = self.grams((partial + KEPT_GRAMS) * workers);
        let iterating = factors.saturating_add(gathered).saturating_add(grams);
        Footprint { matrix, iterating, saving: 0 }
    }

    fn on_node(&self, grid: Grid, largest_sketch: usize) -> Footprint {
        let MatrixSize { rows: m, cols: n, storage } = self.size;
        let nodes = grid.size();
        let (block_rows, block_cols) = (m.div_ceil(grid.rows), n.div_ceil(grid.cols));
        let (own_rows, own_cols) = (m.div_ceil(nodes), n.div_ceil(nodes));
        let share = |stored: f64| (stored / nodes as f64).ceil();
        let dense = |copies: f64| (copies * share(m as f64 * n as f64) * self.entry() as f64) as u64;
        let (matrix, gathered) = match (self.access, storage) {
            (Access::Whole | Access::Lines, Storage::Sparse(stored)) => {
                let stored = share(stored as f64) as usize;
                (self.csr(block_rows, stored) + self.csr(block_cols, stored), 0)
            }
            (Access::Sampled, Storage::Sparse(stored)) => {
                let stored = share(stored as f64) as usize;
                (self.csr(n, stored) + self.csr(m, stored), own_rows.max(own_cols))
            }
            (Access::Whole, _) => (dense(1.0), 0),
            (Access::Sampled | Access::Lines, _) => (dense(2.0), 0),
        };
        // Own rows, with momentum twice; what is gathered, products that are summed; B, S B and what is drawn.
        let own = (own_rows + own_cols) * if self.algorithm == Algorithm::Auto { 2 } else { 1 };
        let scratch = match self.access {
            // All rows of the fixed factor.
            Access::Lines => m.max(n) * usize::from(nodes > 1),
            Access::Whole => {
                let summed = |count: usize, rows: usize| if count > 1 { 2 * rows } else { 0 };
                let u = block_cols * usize::from(grid.rows > 1) + summed(grid.cols, block_rows);
                let v = block_rows * usize::from(grid.cols > 1) + summed(grid.rows, block_cols);
                u.max(v)
            }
            Access::Sampled => 4 * largest_sketch,
        };
        let iterating = self.factor((own + scratch + gathered) as u64);
        Footprint {
            matrix,
            iterating: iterating.saturating_add(self.grams(PARTIAL_GRAMS + KEPT_GRAMS)),
            saving: self.factor(self.size.sides()).saturating_mul(3),
        }
    }

    /// Everything except the blocks of the file, the program itself included, because a limit applies to all of it.
    fn streamed(&self, threads: u64, copies: u64, line_length: u64) -> u64 {
        let sides = self.size.sides();
        let factors = self.factor(sides).saturating_mul(copies);
        // Panels of the other factor's rows, of which the entry family has one for all threads and one for each.
        let panels = if self.access == Access::Lines { 1 + threads } else { 0 };
        let sums = self.factor(line_length).saturating_mul(1 + panels);
        // Sums of rows and columns exist before the factors; the record of empty ones stays.
        let survey = sides.saturating_mul(16);
        let flags = sides.saturating_mul(2);
        // Partial sums of a Gram matrix, a thread's own, and what a method keeps.
        let grams = self.grams(PARTIAL_GRAMS + KEPT_GRAMS + 2 * threads);
        let tiles = threads.saturating_mul(OWN_THREAD + 4 * TILE as u64 * self.rank as u64 * 8);
        [survey.max(factors.saturating_add(sums)), grams, tiles, flags]
            .into_iter()
            .fold(OWN, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(algorithm: Algorithm, storage: Storage) -> Workload {
        let size = MatrixSize { rows: 70_000, cols: 784, storage };
        Workload { size, algorithm, access: algorithm.access(), rank: 20, precision: Precision::F32 }
    }

    #[test]
    fn bytes_take_a_quarter_of_reals_wherever_they_are() {
        let node = Layout::Node { grid: Grid::tall(4), sketch: (78, 7000) };
        for algorithm in Algorithm::ALL {
            for layout in [Layout::Workers(1), Layout::Workers(4), node] {
                let of = |storage| workload(*algorithm, storage).footprint(&layout);
                let (bytes, reals) = (of(Storage::Bytes), of(Storage::Reals));
                assert_eq!(4 * bytes.matrix, reals.matrix, "{algorithm:?} {layout:?}");
                assert_eq!(bytes.working(), reals.working(), "{algorithm:?} {layout:?}");
            }
        }
    }

    /// A limit that suffices for the whole matrix in memory also suffices for streaming it.
    #[test]
    fn a_stream_takes_no_more_than_the_matrix_in_memory() {
        for algorithm in [Algorithm::Hals, Algorithm::Dsanls] {
            let workload = workload(algorithm, Storage::Reals);
            let streamed = Layout::Streamed { threads: 2, copies: 1, line_length: 784, kept: 0 };
            assert!(workload.footprint(&streamed).most() < workload.footprint(&Layout::Workers(1)).most());
        }
    }

    #[test]
    fn absurd_sizes_saturate() {
        let size = MatrixSize { rows: usize::MAX / 4, cols: usize::MAX / 4, storage: Storage::Reals };
        let (algorithm, access) = (Algorithm::Auto, Access::Lines);
        let workload = Workload { size, algorithm, access, rank: 1 << 40, precision: Precision::F64 };
        assert_eq!(workload.footprint(&Layout::Workers(3)).most(), u64::MAX);
    }
}
