//! How a factor moves, given G = B Bᵀ and P = A Bᵀ of its (sketched) least-squares problem.
//!
//! One file a solver, and one line in [`Solver::apply`].

pub mod nnls;

use std::time::{Duration, Instant};

use crate::Real;
use crate::kernels::{Product, Scratch, TILE, Tile, sweep};
use crate::threads::Threads;

/// What is done to every row of the factor, independently of the other rows.
#[derive(Clone, Copy, Debug)]
pub enum Solver<T> {
    /// One sweep of proximal coordinate descent with weight μ (Alg. `alg:cd`); with μ = 0, HALS.
    CoordinateDescent {
        /// μ_t.
        mu: T,
    },
}

impl<T: Real> Solver<T> {
    fn apply(&self, k: usize, gram: &[T], product: &Tile<T>, factor: &mut Tile<T>) {
        match *self {
            Solver::CoordinateDescent { mu } => sweep(k, gram, mu, &product.values, &mut factor.values),
        }
    }
}

/// What an update leaves behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Updated {
    /// ⟨P, X⟩ with the new factor X, for the error.
    pub cross: f64,
    /// Wall time of the products.
    pub product: Duration,
    /// Wall time of the solver.
    pub solve: Duration,
}

/// Moves every row of `factor`, tile by tile: product, solver, store, while the tile is in cache.
pub fn update<T: Real>(
    threads: &Threads,
    solver: Solver<T>,
    gram: &[T],
    product: &Product<'_, T>,
    factor: &mut [T],
    k: usize,
) -> Updated {
    let begin = Instant::now();
    let tiles = threads.map(
        factor.chunks_mut(TILE * k).enumerate().collect(),
        || (Scratch::new(), Tile::new(k), Tile::new(k)),
        |(scratch, products, values), (index, rows): (usize, &mut [T])| {
            let started = Instant::now();
            let first = index * TILE;
            let count = rows.len() / k;
            product.tile(first..first + count, scratch, products);
            let multiplied = Instant::now();
            values.load(rows, k);
            solver.apply(k, gram, products, values);
            values.store(rows, k);
            let cross = cross(products, values, k, count);
            (cross, multiplied - started, multiplied.elapsed())
        },
    );
    let wall = begin.elapsed();
    let cross = tiles.iter().map(|tile| tile.0).sum();
    let product_time: Duration = tiles.iter().map(|tile| tile.1).sum();
    let solve_time: Duration = tiles.iter().map(|tile| tile.2).sum();
    // The threads' times overlap; the wall time is shared out in their proportion.
    let share = product_time.as_secs_f64() / (product_time + solve_time).as_secs_f64().max(1e-12);
    let product = wall.mul_f64(share);
    Updated { cross, product, solve: wall.saturating_sub(product) }
}

/// ⟨P, X⟩ over the rows in use: k terms a row in the factor's own type, rows in `f64`.
fn cross<T: Real>(products: &Tile<T>, values: &Tile<T>, k: usize, rows: usize) -> f64 {
    let mut sums = [T::ZERO; TILE];
    for col in 0..k {
        for ((sum, &p), &x) in sums.iter_mut().zip(products.column(col)).zip(values.column(col)) {
            *sum += p * x;
        }
    }
    sums[..rows].iter().map(|sum| sum.to_f64()).sum()
}
