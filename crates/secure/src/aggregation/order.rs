//! The order in which sums of several cohorts are applied, as a chain of hashes that all parties compute.

use sha2::{Digest, Sha256};

/// The end of the chain: how many sums it has, and the hash over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OrderTip {
    /// How many sums there are.
    pub count: u64,
    /// The hash.
    pub head: [u8; 32],
}

/// Bytes of a tip.
pub const TIP_BYTES: usize = 40;

impl OrderTip {
    /// After a sum that was fixed by this list of commitments, whose digest includes the run, the cohort, the attempt and all
    /// that the cohort was told before.
    pub fn after(self, list: &[u8; 32]) -> Self {
        let mut hash = Sha256::new_with_prefix(b"partwise order 1");
        hash.update(self.bytes());
        hash.update(list);
        OrderTip { count: self.count.saturating_add(1), head: hash.finalize().into() }
    }

    /// As it is hashed, sent and stored.
    pub fn bytes(&self) -> [u8; TIP_BYTES] {
        let mut bytes = [0; TIP_BYTES];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..].copy_from_slice(&self.head);
        bytes
    }

    /// The other way round.
    pub fn from_bytes(bytes: &[u8; TIP_BYTES]) -> Self {
        let mut tip = OrderTip::default();
        let (count, head) = bytes.split_at(8);
        tip.count = count.iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte));
        tip.head.copy_from_slice(head);
        tip
    }
}
