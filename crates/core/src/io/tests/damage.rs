//! No bytes make a reader panic, and a lying header costs neither time nor memory.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[test]
fn samples_are_valid() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        folder.read::<f32>(&name, bytes).unwrap();
    }
}

#[test]
fn every_truncation() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        // A text file cut within its last number or line end is whole for all one can tell.
        let exact = [".npy", ".npz", ".gz", ".bin", ".zip"].iter().any(|ending| name.ends_with(ending));
        for length in 0..bytes.len() {
            let outcome = folder.read::<f64>(&name, &bytes[..length]);
            assert!(outcome.is_err() || !exact, "{name} cut to {length} of {} bytes was read", bytes.len());
        }
        let mut longer = bytes.clone();
        longer.extend(b"\n7 7 7 7\n");
        // A zip archive may be followed by a comment's worth of bytes.
        assert!(
            folder.read::<f64>(&name, &longer).is_err() || name.ends_with(".npz") || name.ends_with(".zip"),
            "{name} with more bytes was read"
        );
    }
}

#[test]
fn every_changed_byte() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        for place in 0..bytes.len() {
            for change in
                [|byte| byte ^ 1, |byte: u8| byte ^ 0x80, |byte: u8| !byte, |_| b'9', |_| b' ', |_| 0]
            {
                let mut changed = bytes.clone();
                changed[place] = change(bytes[place]);
                if let Ok(input) = folder.read::<f32>(&name, &changed) {
                    // What is read is whole: every entry can be visited.
                    input.matrix.for_each_stored(|_, _, value| assert!(value >= 0.0 && value.is_finite()));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..8) {
        let name = ["m.npy", "m.npz", "m.mtx", "m.csv", "m.tsv", "m.bin", "m.zip", "m.h5ad"][kind];
        let folder = Folder::new();
        let _ = folder.read::<f32>(name, &bytes);
        let _ = folder.read::<f32>(&format!("{name}.gz"), gzip(&bytes));
    }

    #[test]
    fn any_text(text in "[0-9a-eNn.,;\"'\t %+\n\r-]{0,120}", mtx in any::<bool>()) {
        let folder = Folder::new();
        let text = if mtx { format!("%%MatrixMarket matrix coordinate real general\n{text}") } else { text };
        let _ = folder.read::<f64>(if mtx { "m.mtx" } else { "m.csv" }, &text);
        let _ = folder.read::<f64>("m.tsv", &text);
    }

    #[test]
    fn any_header(header in "[{}()\\[\\]'a-z0-9:, <|_TFL-]{0,80}") {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        let _ = Folder::new().read::<f64>("m.npy", &file);
    }
}

/// A file, plain and under gzip, is refused at once.
fn refused_fast(folder: &Folder, name: &str, bytes: &[u8], memory: u64) -> Vec<Error> {
    let start = Instant::now();
    let options = ReadOptions { memory, ..OPTIONS };
    let files = [(name.to_string(), bytes.to_vec()), (format!("{name}.gz"), gzip(bytes))];
    let errors = files.map(|(name, bytes)| read::<f32>(&folder.write(&name, bytes), &options).unwrap_err());
    assert!(start.elapsed() < Duration::from_secs(2), "{name} took {:?}", start.elapsed());
    errors.into()
}

#[test]
fn a_small_file_cannot_claim_a_large_matrix() {
    let folder = Folder::new();
    let huge = u64::MAX.to_string();
    let mut files = Vec::new();
    for shape in [
        "(1000000000000, 1000)",
        "(9999999999, 9999999999)",
        &format!("({huge}, {huge})"),
        "(1000000, 1000000)",
    ] {
        files.push(("m.npy", npy_file("<f8", "False", shape, &[0; 64])));
        files.push(("m.npy", npy_file("|u1", "True", shape, &[0; 64])));
    }
    for sizes in ["5 5 1000000000000", &format!("5 5 {huge}"), "5 5 10000000"] {
        files.push((
            "m.mtx",
            format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n1 1 1\n").into_bytes(),
        ));
        files.push((
            "m.mtx",
            format!("%%MatrixMarket matrix coordinate pattern symmetric\n{sizes}\n1 1\n").into_bytes(),
        ));
    }
    for sizes in [format!("{huge} {huge}"), "1000000 1000000".to_string(), format!("{huge} 1")] {
        files.push(("m.mtx", format!("%%MatrixMarket matrix array real general\n{sizes}\n1\n").into_bytes()));
    }
    files.push((
        "m.mtx",
        format!("%%MatrixMarket matrix array real symmetric\n{huge} {huge}\n1\n").into_bytes(),
    ));
    for claim in ["(1000000000000,)", &format!("({huge},)")] {
        for member in 2..5 {
            let mut members = csr_members();
            members[member].1 = npy_file("<i8", "False", claim, &[0; 64]);
            files.push(("m.npz", zip_file(&members, zip::CompressionMethod::Stored)));
        }
    }
    let largest = i32::MAX;
    for (rows, cols) in [(largest, largest), (1000, largest), (100_000, 1000)] {
        files.push(("m.bin", binary::dense_file(rows, cols, &[0; 64])));
        files.push(("m.bin", binary::sparse_file([rows, cols, largest], &[0; 9], &[0; 9], &[0; 64])));
        files.push(("m.bin", binary::sparse_file([rows, cols, 9], &[0; 9], &[0; 9], &[0; 64])));
    }
    for (name, bytes) in files {
        for memory in [1 << 30, u64::MAX] {
            for error in refused_fast(&folder, name, &bytes, memory) {
                assert!(matches!(error, Error::Format { .. } | Error::Memory { .. }), "{error}");
            }
        }
    }
}

#[test]
fn no_columns_cost_nothing_however_many_rows() {
    let folder = Folder::new();
    for shape in ["(1000000000000000000, 0)", "(0, 1000000000000000000)"] {
        for order in ["True", "False"] {
            let file = npy_file("<f8", order, shape, &[]);
            refused_fast(&folder, "m.npy", &file, 1 << 20);
            assert!(npy::read_array::<f64>(&folder.write("U.npy", file), 1 << 20).is_err());
        }
    }
    let array = "%%MatrixMarket matrix array real general\n1000000000000000000 0\n";
    refused_fast(&folder, "m.mtx", array.as_bytes(), 1 << 20);
}

#[test]
fn offsets_of_a_sparse_matrix_need_memory_too() {
    let folder = Folder::new();
    for sizes in ["1000000000000 5", "5 1000000000000", "4000000000 4000000000"] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{sizes} 1\n1 1 1\n");
        for error in refused_fast(&folder, "m.mtx", text.as_bytes(), 1 << 30) {
            assert!(matches!(error, Error::Memory { .. }), "{error}");
        }
    }
    let text = "%%MatrixMarket matrix coordinate real general\n5000000000 5 1\n1 1 1\n";
    for error in refused_fast(&folder, "m.mtx", text.as_bytes(), u64::MAX - 1) {
        assert!(
            error.to_string().contains("a sparse matrix may have 4294967295 rows and columns"),
            "{error}"
        );
    }
    let mut members = csr_members();
    members[1].1 = npy_file("<i8", "False", "(2,)", &bytes_of(&[i64::MAX, i64::MAX], i64::to_le_bytes));
    for error in refused_fast(&folder, "m.npz", &zip_file(&members, zip::CompressionMethod::Stored), 1 << 30)
    {
        assert!(matches!(error, Error::Memory { .. }), "{error}");
    }
}

#[test]
fn zeros_that_gzip_packs_a_thousandfold_stay_within_the_memory() {
    let folder = Folder::new();
    let options = ReadOptions { memory: 1 << 20, ..OPTIONS };
    let zeros = vec![0u8; 1 << 24];
    let file = gzip(&npy_file("|u1", "False", "(4096, 4096)", &zeros));
    let error = read::<f32>(&folder.write("m.npy.gz", file), &options).unwrap_err();
    assert!(
        error.to_string().contains("the dense matrix of 4096 x 4096 entries needs 16.0 MiB of memory"),
        "{error}"
    );
    for (name, text) in [
        ("m.csv.gz", "1,2\n".repeat(1 << 20)),
        ("m.csv.gz", "1,".repeat(1 << 22)),
        ("m.mtx.gz", "%".repeat(1 << 22)),
    ] {
        assert!(read::<f32>(&folder.write(name, gzip(text.as_bytes())), &options).is_err());
    }
    let archive = gzip(&zip_file(&vec![("a.npy", zeros)], zip::CompressionMethod::Stored));
    let error = read::<f32>(&folder.write("m.npz.gz", archive), &options).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}
