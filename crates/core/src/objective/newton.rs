//! Coordinate descent on the Kullback-Leibler divergence by scalar Newton steps (Hsieh and Dhillon 2011),
//! each of which is guaranteed not to raise it.
//!
//! As a function of one entry u of the moving factor, the loss is f(u) = s u − Σ m ln(r + v u) with s = Σ v,
//! and its derivative is f' = s − h(u) with h = Σ m v / (r + v u). Three steps cannot raise it:
//!
//! * Up, if h > s: Newton's step for 1 / h = 1 / s, which is Newton's step for f times h / s. 1 / h is
//!   concave, so the step does not pass the minimum.
//! * Down: the multiplicative step to u h / s, which does not pass the minimum either.
//! * Down: the damped Newton step n / (1 + n ρ) with n = |f'| / f'' and ρ the largest v / (r + v u). It
//!   minimizes an upper bound of f, because Σ m (−ln(1 − t) − t) ≤ (f'' / ρ²) (−ln(1 − ρ d) − ρ d) for
//!   t = d v / (r + v u) ≤ ρ d.
//!
//! For steps down, the longer of the two is taken, but not below 0.

use pulp::{Simd, WithSimd};

use crate::Real;
use crate::kernels::{EntryPanel, EntryRow, EntryTerms};

/// Sweeps over the components of one row.
pub struct Descent<'a, T> {
    /// The rows of the fixed factor for the row's entries.
    pub panel: &'a EntryPanel<T>,
    /// The row's entries, and a buffer for the model.
    pub row: &'a mut EntryRow<T>,
    /// The row of the moving factor.
    pub x: &'a mut [T],
    /// Σ v of each component over all relevant columns, plus the l1 penalty.
    pub sums: &'a [T],
    /// The weight of the l2 penalty.
    pub l2: T,
    /// The upper bound of entries.
    pub upper: T,
    /// The lower bound of the model.
    pub floor: T,
    /// The number of sweeps.
    pub sweeps: usize,
}

impl<T: Real> WithSimd for Descent<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Descent { panel, row, x, sums, l2, upper, floor, sweeps } = self;
        row.predict(panel, x, floor);
        for sweep in 0..sweeps {
            for (l, (u, &sum)) in x.iter_mut().zip(sums).enumerate() {
                // An entry that stayed at 0 in the first sweep is skipped until the next step.
                if sweep > 0 && *u == T::ZERO {
                    continue;
                }
                let component = panel.component(l);
                let new = newton(*u, row.terms(component), || row.steepest(component), sum, l2);
                let new = if new > upper { upper } else { new };
                let change = new - *u;
                if change != T::ZERO {
                    *u = new;
                    row.shift(component, change, floor);
                }
            }
        }
    }
}

/// The new value of one entry.
#[inline(always)]
fn newton<T: Real>(u: T, terms: EntryTerms<T>, steepest: impl FnOnce() -> T, sum: T, l2: T) -> T {
    let EntryTerms { ratio, curvature } = terms;
    let slope = l2.mul_add(u, sum - ratio);
    let curvature = curvature + l2;
    if sum <= T::ZERO && ratio <= T::ZERO {
        // No entry involves the component, and nothing favours it.
        return T::ZERO;
    }
    if slope < T::ZERO {
        let step = -slope / curvature;
        // With an l2 penalty, Newton's own step, which does not pass the minimum either.
        return u + if l2 > T::ZERO || sum <= T::ZERO { step } else { step * (ratio / sum) };
    }
    if u == T::ZERO || slope == T::ZERO {
        return u;
    }
    if curvature <= T::ZERO {
        return T::ZERO;
    }
    let step = slope / curvature;
    let damped = step / step.mul_add(steepest(), T::ONE);
    let multiplicative = if l2 > T::ZERO { T::ZERO } else { u - u * (ratio / sum) };
    let step = if damped < multiplicative { multiplicative } else { damped };
    if step >= u { T::ZERO } else { u - step }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with f itself, entry by entry.
        #[test]
        fn no_step_raises_the_scalar_loss(
            entries in prop::collection::vec((0u32..40, 0f64..3.0, 0f64..3.0), 1..12),
            u in prop_oneof![Just(0.0), 0f64..10.0], penalties in prop_oneof![Just((0.0, 0.0)), (0f64..2.0, 0f64..2.0)],
        ) {
            let (l1, l2) = penalties;
            let rest = |r: f64| r + 0.01;
            let v: Vec<f64> = entries.iter().map(|entry| entry.1).collect();
            let r: Vec<f64> = entries.iter().map(|entry| rest(entry.2)).collect();
            let m: Vec<f64> = entries.iter().map(|entry| f64::from(entry.0)).collect();
            let sum = v.iter().sum::<f64>() + l1 + 0.1;
            let loss = |u: f64| {
                let log = |j: usize| if m[j] > 0.0 { m[j] * (r[j] + v[j] * u).ln() } else { 0.0 };
                sum * u + 0.5 * l2 * u * u - (0..m.len()).map(log).sum::<f64>()
            };
            let slope = |u: f64| sum + l2 * u - (0..m.len()).map(|j| m[j] * v[j] / (r[j] + v[j] * u)).sum::<f64>();
            let mut u = u;
            for _ in 0..2000 {
                let share = |j: usize| v[j] / (r[j] + v[j] * u);
                let terms = EntryTerms {
                    ratio: (0..m.len()).map(|j| m[j] * share(j)).sum(),
                    curvature: (0..m.len()).map(|j| m[j] * share(j).powi(2)).sum(),
                };
                let steepest = || (0..m.len()).filter(|&j| m[j] > 0.0).map(share).fold(0.0, f64::max);
                let new = newton(u, terms, steepest, sum, l2);
                prop_assert!(new >= 0.0 && loss(new) <= loss(u) + 1e-12 * (1.0 + loss(u).abs()), "{u} {new}");
                u = new;
            }
            prop_assert!(slope(u).abs() <= 1e-6 * sum || u == 0.0 && slope(u) >= 0.0, "{u}: {}", slope(u));
        }
    }
}
