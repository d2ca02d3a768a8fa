//! How a factor moves, given G = B Bᵀ and P = A Bᵀ of its (sketched) least-squares problem.
//!
//! One file a solver, and one line in [`Solver`] and in `Prepared::apply`.

mod gradient;
mod multiplicative;
pub mod pivoting;

use std::time::{Duration, Instant};

use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::{Product, Scratch, TILE, Tile, clamp, sweep};
use crate::threads::Threads;

/// What is done to every row of the factor, independently of the other rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// Sweeps of proximal coordinate descent with weight μ (Alg. `alg:cd`); with μ = 0, HALS.
    CoordinateDescent {
        /// μ_t.
        mu: f64,
        /// How many; with μ > 0 each begins anew from where the last one ended.
        sweeps: usize,
    },
    /// One step of projected gradient descent (Eq. `eq:gradient_descent`).
    GradientDescent {
        /// η_t.
        eta: f64,
    },
    /// Multiplicative updates.
    Multiplicative,
    /// The exact solution, by block principal pivoting.
    Pivoting,
}

/// l1 ‖X‖₁ + ½ l2 ‖X‖², added to ½ ‖M − X Yᵀ‖²; and X ≤ upper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// Weight of the sum of entries.
    pub l1: f64,
    /// Weight of the sum of squares.
    pub l2: f64,
    /// The largest that an entry may become (Eq. `eq:extra_con`); infinite without a bound.
    pub upper: f64,
}

impl Penalty {
    /// No penalty, no bound.
    pub const NONE: Penalty = Penalty { l1: 0.0, l2: 0.0, upper: f64::INFINITY };

    /// Whether U Vᵀ alone counts, so that the scale of components is free.
    pub fn leave_scale_free(terms: (Penalty, Penalty)) -> bool {
        terms == (Penalty::NONE, Penalty::NONE)
    }
}

/// One side's problem: everything but the product and the factor itself.
pub struct Problem<'a> {
    /// The solver.
    pub solver: Solver,
    /// G, without penalty.
    pub gram: &'a [f64],
    /// Penalty and bound.
    pub terms: Penalty,
}

/// The problem in the type that is computed in, the l2 penalty in G's diagonal.
struct Prepared<T> {
    solver: Solver,
    gram: Vec<T>,
    exact: Vec<f64>,
    l1: T,
    upper: T,
    k: usize,
}

impl<T: Real> Prepared<T> {
    fn new(problem: &Problem<'_>, k: usize) -> Self {
        let mut exact = problem.gram.to_vec();
        exact.iter_mut().step_by(k + 1).for_each(|diagonal| *diagonal += problem.terms.l2);
        Prepared {
            solver: problem.solver,
            gram: exact.iter().map(|&value| T::from_f64(value)).collect(),
            exact,
            l1: T::from_f64(problem.terms.l1),
            upper: T::from_f64(problem.terms.upper),
            k,
        }
    }

    /// Moves a tile. `product` is P on entry; the solvers that descend along P − l1 leave that in it.
    fn apply(&self, product: &mut Tile<T>, factor: &mut Tile<T>, rows: usize, cancel: &Cancel) {
        let Prepared { k, ref gram, l1, upper, .. } = *self;
        if l1 > T::ZERO && self.solver != Solver::Multiplicative {
            product.values.iter_mut().for_each(|value| *value -= l1);
        }
        match self.solver {
            Solver::CoordinateDescent { mu, sweeps } => {
                for _ in 0..sweeps {
                    cancel.check();
                    sweep(k, gram, T::from_f64(mu), upper, &product.values, &mut factor.values);
                }
            }
            Solver::GradientDescent { eta } => {
                gradient::step(k, gram, T::from_f64(eta), upper, product, factor)
            }
            Solver::Multiplicative => multiplicative::update(k, gram, l1, product, factor),
            Solver::Pivoting => {
                let exact = |tile: &Tile<T>| {
                    let mut used = vec![T::ZERO; rows * k];
                    tile.store(&mut used, k);
                    used.iter().map(|value| value.to_f64()).collect::<Vec<f64>>()
                };
                let solution = pivoting::nnls(&self.exact, &exact(product), Some(&exact(factor)), k, cancel);
                let rows: Vec<T> = solution.into_iter().map(T::from_f64).collect();
                factor.load(&rows, k);
            }
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

/// A factor on its way: where it stands, and with momentum where it stood before.
pub struct Moving<'a, T> {
    /// X by row: where the solver begins, and where the next one is to begin.
    pub factor: &'a mut [T],
    /// With momentum, the solver's last result, and its weight β: the new result X' takes its place, and the factor becomes
    /// max{X' + β (X' − X), 0}.
    pub momentum: Option<(f64, &'a mut [T])>,
}

impl<'a, T> Moving<'a, T> {
    /// Without momentum.
    pub fn plain(factor: &'a mut [T]) -> Self {
        Moving { factor, momentum: None }
    }
}

/// Moves every row of the factor, tile by tile: product, solver, store, while the tile is in cache.
pub fn update<T: Real>(
    threads: &Threads,
    problem: &Problem<'_>,
    product: &Product<'_, T>,
    moving: Moving<'_, T>,
    k: usize,
) -> Updated {
    T::update(threads, problem, product, moving, k)
}

pub(crate) fn update_here<T: Real>(
    threads: &Threads,
    problem: &Problem<'_>,
    product: &Product<'_, T>,
    moving: Moving<'_, T>,
    k: usize,
) -> Updated {
    let begin = Instant::now();
    let prepared = Prepared::new(problem, k);
    let (beta, last) = moving.momentum.unzip();
    let beta = T::from_f64(beta.unwrap_or_default());
    let lasts = last.map_or_else(Vec::new, |last| last.chunks_mut(TILE * k).map(Some).collect());
    let tiles = moving.factor.chunks_mut(TILE * k).enumerate();
    let tiles = threads.map(
        tiles.zip(lasts.into_iter().chain(std::iter::repeat_with(|| None))).collect(),
        || (Scratch::new(), Tile::new(k), Tile::new(k)),
        |(scratch, products, values), ((index, rows), last): ((usize, &mut [T]), Option<&mut [T]>)| {
            let started = Instant::now();
            let first = index * TILE;
            let count = rows.len() / k;
            product.tile(first..first + count, scratch, products);
            let multiplied = Instant::now();
            values.load(rows, k);
            // Solvers may change the product, of which the error needs the original.
            let original = (prepared.l1 > T::ZERO).then(|| products.clone());
            prepared.apply(products, values, count, threads.cancel());
            values.store(rows, k);
            let cross = cross(original.as_ref().unwrap_or(products), values, k, count);
            if let Some(last) = last {
                for (value, last) in rows.iter_mut().zip(last) {
                    let result = *value;
                    let further = beta.mul_add(result - *last, result);
                    *value = clamp(further, prepared.upper);
                    *last = result;
                }
            }
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
