//! What a party checks by itself, whatever the others agree on: the thresholds of its own safeguards.

use serde::{Deserialize, Serialize};

/// A party's own limits. Parties need not agree on them, and none of them is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Safeguards {
    /// Records that must have a feature before this party lets it count: t. 0 keeps every feature.
    pub feature_records: usize,
    /// The largest exponent of 2 that a range may be agreed on with.
    pub exponent: i16,
    /// Whether the gate looks at what was opened and at what is about to be uploaded.
    pub gate: bool,
    /// The largest share, in squares, that a single record may have in any combination of the columns of M_r V_r.
    pub record_share: f64,
    /// The largest cosine between a column of U and the record that supplies most of its column of M_r V_r.
    pub record_cosine: f64,
    /// The largest share of a column of U, in squares, that one feature may have.
    pub feature_share: f64,
    /// How many times the diagonal of a fitted V the opened diagonal of all parties may be.
    pub diagonal: f64,
    /// How many times as far as this party's own steps, for as many records as the others have, the mean of all may move U.
    pub step: f64,
}

impl Default for Safeguards {
    fn default() -> Self {
        Safeguards {
            feature_records: 10,
            exponent: 128,
            gate: true,
            record_share: 0.5,
            record_cosine: 0.99,
            feature_share: 0.999,
            diagonal: 4.0,
            step: 3.0,
        }
    }
}

impl Safeguards {
    /// Those that look at what is opened alone, and compare it with no data of the party's own: small examples stay what
    /// they are.
    pub fn of_sums() -> Self {
        Safeguards {
            feature_records: 0,
            record_share: 1.0,
            record_cosine: 1.0,
            feature_share: 1.0,
            step: f64::INFINITY,
            ..Safeguards::default()
        }
    }

    /// Whether a party's own records are looked at before an upload.
    pub(crate) fn watches_records(&self) -> bool {
        self.gate && (self.record_share < 1.0 || self.record_cosine < 1.0)
    }
}
