//! Every matrix comes back the same from every format that it can be written in.

use proptest::prelude::*;

use super::*;
use crate::matrix::{Csr, Dense, Order, Values};

const NAMES: [&str; 6] = ["m.npy", "m.npz", "m.mtx", "m.csv", "m.tsv", "m.bin"];

fn file<T: Real>(name: &str, input: &Input<T>, precision: Option<Precision>) -> Vec<u8> {
    let mut file = Vec::new();
    write(&mut file, Path::new(name), input, WriteOptions { precision, ..WriteOptions::default() }).unwrap();
    file
}

/// Dense by row, dense by column and sparse.
fn layouts(rows: usize, cols: usize, values: &[f64]) -> Vec<Matrix<f64>> {
    let by_column = (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col])).collect();
    let mut offsets = vec![0];
    let (mut indices, mut stored) = (Vec::new(), Vec::new());
    for row in values.chunks(cols) {
        for (col, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            indices.push(col as u32);
            stored.push(value);
        }
        offsets.push(stored.len());
    }
    vec![
        Matrix::Dense(Dense::new(rows, cols, Order::RowMajor, Values::Real(values.to_vec().into()))),
        Matrix::Dense(Dense::new(rows, cols, Order::ColMajor, Values::Real(by_column))),
        Matrix::Sparse(Csr::new(rows, cols, offsets, indices, stored)),
    ]
}

proptest! {
    #[test]
    fn every_format(
        (rows, cols, mut values) in (1usize..80, 1usize..6).prop_flat_map(|(rows, cols)| {
            let entry = prop_oneof![Just(0.0), 0.0..1.0, 1e-300..1e300f64, any::<u8>().prop_map(f64::from)];
            (Just(rows), Just(cols), prop::collection::vec(entry, rows * cols))
        }),
    ) {
        values[0] = 1.0;
        let folder = Folder::new();
        for matrix in layouts(rows, cols, &values) {
            let input = Input::unlabelled(matrix, String::new(), Precision::F64);
            for name in NAMES {
                for name in [name.to_string(), format!("{name}.gz")] {
                    prop_assert!(check_write(Path::new(&name), &input, 1 << 24).unwrap().is_empty());
                    let read = folder.read::<f64>(&name, file(&name, &input, None)).unwrap();
                    prop_assert_eq!(entries(&read.matrix), values.clone(), "{}", name);
                }
            }
        }
    }

    #[test]
    fn labels_travel_with_tables(
        rows in prop::collection::vec("[a-z \",\t#0-9]{0,4}", 1..4),
        cols in prop::collection::vec("[a-z \",\t#0-9]{0,4}", 1..4),
        named in prop::sample::select(vec![(false, false), (true, false), (false, true), (true, true)]),
    ) {
        let values = vec![2.5; rows.len() * cols.len()];
        let matrix = layouts(rows.len(), cols.len(), &values).swap_remove(1);
        let input = Input {
            row_labels: named.0.then(|| rows.clone()),
            col_labels: named.1.then(|| cols.clone()),
            ..Input::unlabelled(matrix, String::new(), Precision::F64)
        };
        let trimmed = |labels: &Option<Vec<String>>, hash: bool| {
            labels.as_ref().map(|labels| {
                let mut labels: Vec<String> = labels.iter().map(|label| label.trim().to_string()).collect();
                if let Some(rest) = labels[0].strip_prefix('#').filter(|_| hash) {
                    labels[0] = rest.trim_start().to_string();
                }
                labels
            })
        };
        for name in ["m.csv", "m.tsv"] {
            let told = !check_write(Path::new(name), &input, 1 << 24).unwrap().is_empty();
            let when = |there| match (told, there) {
                (false, _) => Presence::Auto,
                (true, true) => Presence::Yes,
                (true, false) => Presence::No,
            };
            let options = ReadOptions { header: when(named.1), row_names: when(named.0), ..OPTIONS };
            let path = Folder::new();
            let read = read::<f64>(&path.write(name, file(name, &input, None)), &options).unwrap();
            prop_assert_eq!(read.row_labels, trimmed(&input.row_labels, false));
            prop_assert_eq!(read.col_labels, trimmed(&input.col_labels, !named.0));
            prop_assert_eq!(entries(&read.matrix), values.clone());
        }
    }
}

#[test]
fn numbers_keep_their_type() {
    let folder = Folder::new();
    let bytes =
        folder.read::<f64>("b.npy", npy_file("|u1", "True", "(2, 3)", &[1, 2, 3, 4, 5, 255])).unwrap();
    let narrow = folder
        .read::<f64>("n.npy", npy_file("<f4", "False", "(1, 2)", &bytes_of(&[0.1f32, 3.0], f32::to_le_bytes)))
        .unwrap();
    for (input, name, precision, words) in [
        (&bytes, "m.npy", None, "NumPy array, uint8, Fortran order"),
        (&bytes, "m.npy", Some(Precision::F64), "NumPy array, float64, Fortran order"),
        (&bytes, "m.npz", None, "SciPy sparse csr, float32"),
        (&bytes, "m.bin", None, "DSANLS binary, dense, float32"),
        (&bytes, "m.mtx", None, "Matrix Market array, integer, general"),
        (&narrow, "m.npy", None, "NumPy array, float32, C order"),
        (&narrow, "m.bin", Some(Precision::F64), "DSANLS binary, dense, float64"),
        (&narrow, "m.mtx", None, "Matrix Market array, real, general"),
    ] {
        let read = folder.read::<f64>(name, file(name, input, precision)).unwrap();
        assert_eq!((entries(&read.matrix), read.format.as_str()), (entries(&input.matrix), words));
    }
    assert_eq!(file("m.csv", &narrow, None), b"0.10000000149011612,3\n");
    let narrow = folder.read::<f32>("m.npy", file("m.npy", &narrow, None)).unwrap();
    assert_eq!(file("m.csv", &narrow, Some(Precision::F32)), b"0.1,3\n");
}

#[test]
fn unwritable_matrices_are_refused() {
    let matrix = Matrix::Sparse(Csr::new(1 << 20, 1 << 20, vec![0; (1 << 20) + 1], Vec::new(), Vec::new()));
    let mut input = Input::<f64>::unlabelled(matrix, String::new(), Precision::F64);
    for name in ["m.npy", "m.csv", "m.tsv.gz"] {
        let error = check_write(Path::new(name), &input, 1 << 30).unwrap_err();
        assert!(error.to_string().contains("needs 8.0 TiB of memory"), "{error}");
    }
    for name in ["m.npz", "m.mtx", "m.bin"] {
        assert!(check_write(Path::new(name), &input, 1 << 30).unwrap().is_empty());
    }
    input.row_labels = Some(Vec::new());
    let notes = check_write(Path::new("m.npz"), &input, 1 << 30).unwrap();
    assert_eq!(notes, ["the format cannot store row and column names, so they are dropped".into()]);
    let wide = Csr::new(1, 1 << 31, vec![0, 1], vec![0], vec![1.0]);
    let wide = Input::<f64>::unlabelled(Matrix::Sparse(wide), String::new(), Precision::F64);
    let error = check_write(Path::new("m.bin"), &wide, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("exceeds the 32-bit sizes of this format; choose .npz"), "{error}");
    for name in ["m.zip", "m", "m.txt"] {
        let error = FileFormat::to_write(Path::new(name)).unwrap_err();
        assert!(
            error.to_string().contains("Partwise writes .npy, .npz, .mtx, .csv, .tsv and .bin"),
            "{error}"
        );
    }
}
