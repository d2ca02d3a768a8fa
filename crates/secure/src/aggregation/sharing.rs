//! Seeds cut into shares of which a threshold gives them back (Shamir 1979), by blahaj.

use blahaj::Sharks;
use rand::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::mask::Seed;

/// Bytes of a share: where the polynomials were evaluated, and a value for each byte of the seed.
pub const SHARE_BYTES: usize = 33;

/// A share of a seed. Not printable, wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Share(Vec<u8>);

impl Share {
    /// One that was opened, if it has the size of one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == SHARE_BYTES).then(|| Share(bytes.to_vec()))
    }

    /// As it travels.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `count` shares of a seed, of which `threshold` restore it and fewer reveal nothing.
pub fn deal(seed: &Seed, threshold: usize, count: usize, rng: &mut impl CryptoRng) -> Vec<Share> {
    // A cohort has at most 255 members (`Cohort::check`).
    let dealer = Sharks(threshold.min(255) as u8).dealer_rng(seed.bytes(), rng);
    dealer.take(count).map(|share| Share(Vec::from(&share))).collect()
}

/// The seed, or `None` if there are too few shares or their lengths differ.
pub fn recover<'a>(shares: impl Iterator<Item = &'a [u8]>, threshold: usize) -> Option<Seed> {
    let shares: Vec<blahaj::Share> = shares.map(blahaj::Share::try_from).collect::<Result<_, _>>().ok()?;
    let secret = Zeroizing::new(Sharks(threshold.min(255) as u8).recover(&shares).ok()?);
    (secret.len() == 32).then(|| Seed::filled(|bytes| bytes.copy_from_slice(&secret)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::entropy;

    #[test]
    fn a_threshold_of_shares_and_no_fewer_give_the_seed() {
        let mut rng = entropy().unwrap();
        let seed = Seed::filled(|bytes| bytes.fill(42));
        let recovered = |seed: Option<Seed>| seed.is_some_and(|seed| *seed.bytes() == [42; 32]);
        for (threshold, count) in [(3, 3), (3, 5), (26, 50), (128, 255)] {
            let shares = deal(&seed, threshold, count, &mut rng);
            assert_eq!(shares.len(), count);
            assert!(shares.iter().all(|share| share.bytes().len() == SHARE_BYTES));
            let last = shares.iter().rev().take(threshold).map(Share::bytes);
            assert!(recovered(recover(last.clone(), threshold)));
            assert!(recover(last.clone().skip(1), threshold).is_none());
            // Interpolating through too few of them gives another value.
            assert!(!recovered(recover(last.skip(1), threshold - 1)));
        }
        assert!(recover([&[1u8, 2][..], &[2, 3, 4]].into_iter(), 2).is_none());
    }
}
