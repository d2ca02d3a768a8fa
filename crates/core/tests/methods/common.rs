//! What several test files use: one random matrix in every storage, and runs without a monitor.

use partwise::Real;
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};
use partwise::random::{Purpose, stream, uniform};
use partwise::run::{Algorithm, Factorization, Machine, Progress, Settings, factorize};

/// A matrix of rank 5 with noise, much of it zero, in every storage; one row and one column are empty.
pub fn matrices<T: Real>(rows: usize, cols: usize) -> Vec<(&'static str, Matrix<T>)> {
    let mut rng = stream(11, Purpose::StartU, 0, 0);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| uniform(&mut rng)).collect() };
    let (u, v, noise) = (draw(rows * 5), draw(cols * 5), draw(rows * cols));
    let at = |row: usize, col: usize| -> u8 {
        let model: f64 = (0..5).map(|l| u[row * 5 + l].powi(3) * v[col * 5 + l].powi(3)).sum();
        let value = 120.0 * (model + 0.3 * noise[row * cols + col] - 0.2);
        if (rows > 2 && row == 2) || (cols > 3 && col == 3) { 0 } else { value.clamp(0.0, 255.0) as u8 }
    };
    let by_row: Vec<u8> = (0..rows * cols).map(|i| at(i / cols, i % cols)).collect();
    let by_col: Vec<u8> = (0..rows * cols).map(|i| at(i % rows, i / rows)).collect();
    let reals =
        |bytes: &[u8]| Values::Real(bytes.iter().map(|&byte| T::from_f64(byte as f64 / 17.0)).collect());
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in by_row.chunks(cols) {
        for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0) {
            indices.push(col as u32);
            values.push(T::from_f64(value as f64));
        }
        offsets.push(indices.len());
    }
    let dense = |order, values| Matrix::Dense(Dense::new(rows, cols, order, values));
    vec![
        ("bytes by row", dense(Order::RowMajor, Values::Bytes(by_row.clone().into()))),
        ("reals by row", dense(Order::RowMajor, reals(&by_row))),
        ("reals by column", dense(Order::ColMajor, reals(&by_col))),
        ("sparse", Matrix::Sparse(Csr::new(rows, cols, offsets, indices, values))),
    ]
}

/// A run from the random start.
pub fn run<T: Real>(
    matrix: &Matrix<T>,
    nodes: usize,
    threads: usize,
    settings: &Settings,
) -> Factorization<T> {
    factorize(matrix.clone(), Machine::new(nodes, threads), settings, None, &mut |_: &Progress| false)
        .unwrap()
}

/// Settings for a fixed number of iterations.
pub fn settings(algorithm: Algorithm, rank: usize, iterations: usize) -> Settings {
    Settings { algorithm, iterations, tolerance: 0.0, seed: 3, ..Settings::new(rank) }
}
