//! Products and eigenvectors of dense matrices of `f64`, compiled here once for the crates above.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

/// target += scale · A · B.
pub fn add_product(target: MatMut<'_, f64>, scale: f64, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(target, Accum::Add, a, b, scale, Par::Seq);
}

/// Eigenvalues, largest first, and vectors of a symmetric matrix; of one whose entries are not finite, numbers without
/// a meaning.
pub fn eigen(matrix: &[f64], width: usize) -> (Vec<f64>, Mat<f64>) {
    let matrix = MatRef::from_column_major_slice(matrix, width, width);
    let Ok(decomposition) = matrix.self_adjoint_eigen(Side::Lower) else {
        return (vec![0.0; width], Mat::zeros(width, width));
    };
    let (values, vectors) = (decomposition.S(), decomposition.U());
    let place = |col: usize| width - 1 - col;
    let sorted = (0..width).map(|col| values[place(col)]).collect();
    (sorted, Mat::from_fn(width, width, |row, col| vectors[(row, place(col))]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), b.ncols(), |row, col| {
            (0..a.ncols()).map(|inner| a[(row, inner)] * b[(inner, col)]).sum()
        })
    }

    fn near(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> bool {
        (0..a.nrows()).all(|row| (0..a.ncols()).all(|col| (a[(row, col)] - b[(row, col)]).abs() < 1e-10))
    }

    proptest! {
        #[test]
        fn products_and_eigenvectors_are_those_of_the_definition(
            (n, m, numbers) in (0..9usize, 0..9usize)
                .prop_flat_map(|(n, m)| (Just(n), Just(m), proptest::collection::vec(-1.0..1.0f64, n * m)))
        ) {
            let x = MatRef::from_row_major_slice(&numbers, n, m);
            let mut gram = vec![0.0; n * n];
            add_product(MatMut::from_column_major_slice_mut(&mut gram, n, n), -0.5, x, x.transpose());
            add_product(MatMut::from_column_major_slice_mut(&mut gram, n, n), 1.5, x, x.transpose());
            let matrix = MatRef::from_column_major_slice(&gram, n, n);
            prop_assert!(near(matrix, product(x, x.transpose()).as_ref()));

            let (values, vectors) = eigen(&gram, n);
            prop_assert!(values.is_sorted_by(|a, b| a >= b));
            let scaled = Mat::from_fn(n, n, |row, col| vectors[(row, col)] * values[col]);
            prop_assert!(near(product(matrix, vectors.as_ref()).as_ref(), scaled.as_ref()));
            let identity = Mat::from_fn(n, n, |row, col| f64::from(row == col));
            prop_assert!(near(product(vectors.transpose(), vectors.as_ref()).as_ref(), identity.as_ref()));
        }
    }

    #[test]
    fn values_that_are_not_finite_do_not_panic() {
        for entry in [f64::NAN, f64::INFINITY] {
            let (values, vectors) = eigen(&[entry; 9], 3);
            assert_eq!((values.len(), vectors.nrows(), vectors.ncols()), (3, 3, 3));
        }
    }
}
