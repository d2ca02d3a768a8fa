//! The times of a machine for the pieces of an iteration, measured by `calibrate`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::comm::Network;

/// Seconds of one rank, in f32. A table by k has a number for each of `ks`; tables by memory have a row for each of
/// `ks` and a number for each of `footprints`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constants {
    /// The number of ranks that were measured together.
    pub ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Values of k.
    pub ks: Vec<f64>,
    /// Bytes of the thin matrix whose rows the entries of a sparse block pick.
    pub footprints: Vec<f64>,
    /// A row that passes through the solver unchanged.
    pub row: Vec<f64>,
    /// The same row if its product was computed and stored before, including the clearing of that memory.
    pub ready: Vec<f64>,
    /// A sweep over a row.
    pub sweep: Vec<f64>,
    /// A row's momentum.
    pub momentum: Vec<f64>,
    /// A row's part in a Gram matrix.
    pub gram: Vec<f64>,
    /// An entry of a dense block in a product with few columns and many rows.
    pub dense_tall: Vec<f64>,
    /// An entry of a dense block in a product with few rows and many columns.
    pub dense_wide: Vec<f64>,
    /// An entry of a dense block by column, with some of its columns selected.
    pub dense_sampled: Vec<f64>,
    /// An entry of bytes, as in `dense_tall`.
    pub bytes_tall: Vec<f64>,
    /// As in `dense_wide`.
    pub bytes_wide: Vec<f64>,
    /// As in `dense_sampled`.
    pub bytes_sampled: Vec<f64>,
    /// An entry of a sparse block by row in a product.
    pub gather: Vec<Vec<f64>>,
    /// An entry of a sparse block by column in a product.
    pub scatter: Vec<Vec<f64>>,
    /// A column of a sample of a sparse block by column, without its entries.
    pub pick: f64,
    /// A row or column drawn for a sample.
    pub draw: f64,
    /// A byte copied.
    pub copy: f64,
    /// A byte of memory that is allocated and cleared.
    pub fresh: f64,
    /// A byte of numbers added to others.
    pub combine: f64,
    /// A byte of an all-gather, in addition to the network's time.
    pub gathered: Vec<f64>,
    /// A byte of a reduce-scatter, in addition to the network's time.
    pub scattered: Vec<f64>,
    /// A byte of an all-reduce, in addition to the network's time.
    pub reduced: Vec<f64>,
    /// The network between the ranks, if there was more than one.
    pub latency: Option<f64>,
    /// Its bytes per second.
    pub bandwidth: Option<f64>,
}

static BUILT_IN: LazyLock<Option<Constants>> =
    LazyLock::new(|| serde_json::from_str(include_str!("built_in.json")).ok());

impl Constants {
    /// Those of a core of an AMD EPYC with AVX-512, one rank of one thread.
    pub fn built_in() -> Self {
        BUILT_IN.clone().unwrap_or_else(|| unreachable!("a file of this crate"))
    }

    /// Whether the tables have the right sizes and plausible numbers.
    pub fn is_plausible(&self) -> bool {
        let ascending = |values: &[f64]| values.len() >= 2 && values.windows(2).all(|pair| pair[0] < pair[1]);
        let times = |table: &[f64], size: usize| {
            table.len() == size && table.iter().all(|time| (0.0..1e6).contains(time))
        };
        let (ks, footprints) = (self.ks.len(), self.footprints.len());
        let by_k = [&self.row, &self.ready, &self.sweep, &self.momentum, &self.gram];
        let dense = [&self.dense_tall, &self.dense_wide, &self.dense_sampled];
        let bytes = [&self.bytes_tall, &self.bytes_wide, &self.bytes_sampled];
        let sparse = [&self.gather, &self.scatter];
        let network = [self.latency.unwrap_or(0.0), 1.0 / self.bandwidth.unwrap_or(1.0)];
        ascending(&self.ks)
            && ascending(&self.footprints)
            && self.ks[0] > 0.0
            && self.footprints[0] > 0.0
            && by_k.into_iter().chain(dense).chain(bytes).all(|table| times(table, ks))
            && sparse.iter().all(|rows| rows.len() == ks && rows.iter().all(|row| times(row, footprints)))
            && times(&[self.pick, self.draw, self.copy, self.fresh, self.combine], 5)
            && [&self.gathered, &self.scattered, &self.reduced].iter().all(|table| times(table, footprints))
            && times(&network, 2)
    }

    /// The network that was measured.
    pub fn network(&self) -> Option<Network> {
        let combine = self.combine;
        Some(Network { latency: self.latency?, bandwidth: self.bandwidth?, combine })
    }

    /// A table's value for k.
    pub(super) fn at(&self, table: &[f64], k: f64) -> f64 {
        interpolate(&self.ks, table, k)
    }

    /// A table's value for this amount of memory.
    pub(super) fn of(&self, table: &[f64], bytes: f64) -> f64 {
        let footprints = &self.footprints;
        // Nothing is slower than main memory, however large the footprint.
        let bytes = bytes.clamp(footprints[0], footprints[footprints.len() - 1]);
        interpolate(footprints, table, bytes)
    }

    /// A table's value for k and this amount of memory.
    pub(super) fn within(&self, table: &[Vec<f64>], k: f64, bytes: f64) -> f64 {
        let by_k: Vec<f64> = table.iter().map(|row| self.of(row, bytes)).collect();
        self.at(&by_k, k)
    }
}

/// Linear interpolation in logarithms, extrapolated at the ends.
fn interpolate(xs: &[f64], ys: &[f64], x: f64) -> f64 {
    // Times too short to measure count as negligible.
    let log = |y: f64| y.max(1e-14).ln();
    let after = xs.partition_point(|&known| known < x).clamp(1, xs.len() - 1);
    let (x0, x1) = (xs[after - 1].ln(), xs[after].ln());
    let (y0, y1) = (log(ys[after - 1]), log(ys[after]));
    (y0 + (y1 - y0) * (x.ln() - x0) / (x1 - x0)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_ones_are_constants() {
        let constants = Constants::built_in();
        assert!(constants.is_plausible());
        assert!(!Constants { ks: vec![20.0, 10.0], ..constants.clone() }.is_plausible());
        assert!(!Constants { row: vec![], ..constants.clone() }.is_plausible());
        assert!(!Constants { copy: f64::NAN, ..constants.clone() }.is_plausible());
        assert!(!Constants { bandwidth: Some(0.0), ..constants }.is_plausible());
    }

    #[test]
    fn between_two_numbers_is_a_power_and_beyond_them_too() {
        let (xs, ys) = ([10.0, 100.0, 1000.0], [1.0, 100.0, 1000.0]);
        for (x, y) in [(10.0, 1.0), (20.0, 4.0), (100.0, 100.0), (200.0, 200.0), (1.0, 0.01), (1e4, 1e4)] {
            assert!((interpolate(&xs, &ys, x) / y - 1.0).abs() < 1e-9, "{x}");
        }
    }
}
