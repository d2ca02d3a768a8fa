//! Gram matrices of thin factors, summed in `f64`.

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use crate::Real;
use crate::threads::Threads;

/// Rows of one product, within which sums are of the factor's own type; beyond, they are `f64`.
const STRIP: usize = 64;

/// XᵀX (k x k) of a factor stored by row. The sum is cut by the number of rows alone, so that it does not depend
/// on the number of threads; at most 32 partial sums are held.
pub fn gram<T: Real>(threads: &Threads, factor: &[T], k: usize) -> Vec<f64> {
    let rows = factor.len() / k;
    let piece = rows.div_ceil(32).next_multiple_of(STRIP).max(STRIP);
    let partial = threads.map(
        factor.chunks(piece * k).collect(),
        || vec![T::ZERO; k * k],
        |strip_gram, piece: &[T]| {
            let mut total = vec![0f64; k * k];
            for strip in piece.chunks(STRIP * k) {
                // By row X is its transpose by column: XᵀX = (k x rows)(rows x k).
                let transpose = MatRef::from_column_major_slice(strip, k, strip.len() / k);
                let target = MatMut::from_column_major_slice_mut(strip_gram, k, k);
                matmul(
                    target,
                    BlockStructure::TriangularLower,
                    Accum::Replace,
                    transpose,
                    BlockStructure::Rectangular,
                    transpose.transpose(),
                    BlockStructure::Rectangular,
                    T::ONE,
                    Par::Seq,
                );
                for col in 0..k {
                    for row in col..k {
                        total[col * k + row] += strip_gram[col * k + row].to_f64();
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
