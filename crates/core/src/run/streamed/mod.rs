//! Factorizes a streamed matrix: every iteration is one pass over its blocks, which serves both products.
//!
//! Let X be the factor whose rows belong to the file's lines (U if lines are rows of M) and Y the other. A pass
//! takes block after block M_b, updates the rows X_b from P_b = M_b Y, and adds M_bᵀ X_b to the sums from which Y
//! is updated next. The iterates are those of the same method in memory.

mod exact;
mod plan;
mod sampled;
mod survey;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use exact::{Exact, Solvers};
pub use plan::Demand;
pub use sampled::Sampled;

use super::evaluate::{Evaluation, dead};
use super::start::{FactorRows, MatrixStats};
use super::{Phases, Settings};
use crate::Real;
use crate::device::{MovingRows, update_tiles};
use crate::error::Result;
use crate::grid::{Grid, Placement};
use crate::io::stream::Stream;
use crate::kernels::{Columns, Product, gram_in_f64, multiply_add};
use crate::matrix::{Csr, Dominants};
use crate::objective::losses::{crosses, quadratic_forms, residuals};
use crate::objective::{Baseline, Constants, HalfStep, Objective, relative_error};
use crate::partition::{Access, Block, Shard};
use crate::run::memory::Footprint;
use crate::run::scale::scale_columns;
use crate::threads::Threads;

/// A file, cut into blocks that fit in memory, and scanned once.
#[derive(Debug)]
pub struct Streamed {
    stream: Stream,
    blocks: Vec<Range<usize>>,
    block_bytes: u64,
    footprint: Footprint,
    pub(super) known: MatrixStats,
    largest: f64,
    dominant: Dominants,
    passes: AtomicU64,
}

/// The input of a pass.
struct PassOver<'a, T> {
    /// What is minimized.
    objective: &'a dyn Objective<T>,
    /// The factor of the file's lines.
    x: &'a mut [T],
    /// The other one.
    y: &'a [T],
    /// Receives Mᵀ X, or the sums over X of what the objective has in the place of M.
    sums: &'a mut [T],
    /// The factors by which the columns of X are multiplied before they are summed, if they could overflow.
    scales: Option<&'a [f64]>,
    /// Number of components.
    k: usize,
}

impl Streamed {
    /// Cuts the file into blocks and reads it once: every entry is checked, and the sums for a start are computed.
    pub fn new<T: Real>(stream: Stream, demand: &Demand) -> Result<Self> {
        let plan::Cut { blocks, block_bytes, footprint } = plan::blocks::<T>(&stream, demand)?;
        let threads = Threads::new(demand.threads)?;
        let survey::Survey { known, largest, dominant } = survey::survey::<T>(&stream, &blocks, &threads)?;
        let passes = AtomicU64::new(1);
        Ok(Streamed { stream, blocks, block_bytes, footprint, known, largest, dominant, passes })
    }

    /// The file.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The largest entry.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// The row and the column that dominate.
    pub fn dominant(&self) -> Dominants {
        self.dominant
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of the largest block in memory; two blocks exist at a time.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The memory of a run.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Passes over the file so far.
    pub fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// The settings adapted to this file: with DSANLS, the side of whole lines is not sketched.
    pub fn adjusted(&self, settings: Settings) -> Settings {
        sampled::adjusted(self, settings)
    }

    /// Refuses sketches that cannot be drawn from whole lines of a file.
    pub(super) fn check_sketch(&self, settings: &Settings) -> Result<()> {
        sampled::check(self, settings)
    }

    /// (X, Y) of (U, V), and back.
    fn sides<F>(&self, u: F, v: F) -> (F, F) {
        if self.stream.by_columns() { (v, u) } else { (u, v) }
    }

    /// The blocks within some lines.
    fn blocks_of(&self, lines: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.blocks.partition_point(|block| block.end <= lines.start);
        let within = self.blocks[first..].iter().take_while(|block| block.start < lines.end);
        within.map(|block| block.start.max(lines.start)..block.end.min(lines.end))
    }

    /// Passes on each block, by line and transposed, and records the waiting time.
    fn pass<T: Real>(
        &self,
        blocks: &[Range<usize>],
        phases: &mut Phases,
        mut take: impl FnMut(Range<usize>, &Block<T>, &Block<T>, &mut Phases),
    ) -> Result<()> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let waited: Duration = self.stream.pass(blocks, |lines, matrix| {
            let (by_line, turned) = Block::both_ways(matrix);
            take(lines, &by_line, &turned, phases);
            Ok(by_line.into_matrix(turned))
        })?;
        phases.read += waited.as_secs_f64();
        Ok(())
    }

    /// One pass over some blocks, in order: X ← a half step on their lines, if there is one, and `sums` ← what a step of Y
    /// takes from them.
    /// Returns ⟨M Y, X⟩ with the new X.
    fn step<T: Real>(
        &self,
        threads: &Threads,
        blocks: &[Range<usize>],
        half_step: Option<&HalfStep<'_, T>>,
        pass: PassOver<'_, T>,
        phases: &mut Phases,
    ) -> Result<f64> {
        let PassOver { objective, x, y, sums, scales, k } = pass;
        sums.fill(T::ZERO);
        let mut cross = 0.0;
        let mut scaled = Vec::new();
        self.pass(blocks, phases, |lines, by_line, turned, phases| {
            let x = &mut x[lines.start * k..lines.end * k];
            if let Some(half_step) = half_step {
                let product = Product::new(threads, by_line, Columns::All, y, k);
                let updated = update_tiles(threads, objective, half_step, &product, MovingRows::plain(x));
                phases.add(&updated);
                cross += updated.cross;
            }
            let summand = phases.product(|| objective.summand(threads, by_line, x, y, k));
            let summand = summand.map(|matrix| Block::both_ways(matrix).1);
            let x = match scales {
                None => &*x,
                Some(scales) => {
                    scaled.clear();
                    scaled.extend_from_slice(x);
                    scale_columns(&mut scaled, scales);
                    &scaled
                }
            };
            phases.product(|| multiply_add(threads, summand.as_ref().unwrap_or(turned), x, k, sums));
        })?;
        Ok(cross)
    }

    /// One pass that evaluates the factors.
    pub(super) fn evaluate<T: Real>(
        &self,
        threads: &Threads,
        objective: &dyn Objective<T>,
        constants: Constants,
        state: &FactorRows<T>,
        k: usize,
    ) -> Result<Evaluation> {
        if objective.baseline() == Baseline::Norm {
            return self.evaluate_squares(threads, constants, state, k);
        }
        let (u, v) = (state.u.host(), state.v.host());
        let (x, y) = self.sides(u, v);
        let of_v = objective.summarize_exactly(threads, v, k);
        let of_y =
            if self.stream.by_columns() { objective.summarize_exactly(threads, u, k) } else { of_v.clone() };
        let (mut entries, mut model) = (0.0, 0.0);
        self.pass(&self.blocks, &mut Phases::default(), |lines, by_line, _, _| {
            let x = &x[lines.start * k..lines.end * k];
            objective.entry_losses(threads, by_line, x, y, k).iter().for_each(|term| entries += term);
            objective.model_losses(threads, x, &of_y, k).iter().for_each(|term| model += term);
        })?;
        let error = objective.relative_error(constants, entries, model);
        Ok(Evaluation { error, dead: dead(objective.squared_sizes(&of_v, k), k) })
    }

    /// The numbers of M with the loss that errors are relative to, by one pass.
    pub(super) fn with_baseline<T: Real>(
        &self,
        threads: &Threads,
        objective: &dyn Objective<T>,
        constants: Constants,
    ) -> Result<Constants> {
        if objective.baseline() == Baseline::Norm {
            return Ok(constants);
        }
        let ones = vec![T::ONE; self.stream.rows()];
        let means = vec![T::from_f64(constants.mean); self.stream.cols()];
        let to_one = Constants { baseline: 1.0, ..constants };
        let loss = self.evaluate(threads, objective, to_one, &FactorRows::new(ones, means), 1)?.error;
        let least = objective.least_baseline(constants.mean * constants.count, constants.count);
        Ok(Constants { baseline: loss.max(least), ..constants })
    }

    /// The error of a least-squares fit: from the residual itself, or for a sparse M from products in `f64`. Sums
    /// run over lines in order, whatever the blocks.
    fn evaluate_squares<T: Real>(
        &self,
        threads: &Threads,
        constants: Constants,
        state: &FactorRows<T>,
        k: usize,
    ) -> Result<Evaluation> {
        let (u, v) = (state.u.host(), state.v.host());
        let (x, y) = self.sides(u, v);
        let (gram_u, gram_v) = (gram_in_f64(threads, u, k), gram_in_f64(threads, v, k));
        let (_, gram) = self.sides(&gram_u, &gram_v);
        let (mut residual, mut cross, mut model) = (0.0, 0.0, 0.0);
        // All of it is one phase, waiting included.
        self.pass(&self.blocks, &mut Phases::default(), |lines, by_line, _, _| {
            let x = &x[lines.start * k..lines.end * k];
            if let Block::Dense(dense) = by_line {
                residuals(threads, dense, x, y, k).iter().for_each(|term| residual += term);
            } else {
                crosses(threads, by_line, x, y, k).iter().for_each(|term| cross += term);
                quadratic_forms(threads, x, gram, k).iter().for_each(|term| model += term);
            }
        })?;
        let error = if self.stream.is_sparse() {
            relative_error(constants.norm, cross, model)
        } else {
            (residual / constants.norm).sqrt()
        };
        let squares = gram_v.iter().copied().step_by(k + 1).collect();
        Ok(Evaluation { error, dead: dead(Some(squares), k) })
    }

    /// One rank's part of M without M: its sizes.
    pub(super) fn shard<T: Real>(&self) -> Shard<T> {
        let (rows, cols, stored) = (self.stream.rows(), self.stream.cols(), self.stream.stored());
        let nothing = || Block::ByRow(Arc::new(Csr::new(0, 0, vec![0], Vec::new(), Vec::new())));
        Shard {
            rows,
            cols,
            stored,
            place: Placement { rows, cols, grid: Grid::ONE, rank: 0, access: Access::Whole },
            own_rows: 0..rows,
            own_cols: 0..cols,
            by_rows: nothing(),
            by_cols: nothing(),
            held: Vec::new(),
        }
    }
}
