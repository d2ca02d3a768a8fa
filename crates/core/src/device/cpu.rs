//! The CPU: blocks and factors in the host's memory, half steps on its threads.

use std::time::{Duration, Instant};

use super::{Device, Entries, Loaded, LossAt, LossPart, Moving, Resident, product_of};
use crate::Real;
use crate::error::Result;
use crate::kernels::{Columns, Product, Scratch, TILE, Tile, clamp, multiply};
use crate::objective::{HalfStep, Objective, TileOf};
use crate::partition::Block;
use crate::real::precompiled;
use crate::threads::Threads;

/// The host's own threads.
pub struct Cpu<'t> {
    /// The threads.
    pub threads: &'t Threads,
}

impl<T: Real> Device<T> for Cpu<'_> {
    fn load<'a>(&self, block: &'a Block<T>) -> Result<Loaded<'a, T>> {
        Ok(Loaded { host: block, remote: None })
    }

    fn pull(&self, _rows: &mut Resident<T>) -> Result<()> {
        Ok(())
    }

    fn summarize(&self, objective: &dyn Objective<T>, rows: &mut Resident<T>, k: usize) -> Result<Vec<f64>> {
        Ok(objective.summarize(self.threads, rows.host(), k))
    }

    fn summarize_exactly(
        &self,
        objective: &dyn Objective<T>,
        rows: &mut Resident<T>,
        k: usize,
    ) -> Result<Vec<f64>> {
        Ok(objective.summarize_exactly(self.threads, rows.host(), k))
    }

    fn multiply(&self, block: &Loaded<'_, T>, fixed: &mut Resident<T>, k: usize) -> Result<Vec<T>> {
        Ok(multiply(self.threads, block.host, Columns::All, fixed.host(), k))
    }

    fn half_step(
        &self,
        objective: &dyn Objective<T>,
        step: &HalfStep<'_, T>,
        entries: Entries<'_, T>,
        moving: Moving<'_, T>,
    ) -> Result<Updated> {
        let begin = Instant::now();
        let product = product_of(self.threads, entries, step.k);
        let set_up = begin.elapsed();
        let momentum = moving.momentum.map(|momentum| (momentum.weight, momentum.last.host_mut()));
        let moving = MovingRows { factor: moving.rows.host_mut(), momentum };
        let mut updated = update_tiles(self.threads, objective, step, &product, moving);
        updated.product += set_up;
        Ok(updated)
    }

    fn losses(
        &self,
        objective: &dyn Objective<T>,
        part: LossPart<'_, T>,
        k: usize,
    ) -> Result<Option<Vec<f64>>> {
        let threads = self.threads;
        Ok(match part {
            LossPart::Entries(LossAt { block, x, fixed }) => {
                Some(objective.entry_losses(threads, block.host, x.host(), fixed.host(), k))
            }
            LossPart::Model(x, summary) => Some(objective.model_losses(threads, x.host(), summary, k)),
            LossPart::Cancelled(error, LossAt { block, x, fixed }) => {
                objective.losses_where_cancelled(threads, error, block.host, x.host(), fixed.host(), k)
            }
        })
    }
}

/// The outcome of an update.
#[derive(Clone, Copy, Debug, Default)]
pub struct Updated {
    /// The sum of the results of [`TileStep::move_tile`](crate::objective::TileStep::move_tile); ⟨P, X⟩ for least
    /// squares.
    pub cross: f64,
    /// Wall time of the products.
    pub product: Duration,
    /// Wall time of the solver.
    pub solve: Duration,
}

/// Rows on the host during an update, with momentum also its weight and their previous values; see
/// [`MovingMomentum`](super::MovingMomentum).
pub struct MovingRows<'a, T> {
    /// The rows.
    pub factor: &'a mut [T],
    /// The weight of the momentum and the solver's last result, if momentum is used.
    pub momentum: Option<(f64, &'a mut [T])>,
}

impl<'a, T> MovingRows<'a, T> {
    /// An update without momentum.
    pub fn plain(factor: &'a mut [T]) -> Self {
        MovingRows { factor, momentum: None }
    }
}

precompiled! {
    /// Moves every row of a factor, tile by tile: product, solver and store, while the tile is in cache.
    pub fn update_tiles<T>(
        threads: &Threads,
        objective: &dyn Objective<T>,
        step: &HalfStep<'_, T>,
        product: &Product<'_, T>,
        moving: MovingRows<'_, T>,
    ) -> Updated = move_rows;
}

fn move_rows<T: Real>(
    threads: &Threads,
    objective: &dyn Objective<T>,
    step: &HalfStep<'_, T>,
    product: &Product<'_, T>,
    moving: MovingRows<'_, T>,
) -> Updated {
    let begin = Instant::now();
    let k = step.k;
    let prepared = objective.prepare(step);
    let upper = T::from_f64(step.terms.upper);
    let (beta, last) = moving.momentum.unzip();
    let beta = T::from_f64(beta.unwrap_or_default());
    let lasts = last.map_or_else(Vec::new, |last| last.chunks_mut(TILE * k).map(Some).collect());
    let tiles = moving.factor.chunks_mut(TILE * k).enumerate();
    let tiles = threads.map(
        tiles.zip(lasts.into_iter().chain(std::iter::repeat_with(|| None))).collect(),
        || (Scratch::new(), Tile::new(k), Tile::new(k)),
        |(scratch, products, values), ((index, rows), last): ((usize, &mut [T]), Option<&mut [T]>)| {
            let started = Instant::now();
            let mut multiplied = started;
            values.load(rows, k);
            let tile = TileOf {
                product,
                values,
                products,
                scratch,
                multiplied: &mut multiplied,
                cancel: threads.cancel(),
            };
            let cross = prepared.move_tile(index * TILE..index * TILE + rows.len() / k, tile);
            values.store(rows, k);
            if let Some(last) = last {
                for (value, last) in rows.iter_mut().zip(last) {
                    let result = *value;
                    let further = beta.mul_add(result - *last, result);
                    *value = clamp(further, upper);
                    *last = result;
                }
            }
            (cross, multiplied - started, multiplied.elapsed())
        },
    );
    let cross = tiles.iter().map(|tile| tile.0).sum();
    let product_time: Duration = tiles.iter().map(|tile| tile.1).sum();
    let solve_time: Duration = tiles.iter().map(|tile| tile.2).sum();
    let wall = begin.elapsed();
    // The threads' times overlap; the wall time is divided in their proportion.
    let share = product_time.as_secs_f64() / (product_time + solve_time).as_secs_f64().max(1e-12);
    let product = wall.mul_f64(share);
    Updated { cross, product, solve: wall.saturating_sub(product) }
}
