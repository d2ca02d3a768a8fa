//! What is summed: fixed-point words that wrap around, 32 bits for matrices, 64 for Gram matrices and scalars.

/// Words of a sum. Wrap-around makes the sum exact and the same in any order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The matrices.
    pub narrow: Vec<u32>,
    /// Gram matrices and scalars.
    pub wide: Vec<u64>,
}

impl std::fmt::Debug for Words {
    /// Prints only the number of words, because a party's words are secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} narrow and {} wide words", self.narrow.len(), self.wide.len())
    }
}

/// The numbers of words, which is all that a masked upload reveals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordCount {
    /// Number of 32-bit words.
    pub narrow: usize,
    /// Number of 64-bit words.
    pub wide: usize,
}

impl WordCount {
    /// The size in bytes if every word had 64 bits.
    pub fn most_bytes(self) -> usize {
        self.narrow.saturating_add(self.wide).saturating_mul(8)
    }
}

impl Words {
    /// Zeros, as many as `self` has.
    pub fn zeros_like(&self) -> Words {
        Words { narrow: vec![0; self.narrow.len()], wide: vec![0; self.wide.len()] }
    }

    /// How many words there are.
    pub fn count(&self) -> WordCount {
        WordCount { narrow: self.narrow.len(), wide: self.wide.len() }
    }

    /// Whether both have the same sizes.
    pub fn fits(&self, other: &Words) -> bool {
        self.count() == other.count()
    }

    /// Adds.
    pub fn add(&mut self, other: &Words) {
        self.narrow.iter_mut().zip(&other.narrow).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
        self.wide.iter_mut().zip(&other.wide).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
    }

    /// Bytes of payload.
    pub fn bytes(&self) -> usize {
        self.narrow.len() * 4 + self.wide.len() * 8
    }
}
