//! AnnData files; those that anndata itself wrote are tested in `tests/oracle`.

use super::*;

/// The files that `data/make.py` writes.
const FILES: [(&str, &[u8]); 3] = [
    ("dense", include_bytes!("data/dense.h5ad")),
    ("csr", include_bytes!("data/csr.h5ad")),
    ("csc", include_bytes!("data/csc.h5ad")),
];

const EXPECTED: [f64; 12] = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 8.0, 0.0];

#[test]
fn every_encoding() {
    let folder = Folder::new();
    for (encoding, bytes) in FILES {
        for (name, bytes, words) in [("m.h5ad", bytes.to_vec(), ""), ("m.h5ad.gz", gzip(bytes), ", gzip")] {
            let input = folder.read::<f32>(name, bytes).unwrap();
            assert_eq!(entries(&input.matrix), EXPECTED);
            assert_eq!(input.format, format!("AnnData, {encoding}, float32{words}"));
            assert_eq!(input.row_labels.unwrap(), ["a", "b", "c", "d"]);
            assert_eq!(input.col_labels.unwrap(), ["x", "y", "ä"]);
            assert_eq!(input.precision, Precision::F32);
        }
    }
}

#[test]
fn damaged_files() {
    let folder = Folder::new();
    for (encoding, bytes) in FILES {
        for length in (0..bytes.len()).step_by(31) {
            // What was cut off may have been padding.
            if let Ok(input) = folder.read::<f64>("m.h5ad", &bytes[..length]) {
                assert_eq!(entries(&input.matrix), EXPECTED, "{encoding} cut to {length} of {}", bytes.len());
            }
        }
        // Most of a file is zeros between its parts.
        for place in (0..bytes.len()).filter(|&place| bytes[place] != 0 || place % 16 == 0) {
            for change in [0x80, 0xff] {
                let mut changed = bytes.to_vec();
                changed[place] ^= change;
                if let Ok(input) = folder.read::<f32>("m.h5ad", &changed) {
                    input.matrix.for_each_stored(|_, _, value| assert!(value >= 0.0 && value.is_finite()));
                }
            }
        }
    }
}

#[test]
fn refusals() {
    let folder = Folder::new();
    let message = folder.refusal("m.h5ad", &FILES[0].1[..100]);
    assert!(message.starts_with("X: missing or damaged; "), "{message}");
    let message = folder.refusal("m.h5ad", &FILES[0].1[..50]);
    assert!(message.starts_with("content: truncated, damaged or not read ("), "{message}");
    assert_eq!(
        folder.refusal("m.npy", FILES[0].1),
        "content: this is an HDF5 file, not a NumPy array; rename it to .h5ad if AnnData wrote it"
    );
    let path = folder.write("m.h5ad", FILES[0].1);
    let error = read::<f32>(&path, &ReadOptions { memory: 64, ..OPTIONS }).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}
