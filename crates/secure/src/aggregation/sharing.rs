//! Seeds cut into shares of which a threshold gives them back (Shamir 1979), by blahaj.

use blahaj::{Share, Sharks};
use rand::CryptoRng;
use zeroize::Zeroizing;

use super::mask::Seed;

/// Bytes of a share: where the polynomials were evaluated, and a value for each byte of the seed.
pub const SHARE_BYTES: usize = 33;

/// `count` shares of a seed, of which `threshold` give it back and fewer tell nothing.
pub fn deal(
    seed: &Seed,
    threshold: usize,
    count: usize,
    rng: &mut impl CryptoRng,
) -> Vec<Zeroizing<Vec<u8>>> {
    // A cohort has at most 255 members (`Cohort::check`).
    let dealer = Sharks(threshold.min(255) as u8).dealer_rng(&seed[..], rng);
    dealer.take(count).map(|share| Zeroizing::new(Vec::from(&share))).collect()
}

/// The seed, or nothing if there are too few shares or they are of different lengths.
pub fn recover<'a>(shares: impl Iterator<Item = &'a [u8]>, threshold: usize) -> Option<Seed> {
    let shares: Vec<Share> = shares.map(Share::try_from).collect::<Result<_, _>>().ok()?;
    let secret = Zeroizing::new(Sharks(threshold.min(255) as u8).recover(&shares).ok()?);
    Some(Zeroizing::new(secret[..].try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::entropy;

    #[test]
    fn a_threshold_of_shares_and_no_fewer_give_the_seed() {
        let mut rng = entropy().unwrap();
        let seed = Zeroizing::new([42; 32]);
        for (threshold, count) in [(3, 3), (3, 5), (26, 50), (128, 255)] {
            let shares = deal(&seed, threshold, count, &mut rng);
            assert_eq!(shares.len(), count);
            assert!(shares.iter().all(|share| share.len() == SHARE_BYTES));
            let last = shares.iter().rev().take(threshold).map(|share| &share[..]);
            assert!(recover(last.clone(), threshold).as_deref() == Some(&[42; 32]));
            assert!(recover(last.clone().skip(1), threshold).is_none());
            // Interpolating through too few of them gives something else.
            assert!(recover(last.skip(1), threshold - 1).as_deref() != Some(&[42; 32]));
        }
        assert!(recover([&[1u8, 2][..], &[2, 3, 4]].into_iter(), 2).is_none());
    }
}
