//! The agreement of the parties before the first sum. Each signs one digest over all settings, with a nonce from
//! every party, and compares it with those of all others; the digest then identifies the run, and masks are derived
//! from it.
//!
//! Names of features are compared by keyed digests, with a key that two parties share and the coordinator does not
//! have: names can be guessed, and a plain digest would confirm a guess.

mod fields;
mod messages;
mod negotiation;
mod terms;

pub use fields::Agreement;
pub use messages::{Accord, Agree, Offer, Tags};
pub use negotiation::{Features, Ledgers, Negotiation, Negotiator, RunIdentity};
pub(crate) use terms::wrong_setting;
pub use terms::{Member, Terms};

/// The version of everything that is hashed and signed here. A run that was agreed on under another version is not
/// resumed.
pub const AGREEMENT_VERSION: u32 = 3;
