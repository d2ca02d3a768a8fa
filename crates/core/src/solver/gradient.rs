//! One step of projected gradient descent (Eq. `eq:gradient_descent`).

use pulp::{Simd, WithSimd};

use crate::Real;
use crate::kernels::{TILE, Tile, clamp};

/// U ← min{max{U − 2η (U G − P), 0}, upper}, all columns from the same U.
pub fn step<T: Real>(k: usize, gram: &[T], eta: T, upper: T, product: &Tile<T>, factor: &mut Tile<T>) {
    pulp::Arch::new().dispatch(Step { k, gram, eta, upper, product, factor });
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
