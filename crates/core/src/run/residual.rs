//! The error of given factors on a matrix.

use super::Factors;
use super::evaluate::evaluate;
use super::links::Links;
use super::method::Rank;
use super::start::{self, MatrixStats};
use crate::Real;
use crate::error::Result;
use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::partition::{Access, Shard, shards_until};
use crate::threads::Threads;

/// How far factors are from a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// ‖M − U Vᵀ‖_F / ‖M‖_F.
    pub relative_error: f64,
    /// ‖M‖_F.
    pub norm: f64,
}

/// The relative error of given factors on a matrix.
pub fn error_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<f64> {
    Ok(residual_of(matrix, factors, threads)?.relative_error)
}

/// The error of given factors on a matrix, and what it is relative to.
pub fn residual_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    factors.check(matrix.rows(), matrix.cols(), factors.k)?;
    let shard = shards_until(matrix, Grid::ONE, Access::Whole, threads.cancel()).remove(0);
    residual_on(&shard, factors, threads)
}

/// The same of a matrix that one rank holds whole.
pub fn residual_on<T: Real>(shard: &Shard<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    T::residual(shard, factors, threads)
}

pub(crate) fn residual_here<T: Real>(
    shard: &Shard<T>,
    factors: &Factors<T>,
    threads: &Threads,
) -> Result<Residual> {
    let rank = Rank { shard, links: Links::alone(), threads, k: factors.k };
    let constants = MatrixStats::of(&rank.links, shard, threads)?.constants;
    let relative_error = evaluate(&rank, constants, &start::given(shard, factors))?.error;
    Ok(Residual { relative_error, norm: constants.norm.sqrt() })
}
