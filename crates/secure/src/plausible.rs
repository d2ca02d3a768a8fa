//! Checks whether an opened sum is possible: contributions of parties that follow the protocol are
//! nonnegative and within the agreed range, Gram matrices are positive semidefinite, and products are no
//! longer than their factors allow. The same holds for the sum without a party's own share, which is the sum
//! over the others. A sum that passes may still be wrong.

use crate::fixed::{Part, Precision, whole_gram};
use crate::sum::SumKind;

/// The relative error of products in f32, and of their sums.
const ROUNDING: f64 = 1e-4;
/// The relative error of sums without masks, which are in f32.
const F32: f64 = 1e-6;

/// An opened sum, and what a party knows about it.
pub(crate) struct OpenedSum<'a> {
    pub kind: SumKind,
    /// This party's contribution; `None` if it was missing.
    pub own: Option<&'a [Part]>,
    pub total: &'a [Vec<f64>],
    /// The precision and the range of each column of each part.
    pub precision: &'a [Vec<Precision>],
    /// The number of parties in the sum.
    pub parties: usize,
    /// Whether the first matrix is the server's U instead of a sum.
    pub is_answered: bool,
}

/// What earlier sums imply for later ones.
#[derive(Default)]
pub(crate) struct Known {
    records: Option<Shares>,
    norm: Option<Shares>,
    /// Features that no party has, after [`SumKind::Features`] was opened.
    left_out: Vec<bool>,
}

/// A total over all parties, and the total without this party.
#[derive(Clone, Copy)]
struct Shares {
    total: f64,
    rest: f64,
}

impl Known {
    /// Sets the features that were left out: their rows are zero at every party.
    pub fn leave_out(&mut self, left_out: Vec<bool>) {
        self.left_out = left_out;
    }

    /// Checks a sum; the error says what is implausible. What the sum implies is kept for later checks.
    pub fn check(&mut self, sum: &OpenedSum<'_>) -> Result<(), String> {
        let skipped = usize::from(sum.is_answered);
        for part in skipped..sum.total.len() {
            sum.check_range(part)?;
        }
        if sum.is_answered {
            return Ok(());
        }
        if let SumKind::U | SumKind::ProductV = sum.kind {
            self.check_left_out(sum)?;
        }
        let shares = |part, place| sum.shares(part, place);
        match sum.kind {
            SumKind::Records => {
                let records = shares(0, 0);
                // A party that has no share in the sum cannot tell whether the others have at least one
                // record each.
                let least = if sum.own.is_some() { sum.parties.saturating_sub(1) as f64 } else { 0.0 };
                if records.rest < least - 0.5 || records.total.fract() != 0.0 {
                    return Err(format!("{} records of the other parties", records.rest));
                }
                self.records = Some(records);
            }
            SumKind::Features
                if sum.total[0].iter().any(|count| (count - count.round()).abs() > ROUNDING) =>
            {
                return Err("a fractional number of parties".into());
            }
            SumKind::Norms => self.check_norms(shares(0, 0), shares(0, 1), sum)?,
            SumKind::ProductV => self.check_product(sum)?,
            SumKind::Error => self.check_present(shares(0, 1))?,
            _ => {}
        }
        Ok(())
    }

    fn check_left_out(&self, sum: &OpenedSum<'_>) -> Result<(), String> {
        let columns = sum.precision[0].len().max(1);
        let rows = sum.total[0].chunks_exact(columns).zip(&self.left_out);
        // Zeros are encoded as words of zero, and their sum is exact.
        match rows.filter(|(_, left_out)| **left_out).any(|(row, _)| row.iter().any(|&value| value != 0.0)) {
            true => Err("it has a feature that was left out".into()),
            false => Ok(()),
        }
    }

    /// Checks the sum of nonnegative numbers against the sum of their squares: (Σ x)² ≤ count Σ x².
    fn check_norms(&mut self, sums: Shares, squares: Shares, sum: &OpenedSum<'_>) -> Result<(), String> {
        let entries = self.records.map_or(f64::INFINITY, |records| records.rest) * self.left_out.len() as f64;
        let largest = (entries * squares.rest.max(0.0)).sqrt() * (1.0 + ROUNDING) + sum.slack(0, 0);
        if sum.own.is_some() && entries > 0.0 && sums.rest > largest + F32 * sums.total {
            return Err("the other parties' entries are larger than their squares allow".into());
        }
        self.norm = Some(squares);
        Ok(())
    }

    /// Checks ‖M V_j‖ ≤ ‖M‖ ‖V_j‖ for each component, and that VᵀV is positive semidefinite.
    fn check_product(&self, sum: &OpenedSum<'_>) -> Result<(), String> {
        let (product, triangle) = (sum.rest(0), sum.rest(1));
        let k = sum.precision[0].len();
        let gram = whole_gram(&triangle, k);
        let trace: f64 = (0..k).map(|j| gram[j * k + j]).sum();
        let slack = sum.slack(1, 0) * k as f64 + 1e-9 * trace.abs() + f64::MIN_POSITIVE;
        if cholesky(&gram, k, slack).is_none() {
            return Err("the Gram matrix of the other parties is not positive semidefinite".into());
        }
        let Some(norm) = self.norm else { return Ok(()) };
        let rows = (product.len() / k.max(1)) as f64;
        for j in 0..k {
            let square: f64 = product.iter().skip(j).step_by(k).map(|value| value * value).sum();
            let longest = (norm.rest.max(0.0) * (gram[j * k + j].max(0.0) + slack)).sqrt();
            if square.sqrt() > longest * (1.0 + ROUNDING) + rows.sqrt() * sum.slack(0, j) {
                return Err(format!(
                    "component {} is longer than the norms of the records and of V allow",
                    j + 1
                ));
            }
        }
        Ok(())
    }

    /// Checks that the norms of the parties present at the end are within those of all parties.
    fn check_present(&self, present: Shares) -> Result<(), String> {
        match self.norm {
            Some(norm) if present.rest > norm.rest * (1.0 + ROUNDING) + ROUNDING * norm.total => {
                Err("the remaining parties have more than all parties had".into())
            }
            _ => Ok(()),
        }
    }
}

impl OpenedSum<'_> {
    /// The sum over the other parties; over all parties if this one was missing.
    fn rest(&self, part: usize) -> Vec<f64> {
        let total = self.total[part].iter();
        match self.own {
            Some(own) => total.zip(&own[part].values).map(|(total, own)| total - own).collect(),
            None => total.copied().collect(),
        }
    }

    fn shares(&self, part: usize, place: usize) -> Shares {
        let total = self.total[part][place];
        Shares { total, rest: total - self.own.map_or(0.0, |own| own[part].values[place]) }
    }

    /// The largest error of a column's sum that rounding to words can cause.
    fn slack(&self, part: usize, column: usize) -> f64 {
        self.precision[part].get(column).map_or(0.0, |precision| precision.step * self.parties as f64)
    }

    /// Checks that the others' numbers are within their ranges, and nonnegative where they must be.
    fn check_range(&self, part: usize) -> Result<(), String> {
        let columns = self.precision[part].len().max(1);
        let others = self.parties as f64 - if self.own.is_some() { 1.0 } else { 0.0 };
        for (place, rest) in self.rest(part).into_iter().enumerate() {
            let column = place % columns;
            let reach = self.precision[part][column].reach;
            let slack = self.slack(part, column) + F32 * self.total[part][place].abs();
            if !rest.is_finite() || rest.abs() > others * reach + slack {
                return Err("the other parties' share is beyond the range that was agreed on".into());
            }
            if rest < -slack && self.kind.is_nonnegative(part, column) {
                return Err("the other parties' share is negative".into());
            }
        }
        Ok(())
    }
}

/// The lower triangular L with L Lᵀ = G + shift I, by row, given the lower triangle of a symmetric matrix;
/// `None` if the matrix has a negative eigenvalue.
pub(crate) fn cholesky(gram: &[f64], k: usize, shift: f64) -> Option<Vec<f64>> {
    let mut lower = vec![0.0; k * k];
    for row in 0..k {
        for col in 0..=row {
            let known: f64 = (0..col).map(|t| lower[row * k + t] * lower[col * k + t]).sum();
            let rest = gram[row * k + col] - known;
            if row != col {
                lower[row * k + col] = rest / lower[col * k + col];
            } else if rest + shift > 0.0 {
                lower[row * k + row] = (rest + shift).sqrt();
            } else {
                return None;
            }
        }
    }
    Some(lower)
}

#[cfg(test)]
mod tests;
