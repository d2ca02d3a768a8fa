//! Matrices of which some entries are unknown, or count more than others.

use partwise_core::cancel::Cancel;
use partwise_core::matrix::{
    Holdout, Matrix as CoreMatrix, Missing as CoreMissing, Observed as CoreObserved,
};
use partwise_core::pipeline::{SharedMatrix, weights_for};

use super::{Float, Matrix};
use crate::error::Result;
use crate::options::Missing;

/// A matrix and what is known of its entries: which are unknown, and how much the others count.
///
/// [`Matrix::observed`] makes one, and [`Nmf::fit`](crate::Nmf::fit) and [`Model::transform`](crate::Model::transform) take it in
/// place of the matrix. Unknown entries have no influence, whatever they are.
///
/// ```
/// use partwise::options::Missing;
/// use partwise::{Matrix, Nmf};
///
/// // Stars that four people gave three films; what is not stored is unknown, not 0.
/// let stars = [(0, 0, 5.0), (0, 1, 4.0), (1, 0, 2.5), (1, 2, 1.0), (2, 1, 4.0), (2, 2, 2.0), (3, 0, 5.0)];
/// let stars = Matrix::from_triplets(4, 3, stars)?;
/// let model = Nmf::new(1).fit(&stars.observed().missing(Missing::Unstored))?;
/// assert!((model.predict(0, 0) - 5.0).abs() < 0.5);
/// assert!((model.predict(3, 1) - 4.0).abs() < 0.5); // a guess
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    matrix: &'a Matrix<'a>,
    missing: Option<Missing>,
    mask: Option<&'a Matrix<'a>>,
    weights: Option<&'a Matrix<'a>>,
}

impl<'a> Observed<'a> {
    pub(super) fn new(matrix: &'a Matrix<'a>) -> Self {
        Observed { matrix, missing: None, mask: None, weights: None }
    }

    /// Which entries are unknown.
    pub fn missing(self, missing: Missing) -> Self {
        Observed { missing: Some(missing), mask: None, ..self }
    }

    /// A matrix of the same size: where it is not 0, entries are unknown. Takes the place of [`Observed::missing`].
    ///
    /// ```
    /// # use partwise::{Matrix, Nmf};
    /// let m = Matrix::from_rows(&[[5.0, 3.0], [-1.0, 6.0]])?;
    /// let mask = Matrix::from_rows(&[[0_u8, 0], [1, 0]])?;
    /// let model = Nmf::new(1).fit(&m.observed().mask(&mask))?;
    /// assert!((model.predict(1, 0) - 10.0).abs() < 0.1);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn mask(self, mask: &'a Matrix<'a>) -> Self {
        Observed { mask: Some(mask), missing: None, ..self }
    }

    /// How much entries count: a matrix of the same size, or with a number for each row (m x 1) or for each column (1 x n). An
    /// entry of weight 2 counts as if it were there twice.
    ///
    /// ```
    /// # use partwise::{Matrix, Nmf};
    /// let m = Matrix::from_rows(&[[5.0, 3.0], [4.0, 4.0]])?;
    /// let weights = Matrix::from_vec(2, 1, vec![1.0, 0.0])?;
    /// let model = Nmf::new(1).fit(&m.observed().weights(&weights))?;
    /// assert!((model.predict(0, 1) - 3.0).abs() < 0.01);
    /// # Ok::<(), partwise::Error>(())
    /// ```
    pub fn weights(self, weights: &'a Matrix<'a>) -> Self {
        Observed { weights: Some(weights), ..self }
    }

    pub(crate) fn matrix(&self) -> &'a Matrix<'a> {
        self.matrix
    }

    /// What it says of missing entries, unless a mask does.
    pub(crate) fn says_missing(&self) -> Option<Missing> {
        self.missing
    }

    /// The known entries; nothing if every entry is known and counts once.
    pub(crate) fn observe<T: Float>(&self, cancel: &Cancel) -> Result<Option<CoreObserved<T>>> {
        let missing = match (self.missing, self.mask) {
            (_, Some(mask)) => Some(CoreMissing::Mask(mask.core(cancel))),
            (Some(Missing::Nan), None) => Some(CoreMissing::Nan),
            (Some(Missing::Unstored), None) => Some(CoreMissing::Unstored),
            (Some(Missing::Zero), None) => Some(CoreMissing::Zero),
            (None, None) => None,
        };
        let matrix = self.matrix.core::<T>(cancel);
        let weights = self.weights.map(|weights| weights_for(&matrix, weights.core(cancel)));
        Ok(CoreObserved::new(&matrix, missing.as_ref(), weights.as_ref(), cancel)?)
    }
}

impl<'a> Matrix<'a> {
    /// The matrix, to say which of its entries are unknown or count more than others.
    pub fn observed(&'a self) -> Observed<'a> {
        Observed::new(self)
    }

    /// The matrix in the type that is computed in, by row if it is sparse.
    fn core<T: Float>(&self, cancel: &Cancel) -> CoreMatrix<T> {
        self.lend::<T>().matrix(cancel)
    }

    /// The entries that remain when some are hidden; `observed` are the known ones, if not all are.
    pub(crate) fn hold_out<T: Float>(
        &self,
        observed: Option<&CoreObserved<T>>,
        holdout: Holdout,
        cancel: &Cancel,
    ) -> Result<CoreObserved<T>> {
        Ok(CoreObserved::hold_out(&self.core(cancel), observed, holdout, cancel)?)
    }
}
