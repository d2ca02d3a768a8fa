//! What is read in blocks is what is read whole, of good files and of damaged ones.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::stream::Stream;
use super::*;
use crate::matrix::Summary;

/// Reads the file line by line, if it can be, and holds that against the outcome of reading it whole.
pub fn agrees<T: Real>(path: &Path, whole: &Result<Input<T>>) {
    let stream = match (Stream::open(path, false, OPTIONS.memory), whole) {
        (Ok(Some(stream)), _) => stream,
        // More bytes than an array needs are an error only where an archive is not unpacked.
        (Err(error), Ok(_)) if error.to_string().contains("more bytes than") => return,
        (Err(error), Ok(_)) => panic!("{}: read whole, but streaming says {error}", path.display()),
        _ => return,
    };
    let mut entries = BTreeMap::new();
    let lines: Vec<_> = (0..stream.lines()).map(|line| line..line + 1).collect();
    let outcome = stream.pass::<T>(&lines, |lines, block| {
        stream.check(lines.start, &block)?;
        block.for_each_stored(|_, place, value| {
            let place = if stream.by_columns() { (place, lines.start) } else { (lines.start, place) };
            entries.insert(place, value);
        });
        Ok(Some(block))
    });
    match (outcome, whole) {
        (Ok(_), Ok(input)) => {
            let (rows, cols) = (input.matrix.rows(), input.matrix.cols());
            assert_eq!((stream.rows(), stream.cols()), (rows, cols), "{}", path.display());
            assert_eq!(stream.format(), input.format);
            let mut expected = BTreeMap::new();
            input.matrix.for_each_stored(|row, col, value| {
                expected.insert((row, col), value);
            });
            assert!(entries == expected, "{}", path.display());
        }
        (Err(error), Ok(_)) => panic!("{}: read whole, but streaming says {error}", path.display()),
        (Err(error), Err(whole @ Error::Entry { .. })) => assert_eq!(error.to_string(), whole.to_string()),
        // The checksums of an archive are not looked at.
        _ => {}
    }
}

#[test]
fn a_matrix_larger_than_the_memory_is_summarized_block_by_block() {
    let folder = Folder::new();
    let mut values: Vec<f64> = (0..60_000).map(|place| f64::from(place % 7)).collect();
    (values[5], values[31_000], values[59_999]) = (f64::NAN, -2.0, f64::INFINITY);
    let path = folder.write("m.npy", npy_file("<f8", "False", "(200, 300)", &f64s(&values)));
    for transpose in [false, true] {
        let look = |memory| read_to_inspect(&path, &ReadOptions { memory, ..OPTIONS }, transpose).unwrap();
        let Unchecked::Whole(input) = look(1 << 20) else { panic!("it fits") };
        let Unchecked::Streamed(stream) = look(1 << 16) else { panic!("it does not fit") };
        let whole = Summary::of(&input.matrix);
        assert_eq!((whole.nan, whole.negative, whole.infinite), (1, 1, 1));
        assert_eq!(whole, stream.summary(1 << 16).unwrap());
    }
    let table = folder.write("m.csv", "1,2\n".repeat(1000));
    let refused = read_to_inspect(&table, &ReadOptions { memory: 1 << 10, ..OPTIONS }, false);
    assert!(matches!(refused, Err(Error::Memory { .. })), "a table can only be read whole");
}

#[test]
fn only_plain_files_in_order_can_be_streamed() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        let stream = Stream::open(&folder.write(&name, bytes), false, OPTIONS.memory).unwrap();
        let expected = ["m.npy", "bytes.npy", "csc.npz", "dense.bin", "sparse.bin"].contains(&name.as_str());
        assert_eq!(stream.is_some(), expected, "{name}");
    }
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        let path = folder.write(&name, &bytes);
        let Some(stream) = Stream::open(&path, true, OPTIONS.memory).unwrap() else { continue };
        std::fs::File::options().write(true).open(&path).unwrap().set_len(20).unwrap();
        let blocks: Vec<_> = std::iter::once(0..stream.lines()).collect();
        let error = stream.pass::<f32>(&blocks, |_, block| Ok(Some(block))).unwrap_err().to_string();
        assert!(error.contains("the file is truncated"), "{name}: {error}");
    }
}
