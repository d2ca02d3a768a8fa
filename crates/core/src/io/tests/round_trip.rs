//! What is written reads back the same; equal matrices in different formats are equal.

use proptest::prelude::*;

use super::*;
use crate::matrix::{Order, Values};

fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f64>)> {
    (1usize..6, 1usize..6).prop_flat_map(|(rows, cols)| {
        let entry = prop_oneof![Just(0.0), 0.0..1.0, 1e-300..1e300f64, any::<u8>().prop_map(f64::from)];
        (Just(rows), Just(cols), prop::collection::vec(entry, rows * cols))
    })
}

proptest! {
    #[test]
    fn npy((rows, cols, values) in matrices()) {
        let folder = Folder::new();
        let mut file = Vec::new();
        npy::write(&mut file, rows, cols, &values).unwrap();
        prop_assert_eq!(file.len() % 64, (rows * cols * 8) % 64);
        let path = folder.write("m.npy", &file);
        prop_assert_eq!(npy::read_array::<f64>(&path, 1 << 20).unwrap(), (rows, cols, values.clone()));

        let by_column: Vec<f64> =
            (0..cols).flat_map(|col| (0..rows).map(move |row| (row, col))).map(|(row, col)| values[row * cols + col]).collect();
        let path = folder.write("f.npy", npy_file("<f8", "True", &format!("({rows}, {cols})"), &f64s(&by_column)));
        prop_assert_eq!(npy::read_array::<f64>(&path, 1 << 20).unwrap(), (rows, cols, values.clone()));
        if values.iter().any(|&value| value != 0.0) {
            prop_assert_eq!(entries(&read::<f64>(&path, &OPTIONS).unwrap().matrix), values);
        }
    }

    #[test]
    fn tsv((rows, cols, mut values) in matrices(), corner in "[a-z\t\"]{0,3}") {
        values[0] = 1.0;
        let row_labels: Vec<String> = (0..rows).map(|row| format!("r\t{row}\"\n")).collect();
        let names: Vec<String> = (0..cols).map(|col| format!("component {col}")).collect();
        let mut file = Vec::new();
        tsv::write(&mut file, &corner, &names, &row_labels, rows, cols, &values).unwrap();
        let input = Folder::new().read::<f64>("m.tsv", &file).unwrap();
        prop_assert_eq!(entries(&input.matrix), values);
        let trimmed: Vec<String> = row_labels.iter().map(|label| label.trim().to_string()).collect();
        prop_assert_eq!(input.row_labels, Some(trimmed));
        prop_assert_eq!(input.col_labels, Some(names));
    }

    #[test]
    fn narrow_numbers_are_shortest(value in 1e-38f32..1e38) {
        let mut file = Vec::new();
        tsv::write(&mut file, "", &["a"], &["b"], 1, 1, &[value]).unwrap();
        let text = String::from_utf8(file).unwrap();
        let number = text.trim_end().rsplit('\t').next().unwrap();
        prop_assert_eq!(number.parse::<f32>().unwrap(), value);
        prop_assert!(number.len() <= 17, "{} has more digits than it needs", number);
    }

    #[test]
    fn text_formats_agree((rows, cols, mut values) in matrices()) {
        values[0] = 1.0;
        let folder = Folder::new();
        let csv: String = values.chunks(cols).map(|row| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",") + "\n").collect();
        prop_assert_eq!(&entries(&folder.read::<f64>("m.csv", csv).unwrap().matrix), &values);

        let mut coordinates = format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {}\n", rows * cols);
        let mut array = format!("%%MatrixMarket matrix array double general\n{rows} {cols}\n");
        for col in 0..cols {
            for row in 0..rows {
                let value = values[row * cols + col];
                coordinates += &format!("{} {}\t{value:e} \r\n", row + 1, col + 1);
                array += &format!("{value}\n");
            }
        }
        prop_assert_eq!(&entries(&folder.read::<f64>("m.mtx", coordinates).unwrap().matrix), &values);
        prop_assert_eq!(&entries(&folder.read::<f64>("m.mtx", array).unwrap().matrix), &values);
    }
}

#[test]
fn sparse_layouts_agree() {
    let folder = Folder::new();
    let expected = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 8.0, 0.0];
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let csr = folder.read::<f32>("m.npz", zip_file(&csr_members(), method)).unwrap();
        assert_eq!(entries(&csr.matrix), expected);
        assert_eq!(csr.matrix.stored(), 4, "entries of the same place are summed");
        assert_eq!(csr.format, "SciPy sparse csr, float64");
        let coo = folder.read::<f32>("m.npz", zip_file(&coo_members(), method)).unwrap();
        assert_eq!(coo.matrix, csr.matrix);
        let csc = folder.read::<f32>("m.npz", zip_file(&csc_members(), method)).unwrap();
        assert_eq!(csc.matrix.into_transpose(), csr.matrix);
    }
}

#[test]
fn images_stay_bytes_in_their_order() {
    let input =
        Folder::new().read::<f32>("m.npy", npy_file("|u1", "True", "(2, 3)", &[1, 2, 3, 4, 5, 6])).unwrap();
    let Matrix::Dense(dense) = &input.matrix else { panic!("an array is dense") };
    assert_eq!(
        (dense.order(), dense.values()),
        (Order::ColMajor, &Values::Bytes(vec![1, 2, 3, 4, 5, 6].into()))
    );
    assert_eq!(input.format, "NumPy array, uint8, Fortran order");
}

#[test]
fn mismatched_writes_are_errors() {
    assert!(npy::write(Vec::new(), 2, 2, &[1.0f32]).is_err());
    assert!(tsv::write(Vec::new(), "", &["a"], &["b", "c"], 1, 1, &[1.0f32]).is_err());
}
