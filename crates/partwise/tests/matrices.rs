//! Conversions from and to other types keep every entry, and copy nothing if layouts agree.

use faer::Mat;
use ndarray::{Array2, s};
use partwise::Matrix;
use partwise::types::ElementType;
use sprs::CsMatI;

const ENTRIES: [f64; 12] = [1.0, 0.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 6.0, 7.0, 0.0, 8.0];

/// Checks every entry of the matrix against a naive accessor.
fn check(matrix: &Matrix<'_>, expected: impl Fn(usize, usize) -> f64) {
    for row in 0..matrix.rows() {
        for col in 0..matrix.cols() {
            assert_eq!(matrix.get(row, col), expected(row, col), "{matrix:?} at {row}, {col}");
        }
    }
    let all = matrix.to_vec::<f64>();
    let cols = matrix.cols();
    assert!(all.iter().enumerate().all(|(place, &entry)| entry == expected(place / cols, place % cols)));
    let by_rows = matrix.to_ndarray::<f64>();
    assert!(by_rows.indexed_iter().all(|((row, col), &entry)| entry == expected(row, col)));
    assert_eq!(matrix.to_faer::<f64>()[(matrix.rows() - 1, 0)], expected(matrix.rows() - 1, 0));
    let sparse = matrix.to_sprs::<f64>();
    assert!(sparse.iter().all(|(&entry, (row, col))| entry == expected(row as usize, col as usize)));
    assert_eq!(Matrix::try_from(sparse.view()).unwrap(), *matrix);
}

#[test]
fn vectors_and_slices() {
    let expected = |row: usize, col: usize| ENTRIES[row * 4 + col];
    check(&Matrix::from_slice(3, 4, &ENTRIES).unwrap(), expected);
    check(&Matrix::from_slice(3, 4, &ENTRIES).unwrap().into_transpose(), |row, col| expected(col, row));
    check(&Matrix::from_slice(3, 4, &ENTRIES.map(|entry| entry as u8)).unwrap(), expected);
    check(
        &Matrix::from_rows(&ENTRIES.map(|entry| entry as f32).chunks(4).collect::<Vec<_>>()).unwrap(),
        expected,
    );
    assert!(Matrix::from_slice(3, 5, &ENTRIES).is_err());
    assert!(Matrix::from_vec(usize::MAX, 2, vec![1_u8]).is_err());
    let clone = Matrix::from_slice(3, 4, &ENTRIES).unwrap();
    assert_eq!(clone.as_slice::<f64>().unwrap().as_ptr(), ENTRIES.as_ptr());
    assert!(clone.as_slice::<f32>().is_none() && clone.clone().into_transpose().as_slice::<f64>().is_none());
    let owned = clone.into_owned();
    assert_ne!(owned.as_slice::<f64>().unwrap().as_ptr(), ENTRIES.as_ptr());
    check(&owned, expected);
}

#[test]
fn compressed_rows_and_columns() {
    let (offsets, indices) = (vec![0, 2, 2, 3], vec![0, 3, 1]);
    let expected = |row: usize, col: usize| match (row, col) {
        (0, 0) => 1.0,
        (0, 3) => 2.0,
        (2, 1) => 3.0,
        _ => 0.0,
    };
    let csr = Matrix::from_csr(3, 4, offsets.clone(), indices.clone(), vec![1.0_f32, 2.0, 3.0]).unwrap();
    check(&csr, expected);
    check(&csr.clone().into_transpose(), |row, col| expected(col, row));
    check(&csr.clone().into_transpose().into_transpose(), expected);
    let csc = Matrix::from_csc(4, 3, offsets.clone(), indices.clone(), vec![1.0, 2.0, 3.0]).unwrap();
    check(&csc, |row, col| expected(col, row));
    let numbers = [1.0, 2.0, 3.0];
    let lent = Matrix::from_csr_slices(3, 4, &offsets, &indices, &numbers).unwrap();
    let (_, of_lent, entries) = lent.as_csr::<f64>().unwrap();
    assert_eq!((of_lent.as_ptr(), entries.as_ptr()), (indices.as_ptr(), numbers.as_ptr()));
    assert!(lent.clone().into_transpose().as_csr::<f64>().is_none());
    check(&lent.into_owned(), expected);
    for (offsets, indices) in [
        (vec![0, 2, 3], vec![0, 3, 1]),
        (vec![0, 2, 2, 4], vec![0, 3, 1]),
        (vec![0, 3, 2, 3], vec![0, 3, 1]),
        (vec![1, 2, 2, 3], vec![0, 3, 1]),
        (vec![0, 2, 2, 3], vec![3, 0, 1]),
        (vec![0, 2, 2, 3], vec![0, 0, 1]),
        (vec![0, 2, 2, 3], vec![0, 4, 1]),
        (vec![], vec![0, 3, 1]),
    ] {
        let damaged = Matrix::from_csr(3, 4, offsets, indices, vec![1.0, 2.0, 3.0]);
        assert_eq!(damaged.unwrap_err().parameter(), Some("matrix"));
    }
}

#[test]
fn arrays_of_ndarray() {
    let array = Array2::from_shape_vec((3, 4), ENTRIES.to_vec()).unwrap();
    let of_view = Matrix::from(array.view());
    check(&of_view, |row, col| array[(row, col)]);
    assert_eq!(of_view.as_ndarray::<f64>().unwrap().as_ptr(), array.as_ptr());
    let turned = Matrix::from(array.t());
    check(&turned, |row, col| array[(col, row)]);
    assert_eq!(turned.as_ndarray::<f64>().unwrap().as_ptr(), array.as_ptr());
    check(&Matrix::from(array.slice(s![..;2, 1..3])), |row, col| array[(2 * row, 1 + col)]);
    check(&Matrix::from(array.slice(s![.., ..;-1])), |row, col| array[(row, 3 - col)]);
    let place = array.as_ptr();
    let moved = Matrix::from(array.clone());
    check(&moved, |row, col| array[(row, col)]);
    let moved = Matrix::from(array);
    assert_eq!(moved.as_slice::<f64>().unwrap().as_ptr(), place);
    let sliced = moved.to_ndarray::<f64>().slice_move(s![1..2, ..]);
    check(&Matrix::from(sliced), |_, col| ENTRIES[4 + col]);
    let by_column = moved.to_ndarray::<f32>().reversed_axes();
    check(&Matrix::from(by_column), |row, col| ENTRIES[col * 4 + row]);
}

#[test]
fn matrices_of_faer() {
    let matrix = Mat::from_fn(3, 4, |row, col| ENTRIES[row * 4 + col]);
    let expected = |row: usize, col: usize| ENTRIES[row * 4 + col];
    check(&Matrix::from(matrix.as_ref()), expected);
    check(&Matrix::from(matrix.as_ref().transpose()), |row, col| expected(col, row));
    check(&Matrix::from(matrix.as_ref().submatrix(1, 1, 2, 2)), |row, col| expected(row + 1, col + 1));
    check(&Matrix::from(matrix.as_ref().reverse_rows()), |row, col| expected(2 - row, col));
    let rows = faer::MatRef::from_row_major_slice(&ENTRIES, 3, 4);
    let lent = Matrix::from(rows);
    check(&lent, expected);
    assert_eq!(lent.as_slice::<f64>().unwrap().as_ptr(), ENTRIES.as_ptr());
    check(&Matrix::from(matrix), expected);
}

#[test]
fn matrices_of_sprs() {
    let narrow: CsMatI<f64, u32, usize> =
        CsMatI::new((3, 4), vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 3.0]);
    let wide = sprs::CsMat::new((3, 4), vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0_f32, 2.0, 3.0]);
    let expected = |row: usize, col: usize| narrow.get(row, col).copied().unwrap_or(0.0);
    let lent = Matrix::try_from(narrow.view()).unwrap();
    check(&lent, expected);
    assert_eq!(lent.as_csr::<f64>().unwrap().1.as_ptr(), narrow.indices().as_ptr());
    check(&Matrix::try_from(narrow.to_csc().view()).unwrap(), expected);
    check(&Matrix::try_from(wide.view()).unwrap(), expected);
    assert_eq!(Matrix::try_from(wide.view()).unwrap().element(), ElementType::F32);
}
