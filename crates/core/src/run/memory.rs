//! How much memory a factorization takes, said before it starts.

use super::settings::Algorithm;
use crate::matrix::{Csr, Matrix, Values};
use crate::partition::Access;
use crate::{Precision, Real};

/// Bytes for factorizing `matrix` in the given precision: the stored parts of M, those of the hand-out to several
/// ranks included, the factors, and what is computed beside them.
pub fn memory_needed<T: Real>(
    matrix: &Matrix<T>,
    algorithm: Algorithm,
    rank: usize,
    nodes: usize,
    precision: Precision,
) -> u64 {
    let (m, n) = (matrix.rows(), matrix.cols());
    let of_sparse = |rows| match precision {
        Precision::F32 => Csr::<f32>::bytes_for(rows, matrix.stored()),
        Precision::F64 => Csr::<f64>::bytes_for(rows, matrix.stored()),
    };
    let stored = match matrix {
        Matrix::Dense(dense) => {
            let width = if let Values::Bytes(_) = dense.values() { 1 } else { precision.bytes() };
            let copies = match (nodes, algorithm.access()) {
                (1, Access::Whole) => 1,
                (1, Access::Sampled) => 2,
                _ => 3,
            };
            copies * width * (m as u64).saturating_mul(n as u64)
        }
        // M and its transpose, twice while they are dealt out.
        Matrix::Sparse(_) => (of_sparse(m) + of_sparse(n)) * if nodes == 1 { 1 } else { 2 },
    };
    let (rank, nodes) = (rank as u64, nodes as u64);
    // The factors and their products; each rank's gathered copy of one of them, in f64 too while the error is
    // evaluated.
    let factors = (m as u64 + n as u64).saturating_mul(rank).saturating_mul(2 * precision.bytes());
    let gathered = (m.max(n) as u64).saturating_mul(rank).saturating_mul(nodes * (precision.bytes() + 8));
    // Gram matrices, which matter for a rank far above the sides of M: up to 32 partial sums, and what a rank keeps.
    let partial = (m.max(n) as u64 / nodes).div_ceil(64).min(32);
    let grams = rank.saturating_mul(rank).saturating_mul(8 * (partial + 6) * nodes);
    [factors, gathered, grams].into_iter().fold(stored, u64::saturating_add)
}
