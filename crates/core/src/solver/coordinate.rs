//! Proximal coordinate descent (Alg. `alg:cd`); with weight 0 it is HALS.

use super::{Damped, Quadratic, Solver, Step};
use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::{Tile, sweep};

/// Sweeps of coordinate descent with the proximal weight μ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoordinateDescent {
    /// μ_t.
    pub mu: f64,
    /// The number of sweeps; with μ > 0 each starts from the result of the last one.
    pub sweeps: usize,
}

impl CoordinateDescent {
    /// One exact sweep.
    pub const HALS: CoordinateDescent = CoordinateDescent { mu: 0.0, sweeps: 1 };
}

impl<T: Real> Solver<T> for CoordinateDescent {
    fn name(&self) -> &'static str {
        "coordinate descent"
    }

    fn step(&self) -> Step {
        if self.mu == 0.0 { Step::Descent { sweeps: self.sweeps } } else { Step::Other }
    }

    fn move_tile(
        &self,
        problem: &Quadratic<T>,
        product: &mut Tile<T>,
        factor: &mut Tile<T>,
        _rows: usize,
        cancel: &Cancel,
    ) {
        let &Quadratic { k, ref gram, upper, .. } = problem;
        for _ in 0..self.sweeps {
            cancel.check();
            sweep(k, gram, T::from_f64(self.mu), upper, &product.values, &mut factor.values);
        }
    }
}

/// Default damping of sketched steps: α and β of μ_t = α + β t.
pub const DAMPING: (f64, f64) = (0.1, 0.02);

/// The damped step of a sketched subproblem.
pub fn damped<T: Real>(damped: Damped) -> Box<dyn Solver<T>> {
    let mu = damped.mean.map_or(damped.weight, |mean| damped.weight * mean);
    Box::new(CoordinateDescent { mu, sweeps: 1 })
}
