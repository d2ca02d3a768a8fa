//! Masks: ChaCha20 streams, each from a seed that is used once.

use chacha20::ChaCha20Rng;
use hkdf::Hkdf;
use rand::{CryptoRng, Rng, SeedableRng};
use sha2::Sha256;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::Words;

/// The seed of one mask. Not printable, wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A new one.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self::filled(|bytes| rng.fill_bytes(bytes))
    }

    /// Creates a seed whose bytes `fill` writes.
    pub fn filled(fill: impl FnOnce(&mut [u8; 32])) -> Self {
        let mut seed = Seed([0; 32]);
        fill(&mut seed.0);
        seed
    }

    /// The secret from which all keys of the mask are derived.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives a key for one purpose. The seed itself is never used as a key, because its digest is signed.
    pub fn expand(&self, purpose: &[u8]) -> Seed {
        Seed::filled(|key| match Hkdf::<Sha256>::from_prk(&self.0) {
            Ok(seed) if seed.expand(purpose, key).is_ok() => {}
            _ => unreachable!("a key and a seed of 32 bytes each"),
        })
    }

    /// The key of the mask's stream.
    pub fn stream(&self) -> Seed {
        self.expand(b"partwise stream 1")
    }
}

/// Which way a mask goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Add,
    Subtract,
}

impl Sign {
    /// The sign of the mask between two parties: the one with the lower number adds.
    pub fn between(me: u16, other: u16) -> Sign {
        if me < other { Sign::Add } else { Sign::Subtract }
    }

    pub fn opposite(self) -> Sign {
        match self {
            Sign::Add => Sign::Subtract,
            Sign::Subtract => Sign::Add,
        }
    }
}

/// Adds or subtracts the stream of `seed`, narrow words first.
pub fn apply(seed: &[u8; 32], sign: Sign, words: &mut Words) {
    let mut stream = ChaCha20Rng::from_seed(*seed);
    let mut block = Zeroizing::new([0u8; 4096]);
    for chunk in words.narrow.chunks_mut(block.len() / 4) {
        let bytes = &mut block[..chunk.len() * 4];
        stream.fill_bytes(bytes);
        for (word, mask) in chunk.iter_mut().zip(bytes.as_chunks().0) {
            let mask = u32::from_le_bytes(*mask);
            *word = if sign == Sign::Add { word.wrapping_add(mask) } else { word.wrapping_sub(mask) };
        }
    }
    for chunk in words.wide.chunks_mut(block.len() / 8) {
        let bytes = &mut block[..chunk.len() * 8];
        stream.fill_bytes(bytes);
        for (word, mask) in chunk.iter_mut().zip(bytes.as_chunks().0) {
            let mask = u64::from_le_bytes(*mask);
            *word = if sign == Sign::Add { word.wrapping_add(mask) } else { word.wrapping_sub(mask) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, A.1, test vectors 1 and 2: key 0, nonce 0, blocks 0 and 1.
    #[test]
    fn the_stream_is_chacha20() {
        let expected: [u32; 4] = [0xade0b876, 0x903df1a0, 0xe56a5d40, 0x28bd8653];
        let mut words = Words { narrow: vec![0; 16], wide: vec![0; 2] };
        apply(&[0; 32], Sign::Add, &mut words);
        assert_eq!(words.narrow[..4], expected);
        // Block 1 begins 9f 07 e7 be 55 51 38 7a.
        assert_eq!(words.wide[0].to_le_bytes(), [0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a]);
    }

    /// RFC 8439, A.1, test vector 3: key 00..01, nonce 0, block 1.
    #[test]
    fn the_stream_has_the_key() {
        let mut key = [0; 32];
        key[31] = 1;
        let mut words = Words { narrow: vec![0; 20], wide: Vec::new() };
        apply(&key, Sign::Add, &mut words);
        assert_eq!(words.narrow[16].to_le_bytes(), [0x3a, 0xeb, 0x52, 0x24]);
    }

    #[test]
    fn shares_that_are_added_can_be_subtracted() {
        let plain = Words { narrow: (0..3000).collect(), wide: (0..1500).collect() };
        let mut words = plain.clone();
        apply(&[7; 32], Sign::Add, &mut words);
        assert!(words.narrow.iter().zip(&plain.narrow).filter(|(a, b)| a == b).count() < 3);
        apply(&[7; 32], Sign::Subtract, &mut words);
        assert_eq!(words, plain);
    }
}
