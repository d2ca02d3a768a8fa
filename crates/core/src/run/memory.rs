//! How much memory a factorization takes, said before it starts.

use super::settings::Algorithm;
use crate::io::stream::Stream;
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
    let storage = match matrix {
        Matrix::Dense(dense) if matches!(dense.values(), Values::Bytes(_)) => Storage::Bytes,
        Matrix::Dense(_) => Storage::Reals,
        Matrix::Sparse(csr) => Storage::Sparse(csr.stored()),
    };
    needed((matrix.rows(), matrix.cols()), storage, algorithm, (rank, nodes), precision)
}

/// The same for a matrix that is still in its file, if it were read whole.
pub fn memory_needed_whole(
    stream: &Stream,
    algorithm: Algorithm,
    rank: usize,
    nodes: usize,
    precision: Precision,
) -> u64 {
    let storage = match (stream.is_sparse(), stream.is_bytes()) {
        (true, _) => Storage::Sparse(stream.stored()),
        (false, true) => Storage::Bytes,
        (false, false) => Storage::Reals,
    };
    needed((stream.rows(), stream.cols()), storage, algorithm, (rank, nodes), precision)
}

/// How the entries of a matrix are held.
enum Storage {
    Bytes,
    Reals,
    Sparse(usize),
}

fn needed(
    (m, n): (usize, usize),
    storage: Storage,
    algorithm: Algorithm,
    (rank, nodes): (usize, usize),
    precision: Precision,
) -> u64 {
    let of_sparse = |rows, stored| match precision {
        Precision::F32 => Csr::<f32>::bytes_for(rows, stored),
        Precision::F64 => Csr::<f64>::bytes_for(rows, stored),
    };
    let stored = match storage {
        Storage::Bytes | Storage::Reals => {
            let width = if let Storage::Bytes = storage { 1 } else { precision.bytes() };
            let copies = match (nodes, algorithm.access()) {
                (1, Access::Whole) => 1,
                (1, Access::Sampled) => 2,
                _ => 3,
            };
            (m as u64).saturating_mul(n as u64).saturating_mul(copies * width)
        }
        // M and its transpose, twice while they are dealt out.
        Storage::Sparse(stored) => {
            (of_sparse(m, stored) + of_sparse(n, stored)) * if nodes == 1 { 1 } else { 2 }
        }
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
