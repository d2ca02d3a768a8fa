//! The scale of components. U Vᵀ leaves it free: (c U_j)(V_j / c)ᵀ is the same for every c > 0.
//!
//! Unchecked, momentum moves scale from one factor to the other without bound, and products in `f32` then lose the
//! smaller one. The exact methods therefore balance components while they run, by powers of two, which change no
//! digit; a result has the scale that [`Normalize`] names. Penalties and bounds determine the scale themselves.

use serde::{Deserialize, Serialize};

use super::start::FactorRows;
use crate::Real;
use crate::comm::{Comm, ExactSum, Numbers, Reduction};
use crate::device::Device;
use crate::error::Result;
use crate::kernels::TILE;
use crate::threads::Threads;

/// The scale of a result's components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// ‖U_j‖ = ‖V_j‖.
    Balanced,
    /// The scale that the method ended with.
    None,
    /// ‖U_j‖ = 1.
    U,
    /// ‖V_j‖ = 1.
    V,
    /// The entries of U_j sum to 1.
    SumU,
    /// The entries of V_j sum to 1.
    SumV,
}

impl Normalize {
    /// All of them.
    pub const ALL: [Normalize; 6] =
        [Normalize::Balanced, Normalize::None, Normalize::U, Normalize::V, Normalize::SumU, Normalize::SumV];
}

/// Octaves by which ‖U_j‖ and ‖V_j‖ may differ: a ratio of 1/4 to 4.
const OCTAVES: f64 = 2.0;

/// Squared norms beyond which a component that is zero in the other factor is scaled.
const EXTREME: f64 = (1u64 << 40) as f64;

/// Powers of two, one per component, by which U's columns are multiplied and V's divided.
pub struct Balance(Vec<f64>);

impl Balance {
    /// The scales that bring ‖U_j‖ and ‖V_j‖ within a factor of 2 of each other, given their squares; `None` if
    /// every live component has a ratio within [1/4, 4].
    pub fn needed(squares_u: &[f64], squares_v: &[f64]) -> Option<Self> {
        let of_component = |(&u, &v): (&f64, &f64)| {
            let octaves = 0.5 * (u.log2() - v.log2());
            // The logarithm of 0, of a dead component, is not finite.
            if octaves.is_finite() && octaves.abs() > OCTAVES { (-0.5 * octaves).round().exp2() } else { 1.0 }
        };
        let factors: Vec<f64> = squares_u.iter().zip(squares_v).map(of_component).collect();
        factors.iter().any(|&factor| factor != 1.0).then_some(Balance(factors))
    }

    /// For a given start: a component that is zero in one factor can have any scale in the other, and may have one at
    /// which products are infinite or zero; it is brought to a norm near 1 there.
    pub fn of_start(squares_u: &[f64], squares_v: &[f64]) -> Option<Self> {
        let extreme = |square: f64| square > 0.0 && !(EXTREME.recip()..=EXTREME).contains(&square);
        let mate = |own: f64, other: f64| match own == 0.0 && extreme(other) {
            // As if the product of both norms were 1.
            true => other.recip(),
            false => own,
        };
        let pairs = || squares_u.iter().copied().zip(squares_v.iter().copied());
        let (u, v): (Vec<f64>, Vec<f64>) = pairs().map(|(u, v)| (mate(u, v), mate(v, u))).unzip();
        Balance::needed(&u, &v)
    }

    /// Scales a pair of factors.
    pub fn apply<T: Real>(&self, device: &dyn Device<T>, state: &mut FactorRows<T>) -> Result<()> {
        device.pull(&mut state.u)?;
        device.pull(&mut state.v)?;
        self.apply_to_u(state.u.host_mut());
        self.apply_to_v(state.v.host_mut());
        Ok(())
    }

    /// Scales U, or a product that is linear in it, stored by row.
    pub fn apply_to_u<T: Real>(&self, values: &mut [T]) {
        scale_columns(values, &self.0);
    }

    /// Scales V, or a product that is linear in it, stored by row.
    pub fn apply_to_v<T: Real>(&self, values: &mut [T]) {
        let inverse: Vec<f64> = self.0.iter().map(|factor| 1.0 / factor).collect();
        scale_columns(values, &inverse);
    }
}

/// Multiplies each column by its factor. In `f64`: a factor may be beyond the range of `f32` where its result is not.
pub fn scale_columns<T: Real>(values: &mut [T], factors: &[f64]) {
    for row in values.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(factors).for_each(|(value, factor)| *value = T::from_f64(value.to_f64() * factor));
    }
}

/// The power of two that brings the largest entry of each column into [1, 2), over the rows of all processes; 1 for a column
/// of zeros.
pub fn column_scales<T: Real>(comm: &dyn Comm, factor: &[T], k: usize) -> Result<Vec<f64>> {
    let mut largest = largest_entries(factor, k);
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut largest))?;
    // Within a range whose squares are finite.
    let of_column =
        |most: f64| if most > 0.0 { (-most.log2().floor()).clamp(-500.0, 500.0).exp2() } else { 1.0 };
    Ok(largest.into_iter().map(of_column).collect())
}

/// The largest entry of each column.
fn largest_entries<T: Real>(factor: &[T], k: usize) -> Vec<f64> {
    let mut largest = vec![0f64; k];
    for row in factor.chunks_exact(k) {
        largest.iter_mut().zip(row).for_each(|(most, value)| *most = most.max(value.to_f64()));
    }
    largest
}

/// Gives the components of a result, of which this rank has some rows, their scale. Sums do not depend on how rows
/// are distributed, so that neither does the result. A component whose
/// scale would have to be divided by zero stays as it is.
pub fn normalize<T: Real>(
    comm: &dyn Comm,
    threads: &Threads,
    how: Normalize,
    u: &mut [T],
    v: &mut [T],
    k: usize,
) -> Result<()> {
    let norms = |factor: &[T]| -> Result<Vec<f64>> {
        let squares = column_sums(comm, threads, factor, k, |value| value * value)?;
        Ok(squares.into_iter().map(f64::sqrt).collect())
    };
    let sums = |factor: &[T]| column_sums(comm, threads, factor, k, |value| value);
    let inverse = |sizes: Vec<f64>| sizes.into_iter().map(|size| 1.0 / size).collect();
    let wanted: Vec<f64> = match how {
        Normalize::None => return Ok(()),
        Normalize::Balanced => norms(u)?.iter().zip(norms(v)?).map(|(u, v)| (v / u).sqrt()).collect(),
        Normalize::U => inverse(norms(u)?),
        Normalize::V => norms(v)?,
        Normalize::SumU => inverse(sums(u)?),
        Normalize::SumV => sums(v)?,
    };
    let usable = |factor: &f64| *factor > 0.0 && factor.is_finite();
    let factors: Vec<f64> =
        wanted.into_iter().map(|factor| if usable(&factor) { factor } else { 1.0 }).collect();
    let inverse: Vec<f64> = factors.iter().map(|factor| 1.0 / factor).collect();
    for (factor, scales) in [(u, &factors), (v, &inverse)] {
        let tiles = factor.chunks_mut(TILE * k).collect();
        threads.map(tiles, || (), |(), tile: &mut [T]| scale_columns(tile, scales));
    }
    Ok(())
}

/// ‖X_j‖² of each column j of a factor, over the rows of all ranks.
pub fn squared_norms<T: Real>(
    comm: &dyn Comm,
    threads: &Threads,
    factor: &[T],
    k: usize,
) -> Result<Vec<f64>> {
    column_sums(comm, threads, factor, k, |value| value * value)
}

/// The sum of a term of every entry of each column, over the rows of all ranks, in any order the same.
fn column_sums<T: Real>(
    comm: &dyn Comm,
    threads: &Threads,
    factor: &[T],
    k: usize,
    term: impl Fn(f64) -> f64 + Sync + Send,
) -> Result<Vec<f64>> {
    let mut largest = largest_entries(factor, k);
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut largest))?;
    let bounds: Vec<f64> = largest.into_iter().map(&term).collect();
    let pieces = factor.chunks(factor.len().div_ceil(k * 64).max(1) * k).collect();
    let partial = threads.map(
        pieces,
        || (),
        |(), rows: &[T]| {
            let mut sum = ExactSum::new(&bounds);
            rows.chunks_exact(k).for_each(|row| sum.add(row.iter().map(|value| term(value.to_f64()))));
            sum
        },
    );
    let mut total = ExactSum::new(&bounds);
    partial.iter().for_each(|sum| total.merge(sum));
    total.finish(comm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Alone;
    use crate::device::{Cpu, Resident};

    fn norms(factor: &[f64], k: usize) -> Vec<f64> {
        (0..k).map(|j| factor.iter().skip(j).step_by(k).map(|x| x * x).sum::<f64>().sqrt()).collect()
    }

    #[test]
    fn only_live_components_out_of_range_are_balanced() {
        let balance = Balance::needed(&[1.0, 1e20, 0.0, 15.0, 17.0], &[1.0, 1e-20, 1.0, 1.0, 1.0]).unwrap();
        assert_eq!(balance.0[..4], [1.0, (-33f64).exp2(), 1.0, 1.0]);
        assert_eq!(balance.0[4], 0.5);
        assert!(Balance::needed(&[1.0, 16.0, 0.0, f64::NAN], &[1.0, 1.0, 0.0, 1.0]).is_none());
    }

    #[test]
    fn a_start_that_is_zero_in_one_factor_has_no_extreme_scale_in_the_other() {
        let balance = Balance::of_start(&[0.0, 0.0, 1.0, 0.0], &[1e40, 4.0, 1e-40, 0.0]).unwrap();
        // V's column of norm 1e20 comes near 1; one of norm 2, and one that is zero on both sides, stay.
        assert!((0.5..=2.0).contains(&(1e20 / balance.0[0])));
        assert_eq!([balance.0[1], balance.0[3]], [1.0, 1.0]);
        assert!((0.25..=4.0).contains(&(balance.0[2].powi(2) / 1e-20)));
    }

    #[test]
    fn balancing_changes_no_digit_of_the_product() {
        let mut state = FactorRows::new(vec![3.5e-9f32, 1.0, 0.25e-9, 2.0], vec![7e9f32, 1.5, 1e9, 1.0]);
        let product =
            |state: &FactorRows<f32>, i: usize, j: usize| state.u.host()[i * 2] * state.v.host()[j * 2];
        let before: Vec<f32> = (0..4).map(|place| product(&state, place / 2, place % 2)).collect();
        let threads = &Threads::new(1).unwrap();
        let squares = |factor: &Resident<f32>| squared_norms(&Alone, threads, factor.host(), 2).unwrap();
        let balance = Balance::needed(&squares(&state.u), &squares(&state.v)).unwrap();
        balance.apply(&Cpu { threads }, &mut state).unwrap();
        let after: Vec<f32> = (0..4).map(|place| product(&state, place / 2, place % 2)).collect();
        assert_eq!(before, after);
        assert!(Balance::needed(&squares(&state.u), &squares(&state.v)).is_none());
    }

    #[test]
    fn every_scale_is_as_named_and_keeps_the_product() {
        let u = [1.0, 4.0, 0.0, 3.0, 2.0, 0.0, 0.5, 1.0, 0.0];
        let v = [10.0, 0.1, 7.0, 20.0, 0.2, 7.0];
        let product = |u: &[f64], v: &[f64]| -> Vec<f64> {
            let entry = |i: usize, j: usize| (0..3).map(|l| u[i * 3 + l] * v[j * 3 + l]).sum();
            (0..6).map(|place| entry(place / 2, place % 2)).collect()
        };
        let sum =
            |factor: &[f64]| -> Vec<f64> { (0..3).map(|j| factor.iter().skip(j).step_by(3).sum()).collect() };
        use Normalize::*;
        for how in [Balanced, None, U, V, SumU, SumV] {
            let (mut a, mut b) = (u.to_vec(), v.to_vec());
            normalize(&Alone, &Threads::new(2).unwrap(), how, &mut a, &mut b, 3).unwrap();
            for (got, want) in product(&a, &b).iter().zip(product(&u, &v)) {
                assert!((got - want).abs() <= 1e-14 * want, "{how:?}");
            }
            for j in 0..2 {
                let (got, want) = match how {
                    Balanced => (norms(&a, 3)[j], norms(&b, 3)[j]),
                    None => (a[j], u[j]),
                    U => (norms(&a, 3)[j], 1.0),
                    V => (norms(&b, 3)[j], 1.0),
                    SumU => (sum(&a)[j], 1.0),
                    SumV => (sum(&b)[j], 1.0),
                };
                assert!((got - want).abs() <= 1e-14 * want, "{how:?} {j}: {got} {want}");
            }
            // Zero in U: a scale that only V has means nothing, and is kept unless V's scale is requested.
            if !matches!(how, V | SumV) {
                assert_eq!([b[2], b[5]], [7.0, 7.0], "{how:?}");
            }
        }
    }
}
