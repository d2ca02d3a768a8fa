//! Which factor is in which file.
//!
//! In the methods, as in the paper, U belongs to the features and V_r to a party's records. In files and in Python U belongs
//! to the rows of the data and V to the columns, whichever of them are the records; this is where one becomes the other.
//! `partwise::run::record::SharedFactor` says which of the files all parties share.

use partwise::run::Side;

/// What belongs to the rows and what belongs to the columns of data whose records are on this side; and, given what belongs
/// to the rows and to the columns, what belongs to the records and to the features.
pub fn by_side<X>(records: Side, of_records: X, of_features: X) -> (X, X) {
    match records {
        Side::Rows => (of_records, of_features),
        Side::Columns => (of_features, of_records),
    }
}
