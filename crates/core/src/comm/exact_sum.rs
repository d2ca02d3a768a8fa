//! Sums that do not depend on the order of their terms, and therefore not on how rows are distributed over ranks.
//!
//! Every term is truncated once to a fixed point below its bound; integers are then added, which is exact in any
//! order. It is used for sums that must agree bit for bit for any number of ranks (scale of the start, weight of
//! the step, error).

use super::{Comm, Numbers, Reduction};
use crate::error::Result;

/// Bits kept below the bound: far finer than an `f64` sum, with room for 2^47 terms as large as the bound.
const BITS: i32 = 80;

/// Running fixed-point sums.
pub struct ExactSum {
    scales: Vec<f64>,
    totals: Vec<i128>,
}

impl ExactSum {
    /// Sums of terms that do not exceed `bounds` in size. The bounds must be the same on every rank.
    pub fn new(bounds: &[f64]) -> Self {
        let scales = bounds
            .iter()
            .map(|&bound| {
                let exponent = if bound > 0.0 { bound.log2().ceil() as i32 } else { 0 };
                2f64.powi(BITS - exponent.max(-900))
            })
            .collect();
        ExactSum { scales, totals: vec![0; bounds.len()] }
    }

    /// Adds one term to each sum.
    pub fn add(&mut self, terms: impl IntoIterator<Item = f64>) {
        for ((total, scale), term) in self.totals.iter_mut().zip(&self.scales).zip(terms) {
            *total += (term * scale) as i128;
        }
    }

    /// Adds the sums of other terms with the same bounds.
    pub fn merge(&mut self, other: &ExactSum) {
        self.totals.iter_mut().zip(&other.totals).for_each(|(total, term)| *total += term);
    }

    /// The sums over all ranks.
    pub fn finish(mut self, comm: &dyn Comm) -> Result<Vec<f64>> {
        comm.all_reduce(Reduction::Sum, Numbers::I128(&mut self.totals))?;
        Ok(self.totals.iter().zip(&self.scales).map(|(&total, scale)| total as f64 / scale).collect())
    }
}

/// Sums each of the slices over all ranks; a term that is not finite makes its sum NaN.
pub fn sum_exactly<const W: usize>(comm: &dyn Comm, terms: [&[f64]; W]) -> Result<[f64; W]> {
    let mut bounds = terms.map(|terms| {
        terms
            .iter()
            .fold(0f64, |max, term| if term.is_finite() { max.max(term.abs()) } else { f64::INFINITY })
    });
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut bounds))?;
    let mut sums = [0.0; W];
    for (index, terms) in terms.iter().enumerate() {
        if bounds[index].is_finite() {
            let mut sum = ExactSum::new(&[bounds[index]]);
            terms.iter().for_each(|&term| sum.add([term]));
            sums[index] = sum.finish(comm)?[0];
        } else {
            sums[index] = f64::NAN;
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::super::run_ranks;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_plain_sum_and_ignores_the_order(
            mut terms in prop::collection::vec(-1e6f64..1e6, 1..200),
            ranks in 1usize..5,
        ) {
            let plain: f64 = terms.iter().sum();
            let exact = |terms: &[f64]| {
                let parts: Vec<Vec<f64>> =
                    (0..ranks).map(|rank| terms.iter().skip(rank).step_by(ranks).copied().collect()).collect();
                run_ranks(parts, |comm, part| sum_exactly(comm, [&part])).unwrap()[0][0]
            };
            let sum = exact(&terms);
            prop_assert!((sum - plain).abs() <= 1e-9 * terms.iter().map(|x| x.abs()).sum::<f64>());
            terms.reverse();
            prop_assert_eq!(sum.to_bits(), exact(&terms).to_bits());
        }
    }

    #[test]
    fn tiny_huge_and_infinite_terms() {
        let sum =
            |terms: &[f64]| run_ranks(vec![terms], |comm, terms| sum_exactly(comm, [terms])).unwrap()[0][0];
        assert_eq!(sum(&[1e300, 1e300]), 2e300);
        assert_eq!(sum(&[3e-260, 1e-260]), 4e-260);
        assert_eq!(sum(&[]), 0.0);
        assert!(sum(&[1.0, f64::INFINITY]).is_nan());
        assert!(sum(&[1.0, f64::NAN]).is_nan());
    }
}
