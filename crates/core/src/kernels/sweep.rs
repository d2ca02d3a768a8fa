//! One sweep of proximal coordinate descent over a tile of rows (Alg. `alg:cd`, Eq. `eq:entry_sol`).

use pulp::{Simd, WithSimd};

use super::TILE;
use crate::Real;

/// For j = 1..k in turn, U_j ← min{max{U_j + (P_j − Σ_l G_jl U_l) / (G_jj + μ), 0}, upper}, with the columns
/// before j already updated. With P = A Bᵀ and G = B Bᵀ this is Eq. `eq:entry_sol`; with μ = 0 it is HALS. A column with
/// G_jj + μ = 0, or too small to divide by, cannot change the error and stays.
///
/// `factor` and `product` are tiles of `k` columns, `gram` is k x k.
pub fn sweep<T: Real>(k: usize, gram: &[T], mu: T, upper: T, product: &[T], factor: &mut [T]) {
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
    fn with_simd<S: Simd>(self, _simd: S) {
        let Sweep { k, gram, mu, upper, product, factor } = self;
        let (products, _) = product.as_chunks::<TILE>();
        let (columns, _) = factor.as_chunks_mut::<TILE>();
        let columns = &mut columns[..k];
        for (j, gram_row) in gram.chunks_exact(k).enumerate() {
            let weight = gram_row[j] + mu;
            let step = T::ONE / weight;
            // Of a column that has all but vanished the step would be infinite, and 0 times that is no number.
            if weight <= T::ZERO || !step.to_f64().is_finite() {
                continue;
            }
            let mut residual = products[j];
            for (&coefficient, column) in gram_row.iter().zip(columns.iter()) {
                for (residual, &value) in residual.iter_mut().zip(column) {
                    *residual = (-coefficient).mul_add(value, *residual);
                }
            }
            for (value, &residual) in columns[j].iter_mut().zip(&residual) {
                let moved = residual.mul_add(step, *value);
                *value = clamp(moved, upper);
            }
        }
    }
}

/// Into [0, upper]; NaN goes on, to be noticed.
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

    /// A component that has all but vanished: 1 / G_jj is infinite, and must not meet a residual of 0.
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
