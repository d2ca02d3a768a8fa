//! Products and eigenvectors of dense matrices of `f64`, compiled here once for the crates above.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

/// target += scale · A · B.
pub fn add_product(target: MatMut<'_, f64>, scale: f64, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(target, Accum::Add, a, b, scale, Par::Seq);
}

/// Eigenvalues, largest first, and vectors of a symmetric matrix; zeros if it has numbers that are not finite.
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
