//! Stateless random numbers: a stream is named by (seed, purpose, iteration, row), so that every rank draws the
//! same numbers in any order without communication.

use chacha20::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The purpose of a stream. Two purposes never share a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Start values of U.
    StartU = 1,
    /// Start values of V.
    StartV = 2,
    /// The sketch S of the U-subproblem.
    SketchU = 3,
    /// The sketch S' of the V-subproblem.
    SketchV = 4,
    /// Redrawn columns of V.
    Redraw = 5,
    /// The sketch of a randomized SVD.
    Svd = 6,
    /// Small numbers in place of zeros.
    Fill = 7,
    /// Rows of M that a run starts on.
    Sample = 8,
    /// Rows and columns held out by cross-validation, and rows whose clusters are compared.
    Folds = 9,
    /// Held-out entries of M.
    Holdout = 10,
}

/// The stream of one row. The key holds seed, purpose and iteration, the stream number the row: ChaCha has no key
/// schedule, so opening a stream costs nothing.
pub fn stream(seed: u64, purpose: Purpose, iteration: usize, row: usize) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
    key[16..24].copy_from_slice(&(iteration as u64).to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(row as u64);
    rng
}

/// A uniform number in (0, 1], with 53 random bits: never 0, which multiplicative updates could not change.
pub fn uniform(rng: &mut impl Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn streams_are_distinct_and_repeatable() {
        let first = |seed, purpose, iteration, row| stream(seed, purpose, iteration, row).next_u64();
        let mut seen = HashSet::new();
        let purposes = [Purpose::StartU, Purpose::SketchU, Purpose::SketchV, Purpose::Redraw, Purpose::Svd];
        for seed in 0..4 {
            for purpose in purposes {
                for iteration in 0..10 {
                    for row in 0..10 {
                        assert!(seen.insert(first(seed, purpose, iteration, row)));
                        assert_eq!(
                            first(seed, purpose, iteration, row),
                            first(seed, purpose, iteration, row)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn uniform_has_the_mean_and_variance_of_a_uniform() {
        let mut rng = stream(7, Purpose::StartU, 0, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| uniform(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.005 && (variance - 1.0 / 12.0).abs() < 0.002, "{mean} {variance}");
        assert!(draws.iter().all(|&x| x > 0.0 && x <= 1.0));
    }
}
