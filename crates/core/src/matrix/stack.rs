//! Concatenates matrices by rows.

use super::{Csr, Dense, Matrix, Order, Values};
use crate::Real;

impl<T: Real> Matrix<T> {
    /// The parts below each other; `None` if they differ in kind, order or number of columns.
    pub fn stacked(mut parts: Vec<Self>) -> Option<Self> {
        if parts.len() <= 1 {
            return parts.pop();
        }
        let (mut dense, mut sparse) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Matrix::Dense(part) => dense.push(part),
                Matrix::Sparse(part) => sparse.push(part),
            }
        }
        match (dense.is_empty(), sparse.is_empty()) {
            (false, true) => dense_stacked(&dense).map(Matrix::Dense),
            (true, false) => sparse_stacked(&sparse).map(Matrix::Sparse),
            _ => None,
        }
    }
}

fn dense_stacked<T: Real>(parts: &[Dense<T>]) -> Option<Dense<T>> {
    let (cols, order) = (parts[0].cols(), parts[0].order());
    if parts.iter().any(|part| part.cols() != cols || part.order() != order) {
        return None;
    }
    let bytes: Option<Vec<&[u8]>> = parts
        .iter()
        .map(|part| if let Values::Bytes(bytes) = part.values() { Some(&bytes[..]) } else { None })
        .collect();
    let reals: Option<Vec<&[T]>> = parts
        .iter()
        .map(|part| if let Values::Real(reals) = part.values() { Some(&reals[..]) } else { None })
        .collect();
    let values = match (bytes, reals) {
        (Some(bytes), _) => Values::Bytes(joined(&bytes, cols, order).into()),
        (_, Some(reals)) => Values::Real(joined(&reals, cols, order).into()),
        _ => return None,
    };
    Some(Dense::new(parts.iter().map(Dense::rows).sum(), cols, order, values))
}

fn joined<E: Copy>(parts: &[&[E]], cols: usize, order: Order) -> Vec<E> {
    match order {
        Order::RowMajor => parts.concat(),
        Order::ColMajor => {
            let column = |col: usize| {
                parts.iter().flat_map(move |part| {
                    let rows = part.len() / cols;
                    &part[col * rows..(col + 1) * rows]
                })
            };
            (0..cols).flat_map(column).copied().collect()
        }
    }
}

fn sparse_stacked<T: Real>(parts: &[Csr<T>]) -> Option<Csr<T>> {
    let cols = parts[0].cols();
    let mut offsets = vec![0];
    for part in parts {
        if part.cols() != cols {
            return None;
        }
        let before = offsets[offsets.len() - 1];
        offsets.extend(part.offsets()[1..].iter().map(|offset| before + offset));
    }
    let indices: Vec<u32> = parts.iter().flat_map(|part| part.indices()).copied().collect();
    let values: Vec<T> = parts.iter().flat_map(|part| part.values()).copied().collect();
    Some(Csr::new(parts.iter().map(Csr::rows).sum(), cols, offsets, indices, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_a_matrix_stacked_are_the_matrix(
            rows in 1usize..9, cols in 1usize..6, cuts in prop::collection::vec(0usize..9, 0..3),
            by_column: bool, kind in 0..3,
        ) {
            let bytes: Vec<u8> = (0..rows * cols).map(|place| place as u8).collect();
            let order = if by_column { Order::ColMajor } else { Order::RowMajor };
            let reals = || bytes.iter().map(|&byte| byte as f64).collect::<Vec<f64>>();
            let matrix = match kind {
                0 => Matrix::Dense(Dense::new(rows, cols, order, Values::Bytes(bytes.into()))),
                1 => Matrix::Dense(Dense::new(rows, cols, order, Values::Real(reals().into()))),
                _ => {
                    let offsets = (0..=rows).map(|row| row * cols).collect();
                    let indices: Vec<u32> = (0..rows * cols).map(|place| (place % cols) as u32).collect();
                    Matrix::Sparse(Csr::new(rows, cols, offsets, indices, reals()))
                }
            };
            let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows)).chain([0, rows]).collect();
            bounds.sort();
            let parts = bounds.windows(2).map(|pair| matrix.part(pair[0]..pair[1], 0..cols)).collect();
            prop_assert_eq!(Matrix::stacked(parts), Some(matrix));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let dense =
            |cols| Matrix::Dense(Dense::new(1, cols, Order::RowMajor, Values::Real(vec![1.0; cols].into())));
        let sparse = Matrix::Sparse(Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]));
        assert_eq!(Matrix::stacked(vec![dense(2), dense(3)]), None);
        assert_eq!(Matrix::stacked(vec![dense(2), sparse]), None);
        assert_eq!(Matrix::<f64>::stacked(vec![]), None);
    }
}
