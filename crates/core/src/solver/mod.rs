//! Updates of a factor's rows, given G = B Bᵀ and P = A Bᵀ of a (sketched) least-squares problem.
//!
//! A solver is one file. Those that DSANLS offers for its sketched subproblems have a line in [`SketchedSolver`].

mod coordinate;
mod gradient;
mod multiplicative;
pub mod pivoting;

use crate::Real;
use crate::cancel::Cancel;
use crate::device::update_tiles;
use crate::kernels::{Product, Tile};
use crate::objective::{HalfStep, LeastSquares};
use crate::registry::registry;
use crate::threads::Threads;

pub use crate::device::{MovingRows, Updated};
pub use coordinate::CoordinateDescent;
pub use gradient::GradientDescent;
pub use multiplicative::Multiplicative;
pub use pivoting::Pivoting;

/// The step of a solver for rows whose problem is not quadratic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Multiplicative updates.
    Multiplicative,
    /// Coordinate descent.
    Descent {
        /// The number of sweeps over the components.
        sweeps: usize,
    },
    /// The exact solution of a quadratic problem.
    Exact,
    /// Any other step, which needs a quadratic problem that all rows share.
    Other,
}

/// An update of every row of a factor, independently of the other rows.
pub trait Solver<T: Real>: std::fmt::Debug + Send + Sync {
    /// The name of the solver.
    fn name(&self) -> &'static str;

    /// The step for rows whose problem is not quadratic.
    fn step(&self) -> Step {
        Step::Other
    }

    /// Whether it needs P itself and takes the l1 penalty from the problem; the others get P − l1.
    fn adds_l1(&self) -> bool {
        false
    }

    /// Updates the first `rows` rows of a tile. `product` may be overwritten.
    fn move_tile(
        &self,
        problem: &Quadratic<T>,
        product: &mut Tile<T>,
        factor: &mut Tile<T>,
        rows: usize,
        cancel: &Cancel,
    );
}

/// One side's problem in the type of the arithmetic: ½ x G xᵀ − x P + penalties for every row x, within 0 and the
/// bound.
#[derive(Debug)]
pub struct Quadratic<T> {
    /// Number of components.
    pub k: usize,
    /// G, with the l2 penalty in its diagonal.
    pub gram: Vec<T>,
    /// G before it was rounded.
    pub exact_gram: Vec<f64>,
    /// The l1 penalty.
    pub l1: T,
    /// The bound.
    pub upper: T,
}

macro_rules! sketched_solvers {
    ($($variant:ident = $label:literal, $module:ident, $help:literal;)+) => {
        registry! {
            /// The solver of sketched subproblems in DSANLS.
            pub enum SketchedSolver of "solver" {
                $($variant = $label, $help;)+
            }
        }

        impl SketchedSolver {
            /// Default damping: the initial α and the growth β.
            pub fn damping(self) -> (f64, f64) {
                match self {
                    $(SketchedSolver::$variant => $module::DAMPING,)+
                }
            }

            /// The damped step.
            pub fn damped<T: Real>(self, damped: Damped) -> Box<dyn Solver<T>> {
                match self {
                    $(SketchedSolver::$variant => $module::damped(damped),)+
                }
            }
        }
    };
}

sketched_solvers! {
    Pcd = "pcd", coordinate, "Proximal coordinate descent (Alg. `alg:cd`)";
    Pgd = "pgd", gradient, "Projected gradient descent (Eq. `eq:gradient_descent`)";
}

/// The damping of a sketched step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damped {
    /// α + β t.
    pub weight: f64,
    /// The mean Gram diagonal if the weight is unit-free; `None` if it is in the units of the data.
    pub mean: Option<f64>,
    /// Number of components.
    pub k: usize,
    /// The l2 penalty, part of the curvature.
    pub l2: f64,
}

/// l1 ‖X‖₁ + ½ l2 ‖X‖², added to ½ ‖M − X Yᵀ‖²; and X ≤ upper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// Weight of the sum of entries.
    pub l1: f64,
    /// Weight of the sum of squares.
    pub l2: f64,
    /// The largest allowed entry (Eq. `eq:extra_con`); infinite without a bound.
    pub upper: f64,
}

impl Penalty {
    /// No penalty, no bound.
    pub const NONE: Penalty = Penalty { l1: 0.0, l2: 0.0, upper: f64::INFINITY };

    /// Whether only U Vᵀ counts, so that the scale of components is free.
    pub fn leave_scale_free(terms: (Penalty, Penalty)) -> bool {
        terms == (Penalty::NONE, Penalty::NONE)
    }
}

/// One side's least-squares problem without the product and the factor.
pub struct Problem<'a, T> {
    /// The solver.
    pub solver: &'a dyn Solver<T>,
    /// G, without penalty.
    pub gram: &'a [f64],
    /// Penalty and bound.
    pub terms: Penalty,
}

/// Updates every row of a factor by a least-squares step, tile by tile, on the CPU.
pub fn update<T: Real>(
    threads: &Threads,
    problem: &Problem<'_, T>,
    product: &Product<'_, T>,
    moving: MovingRows<'_, T>,
    k: usize,
) -> Updated {
    let &Problem { solver, gram, terms } = problem;
    let step = HalfStep { solver, summary: gram, terms, scales: None, wants_error: false, k };
    update_tiles(threads, &LeastSquares, &step, product, moving)
}
