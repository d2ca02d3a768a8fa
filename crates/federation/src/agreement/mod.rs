//! What the parties agree on before the first sum. Each signs one digest over all of it, with a nonce from everybody, and
//! compares it with those of all others; the digest then names the run, and masks are derived from it.
//!
//! Names of features are compared by keyed digests, with a key that two parties share and the coordinator has not: names
//! are guessable, and a plain digest would tell whether a guess is right.

mod fields;
mod messages;
mod negotiation;
mod terms;

pub use fields::Agreement;
pub use messages::{Accord, Agree, Offer, Tags};
pub use negotiation::{Features, Negotiation, Negotiator, RunIdentity};
pub(crate) use terms::wrong_setting;
pub use terms::{Member, Terms};

/// The version of all that is hashed and signed here. A run that was agreed on under another version is not taken up.
pub const AGREEMENT_VERSION: u32 = 3;
