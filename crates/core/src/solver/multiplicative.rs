//! Multiplicative updates (Lee and Seung 2001): they never raise the error, and never leave zero.

use pulp::{Simd, WithSimd};

use super::{Quadratic, Solver, Step};
use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::{TILE, Tile};

/// U ← U ∘ P / (U G + l1), entry by entry; an l2 penalty is in G's diagonal. Where the denominator is 0 the entry
/// cannot change the error and stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multiplicative;

impl<T: Real> Solver<T> for Multiplicative {
    fn name(&self) -> &'static str {
        "multiplicative updates"
    }

    fn step(&self) -> Step {
        Step::Multiplicative
    }

    fn adds_l1(&self) -> bool {
        true
    }

    fn move_tile(
        &self,
        problem: &Quadratic<T>,
        product: &mut Tile<T>,
        factor: &mut Tile<T>,
        _rows: usize,
        _cancel: &Cancel,
    ) {
        let &Quadratic { k, ref gram, l1, .. } = problem;
        pulp::Arch::new().dispatch(Update { k, gram, l1, product, factor });
    }
}

struct Update<'a, T> {
    k: usize,
    gram: &'a [T],
    l1: T,
    product: &'a Tile<T>,
    factor: &'a mut Tile<T>,
}

impl<T: Real> WithSimd for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let old = self.factor.clone();
        let (products, _) = self.product.values.as_chunks::<TILE>();
        let (before, _) = old.values.as_chunks::<TILE>();
        let (columns, _) = self.factor.values.as_chunks_mut::<TILE>();
        for (j, gram_row) in self.gram.chunks_exact(self.k).enumerate() {
            let mut denominator = [self.l1; TILE];
            for (&coefficient, column) in gram_row.iter().zip(before) {
                for (denominator, &value) in denominator.iter_mut().zip(column) {
                    *denominator = coefficient.mul_add(value, *denominator);
                }
            }
            for ((value, &denominator), &numerator) in
                columns[j].iter_mut().zip(&denominator).zip(&products[j])
            {
                if denominator > T::ZERO {
                    *value *= numerator / denominator;
                }
            }
        }
    }
}
