//! Gram matrices of thin factors, summed in `f64`.

use std::borrow::Cow;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::Real;
use crate::real::precompiled;
use crate::threads::Threads;

/// Rows of one product, within which sums are of the factor's own type; beyond, they are `f64`.
const STRIP: usize = 256;

/// Columns of the Gram matrix that one product gives, from its diagonal down.
const WIDTH: usize = 32;

precompiled! {
    /// XᵀX (k x k) of a factor stored by row. The sum is cut by the number of rows alone, so that it does not depend
    /// on the number of threads; at most 32 partial sums are held.
    pub fn gram<T>(threads: &Threads, factor: &[T], k: usize) -> Vec<f64> = products_in_own_type;

    /// XᵀX (k x k) of a factor stored by row, with products in `f64`, whatever the factor's type.
    pub fn gram_in_f64<T>(threads: &Threads, factor: &[T], k: usize) -> Vec<f64> = products_in_f64;
}

fn products_in_own_type<T: Real>(threads: &Threads, factor: &[T], k: usize) -> Vec<f64> {
    sum_of_strips(threads, factor, k, |strip| Cow::Borrowed(strip))
}

fn products_in_f64<T: Real>(threads: &Threads, factor: &[T], k: usize) -> Vec<f64> {
    sum_of_strips(threads, factor, k, |strip| strip.iter().map(|value| value.to_f64()).collect())
}

fn sum_of_strips<T: Real, W: Real>(
    threads: &Threads,
    factor: &[T],
    k: usize,
    convert: impl Fn(&[T]) -> Cow<'_, [W]> + Sync + Send,
) -> Vec<f64> {
    let rows = factor.len() / k;
    let piece = rows.div_ceil(32).next_multiple_of(STRIP).max(STRIP);
    let partial = threads.map(
        factor.chunks(piece * k).collect(),
        || vec![W::ZERO; k * WIDTH.min(k)],
        |part, piece: &[T]| {
            let mut total = vec![0f64; k * k];
            for strip in piece.chunks(STRIP * k) {
                let strip = convert(strip);
                // By row X is its transpose by column: XᵀX = (k x rows)(rows x k).
                let transpose = MatRef::from_column_major_slice(&strip, k, strip.len() / k);
                for first in (0..k).step_by(WIDTH) {
                    let (rest, width) = (k - first, WIDTH.min(k - first));
                    let lower = transpose.subrows(first, rest);
                    let columns = transpose.subrows(first, width).transpose();
                    let target = MatMut::from_column_major_slice_mut(&mut part[..rest * width], rest, width);
                    matmul(target, Accum::Replace, lower, columns, W::ONE, Par::Seq);
                    for (col, column) in part.chunks_exact(rest).take(width).enumerate() {
                        let sums = &mut total[(first + col) * k + first..][..rest];
                        sums.iter_mut().zip(column).for_each(|(sum, value)| *sum += value.to_f64());
                    }
                }
            }
            total
        },
    );
    let mut gram = vec![0f64; k * k];
    for partial in partial {
        gram.iter_mut().zip(partial).for_each(|(sum, term)| *sum += term);
    }
    for col in 0..k {
        for row in 0..col {
            gram[col * k + row] = gram[row * k + col];
        }
    }
    gram
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_naive_gram_for_any_number_of_threads(
            k in 1usize..9,
            factor in prop::collection::vec(0f64..10.0, 0..3000),
        ) {
            let factor = &factor[..factor.len() / k * k];
            let one = gram(&Threads::new(1).unwrap(), factor, k);
            let three = gram(&Threads::new(3).unwrap(), factor, k);
            prop_assert_eq!(&one, &three);
            for a in 0..k {
                for b in 0..k {
                    let naive: f64 = factor.chunks(k).map(|row| row[a] * row[b]).sum();
                    prop_assert!((one[a * k + b] - naive).abs() <= 1e-12 * (1.0 + naive));
                }
            }
        }
    }
}
