//! The digest that identifies a data set independently of its file.

use partwise::Real;
use partwise::matrix::Matrix;
use sha2::{Digest, Sha256};

use crate::text::Fingerprint;

/// The digest and size of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// Digest of all entries in single precision, by record and feature: independent of file format,
    /// orientation and precision.
    pub digest: Fingerprint,
    /// The number of records.
    pub records: usize,
    /// The number of features.
    pub features: usize,
}

/// Two independent multipliers, so that a record's sums have 128 bits.
const MIXERS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

impl DataSet {
    /// Computes the digest of a matrix with one row per feature and one column per record.
    pub fn new<T: Real>(matrix: &Matrix<T>) -> Self {
        let (features, records) = (matrix.rows(), matrix.cols());
        // Entries come in the order of the layout. Those of a record are added up, so that their order does
        // not matter.
        let mut sums = vec![[0u64; 2]; records];
        matrix.for_each_stored(|feature, record, value| {
            let bits = (value as f32).to_bits();
            if bits != 0 {
                let entry = (feature as u64) << 32 ^ u64::from(bits);
                for (sum, mixer) in sums[record].iter_mut().zip(MIXERS) {
                    *sum = sum.wrapping_add(mix(entry ^ mixer).wrapping_mul(mixer));
                }
            }
        });
        let mut hash = Sha256::new();
        hash.update(b"partwise data set 1");
        hash.update((features as u64).to_le_bytes());
        hash.update((records as u64).to_le_bytes());
        sums.iter().flatten().for_each(|sum| hash.update(sum.to_le_bytes()));
        DataSet { digest: Fingerprint(hash.finalize().into()), records, features }
    }
}

/// The finalizer of SplitMix64.
fn mix(mut value: u64) -> u64 {
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        value = (value ^ (value >> 30)).wrapping_mul(factor);
    }
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use partwise::matrix::{Dense, Order, Values};

    use super::*;

    /// 3 features of 4 records, in the given layout.
    fn matrix(order: Order, changed: Option<usize>) -> Matrix<f64> {
        let value = |feature: usize, record: usize| {
            let value = ((feature * 7 + record * 3) % 5) as f64 + 0.1;
            if changed == Some(feature * 4 + record) { value + 1.0 } else { value }
        };
        let values = match order {
            Order::RowMajor => (0..12).map(|entry| value(entry / 4, entry % 4)).collect(),
            Order::ColMajor => (0..12).map(|entry| value(entry % 3, entry / 3)).collect(),
        };
        Matrix::Dense(Dense::new(3, 4, order, Values::Real(values)))
    }

    #[test]
    fn the_layout_does_not_matter_but_every_entry_does() {
        let of = |order, changed| DataSet::new(&matrix(order, changed));
        let digest = of(Order::RowMajor, None);
        assert_eq!(of(Order::ColMajor, None), digest);
        for entry in 0..12 {
            assert_ne!(of(Order::RowMajor, Some(entry)), digest, "{entry}");
        }
        let turned = DataSet::new(&matrix(Order::RowMajor, None).into_transpose());
        assert_ne!(turned.digest, digest.digest);
    }
}
