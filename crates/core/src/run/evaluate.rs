//! Evaluates the relative error of the factors, and finds dead components.

use super::links::Links;
use super::method::Rank;
use super::start::FactorRows;
use crate::Real;
use crate::comm::{Numbers, Reduction, sum_exactly};
use crate::device::{LossAt, LossPart};
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::objective::{Baseline, Constants, Objective};
use crate::partition::Shard;

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The relative error.
    pub error: f64,
    /// Components whose column of V is zero. (If that of U is zero, V's remains and the next step may fill U's
    /// again.)
    pub dead: Vec<usize>,
}

/// Evaluates the factors. Every sum is either local to a row or independent of the order, so the bits do not depend
/// on the numbers of processes and threads.
pub fn evaluate<T: Real>(
    rank: &Rank<'_, T>,
    constants: Constants,
    state: &mut FactorRows<T>,
) -> Result<Evaluation> {
    let &Rank { shard, links, device, objective, k, blocks, .. } = rank;
    let FactorRows { u: own_u, v: own_v } = state;
    // If the gathered rows are all of V, their summary does not depend on the number of processes.
    let mut summed = None;
    if !links.is_complete(shard.place, Factor::U) {
        let mut summary = device.summarize_exactly(objective, own_v, k)?;
        links.all.all_reduce(Reduction::Sum, Numbers::F64(&mut summary))?;
        summed = Some(summary);
    }
    let mut gathered = links.gather(shard.place, Factor::U, device, own_v, k)?;
    let v = gathered.rows();
    let summary = match summed {
        Some(summary) => summary,
        None => device.summarize_exactly(objective, v, k)?,
    };
    let model = device.losses(objective, LossPart::Model(own_u, &summary), k)?;
    let mut gathered_u = links.rows_of_block(shard.place, Factor::U, device, own_u, k)?;
    let u = gathered_u.rows();
    let block = &blocks.by_rows;
    let entries = device.losses(objective, LossPart::Entries(LossAt { block, x: u, fixed: v }), k)?;
    let none = Vec::new;
    let (entries, model) = (entries.unwrap_or_else(none), model.unwrap_or_else(none));
    let [entries, model] = sum_exactly(links.all, [&entries, &model])?;
    let mut error = objective.relative_error(constants, entries, model);
    let part = LossPart::Cancelled(error, LossAt { block, x: u, fixed: v });
    if let Some(losses) = device.losses(objective, part, k)? {
        let [loss] = sum_exactly(links.all, [&losses])?;
        error = objective.relative(loss, constants.baseline);
    }
    Ok(Evaluation { error, dead: dead(objective.squared_sizes(&summary, k), k) })
}

/// The constants of M, including the baseline of the loss, for a process that computes one component.
pub fn with_baseline<T: Real>(rank: &Rank<'_, T>, constants: Constants) -> Result<Constants> {
    let &Rank { shard, objective, .. } = rank;
    if objective.baseline() == Baseline::Norm {
        return Ok(constants);
    }
    let ones = vec![T::ONE; shard.own_rows.len()];
    let means = vec![T::from_f64(constants.mean); shard.own_cols.len()];
    let to_one = Constants { baseline: 1.0, ..constants };
    let loss = evaluate(&Rank { k: 1, ..*rank }, to_one, &mut FactorRows::new(ones, means))?.error;
    let least = objective.least_baseline(constants.mean * constants.count, constants.count);
    Ok(Constants { baseline: loss.max(least), ..constants })
}

/// Rejects, on every process alike, a matrix with an entry of 0 if the loss is undefined there.
pub fn refuse_zeros<T: Real>(
    links: &Links<'_>,
    shard: &Shard<T>,
    objective: &dyn Objective<T>,
) -> Result<()> {
    if !objective.needs_positive_entries() {
        return Ok(());
    }
    let first = shard.place.block(Factor::U).0.start;
    // The first row over all processes, found as the maximum of negative numbers.
    let zero = shard.by_rows.first_row_with_zero();
    let mut place = [zero.map_or(f64::NEG_INFINITY, |row| -((first + row) as f64))];
    links.all.all_reduce(Reduction::Max, Numbers::F64(&mut place))?;
    if place[0] == f64::NEG_INFINITY {
        return Ok(());
    }
    Err(no_value_at_zero(-place[0] as usize))
}

/// The error for a row that contains a 0.
pub fn no_value_at_zero(row: usize) -> Error {
    let problem = format!(
        "the Itakura-Saito divergence is undefined at 0, but row {} (counted from 1) contains a 0; give \
         positive entries, or use kl",
        row + 1
    );
    Error::parameter("loss", problem)
}

/// Components whose column of V is zero.
pub fn dead(squares: Option<Vec<f64>>, k: usize) -> Vec<usize> {
    let squares = squares.unwrap_or_else(|| vec![1.0; k]);
    (0..k).filter(|&j| squares[j] == 0.0).collect()
}
