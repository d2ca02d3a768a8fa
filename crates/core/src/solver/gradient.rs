//! One step of projected gradient descent (Eq. `eq:gradient_descent`).

use pulp::{Simd, WithSimd};

use super::{Damped, Quadratic, Solver};
use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::{TILE, Tile, clamp};

/// U ← min{max{U − 2η (U G − P), 0}, upper}, all columns from the same U.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientDescent {
    /// η_t.
    pub eta: f64,
}

impl<T: Real> Solver<T> for GradientDescent {
    fn name(&self) -> &'static str {
        "projected gradient descent"
    }

    fn move_tile(
        &self,
        problem: &Quadratic<T>,
        product: &mut Tile<T>,
        factor: &mut Tile<T>,
        _rows: usize,
        _cancel: &Cancel,
    ) {
        let &Quadratic { k, ref gram, upper, .. } = problem;
        pulp::Arch::new().dispatch(Step { k, gram, eta: T::from_f64(self.eta), upper, product, factor });
    }
}

/// Default damping of sketched steps: α and β of η_t = 1 / (α + β t). A smaller α than 1 allows overshoots on the
/// mean problem, and α = 1 still does on some sketches.
pub const DAMPING: (f64, f64) = (2.0, 0.002);

/// The damped step of a sketched subproblem.
pub fn damped<T: Real>(damped: Damped) -> Box<dyn Solver<T>> {
    let Damped { weight, mean, k, l2 } = damped;
    let eta = mean.map_or(1.0 / weight, |mean| 1.0 / (weight * (k as f64 * mean + l2)));
    Box::new(GradientDescent { eta })
}

struct Step<'a, T> {
    k: usize,
    gram: &'a [T],
    eta: T,
    upper: T,
    product: &'a Tile<T>,
    factor: &'a mut Tile<T>,
}

impl<T: Real> WithSimd for Step<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let twice = self.eta + self.eta;
        let old = self.factor.clone();
        let (products, _) = self.product.values.as_chunks::<TILE>();
        let (before, _) = old.values.as_chunks::<TILE>();
        let (columns, _) = self.factor.values.as_chunks_mut::<TILE>();
        for (j, gram_row) in self.gram.chunks_exact(self.k).enumerate() {
            let mut descent = products[j];
            for (&coefficient, column) in gram_row.iter().zip(before) {
                for (descent, &value) in descent.iter_mut().zip(column) {
                    *descent = (-coefficient).mul_add(value, *descent);
                }
            }
            for (value, &descent) in columns[j].iter_mut().zip(&descent) {
                *value = clamp(twice.mul_add(descent, *value), self.upper);
            }
        }
    }
}
