//! The error of given factors on a matrix.

use super::Factors;
use super::evaluate::evaluate;
use super::links::Links;
use super::method::{Blocks, Rank};
use super::start::{self, MatrixStats};
use crate::Real;
use crate::device::{Cpu, Device};
use crate::error::Result;
use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::objective::LeastSquares;
use crate::partition::{Access, Shard, shards_until};
use crate::real::precompiled;
use crate::threads::Threads;

/// The error of factors on a matrix.
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

/// The error of given factors on a matrix, and its baseline.
pub fn residual_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    factors.check(matrix.rows(), matrix.cols(), factors.k)?;
    let shard = shards_until(matrix, Grid::ONE, Access::Whole, threads.cancel()).remove(0);
    residual_on(&shard, factors, threads)
}

precompiled! {
    /// The error of given factors on a matrix that one rank holds as a whole, and its baseline.
    pub fn residual_on<T>(shard: &Shard<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> =
        residual;
}

fn residual<T: Real>(shard: &Shard<T>, factors: &Factors<T>, threads: &Threads) -> Result<Residual> {
    let device: &dyn Device<T> = &Cpu { threads };
    let blocks = &Blocks::load(device, shard)?;
    let links = Links::alone();
    let rank = Rank { shard, blocks, links, threads, device, objective: &LeastSquares, k: factors.k };
    let constants = MatrixStats::of(&rank.links, shard, threads)?.constants;
    let relative_error = evaluate(&rank, constants, &mut start::given(shard, factors))?.error;
    Ok(Residual { relative_error, norm: constants.norm.sqrt() })
}
