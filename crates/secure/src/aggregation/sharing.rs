//! Secret sharing of seeds: a threshold of the shares restores a seed (Shamir 1979), as implemented by
//! blahaj. The coefficients of the polynomials follow from the seed: anyone who has it can deal it again and
//! compare.

use blahaj::Sharks;
use chacha20::ChaCha20Rng;
use rand::{Rng, SeedableRng};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::mask::Seed;

/// Size of a share as made by blahaj: the point of evaluation, and a value for each byte of the seed.
const VALUE_BYTES: usize = 33;
/// Size of a share with the salt at its end, which keeps its digest from revealing anything about it.
pub const SHARE_BYTES: usize = VALUE_BYTES + 16;

/// A share of a seed. Not printable, wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Share(Vec<u8>);

impl Share {
    /// One that was opened, if it has the size of one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == SHARE_BYTES).then(|| Share(bytes.to_vec()))
    }

    /// A different share of the same form.
    #[cfg(test)]
    pub fn damaged(mut self) -> Self {
        self.0[9] ^= 1;
        self
    }

    /// The bytes of the share, with its salt.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Cuts a seed into `count` shares: `threshold` of them restore it, and fewer reveal nothing. The same seed
/// gives the same shares.
pub fn deal(seed: &Seed, threshold: usize, count: usize) -> Vec<Share> {
    let mut coefficients = ChaCha20Rng::from_seed(*seed.expand(b"partwise coefficients 1").bytes());
    let mut salts = ChaCha20Rng::from_seed(*seed.expand(b"partwise salts 1").bytes());
    // A cohort has at most 255 members (`Cohort::check`).
    let dealer = Sharks(threshold.min(255) as u8).dealer_rng(seed.bytes(), &mut coefficients);
    let salted = |values: blahaj::Share| {
        let mut share = Share(Vec::from(&values));
        share.0.resize(SHARE_BYTES, 0);
        salts.fill_bytes(&mut share.0[VALUE_BYTES..]);
        share
    };
    dealer.take(count).map(salted).collect()
}

/// The seed, or `None` if there are too few shares or their lengths differ.
pub fn recover<'a>(shares: impl Iterator<Item = &'a [u8]>, threshold: usize) -> Option<Seed> {
    let values = shares.map(|share| share.get(..VALUE_BYTES).and_then(|share| share.try_into().ok()));
    let values: Vec<blahaj::Share> = values.collect::<Option<_>>()?;
    let secret = Zeroizing::new(Sharks(threshold.min(255) as u8).recover(&values).ok()?);
    (secret.len() == 32).then(|| Seed::filled(|bytes| bytes.copy_from_slice(&secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_of_shares_and_no_fewer_give_the_seed() {
        let seed = Seed::filled(|bytes| bytes.fill(42));
        let recovered = |seed: Option<Seed>| seed.is_some_and(|seed| *seed.bytes() == [42; 32]);
        for (threshold, count) in [(3, 3), (3, 5), (26, 50), (128, 255)] {
            let shares = deal(&seed, threshold, count);
            assert_eq!(shares.len(), count);
            assert!(shares.iter().all(|share| share.bytes().len() == SHARE_BYTES));
            // Dealing the same seed again gives the same shares, and another seed gives others.
            let again = |seed: &Seed| {
                deal(seed, threshold, count).iter().map(|share| share.0.clone()).collect::<Vec<_>>()
            };
            assert_eq!(again(&seed), shares.iter().map(|share| share.0.clone()).collect::<Vec<_>>());
            assert!(again(&Seed::filled(|bytes| bytes.fill(43))).iter().zip(&shares).all(|(a, b)| *a != b.0));
            let last = shares.iter().rev().take(threshold).map(Share::bytes);
            assert!(recovered(recover(last.clone(), threshold)));
            assert!(recover(last.clone().skip(1), threshold).is_none());
            // Interpolating through too few of them gives another value.
            assert!(!recovered(recover(last.skip(1), threshold - 1)));
        }
        assert!(recover([&[1u8, 2][..], &[2, 3, 4]].into_iter(), 2).is_none());
    }
}
