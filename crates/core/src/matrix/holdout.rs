//! Entries that are held out of a run to evaluate its result. They depend on the seed, the row and the column
//! alone.

use chacha20::ChaCha8Rng;

use super::observed::{ObservedRow, Unlisted};
use super::{Csr, Matrix, Observed};
use crate::Real;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::random::{Purpose, stream, uniform};

/// A held-out entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Row of the entry.
    pub row: usize,
    /// Column of the entry.
    pub col: usize,
    /// Value of the entry.
    pub value: f64,
    /// Weight of the entry, divided by the probability with which it was chosen.
    pub weight: f64,
}

/// Which entries to hold out.
#[derive(Clone, Copy, Debug)]
pub struct Holdout {
    /// The share of the known entries. If unlisted entries are 0: this share of the listed entries, and as
    /// many unlisted ones.
    pub share: f64,
    /// The seed that determines the entries.
    pub seed: u64,
}

impl Holdout {
    /// Whether a listed entry is held out.
    fn hides(&self, row: &mut ChaCha8Rng, col: usize) -> bool {
        // Each column uses two words of the stream.
        row.set_word_pos(2 * col as u128);
        uniform(row) <= self.share
    }

    /// Draws columns, each with probability `share`, in ascending order.
    fn draw_columns(&self, row: usize, cols: usize, share: f64) -> Vec<u32> {
        let (mut rng, mut drawn) = (stream(self.seed, Purpose::Holdout, 1, row), Vec::new());
        if share <= 0.0 {
            return drawn;
        }
        let mut next = 0.0;
        loop {
            // The number of skipped columns has a geometric distribution.
            next += if share < 1.0 { (uniform(&mut rng).ln() / (-share).ln_1p()).floor() } else { 0.0 };
            if next >= cols as f64 {
                return drawn;
            }
            drawn.push(next as u32);
            next += 1.0;
        }
    }
}

/// Access to the known entries of any matrix, row by row.
struct Rows<'a, T> {
    matrix: &'a Matrix<T>,
    observed: Option<&'a Observed<T>>,
}

impl<T: Real> Rows<'_, T> {
    fn unlisted(&self) -> Unlisted {
        match (self.observed, self.matrix) {
            (Some(observed), _) => observed.unlisted(),
            (None, Matrix::Sparse(_)) => Unlisted::Zero,
            (None, Matrix::Dense(_)) => Unlisted::Unknown,
        }
    }

    fn for_each(&self, row: usize, mut take: impl FnMut(usize, T, T)) {
        match (self.observed, self.matrix) {
            (Some(observed), _) => {
                let ObservedRow { cols, values, weights, .. } = observed.row(row);
                for (place, (&col, &value)) in cols.iter().zip(values).enumerate() {
                    take(col as usize, value, weights.map_or(T::ONE, |weights| weights[place]));
                }
            }
            (None, Matrix::Sparse(csr)) => {
                let (cols, values) = csr.row(row);
                cols.iter().zip(values).for_each(|(&col, &value)| take(col as usize, value, T::ONE));
            }
            (None, Matrix::Dense(dense)) => {
                (0..dense.cols()).for_each(|col| take(col, dense.get(row, col), T::ONE));
            }
        }
    }
}

impl<T: Real> Observed<T> {
    /// Splits off held-out entries of a matrix, or of `observed` if entries are missing or weighted.
    pub fn hold_out(
        matrix: &Matrix<T>,
        observed: Option<&Observed<T>>,
        holdout: Holdout,
        cancel: &Cancel,
    ) -> Result<Self> {
        let (source, (rows, cols)) = (Rows { matrix, observed }, (matrix.rows(), matrix.cols()));
        let unlisted = source.unlisted();
        let listed = observed.map_or(matrix.stored(), |observed| observed.values().stored());
        let others = rows as f64 * cols as f64 - listed as f64;
        let zeros = match unlisted {
            Unlisted::Zero if others > 0.0 => (holdout.share * listed as f64 / others).min(1.0),
            _ => 0.0,
        };
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        let (mut values, mut weights, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows {
            cancel.check();
            let mut rng = stream(holdout.seed, Purpose::Holdout, 0, row);
            let mut entries: Vec<(u32, T, T)> = Vec::new();
            let mut hidden = holdout.draw_columns(row, cols, zeros);
            source.for_each(row, |col, value, weight| {
                hidden.retain(|&zero| zero as usize != col);
                let hide = weight > T::ZERO && holdout.hides(&mut rng, col);
                if hide {
                    let weight = weight.to_f64() / holdout.share;
                    held.push(HeldOut { row, col, value: value.to_f64(), weight });
                }
                match (hide, unlisted) {
                    (false, _) => entries.push((col as u32, value, weight)),
                    (true, Unlisted::Zero) => entries.push((col as u32, T::ZERO, T::ZERO)),
                    (true, Unlisted::Unknown) => {}
                }
            });
            for col in hidden {
                held.push(HeldOut { row, col: col as usize, value: 0.0, weight: 1.0 / zeros });
                entries.push((col, T::ZERO, T::ZERO));
            }
            entries.sort_unstable_by_key(|entry| entry.0);
            for (col, value, weight) in entries {
                indices.push(col);
                values.push(value);
                weights.push(weight);
            }
            offsets.push(indices.len());
        }
        if held.is_empty() {
            return Err(Error::parameter("holdout", "this share holds out no entry; give a larger one"));
        }
        let alike = weights.iter().all(|&weight| weight == T::ONE);
        let weights = (!alike).then(|| Csr::new(rows, cols, offsets.clone(), indices.clone(), weights));
        let values = Csr::new(rows, cols, offsets, indices, values);
        Ok(Observed::of_parts(values, weights, unlisted, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Order, Values};

    fn matrices() -> (Matrix<f64>, Matrix<f64>) {
        let values: Vec<f64> = (0..200 * 50).map(|place| f64::from(u8::from(place % 7 == 0))).collect();
        let (mut offsets, mut cols, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(50) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                cols.push(col as u32);
                kept.push(value);
            }
            offsets.push(cols.len());
        }
        let dense = Dense::new(200, 50, Order::RowMajor, Values::Real(values.into()));
        (Matrix::Dense(dense), Matrix::Sparse(Csr::new(200, 50, offsets, cols, kept)))
    }

    #[test]
    fn the_held_out_entries_depend_on_positions_alone_and_have_the_requested_number() {
        let (dense, sparse) = matrices();
        let hold = |matrix: &Matrix<f64>, seed| {
            Observed::hold_out(matrix, None, Holdout { share: 0.1, seed }, &Cancel::default()).unwrap()
        };
        let (all, some) = (hold(&dense, 1), hold(&sparse, 1));
        assert!((900..1100).contains(&all.held().len()), "{}", all.held().len());
        let ones = |observed: &Observed<f64>| -> Vec<(usize, usize)> {
            let held = observed.held().iter().filter(|held| held.value > 0.0);
            held.map(|held| (held.row, held.col)).collect()
        };
        assert_eq!(ones(&all), ones(&some));
        assert_ne!(ones(&all), ones(&hold(&dense, 2)));
        // As many zeros as ones, each with six times the weight.
        let zeros: Vec<f64> =
            some.held().iter().filter(|held| held.value == 0.0).map(|held| held.weight).collect();
        assert!((100..190).contains(&zeros.len()), "{}", zeros.len());
        assert!(zeros.iter().all(|weight| (58.0..62.0).contains(weight)), "{zeros:?}");
        let total: f64 = some.held().iter().map(|held| held.weight).sum();
        assert!((total - 10_000.0).abs() < 1500.0, "{total}");
        for observed in [&all, &some] {
            let known: f64 = (0..200).map(|row| observed.row_weight(row)).sum();
            assert_eq!(known as usize + observed.held().len(), 10_000);
        }
    }
}
