//! The binary format of the paper's program.

use super::*;

fn i32s(values: &[i32]) -> Vec<u8> {
    bytes_of(values, i32::to_le_bytes)
}

fn f32s(values: &[f32]) -> Vec<u8> {
    bytes_of(values, f32::to_le_bytes)
}

/// A dense file with any claims.
pub fn dense_file(rows: i32, cols: i32, values: &[u8]) -> Vec<u8> {
    [&[0], i32s(&[rows, cols]).as_slice(), values].concat()
}

/// A sparse file with any claims.
pub fn sparse_file(sizes: [i32; 3], offsets: &[i32], indices: &[i32], values: &[u8]) -> Vec<u8> {
    [&[1], i32s(&sizes).as_slice(), &i32s(offsets), &i32s(indices), values].concat()
}

#[test]
fn the_length_determines_the_precision() {
    let folder = Folder::new();
    let values = [1.5, 0.0, 3.0, 4.0, 5.0, 6.25];
    let narrow = dense_file(2, 3, &f32s(&values.map(|value| value as f32)));
    for (file, name, precision) in
        [(narrow, "float32", Precision::F32), (dense_file(2, 3, &f64s(&values)), "float64", Precision::F64)]
    {
        for (ending, bytes, words) in [("m.bin", file.clone(), ""), ("m.bin.gz", gzip(&file), ", gzip")] {
            let input = folder.read::<f64>(ending, bytes).unwrap();
            assert_eq!(entries(&input.matrix), values);
            assert_eq!(input.format, format!("DSANLS binary, dense, {name}{words}"));
            assert_eq!(input.precision, precision);
        }
    }
}

#[test]
fn sparse_files_need_not_be_in_order() {
    // A row out of order and an entry in two parts.
    let file = sparse_file([2, 3, 4], &[0, 2, 4], &[2, 0, 1, 1], &f32s(&[1.0, 2.0, 3.0, 4.0]));
    let input = Folder::new().read::<f32>("m.bin", file).unwrap();
    assert_eq!(entries(&input.matrix), [2.0, 0.0, 1.0, 0.0, 7.0, 0.0]);
    assert_eq!((input.matrix.stored(), input.format.as_str()), (3, "DSANLS binary, sparse, float32"));
}

#[test]
fn refusals() {
    let folder = Folder::new();
    let good = f64s(&[1.0, 2.0]);
    for (file, message) in [
        (
            vec![7, 0, 0],
            "header: the first byte is 7, where 0 means dense and 1 sparse; correct the file or its name",
        ),
        (vec![0, 1, 0, 0, 0, 2], "header: the file is truncated; create or download it again"),
        (dense_file(-1, 2, &good), "header: -1 rows cannot be; make or fetch the file again"),
        (
            dense_file(1, 3, &good),
            "length: 25 bytes, where the sizes need 21 with float32 and 33 with float64; make or fetch the file again",
        ),
        (
            sparse_file([2, 2, 2], &[0, 3, 2], &[0, 1], &good),
            "data: entry 1 is 3, where offsets rise from 0 to 2; save the matrix again",
        ),
        (
            sparse_file([2, 2, 2], &[0, 1, 1], &[0, 1], &good),
            "data: the last offset is 1, where 2 entries belong; write the file again",
        ),
        (
            sparse_file([2, 2, 2], &[0, 1, 2], &[0, 2], &good),
            "data: entry 1 is 2, outside 0 to below 2; save the matrix again",
        ),
        (dense_file(0, 2, &[]), "shape: the matrix is empty (0 x 2); give one with rows and columns"),
    ] {
        assert_eq!(folder.refusal("m.bin", file), message);
    }
    let long = gzip(&dense_file(1, 2, &[0; 4096]));
    assert_eq!(
        folder.refusal("m.bin.gz", long),
        "length: more than 26 bytes, where the sizes need 17 with float32 and 25 with float64; make or fetch the file again"
    );
}
