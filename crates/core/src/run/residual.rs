//! The error of given factors on a matrix.

use super::Factors;
use super::evaluate::{evaluate, refuse_zeros, with_baseline};
use super::links::Links;
use super::method::{Blocks, Rank};
use super::start::{self, MatrixStats};
use crate::Real;
use crate::device::{Cpu, Device};
use crate::error::Result;
use crate::grid::Grid;
use crate::matrix::{Matrix, Observed};
use crate::objective::Loss;
use crate::partition::{Access, Shard, observed_shards, shards_until};
use crate::real::precompiled;
use crate::threads::Threads;

/// The error of factors on a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// ‖M − U Vᵀ‖_F / ‖M‖_F, or the divergence over that of the best constant model.
    pub relative_error: f64,
    /// The loss.
    pub loss: f64,
    /// ‖M‖_F.
    pub norm: f64,
}

/// The relative error of given factors on a matrix.
pub fn error_of<T: Real>(matrix: Matrix<T>, factors: &Factors<T>, threads: &Threads) -> Result<f64> {
    Ok(residual_of(matrix, factors, Loss::Frobenius, threads)?.relative_error)
}

/// The error of given factors on a matrix, and its baseline.
pub fn residual_of<T: Real>(
    matrix: Matrix<T>,
    factors: &Factors<T>,
    loss: Loss,
    threads: &Threads,
) -> Result<Residual> {
    factors.check(matrix.rows(), matrix.cols(), factors.k)?;
    let shard = shards_until(matrix, Grid::ONE, Access::Whole, threads.cancel()).remove(0);
    residual_on(&shard, factors, loss, threads)
}

/// The error of given factors on weighted entries.
pub fn residual_of_observed<T: Real>(
    observed: &Observed<T>,
    factors: &Factors<T>,
    loss: Loss,
    threads: &Threads,
) -> Result<Residual> {
    factors.check(observed.rows(), observed.cols(), factors.k)?;
    let shard = observed_shards(observed, 1, threads.cancel()).remove(0);
    residual_on(&shard, factors, loss, threads)
}

precompiled! {
    /// The error of given factors on a matrix that one rank holds as a whole, and its baseline.
    pub fn residual_on<T>(shard: &Shard<T>, factors: &Factors<T>, loss: Loss, threads: &Threads) -> Result<Residual> =
        residual;
}

fn residual<T: Real>(
    shard: &Shard<T>,
    factors: &Factors<T>,
    loss: Loss,
    threads: &Threads,
) -> Result<Residual> {
    let device: &dyn Device<T> = &Cpu { threads };
    let blocks = &Blocks::load(device, shard)?;
    let links = Links::alone();
    let constants = MatrixStats::of(&links, shard, threads)?.constants;
    let objective = &*loss.objective::<T>(constants.mean, shard.by_rows.unlisted());
    refuse_zeros(&links, shard, objective)?;
    let rank = Rank { shard, blocks, links, threads, device, objective, k: factors.k };
    let constants = with_baseline(&rank, constants)?;
    let relative_error = evaluate(&rank, constants, &mut start::given(shard, factors))?.error;
    let loss = objective.loss(relative_error, constants.baseline);
    Ok(Residual { relative_error, loss, norm: constants.norm.sqrt() })
}
