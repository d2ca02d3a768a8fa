//! Where the iteration begins: random at M's own scale, keyed by global row, or given.

use std::ops::Range;

use super::Factors;
use crate::Real;
use crate::comm::{Comm, ExactSum, sum_exactly};
use crate::error::Result;
use crate::partition::Shard;
use crate::random::{Purpose, stream, uniform};

/// What is known of M before the first iteration.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The same on every rank.
    pub constants: Constants,
    /// Which of the own rows of M have an entry; the others start as zero rows of U.
    pub used_rows: Vec<bool>,
    /// Which of the own columns have one; the others keep zero rows in V.
    pub used_cols: Vec<bool>,
}

/// Numbers of the whole of M.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// ‖M‖_F².
    pub norm: f64,
    /// Mean entry.
    pub mean: f64,
}

impl Knowledge {
    /// One pass over each side's part of M, summed independently of the partition.
    pub fn of<T: Real>(comm: &dyn Comm, shard: &Shard<T>) -> Result<Self> {
        let rows = shard.by_rows.row_sums();
        let [sum, norm] = sum_exactly(comm, [&rows.sums, &rows.squares])?;
        let constants = Constants { norm, mean: sum / (shard.rows as f64 * shard.cols as f64) };
        Ok(Knowledge { constants, used_rows: rows.used(), used_cols: shard.by_cols.row_sums().used() })
    }
}

/// A rank's rows of both factors.
#[derive(Clone, Debug)]
pub struct State<T> {
    /// U_{I_r:}, by row.
    pub u: Vec<T>,
    /// V_{J_r:}, by row.
    pub v: Vec<T>,
}

/// Uniform draws for the rows in use, zeros for the others.
pub fn draw(seed: u64, purpose: Purpose, rows: &Range<usize>, used: &[bool], k: usize) -> Vec<f64> {
    let mut values = vec![0.0; rows.len() * k];
    for ((row, &used), values) in rows.clone().zip(used).zip(values.chunks_exact_mut(k)) {
        if used {
            let mut rng = stream(seed, purpose, 0, row);
            values.fill_with(|| uniform(&mut rng));
        }
    }
    values
}

/// Random factors such that U Vᵀ and M have the same mean. Empty rows and columns of M get zero rows.
pub fn random<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    known: &Knowledge,
    seed: u64,
    k: usize,
) -> Result<State<T>> {
    let u = draw(seed, Purpose::StartU, &shard.own_rows, &known.used_rows, k);
    let v = draw(seed, Purpose::StartV, &shard.own_cols, &known.used_cols, k);
    let column_sums = |factor: &[f64]| -> Result<Vec<f64>> {
        // Draws are at most 1.
        let mut sums = ExactSum::new(&vec![1.0; k]);
        factor.chunks_exact(k).for_each(|row| sums.add(row.iter().copied()));
        sums.finish(comm)
    };
    let total: f64 = column_sums(&u)?.iter().zip(column_sums(&v)?).map(|(u, v)| u * v).sum();
    let scale = (known.constants.mean * shard.rows as f64 * shard.cols as f64 / total).sqrt();
    let scaled = |factor: Vec<f64>| factor.into_iter().map(|value| T::from_f64(value * scale)).collect();
    Ok(State { u: scaled(u), v: scaled(v) })
}

/// The own rows of given factors, as they are.
pub fn given<T: Real>(shard: &Shard<T>, factors: &Factors<T>) -> State<T> {
    let k = factors.k;
    State {
        u: factors.u[shard.own_rows.start * k..shard.own_rows.end * k].to_vec(),
        v: factors.v[shard.own_cols.start * k..shard.own_cols.end * k].to_vec(),
    }
}

/// Draws column `component` of V anew, at the scale of a random start, and empties that of U, so that the error
/// does not rise; the next step fills it.
pub fn redraw<T: Real>(
    state: &mut State<T>,
    shard: &Shard<T>,
    known: &Knowledge,
    seed: u64,
    (iteration, component, k): (usize, usize, usize),
) {
    // E[u v] = scale² / 4 for uniform draws, k of them to make up the mean.
    let scale = 2.0 * (known.constants.mean / k as f64).sqrt();
    state.u.iter_mut().skip(component).step_by(k).for_each(|value| *value = T::ZERO);
    let rows = shard.own_cols.clone().zip(&known.used_cols);
    for ((row, &used), value) in rows.zip(state.v.iter_mut().skip(component).step_by(k)) {
        let mut rng = stream(seed, Purpose::Redraw, iteration * k + component, row);
        *value = if used { T::from_f64(scale * uniform(&mut rng)) } else { T::ZERO };
    }
}
