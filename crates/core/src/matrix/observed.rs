//! A matrix whose entries may be missing or weighted.

use std::ops::Range;

use super::{Csr, HeldOut, Matrix, Shape};
use crate::Real;
use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// Which entries are missing.
#[derive(Clone, Debug)]
pub enum Missing<T> {
    /// Entries that are NaN.
    Nan,
    /// Entries that a sparse matrix does not store.
    Unstored,
    /// Entries that are 0, stored or not.
    Zero,
    /// Entries at which this mask, a matrix of the same size, is not 0.
    Mask(Matrix<T>),
}

/// Weights of entries. Weight 2 is equivalent to having the entry twice.
#[derive(Clone, Debug)]
pub enum Weights<T> {
    /// A weight for each entry; unstored weights are 0.
    Entries(Matrix<T>),
    /// A weight for each row.
    Rows(Vec<T>),
    /// A weight for each column.
    Columns(Vec<T>),
}

/// How entries that are not listed are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// As unknown.
    Unknown,
    /// As zeros of weight 1.
    Zero,
}

/// The known entries of a matrix, with their weights.
#[derive(Clone, Debug)]
pub struct Observed<T> {
    values: Csr<T>,
    weights: Option<Csr<T>>,
    unlisted: Unlisted,
    /// Entries that are held out to evaluate a result.
    held: Vec<HeldOut>,
}

/// The entries of one row of an [`Observed`] matrix.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRow<'a, T> {
    /// The columns of the listed entries.
    pub cols: &'a [u32],
    /// The values of the listed entries; 0 if their weight is 0.
    pub values: &'a [T],
    /// The weights of the listed entries; `None` if all are 1.
    pub weights: Option<&'a [T]>,
    /// How entries that are not listed are interpreted.
    pub unlisted: Unlisted,
}

/// A matrix with the options for missing entries and weights.
struct Listing<'a, T> {
    matrix: &'a Matrix<T>,
    missing: Option<&'a Missing<T>>,
    weights: Option<&'a Weights<T>>,
}

impl<T: Real> Observed<T> {
    /// The known entries of a matrix; `None` if every entry is known with weight 1. The values of missing
    /// entries have no influence.
    pub fn new(
        matrix: &Matrix<T>,
        missing: Option<&Missing<T>>,
        weights: Option<&Weights<T>>,
        cancel: &Cancel,
    ) -> Result<Option<Self>> {
        let listing = Listing { matrix, missing, weights };
        listing.check()?;
        let Shape { rows, cols } = matrix.shape();
        let unlisted = listing.unlisted();
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        let (mut values, mut counts) = (Vec::new(), Vec::new());
        for row in 0..rows {
            cancel.check();
            for col in listing.candidates(row) {
                let (value, weight) = listing.entry(row, col as usize)?;
                if weight > T::ZERO || unlisted == Unlisted::Zero {
                    indices.push(col);
                    values.push(if weight > T::ZERO { value } else { T::ZERO });
                    counts.push(weight);
                }
            }
            offsets.push(indices.len());
        }
        let alike = counts.iter().all(|&count| count == T::ONE);
        if alike && (unlisted == Unlisted::Zero || indices.len() == rows * cols) {
            return Ok(None);
        }
        if !counts.iter().any(|&count| count > T::ZERO) {
            return Err(Error::parameter(
                "missing",
                "every entry is missing; check what marks a missing value",
            ));
        }
        let weights = (!alike).then(|| Csr::new(rows, cols, offsets.clone(), indices.clone(), counts));
        Ok(Some(Observed::of_parts(
            Csr::new(rows, cols, offsets, indices, values),
            weights,
            unlisted,
            Vec::new(),
        )))
    }

    pub(super) fn of_parts(
        values: Csr<T>,
        weights: Option<Csr<T>>,
        unlisted: Unlisted,
        held: Vec<HeldOut>,
    ) -> Self {
        Observed { values, weights, unlisted, held }
    }

    /// The held-out entries, row by row.
    pub fn held(&self) -> &[HeldOut] {
        &self.held
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.values.cols()
    }

    /// The values of the listed entries; 0 if their weight is 0.
    pub fn values(&self) -> &Csr<T> {
        &self.values
    }

    /// Whether entries have weights.
    pub fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// How entries that are not listed are interpreted.
    pub fn unlisted(&self) -> Unlisted {
        self.unlisted
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> ObservedRow<'_, T> {
        let (cols, values) = self.values.row(row);
        let weights = self.weights.as_ref().map(|weights| weights.row(row).1);
        ObservedRow { cols, values, weights, unlisted: self.unlisted }
    }

    /// The sum of the weights in a row.
    pub fn row_weight(&self, row: usize) -> f64 {
        let ObservedRow { cols, weights, unlisted, .. } = self.row(row);
        let listed = match weights {
            Some(weights) => weights.iter().map(|weight| weight.to_f64()).sum(),
            None => cols.len() as f64,
        };
        listed + if unlisted == Unlisted::Zero { (self.cols() - cols.len()) as f64 } else { 0.0 }
    }

    /// The entries in the given rows and columns, copied.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        self.map(|csr| csr.part(rows.clone(), cols.clone()))
    }

    /// The transpose, unless it is cancelled ([`Cancel::scope`]).
    pub fn transpose_until(&self, cancel: &Cancel) -> Self {
        self.map(|csr| csr.transpose_until(cancel))
    }

    fn map(&self, change: impl Fn(&Csr<T>) -> Csr<T>) -> Self {
        Observed {
            values: change(&self.values),
            weights: self.weights.as_ref().map(&change),
            unlisted: self.unlisted,
            held: Vec::new(),
        }
    }

    /// Rows and columns without a known entry.
    pub fn unknown_lines(&self) -> (usize, usize) {
        let unknown =
            |observed: &Self| (0..observed.rows()).filter(|&row| observed.row_weight(row) == 0.0).count();
        (unknown(self), unknown(&self.transpose_until(&Cancel::default())))
    }
}

/// An entry of a matrix; `None` if a sparse matrix does not store it.
fn stored<T: Real>(matrix: &Matrix<T>, row: usize, col: usize) -> Option<T> {
    match matrix {
        Matrix::Dense(dense) => Some(dense.get(row, col)),
        Matrix::Sparse(csr) => {
            let (cols, values) = csr.row(row);
            cols.binary_search(&(col as u32)).ok().map(|place| values[place])
        }
    }
}

impl<T: Real> Listing<'_, T> {
    fn check(&self) -> Result<()> {
        let shape = self.matrix.shape();
        let fits = |field: &'static str, other: Shape| {
            let problem = || {
                format!(
                    "it is {} x {}, but the matrix is {} x {}",
                    other.rows, other.cols, shape.rows, shape.cols
                )
            };
            if other == shape {
                Ok(())
            } else {
                Err(Error::parameter(field, format!("{}; give one of the same size", problem())))
            }
        };
        match self.missing {
            Some(Missing::Mask(mask)) => fits("missing", mask.shape())?,
            Some(Missing::Unstored) if matches!(self.matrix, Matrix::Dense(_)) => {
                let problem = "a dense matrix stores every entry; use zero or nan";
                return Err(Error::parameter("missing", problem));
            }
            _ => {}
        }
        match self.weights {
            Some(Weights::Entries(weights)) => fits("weights", weights.shape()),
            Some(Weights::Rows(weights)) => fits("weights", Shape { rows: weights.len(), ..shape }),
            Some(Weights::Columns(weights)) => fits("weights", Shape { cols: weights.len(), ..shape }),
            None => Ok(()),
        }
    }

    /// Whether unstored entries of a sparse matrix are 0.
    fn counts_unstored(&self) -> bool {
        matches!(self.missing, None | Some(Missing::Nan | Missing::Mask(_)))
    }

    fn unlisted(&self) -> Unlisted {
        let sparse = matches!(self.matrix, Matrix::Sparse(_));
        if sparse && self.weights.is_none() && self.counts_unstored() {
            Unlisted::Zero
        } else {
            Unlisted::Unknown
        }
    }

    /// The columns of a row that may have to be listed, in ascending order.
    fn candidates(&self, row: usize) -> Vec<u32> {
        let all = || (0..self.matrix.cols() as u32).collect();
        let own = match self.matrix {
            Matrix::Dense(_) => return all(),
            Matrix::Sparse(csr) => csr.row(row).0,
        };
        match (self.weights, self.missing) {
            (Some(Weights::Entries(Matrix::Sparse(weights))), _) => weights.row(row).0.to_vec(),
            (Some(_), _) if self.counts_unstored() => all(),
            (None, Some(Missing::Mask(mask))) => {
                let hidden = (0..mask.cols() as u32)
                    .filter(|&col| stored(mask, row, col as usize).is_some_and(|mask| mask != T::ZERO));
                let mut cols: Vec<u32> = match mask {
                    Matrix::Sparse(mask) => mask.row(row).0.to_vec(),
                    Matrix::Dense(_) => hidden.collect(),
                };
                cols.extend(own);
                cols.sort_unstable();
                cols.dedup();
                cols
            }
            _ => own.to_vec(),
        }
    }

    /// The value and the weight of an entry.
    fn entry(&self, row: usize, col: usize) -> Result<(T, T)> {
        let value = stored(self.matrix, row, col);
        let hidden = match self.missing {
            None => false,
            Some(Missing::Nan) => value.is_some_and(|value| value.to_f64().is_nan()),
            Some(Missing::Unstored) => value.is_none(),
            Some(Missing::Zero) => value.is_none_or(|value| value == T::ZERO),
            Some(Missing::Mask(mask)) => stored(mask, row, col).is_some_and(|mask| mask != T::ZERO),
        };
        let weight = match self.weights {
            None => T::ONE,
            Some(Weights::Rows(weights)) => weights[row],
            Some(Weights::Columns(weights)) => weights[col],
            Some(Weights::Entries(weights)) => stored(weights, row, col).unwrap_or(T::ZERO),
        };
        let place = || format!("row {}, column {} (counted from 1)", row + 1, col + 1);
        if !(weight >= T::ZERO && weight.to_f64().is_finite()) {
            let problem = format!("{} has the weight {weight}; give finite numbers of at least 0", place());
            return Err(Error::parameter("weights", problem));
        }
        let (value, weight) = (value.unwrap_or(T::ZERO), if hidden { T::ZERO } else { weight });
        if weight > T::ZERO && !(value >= T::ZERO && value.to_f64().is_finite()) {
            let problem = format!("{} is {value}; give finite entries of at least 0, or hide it", place());
            return Err(Error::parameter("matrix", problem));
        }
        Ok((value, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Order, Values};

    const NAN: f64 = f64::NAN;

    fn dense(values: &[f64]) -> Matrix<f64> {
        Matrix::Dense(Dense::new(2, 3, Order::RowMajor, Values::Real(values.to_vec().into())))
    }

    fn sparse(values: &[f64]) -> Matrix<f64> {
        let (mut offsets, mut cols, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(3) {
            for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                cols.push(col as u32);
                kept.push(value);
            }
            offsets.push(cols.len());
        }
        Matrix::Sparse(Csr::new(2, 3, offsets, cols, kept))
    }

    fn weights_of(observed: &Observed<f64>) -> Vec<f64> {
        let of_row = |row: usize| {
            let ObservedRow { cols, weights, unlisted, .. } = observed.row(row);
            let mut all = vec![if unlisted == Unlisted::Zero { 1.0 } else { 0.0 }; 3];
            for (place, &col) in cols.iter().enumerate() {
                all[col as usize] = weights.map_or(1.0, |weights| weights[place]);
            }
            all
        };
        (0..2).flat_map(of_row).collect()
    }

    fn observed(
        matrix: &Matrix<f64>,
        missing: Option<Missing<f64>>,
        weights: Option<Weights<f64>>,
    ) -> Result<Option<Observed<f64>>> {
        Observed::new(matrix, missing.as_ref(), weights.as_ref(), &Cancel::default())
    }

    #[test]
    fn entries_have_the_expected_weights() {
        let m = [1.0, 0.0, NAN, 0.0, 2.0, 3.0];
        for matrix in [dense(&m), sparse(&m)] {
            let of = |missing, weights| weights_of(&observed(&matrix, missing, weights).unwrap().unwrap());
            assert_eq!(of(Some(Missing::Nan), None), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
            let rows = Some(Weights::Rows(vec![2.0, 0.0]));
            assert_eq!(of(Some(Missing::Nan), rows), [2.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
            let mask = Missing::Mask(sparse(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]));
            assert_eq!(of(Some(mask), None), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
        }
        let m = [1.0, 0.0, 4.0, 0.0, 2.0, 3.0];
        let zero = observed(&dense(&m), Some(Missing::Zero), None).unwrap().unwrap();
        assert_eq!(weights_of(&zero), [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        let unstored = observed(&sparse(&m), Some(Missing::Unstored), None).unwrap().unwrap();
        assert_eq!(weights_of(&unstored), [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        let entries = Weights::Entries(sparse(&[0.5, 2.0, 0.0, 0.0, 1.0, 1.0]));
        let weighted = observed(&sparse(&m), None, Some(entries)).unwrap().unwrap();
        assert_eq!(weights_of(&weighted), [0.5, 2.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(
            weights_of(&weighted.transpose_until(&Cancel::default()).transpose_until(&Cancel::default())),
            weights_of(&weighted)
        );
        assert_eq!((weighted.row_weight(0), weighted.unknown_lines()), (2.5, (0, 0)));
    }

    #[test]
    fn a_mask_without_missing_entries_has_no_effect() {
        let m = [1.0, 2.0, 4.0, 1.0, 2.0, 3.0];
        for matrix in [dense(&m), sparse(&m)] {
            assert!(observed(&matrix, Some(Missing::Nan), None).unwrap().is_none());
            assert!(observed(&matrix, None, Some(Weights::Columns(vec![1.0; 3]))).unwrap().is_none());
        }
        assert!(
            observed(&sparse(&[1.0, 0.0, 0.0, 0.0, 2.0, 0.0]), Some(Missing::Nan), None).unwrap().is_none()
        );
    }

    #[test]
    fn impossible_input_is_refused() {
        let m = dense(&[1.0, 2.0, NAN, 1.0, 2.0, 3.0]);
        let refused = |missing, weights| observed(&m, missing, weights).unwrap_err().to_string();
        assert!(
            refused(None, Some(Weights::Rows(vec![1.0, -1.0])))
                .contains("row 1, column 3 (counted from 1) is NaN")
        );
        assert!(
            refused(Some(Missing::Nan), Some(Weights::Rows(vec![1.0, -1.0]))).starts_with("weights: row 2")
        );
        assert!(
            refused(Some(Missing::Nan), Some(Weights::Columns(vec![NAN; 3]))).starts_with("weights: row 1")
        );
        assert!(refused(Some(Missing::Nan), Some(Weights::Columns(vec![1.0; 2]))).contains("2 x 2"));
        assert!(refused(Some(Missing::Unstored), None).starts_with("missing: a dense matrix"));
        assert!(
            refused(Some(Missing::Nan), Some(Weights::Rows(vec![0.0; 2]))).contains("every entry is missing")
        );
    }
}
