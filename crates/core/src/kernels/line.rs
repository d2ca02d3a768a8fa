//! One row of M for entry-wise losses: its entries, the model at these entries, and the corresponding rows of
//! the fixed factor, gathered into a panel that stays in cache.
//!
//! All sums over entries use [`LANES`] partial sums, in the same order on every machine.

use crate::Real;

/// The number of entries processed at once; the length of a panel is a multiple of it.
pub const LANES: usize = 16;

/// The rows of the fixed factor that belong to a list of entries, transposed: component l of entry j is at `l
/// * length + j`.
#[derive(Clone, Debug, Default)]
pub struct EntryPanel<T> {
    values: Vec<T>,
    length: usize,
}

impl<T: Real> EntryPanel<T> {
    /// The panel of all rows of a factor.
    pub fn of_all(factor: &[T], k: usize) -> Self {
        let mut panel = EntryPanel { values: Vec::new(), length: 0 };
        panel.begin(factor.len() / k, k);
        factor.chunks_exact(k).enumerate().for_each(|(place, row)| panel.set(place, row));
        panel
    }

    /// Reserves space for this many entries.
    pub fn begin(&mut self, entries: usize, k: usize) {
        self.length = entries.next_multiple_of(LANES);
        self.values.clear();
        self.values.resize(self.length * k, T::ZERO);
    }

    /// Sets the row of the fixed factor for one entry.
    #[inline(always)]
    pub fn set(&mut self, place: usize, row: &[T]) {
        let targets = self.values[place..].iter_mut().step_by(self.length);
        targets.zip(row).for_each(|(target, &value)| *target = value);
    }

    /// The number of entries, including padding.
    pub fn length(&self) -> usize {
        self.length
    }

    /// One component of the rows of all entries.
    #[inline(always)]
    pub fn component(&self, l: usize) -> &[T] {
        &self.values[l * self.length..][..self.length]
    }
}

/// The entries of a row, and the model at these entries.
#[derive(Clone, Debug, Default)]
pub struct EntryRow<T> {
    /// The entries, padded with zeros.
    pub entries: Vec<T>,
    /// The model at each entry.
    models: Vec<T>,
    /// 1 / max{model, floor}.
    inverses: Vec<T>,
}

/// Sums over the entries m of a row, where x is the model at the entry and v one component of the fixed
/// factor.
#[derive(Clone, Copy, Debug)]
pub struct EntryTerms<T> {
    /// Σ m v / x.
    pub ratio: T,
    /// Σ m v² / x².
    pub curvature: T,
}

impl<T: Real> EntryRow<T> {
    /// Pads the entries, and computes the model for a row `x` of the moving factor.
    #[inline(always)]
    pub fn predict(&mut self, panel: &EntryPanel<T>, x: &[T], floor: T) {
        let EntryRow { entries, models, inverses } = self;
        entries.resize(panel.length, T::ZERO);
        inverses.resize(panel.length, T::ZERO);
        models.clear();
        models.resize(panel.length, T::ZERO);
        // Entry by entry over whole slices, which compilers vectorize; over chunks of lanes they do not.
        for (l, &value) in x.iter().enumerate().filter(|(_, value)| **value != T::ZERO) {
            for (model, &v) in models.iter_mut().zip(panel.component(l)) {
                *model = value.mul_add(v, *model);
            }
        }
        for (inverse, &model) in inverses.iter_mut().zip(&*models) {
            *inverse = T::ONE / at_least(model, floor);
        }
    }

    /// The sums for a step of one component.
    #[inline(always)]
    pub fn terms(&self, component: &[T]) -> EntryTerms<T> {
        let (mut ratio, mut curvature) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        let inverses = self.inverses.as_chunks::<LANES>().0.iter();
        let entries = self.entries.as_chunks::<LANES>().0.iter();
        for ((m, inverse), v) in entries.zip(inverses).zip(component.as_chunks::<LANES>().0) {
            for i in 0..LANES {
                let share = v[i] * inverse[i];
                let term = m[i] * share;
                ratio[i] += term;
                curvature[i] = term.mul_add(share, curvature[i]);
            }
        }
        EntryTerms { ratio: total(ratio), curvature: total(curvature) }
    }

    /// The largest v / x where m > 0, for one component v.
    #[inline(always)]
    pub fn steepest(&self, component: &[T]) -> T {
        let mut steepest = [T::ZERO; LANES];
        let inverses = self.inverses.as_chunks::<LANES>().0.iter();
        let entries = self.entries.as_chunks::<LANES>().0.iter();
        for ((m, inverse), v) in entries.zip(inverses).zip(component.as_chunks::<LANES>().0) {
            // Step by step, so that every step is vectorized.
            let mut shares = [T::ZERO; LANES];
            for i in 0..LANES {
                shares[i] = v[i] * inverse[i];
            }
            for i in 0..LANES {
                shares[i] = if m[i] > T::ZERO { shares[i] } else { T::ZERO };
            }
            for i in 0..LANES {
                steepest[i] = at_least(steepest[i], shares[i]);
            }
        }
        steepest.into_iter().fold(T::ZERO, at_least)
    }

    /// Updates the model after one component of the moving row has changed by `change`.
    #[inline(always)]
    pub fn shift(&mut self, component: &[T], change: T, floor: T) {
        // As in `predict`.
        let terms = self.models.iter_mut().zip(&mut self.inverses).zip(component);
        for ((model, inverse), &v) in terms {
            let shifted = change.mul_add(v, *model);
            *model = shifted;
            *inverse = T::ONE / at_least(shifted, floor);
        }
    }

    /// Σ v f(m, 1 / x) for one component v.
    #[inline(always)]
    pub fn weighted(&self, component: &[T], f: impl Fn(T, T) -> T) -> T {
        let mut sums = [T::ZERO; LANES];
        let inverses = self.inverses.as_chunks::<LANES>().0.iter();
        let entries = self.entries.as_chunks::<LANES>().0.iter();
        for ((m, inverse), v) in entries.zip(inverses).zip(component.as_chunks::<LANES>().0) {
            for i in 0..LANES {
                sums[i] = v[i].mul_add(f(m[i], inverse[i]), sums[i]);
            }
        }
        total(sums)
    }

    /// m / x.
    #[inline(always)]
    pub fn ratios_into(&self, target: &mut [T]) {
        for ((target, &m), &inverse) in target.iter_mut().zip(&self.entries).zip(&self.inverses) {
            *target = m * inverse;
        }
    }

    /// Σ m ln(m / x) − m.
    #[inline(always)]
    pub fn kullback_leibler(&self) -> f64 {
        let mut sums = [0.0; LANES];
        let inverses = self.inverses.as_chunks::<LANES>().0.iter();
        for (m, inverse) in self.entries.as_chunks::<LANES>().0.iter().zip(inverses) {
            for i in 0..LANES {
                let m = m[i].to_f64();
                sums[i] += m * (ln(m * inverse[i].to_f64()) - 1.0);
            }
        }
        sums.into_iter().sum()
    }
}

#[inline(always)]
fn at_least<T: Real>(value: T, floor: T) -> T {
    // NaN is kept, so that it is noticed.
    if value < floor { floor } else { value }
}

#[inline(always)]
fn total<T: Real>(sums: [T; LANES]) -> T {
    sums.into_iter().fold(T::ZERO, |total, sum| total + sum)
}

/// ln x for x > 0 to 13 digits, without branches or tables, so that all lanes are computed at once. For 0 it
/// returns a finite number.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const HALF: u64 = 0x3fe6_a09e_667f_3bcd; // √½
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const SHIFT: f64 = 4_503_599_627_370_496.0; // 2^52, of which a whole number is the last bits
    // x = m 2^e with m in [√½, √2).
    let bits = x.to_bits().wrapping_add(ONE - HALF);
    let exponent = f64::from_bits(SHIFT.to_bits() | (bits >> 52)) - SHIFT - 1023.0;
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(HALF));
    // ln m = 2 artanh((m − 1) / (m + 1)).
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0];
    let sum = series.into_iter().fold(1.0 / 17.0, |sum: f64, odd| sum.mul_add(square, 1.0 / odd));
    exponent.mul_add(std::f64::consts::LN_2, 2.0 * s * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_standard_library() {
        for place in 0..100_000 {
            let x = (f64::from(place) * 0.0137 - 600.0).exp();
            let (got, want) = (ln(x), x.ln());
            assert!((got - want).abs() <= 1e-13 * want.abs().max(1.0), "{x}: {got} {want}");
        }
        assert!(ln(0.0).is_finite());
    }

    #[test]
    fn sums_over_a_row_match_the_definition() {
        let (k, count, floor) = (3, 37, 1e-3);
        let number = |place: usize| ((place * 7919) % 23) as f64 / 7.0;
        let factor: Vec<f64> = (0..count * k).map(number).collect();
        let entries: Vec<f64> = (0..count).map(|place| number(place * 5 + 3)).collect();
        let mut x = vec![0.4, 0.0, 1.3];
        let panel = EntryPanel::of_all(&factor, k);
        let mut row = EntryRow { entries: entries.clone(), ..EntryRow::default() };
        row.predict(&panel, &x, floor);
        for change in [0.0, 0.7] {
            row.shift(panel.component(1), change, floor);
            x[1] += change;
            let inverse = |j: usize| {
                let model: f64 = (0..k).map(|l| x[l] * factor[j * k + l]).sum();
                1.0 / model.max(floor)
            };
            for l in 0..k {
                let share = |j: usize| factor[j * k + l] * inverse(j);
                let EntryTerms { ratio, curvature } = row.terms(panel.component(l));
                let steepest = row.steepest(panel.component(l));
                let sum = |f: &dyn Fn(usize) -> f64| (0..count).map(f).sum::<f64>();
                let near = |got: f64, want: f64| assert!((got - want).abs() <= 1e-12 * want, "{got} {want}");
                near(ratio, sum(&|j| entries[j] * share(j)));
                near(curvature, sum(&|j| entries[j] * share(j).powi(2)));
                near(steepest, (0..count).filter(|&j| entries[j] > 0.0).map(share).fold(0.0, f64::max));
                near(row.weighted(panel.component(l), |m, y| m * y), ratio);
                let loss = sum(&|j| {
                    if entries[j] > 0.0 { entries[j] * ((entries[j] * inverse(j)).ln() - 1.0) } else { 0.0 }
                });
                assert!((row.kullback_leibler() - loss).abs() <= 1e-11 * loss.abs());
            }
        }
    }
}
