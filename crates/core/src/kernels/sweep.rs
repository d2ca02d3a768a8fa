//! One sweep of proximal coordinate descent over a tile of rows (Alg. `alg:cd`, Eq. `eq:entry_sol`).

use pulp::{Simd, WithSimd};

use super::TILE;
use super::panel::{Panel, Panels, combine, each_panel};
use crate::Real;

/// For j = 1..k in turn, U_j ← min{max{U_j + (P_j − Σ_l G_jl U_l) / (G_jj + μ), 0}, upper}, with the columns
/// before j already updated. With P = A Bᵀ and G = B Bᵀ this is Eq. `eq:entry_sol`; with μ = 0 it is HALS. A column with
/// G_jj + μ = 0, or too small to divide by, cannot change the error and stays.
///
/// `factor` and `product` are tiles of `k` columns, `gram` is k x k and symmetric.
pub fn sweep<T: Real>(k: usize, gram: &[T], mu: T, upper: T, product: &[T], factor: &mut [T]) {
    assert!(gram.len() == k * k && product.len() >= k * TILE && factor.len() >= k * TILE);
    pulp::Arch::new().dispatch(Sweep { k, gram, mu, upper, product, factor });
}

struct Sweep<'a, T> {
    k: usize,
    gram: &'a [T],
    mu: T,
    upper: T,
    product: &'a [T],
    factor: &'a mut [T],
}

impl<T: Real> WithSimd for Sweep<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        each_panel::<T, S>(simd, self.k, &mut self);
    }
}

impl<T: Real> Panels for Sweep<'_, T> {
    /// The panel's residuals stay in registers while all columns of U pass by once.
    #[inline(always)]
    fn panel<S: Simd, const R: usize, const P: usize>(&mut self, simd: S, panel: Panel) {
        let Panel { registers, strip, first } = panel;
        let k = self.k;
        let products = T::vectors::<S>(&self.product[..k * TILE]);
        let columns = T::vectors_mut::<S>(&mut self.factor[..k * TILE]);
        let gram_rows = self.gram.chunks_exact(k).map(|row| &row[first..]);
        let terms = gram_rows.zip(columns.chunks_exact(registers).map(|column| &column[strip..]));
        // With the old values of the panel's own columns; what they change by follows below.
        let sums = combine::<T, S, R, P>(simd, terms);
        // Not in place: the sums stay in registers only if every access to them has a constant index.
        let mut residuals = [[T::splat(simd, T::ZERO); R]; P];
        for col in 0..P {
            let product = &products[(first + col) * registers + strip..][..R];
            for part in 0..R {
                residuals[col][part] = T::difference(simd, product[part], sums[col][part]);
            }
        }
        let upper = T::splat(simd, self.upper);
        for col in 0..P {
            let gram_row = &self.gram[(first + col) * k + first..][..P];
            let weight = gram_row[col] + self.mu;
            let step = T::ONE / weight;
            // For a nearly vanished column the step would be infinite, and 0 times infinity is NaN.
            if weight <= T::ZERO || !step.to_f64().is_finite() {
                continue;
            }
            let step = T::splat(simd, step);
            let column = &mut columns[(first + col) * registers + strip..][..R];
            for part in 0..R {
                let moved = T::add_product(simd, residuals[col][part], step, column[part]);
                let moved = T::clamp(simd, upper, moved);
                let change = T::difference(simd, moved, column[part]);
                column[part] = moved;
                for later in col + 1..P {
                    let coefficient = T::splat(simd, gram_row[later]);
                    residuals[later][part] =
                        T::subtract_product(simd, coefficient, change, residuals[later][part]);
                }
            }
        }
    }
}

/// Clamps to [0, upper]; NaN is kept, so that it is noticed.
#[inline(always)]
pub fn clamp<T: Real>(value: T, upper: T) -> T {
    let value = if value < T::ZERO { T::ZERO } else { value };
    if value > upper { upper } else { value }
}

#[cfg(test)]
mod tests {
    use super::super::Tile;
    use super::*;
    use proptest::prelude::*;

    /// Eq. `eq:entry_sol`, entry by entry, from A and B themselves.
    fn naive(a: &[f64], b: &[f64], d: usize, mu: f64, u: &mut [f64], k: usize) {
        for (a, u) in a.chunks(d).zip(u.chunks_mut(k)) {
            let before = u.to_vec();
            for j in 0..k {
                let dot = |l: usize| (0..d).map(|c| b[l * d + c] * b[j * d + c]).sum::<f64>();
                let product: f64 = (0..d).map(|c| a[c] * b[j * d + c]).sum();
                let others: f64 = (0..k).filter(|&l| l != j).map(|l| u[l] * dot(l)).sum();
                if dot(j) + mu > 0.0 {
                    u[j] = ((mu * before[j] + product - others) / (dot(j) + mu)).max(0.0);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn equals_the_entrywise_solution(
            rows in 1usize..TILE, k in 1usize..12, d in 1usize..9, mu in prop_oneof![Just(0.0), 1e-3f64..10.0],
            seed: u64,
        ) {
            let mut rng = crate::random::stream(seed, crate::random::Purpose::StartU, 0, 0);
            let mut draw = |count: usize| -> Vec<f64> {
                (0..count).map(|_| crate::random::uniform(&mut rng)).collect()
            };
            let (a, mut b, mut u) = (draw(rows * d), draw(k * d), draw(rows * k));
            // A zero row of B gives a zero diagonal.
            b[..d].fill(0.0);
            let mut gram = vec![0.0; k * k];
            let mut product = vec![0.0; rows * k];
            for j in 0..k {
                for l in 0..k {
                    gram[j * k + l] = (0..d).map(|c| b[j * d + c] * b[l * d + c]).sum();
                }
                for i in 0..rows {
                    product[i * k + j] = (0..d).map(|c| a[i * d + c] * b[j * d + c]).sum();
                }
            }
            let (mut p, mut f) = (Tile::new(k), Tile::new(k));
            p.load(&product, k);
            f.load(&u, k);
            sweep(k, &gram, mu, f64::INFINITY, &p.values, &mut f.values);
            let mut swept = u.clone();
            f.store(&mut swept, k);
            naive(&a, &b, d, mu, &mut u, k);
            // A nearly singular diagonal amplifies rounding: with d >= 1 and entries of (0, 1] it is not.
            for (got, want) in swept.iter().zip(&u) {
                prop_assert!((got - want).abs() <= 1e-7 * (1.0 + want.abs()), "{got} {want}");
            }
        }
    }

    /// A nearly vanished component: 1 / G_jj is infinite, and must not meet a residual of 0.
    #[test]
    fn a_vanishing_column_stays_a_number() {
        let mut factor = vec![0f32; TILE];
        factor[0] = 1.0;
        let before = factor.clone();
        for tiny in [f32::from_bits(1), 1e-40] {
            sweep(1, &[tiny], 0.0, f32::INFINITY, &vec![0.0; TILE], &mut factor);
            assert_eq!(factor, before);
        }
    }
}
