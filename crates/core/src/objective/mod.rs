//! What a run minimises, as a value: the loss of U Vᵀ at the entries of M.
//!
//! Objectives fall into two families. In the *Gram family* a half step needs only products with M, which may be summed
//! over parts of the columns, and a summary of the fixed factor that is the same for all rows. In the *entry family* it
//! needs the model at the stored entries of a row, and so complete rows. An objective is one file, and one line in
//! [`Loss`].

mod divergence;
mod least_squares;
pub mod losses;
mod newton;
mod ratios;
mod weighted;

use std::ops::Range;

use crate::Real;
use crate::cancel::Cancel;
use crate::kernels::{Product, Scratch, Tile};
use crate::matrix::{Matrix, Unlisted};
use crate::partition::Block;
use crate::registry::registry;
use crate::solver::{Penalty, Solver};
use crate::threads::Threads;

use divergence::Divergence;
pub use least_squares::{LeastSquares, relative_error};
use weighted::WeightedLeastSquares;

macro_rules! losses {
    ($($variant:ident = $label:literal, $needs:ident, $help:literal;)+) => {
        registry! {
            /// The losses.
            pub enum Loss of "loss" {
                $($variant = $label, $help;)+
            }
        }

        impl Loss {
            /// What a half step needs of M.
            pub fn needs(self) -> Needs {
                match self {
                    $(Loss::$variant => Needs::$needs,)+
                }
            }
        }
    };
}

losses! {
    Frobenius = "frobenius", PartialSums, "Least squares, ½ ‖M − U Vᵀ‖²";
    Kl = "kl", CompleteRows, "Kullback-Leibler divergence, for counts";
    Is = "is", CompleteRows, "Itakura-Saito divergence, for power spectra";
}

impl Loss {
    /// The loss divided by that of the baseline, given the relative error, which is its square root for least squares.
    pub fn share_of_baseline(self, relative_error: f64) -> f64 {
        if self == Loss::Frobenius { relative_error * relative_error } else { relative_error }
    }

    /// The objective for a matrix with this mean; if entries have weights, `unlisted` says how unlisted
    /// entries are interpreted.
    pub fn objective<T: Real>(self, mean: f64, unlisted: Option<Unlisted>) -> Box<dyn Objective<T>> {
        match (self, unlisted) {
            (Loss::Frobenius, None) => Box::new(LeastSquares),
            (Loss::Frobenius, Some(unlisted)) => Box::new(WeightedLeastSquares { unlisted }),
            (Loss::Kl, unlisted) => Box::new(Divergence::kullback_leibler(mean, unlisted)),
            (Loss::Is, unlisted) => Box::new(Divergence::itakura_saito(mean, unlisted)),
        }
    }
}

#[expect(clippy::derivable_impls, reason = "the table of losses gives the variants no attributes")]
impl Default for Loss {
    fn default() -> Self {
        Loss::Frobenius
    }
}

/// What a half step needs of M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Sums over parts of the columns, added up over processes: Gram matrices, multiplicative updates.
    PartialSums,
    /// Complete rows.
    CompleteRows,
}

/// One side's half step: everything but the entries of M and the factor that moves.
pub struct HalfStep<'a, T> {
    /// How rows move.
    pub solver: &'a dyn Solver<T>,
    /// What [`Objective::summarize`] says of the fixed factor, summed over all processes.
    pub summary: &'a [f64],
    /// Penalty and bound.
    pub terms: Penalty,
    /// Powers of two that the columns of the fixed factor were multiplied by, so that no product overflows; the rows that
    /// are found are multiplied by the same.
    pub scales: Option<&'a [f64]>,
    /// Whether [`TileStep::move_tile`] should return the value for [`Objective::error_at_hand`].
    pub wants_error: bool,
    /// Number of components.
    pub k: usize,
}

/// A loss that is summed over the entries of M, and how to lower it.
pub trait Objective<T: Real>: Send + Sync {
    /// Whether this solver can lower the objective.
    fn supports(&self, solver: &dyn Solver<T>) -> bool;

    /// Summarizes some rows of the fixed factor for half steps. Summaries of several parts are added up.
    fn summarize(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64>;

    /// The summary with the accuracy that an evaluation needs.
    fn summarize_exactly(&self, threads: &Threads, fixed: &[T], k: usize) -> Vec<f64> {
        self.summarize(threads, fixed, k)
    }

    /// The squared norm of each column of the summarized factor, if the summary contains it.
    fn squared_sizes(&self, _summary: &[f64], _k: usize) -> Option<Vec<f64>> {
        None
    }

    /// Prepares a half step, whose tiles follow.
    fn prepare<'a>(&self, step: &'a HalfStep<'a, T>) -> Box<dyn TileStep<T> + 'a>;

    /// The part of each row's loss that depends on its entries. `x` has one row per row of the block, `fixed` one
    /// per column.
    fn entry_losses(&self, threads: &Threads, block: &Block<T>, x: &[T], fixed: &[T], k: usize) -> Vec<f64>;

    /// The part of each row's loss that depends on the model alone, given the exact summary of the fixed factor.
    fn model_losses(&self, threads: &Threads, x: &[T], summary: &[f64], k: usize) -> Vec<f64>;

    /// The relative error from the sums of both parts over all rows; `norm` is ‖M‖², `baseline` the loss of
    /// [`Objective::baseline`].
    fn relative_error(&self, constants: Constants, entries: f64, model: f64) -> f64;

    /// The whole loss of each row, entry by entry, for a relative error at which the two parts cancel.
    fn losses_where_cancelled(
        &self,
        _threads: &Threads,
        _error: f64,
        _block: &Block<T>,
        _x: &[T],
        _fixed: &[T],
        _k: usize,
    ) -> Option<Vec<f64>> {
        None
    }

    /// The relative error of a whole loss.
    fn relative(&self, loss: f64, baseline: f64) -> f64;

    /// The loss of a relative error.
    fn loss(&self, error: f64, baseline: f64) -> f64;

    /// The relative error including penalties, in terms of [`Objective::relative`] with a baseline of 1.
    fn merit(&self, error: f64, penalty: f64, baseline: f64) -> f64;

    /// The relative error below which [`Objective::error_at_hand`] is inaccurate due to cancellation.
    fn cancels_below(&self) -> f64 {
        0.0
    }

    /// The baseline of the loss.
    fn baseline(&self) -> Baseline;

    /// The lower bound of the baseline, given the sum of M and the number of its entries.
    fn least_baseline(&self, _sum: f64, _count: f64) -> f64 {
        0.0
    }

    /// The loss of one entry m, given the model x.
    fn whole_loss(&self, m: f64, x: f64) -> f64;

    /// What a step of the columns' factor Y sums over the rows of a block, which are those of X: nothing if Mᵀ X is summed,
    /// else another matrix that takes the place of M. Steps of [`TileStep`] on the sums follow.
    fn summand(
        &self,
        _threads: &Threads,
        _block: &Block<T>,
        _x: &[T],
        _y: &[T],
        _k: usize,
    ) -> Option<Matrix<T>> {
        None
    }

    /// Whether the loss is undefined for entries of 0.
    fn needs_positive_entries(&self) -> bool {
        false
    }

    /// The relative error after a half step, if its products have it for free: `cross` is what
    /// [`TileStep::move_tile`] returned, summed over all tiles and processes.
    fn error_at_hand(&self, _constants: Constants, _cross: f64, _of_u: &[f64], _of_v: &[f64]) -> Option<f64> {
        None
    }
}

/// The loss to which errors are relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// ‖M‖², the loss of the empty model.
    Norm,
    /// The loss of the model that is the mean of M everywhere.
    BestConstant,
}

/// Constants of the whole matrix M.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// ‖M‖_F².
    pub norm: f64,
    /// Mean entry.
    pub mean: f64,
    /// Number of entries.
    pub count: f64,
    /// The loss that errors are relative to.
    pub baseline: f64,
}

/// A prepared half step.
pub trait TileStep<T: Real>: Sync {
    /// Moves the rows of one tile, and returns their contribution to [`Objective::error_at_hand`].
    fn move_tile(&self, rows: Range<usize>, tile: TileOf<'_, T>) -> f64;
}

/// The data of one tile's step.
pub struct TileOf<'a, T: Real> {
    /// The block of M times the fixed factor, tile by tile, or its entries row by row.
    pub product: &'a Product<'a, T>,
    /// The rows that move.
    pub values: &'a mut Tile<T>,
    /// A buffer for the product's tile.
    pub products: &'a mut Tile<T>,
    /// A buffer for gathered entries and weights.
    pub scratch: &'a mut Scratch<T>,
    /// The time at which the product was finished, for the clock.
    pub multiplied: &'a mut std::time::Instant,
    /// Signals cancellation.
    pub cancel: &'a Cancel,
}
