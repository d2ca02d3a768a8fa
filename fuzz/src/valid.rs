//! The properties of everything that a reader accepts.

use partwise::Real;
use partwise::io::{ImageSide, Input};
use partwise::matrix::Matrix;
use partwise::run::Factors;

/// Finite and nonnegative.
pub fn numbers<T: Real>(values: &[T]) {
    assert!(values.iter().all(|value| is_valid(value.to_f64())));
}

fn is_valid(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}

/// The matrix, its labels and its pictures fit each other.
pub fn input<T: Real>(input: &Input<T>) {
    let (rows, cols) = (input.matrix.rows(), input.matrix.cols());
    assert!(rows > 0 && cols > 0, "an empty matrix was read");
    let (mut count, mut largest) = (0, 0.0f64);
    input.matrix.for_each_stored(|row, col, value| {
        assert!(row < rows && col < cols && is_valid(value), "{value} at {row}, {col} of {rows} x {cols}");
        count += 1;
        largest = largest.max(value);
    });
    assert_eq!(count, input.matrix.stored());
    assert!(largest > 0.0, "a matrix of zeros was read");
    match &input.matrix {
        Matrix::Dense(dense) => assert_eq!(Some(dense.values().len()), rows.checked_mul(cols)),
        Matrix::Sparse(csr) => {
            assert_eq!((csr.offsets().len(), csr.offsets()[0]), (rows + 1, 0));
            for row in 0..rows {
                assert!(csr.row(row).0.windows(2).all(|pair| pair[0] < pair[1]), "row {row} is not in order");
            }
        }
    }
    assert!(input.row_labels.as_ref().is_none_or(|labels| labels.len() == rows));
    assert!(input.col_labels.as_ref().is_none_or(|labels| labels.len() == cols));
    if let Some(shape) = input.image {
        let pixels = shape.width as usize * shape.height as usize * usize::from(shape.channels);
        assert_eq!(pixels, if shape.images == ImageSide::Columns { rows } else { cols });
    }
}

/// One file, read in two precisions.
pub fn same_but_for_rounding(narrow: &Input<f32>, wide: &Input<f64>) {
    assert_eq!(narrow.format, wide.format);
    assert_eq!(narrow.precision, wide.precision);
    assert_eq!(narrow.row_labels, wide.row_labels);
    assert_eq!(narrow.col_labels, wide.col_labels);
    assert_eq!(narrow.image, wide.image);
    assert_eq!(narrow.matrix.rows(), wide.matrix.rows());
    assert_eq!(narrow.matrix.cols(), wide.matrix.cols());
}

/// U and V have the sizes that they say.
pub fn factors<T: Real>(factors: &Factors<T>) {
    assert_eq!(Some(factors.u.len()), factors.rows.checked_mul(factors.k));
    assert_eq!(Some(factors.v.len()), factors.cols.checked_mul(factors.k));
    numbers(&factors.u);
    numbers(&factors.v);
}
