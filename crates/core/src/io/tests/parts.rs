//! Parts of a file are those of the whole matrix.

use super::*;
use crate::comm::owned;

/// The regions of a grid of 2 x `size`, then whole rows and whole columns cut into `size` parts.
fn regions(rows: usize, cols: usize, size: usize) -> Vec<Region> {
    let mut regions = Vec::new();
    for part in 0..size {
        for half in 0..2 {
            regions.push(Region { rows: owned(rows, half, 2), cols: owned(cols, part, size) });
        }
        regions.push(Region { rows: owned(rows, part, size), cols: 0..cols });
        regions.push(Region { rows: 0..rows, cols: owned(cols, part, size) });
    }
    regions
}

fn readable(name: &str) -> bool {
    [".npy", ".npz", ".bin", "m.mtx"].iter().any(|ending| name.trim_end_matches(".gz").ends_with(ending))
}

#[test]
fn parts_are_those_of_the_whole() {
    let folder = Folder::new();
    for (name, bytes) in samples() {
        let path = folder.write(&name, &bytes);
        if !readable(&name) {
            let message = read_parts::<f64>(&path, &OPTIONS, &|_, _| Ok(Vec::new())).unwrap_err().to_string();
            assert!(message.contains("with `partwise convert`"), "{message}");
            continue;
        }
        let whole = read::<f64>(&path, &OPTIONS).unwrap();
        let (rows, cols) = (whole.matrix.rows(), whole.matrix.cols());
        for size in 1..5 {
            let choose = |rows, cols| Ok(regions(rows, cols, size));
            let all = read_parts::<f64>(&path, &OPTIONS, &choose).unwrap();
            assert_eq!((all.rows, all.cols), (rows, cols), "{name}");
            assert_eq!((&all.format, all.precision), (&whole.format, whole.precision));
            for (part, region) in all.parts.iter().zip(regions(rows, cols, size)) {
                assert_eq!(
                    *part,
                    whole.matrix.part(region.rows.clone(), region.cols.clone()),
                    "{name} {region:?}"
                );
                // Alone, with all else left out.
                let alone = |_, _| Ok(vec![region.clone()]);
                assert_eq!(read_parts::<f64>(&path, &OPTIONS, &alone).unwrap().parts[0], *part, "{name}");
            }
        }
    }
}

#[test]
fn a_file_that_is_damaged_anywhere_gives_an_error_or_the_parts_of_a_matrix() {
    let folder = Folder::new();
    for (name, bytes) in samples().into_iter().filter(|(name, _)| readable(name)) {
        let mut attempts: Vec<Vec<u8>> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x41;
            attempts.push(damaged);
        }
        attempts.push([&bytes[..], b"more"].concat());
        for attempt in attempts {
            let path = folder.write(&name, &attempt);
            let choose = |rows, cols| Ok(vec![Region { rows: 0..rows, cols: 0..cols }]);
            let parts = read_parts::<f64>(&path, &OPTIONS, &choose);
            match (parts, read::<f64>(&path, &OPTIONS)) {
                (Ok(parts), Ok(whole)) => assert_eq!(parts.parts[0], whole.matrix, "{name}"),
                (Ok(parts), Err(error)) => {
                    // Only all parts together show that nothing is above 0; and the whole may need its transpose,
                    // for which there is not enough memory.
                    let error = error.to_string();
                    let known = error.contains("every entry is 0") || error.contains("is available");
                    assert!(known, "{name}: {error} {parts:?}");
                }
                (Err(_), _) => {}
            }
        }
    }
}

#[test]
fn bad_entries_are_named_by_their_place_in_the_whole() {
    let folder = Folder::new();
    let path = folder.write("m.npy", npy_file("<f8", "False", "(2, 2)", &f64s(&[1.0, 2.0, 3.0, -4.0])));
    let corner = |_, _| Ok(vec![Region { rows: 1..2, cols: 1..2 }]);
    let message = read_parts::<f32>(&path, &OPTIONS, &corner).unwrap_err().to_string();
    assert!(message.contains("row 2, column 2 (counted from 1) is -4"), "{message}");
    let other = |_, _| Ok(vec![Region { rows: 0..1, cols: 0..2 }]);
    assert!(read_parts::<f32>(&path, &OPTIONS, &other).is_ok());
}
