//! Which factor is in which file.
//!
//! In the methods, as in the paper, U belongs to the features and V_r to a party's records. In files and in Python U belongs
//! to the rows of the data and V to the columns, whichever of them are the records; this is where one becomes the other.

use partwise::run::Side;
use serde_json::Value;

/// The key of `run.json` that names the factor of the features, which all parties share: `U` or `V`.
pub const SHARED: &str = "shared_factor";

/// What belongs to the rows and what belongs to the columns of data whose records are on this side; and, given what belongs
/// to the rows and to the columns, what belongs to the records and to the features.
pub fn by_side<X>(records: Side, of_records: X, of_features: X) -> (X, X) {
    match records {
        Side::Rows => (of_records, of_features),
        Side::Columns => (of_features, of_records),
    }
}

/// What [`SHARED`] is for data whose records are on this side.
pub fn shared(records: Side) -> &'static str {
    match records {
        Side::Rows => "V",
        Side::Columns => "U",
    }
}

/// The side that the records of a result are on, by its `run.json`. Earlier versions did not say, and wrote the shared factor
/// as U whatever the data were.
pub fn records_of(run: &Value) -> Side {
    if run[SHARED] == "V" { Side::Rows } else { Side::Columns }
}

/// The files of the shared factor and of a party's own, by `run.json`.
pub fn files(run: &Value) -> [&'static str; 2] {
    match records_of(run) {
        Side::Rows => ["V.npy", "U.npy"],
        Side::Columns => ["U.npy", "V.npy"],
    }
}
