//! LZF, a compression that h5py offers in addition to gzip.

/// HDF5's number of the filter.
pub(super) const FILTER: u16 = 32000;

/// Expands a block; an error is a sentence. Three bytes give at most 264, so that the length needs no other bound.
pub(super) fn expand(block: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = block.iter().copied();
    let mut next = || rest.next().map(usize::from);
    while let Some(control) = next() {
        // A run of bytes as they are, or a distance back to bytes that were there before.
        if control < 32 {
            for _ in 0..=control {
                out.push(next().ok_or("the LZF data end within a run")? as u8);
            }
            continue;
        }
        let cut = "the LZF data end within a reference";
        let mut length = (control >> 5) + 2;
        if control >> 5 == 7 {
            length += next().ok_or(cut)?;
        }
        let distance = ((control & 31) << 8) + next().ok_or(cut)? + 1;
        let begin = out.len().checked_sub(distance).ok_or("the LZF data refer to before their beginning")?;
        // What is copied may be what was just copied.
        (begin..begin + length).for_each(|place| out.push(out[place]));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_references() {
        assert_eq!(expand(&[2, b'a', b'b', b'c']).unwrap(), b"abc");
        assert_eq!(expand(&[1, b'a', b'b', 0x20 * 3, 1]).unwrap(), b"abababa");
        assert_eq!(expand(&[0, b'x', 0xe0, 255, 0]).unwrap(), [b'x'; 265]);
        for damaged in [&[1, 7][..], &[0, 7, 0x20], &[0, 7, 0xe0], &[0, 7, 0x20, 1], &[0, 7, 0xff, 255, 255]]
        {
            assert!(expand(damaged).is_err(), "{damaged:?}");
        }
    }
}
