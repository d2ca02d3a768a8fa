//! The thresholds of a party's own safeguards, which it checks independently of what the parties agree on.

use serde::{Deserialize, Serialize};

/// A party's own limits. Parties need not agree on them, and they are never sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Safeguards {
    /// The minimum number of records that must have a feature before this party counts it: t. 0 keeps every
    /// feature.
    pub feature_records: usize,
    /// The largest exponent of 2 that a range may have.
    pub exponent: i16,
    /// Whether the gate checks what was opened and what is about to be uploaded.
    pub gate: bool,
    /// The largest share, in squares, of a single record in any combination of the columns of M_r V_r.
    pub record_share: f64,
    /// The largest cosine between a column of U and the record that supplies most of its column of M_r V_r.
    pub record_cosine: f64,
    /// The largest share of a single feature in a column of U, in squares.
    pub feature_share: f64,
    /// The largest ratio between the opened diagonal of all parties and that of a fitted V.
    pub diagonal: f64,
    /// The largest ratio between the step of the mean U and this party's own steps, scaled to the others'
    /// number of records.
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
    /// Limits that apply only to what is opened and compare nothing with the party's own data, so that small
    /// examples are not rejected.
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

    /// Whether a party's own records are checked before an upload.
    pub(crate) fn watches_records(&self) -> bool {
        self.gate && (self.record_share < 1.0 || self.record_cosine < 1.0)
    }
}
