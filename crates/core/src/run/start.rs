//! The starting values of the iteration: random at M's scale, keyed by global row, or given.

use std::ops::Range;

use super::Factors;
use super::links::Links;
use crate::Real;
use crate::cancel::Cancel;
use crate::comm::{Comm, ExactSum, Numbers, Reduction, sum_exactly};
use crate::device::{Device, Resident};
use crate::error::{Error, Result};
use crate::grid::Factor;
use crate::matrix::Shape;
use crate::objective::Constants;
use crate::partition::{RowSums, Shard};
use crate::random::{Purpose, stream, uniform};
use crate::threads::Threads;

/// What is known about M before the first iteration.
#[derive(Clone, Debug)]
pub struct MatrixStats {
    /// The same on every rank.
    pub constants: Constants,
    /// Which of the own rows of M have an entry; the others start as zero rows of U.
    pub used_rows: Vec<bool>,
    /// Which of the own columns have one; the others keep zero rows in V.
    pub used_cols: Vec<bool>,
}

impl MatrixStats {
    /// One pass over each side's part of M, summed independently of the partition.
    pub fn of<T: Real>(links: &Links<'_>, shard: &Shard<T>, threads: &Threads) -> Result<Self> {
        let rows = shard.by_rows.row_sums(threads);
        refuse_bad_rows(links.all, shard, &rows)?;
        let mut constants = constants_of(links.all, shard.shape(), &rows)?;
        if let Some(weights) = shard.by_rows.row_weights() {
            let [count] = sum_exactly(links.all, [&weights])?;
            constants = Constants { mean: constants.mean * constants.count / count, count, ..constants };
        }
        let used = |factor, sums: Vec<f64>| -> Result<Vec<bool>> {
            let sums = links.sum_rows(shard.place, factor, sums, 1)?;
            Ok(sums.into_iter().map(|sum| sum > 0.0).collect())
        };
        let used_rows = used(Factor::U, rows.sums)?;
        let cols = shard.by_cols.used_rows().into_iter().map(|used| if used { 1.0 } else { 0.0 });
        let used_cols = used(Factor::V, cols.collect())?;
        Ok(MatrixStats { constants, used_rows, used_cols })
    }
}

/// Refuses a matrix with an entry that cannot be factorized, on every rank.
fn refuse_bad_rows<T: Real>(comm: &dyn Comm, shard: &Shard<T>, rows: &RowSums) -> Result<()> {
    let first = shard.place.block(Factor::U).0.start;
    // The first row over all ranks, as the largest of the negative numbers.
    let mut place = [rows.first_bad_row().map_or(f64::NEG_INFINITY, |row| -((first + row) as f64))];
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut place))?;
    if place[0] == f64::NEG_INFINITY {
        return Ok(());
    }
    Err(bad_entry("row", -place[0] as usize))
}

/// The error for a row (or column) with an entry that cannot be factorized.
pub fn bad_entry(what: &str, place: usize) -> Error {
    let problem = format!(
        "{what} {} (counted from 1) has an entry that is negative, infinite or not a number; a nonnegative factorization \
         needs finite entries of at least 0",
        place + 1
    );
    Error::parameter("matrix", problem)
}

/// The numbers of a matrix from the sums of the own rows, for errors relative to its norm.
pub fn constants_of(comm: &dyn Comm, shape: Shape, rows: &RowSums) -> Result<Constants> {
    let [sum, norm] = sum_exactly(comm, [&rows.sums, &rows.squares])?;
    let count = shape.rows as f64 * shape.cols as f64;
    Ok(Constants { norm, mean: sum / count, count, baseline: norm })
}

/// A rank's rows of both factors.
#[derive(Clone, Debug)]
pub struct FactorRows<T> {
    /// U_{I_r:}, by row.
    pub u: Resident<T>,
    /// V_{J_r:}, by row.
    pub v: Resident<T>,
}

impl<T: Real> FactorRows<T> {
    /// Rows on the host.
    pub fn new(u: Vec<T>, v: Vec<T>) -> Self {
        FactorRows { u: Resident::new(u), v: Resident::new(v) }
    }

    /// Brings both factors to the host, if only the device has them.
    pub fn pull(&mut self, device: &dyn Device<T>) -> Result<()> {
        device.pull(&mut self.u)?;
        device.pull(&mut self.v)
    }
}

/// A factor's uniform draws, which are recomputed instead of stored.
struct Draws<'a> {
    seed: u64,
    purpose: Purpose,
    rows: &'a Range<usize>,
    used: &'a [bool],
    k: usize,
    cancel: &'a Cancel,
}

impl Draws<'_> {
    /// Passes on k draws for each row in use, and zeros for the others.
    fn each_row(&self, mut take: impl FnMut(&[f64])) {
        let mut values = vec![0.0; self.k];
        for (row, &used) in self.rows.clone().zip(self.used) {
            self.cancel.check();
            values.fill(0.0);
            if used {
                let mut rng = stream(self.seed, self.purpose, 0, row);
                values.fill_with(|| uniform(&mut rng));
            }
            take(&values);
        }
    }

    fn column_sums(&self, comm: &dyn Comm) -> Result<Vec<f64>> {
        // Draws are at most 1.
        let mut sums = ExactSum::new(&vec![1.0; self.k]);
        self.each_row(|row| sums.add(row.iter().copied()));
        sums.finish(comm)
    }

    fn scaled<T: Real>(&self, scale: f64) -> Vec<T> {
        let mut factor = Vec::with_capacity(self.rows.len() * self.k);
        self.each_row(|row| factor.extend(row.iter().map(|value| T::from_f64(value * scale))));
        factor
    }
}

/// A factor of `rows` rows of uniform draws of (0, scale], keyed by row.
pub fn draw<T: Real>(seed: u64, purpose: Purpose, rows: usize, k: usize, scale: f64) -> Vec<T> {
    let cancel = &Cancel::default();
    Draws { seed, purpose, rows: &(0..rows), used: &vec![true; rows], k, cancel }.scaled(scale)
}

/// Random factors such that U Vᵀ and M have the same mean. Empty rows and columns of M get zero rows.
pub fn random<T: Real>(
    comm: &dyn Comm,
    shard: &Shard<T>,
    known: &MatrixStats,
    seed: u64,
    k: usize,
    cancel: &Cancel,
) -> Result<FactorRows<T>> {
    let draws = |purpose, rows, used| Draws { seed, purpose, rows, used, k, cancel };
    let u = draws(Purpose::StartU, &shard.own_rows, &known.used_rows);
    let v = draws(Purpose::StartV, &shard.own_cols, &known.used_cols);
    let sums = u.column_sums(comm)?.into_iter().zip(v.column_sums(comm)?);
    let total: f64 = sums.map(|(u, v)| u * v).sum();
    let scale = (known.constants.mean * shard.rows as f64 * shard.cols as f64 / total).sqrt();
    Ok(FactorRows::new(u.scaled(scale), v.scaled(scale)))
}

/// The own rows of given factors, unchanged.
pub fn given<T: Real>(shard: &Shard<T>, factors: &Factors<T>) -> FactorRows<T> {
    let k = factors.k;
    FactorRows::new(
        factors.u[shard.own_rows.start * k..shard.own_rows.end * k].to_vec(),
        factors.v[shard.own_cols.start * k..shard.own_cols.end * k].to_vec(),
    )
}

/// A dead component that is redrawn.
#[derive(Clone, Copy)]
pub struct Death {
    /// After this iteration.
    pub iteration: usize,
    /// Which component, of how many.
    pub component: usize,
    /// Number of components.
    pub k: usize,
}

/// Redraws the column of V at the scale of a random start, and empties that of U, so that the error does not rise;
/// the next step fills it. The rows are on the host.
pub fn redraw<T: Real>(
    state: &mut FactorRows<T>,
    shard: &Shard<T>,
    known: &MatrixStats,
    seed: u64,
    death: Death,
) {
    let Death { iteration, component, k } = death;
    // E[u v] = scale² / 4 for uniform draws, k of them to make up the mean.
    let scale = 2.0 * (known.constants.mean / k as f64).sqrt();
    state.u.host_mut().iter_mut().skip(component).step_by(k).for_each(|value| *value = T::ZERO);
    let rows = shard.own_cols.clone().zip(&known.used_cols);
    for ((row, &used), value) in rows.zip(state.v.host_mut().iter_mut().skip(component).step_by(k)) {
        let mut rng = stream(seed, Purpose::Redraw, iteration * k + component, row);
        *value = if used { T::from_f64(scale * uniform(&mut rng)) } else { T::ZERO };
    }
}
