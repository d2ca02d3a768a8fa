//! Detects a header and row names from the first two records of a table.

use csv::ByteRecord;

use super::parse;
use crate::io::Presence;

/// Whether the table begins with column names, and each record with a row name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableLayout {
    pub header: bool,
    pub row_names: bool,
}

impl TableLayout {
    /// Decides from the first two records what the user did not specify.
    pub fn find(
        first: &ByteRecord,
        second: Option<&ByteRecord>,
        header: Presence,
        row_names: Presence,
    ) -> TableLayout {
        let told = |presence| match presence {
            Presence::Auto => None,
            Presence::Yes => Some(true),
            Presence::No => Some(false),
        };
        let corner = header != Presence::No && has_corner(first, second, header);
        let row_names = told(row_names).unwrap_or_else(|| corner || has_row_names(first, second, header));
        // Row names that are numbers, below a name.
        let above = || named(first) && second.is_some_and(|second| !named(second));
        let header = told(header)
            .unwrap_or_else(|| row_names && (corner || above()) || names_from(first, row_names.into()));
        TableLayout { header, row_names }
    }
}

/// Whether the first record is a header with nothing above the row names: an empty cell in the style of pandas, or
/// one cell less than the values have in the style of R. Numbers alone could be a gap or a ragged table, unless
/// they count up as pandas numbers columns.
fn has_corner(first: &ByteRecord, second: Option<&ByteRecord>, header: Presence) -> bool {
    let told = header == Presence::Yes;
    let empty = first.len() > 1 && first.get(0).is_some_and(|cell| cell.trim_ascii().is_empty());
    let shorter = second.is_some_and(|second| first.len() + 1 == second.len());
    (empty && (told || names_from(first, 1) || counts_up(first)))
        || (shorter && (told || names_from(first, 0)))
}

/// Whether the records of values begin with a name.
fn has_row_names(first: &ByteRecord, second: Option<&ByteRecord>, header: Presence) -> bool {
    match (header, second) {
        (Presence::Yes, second) => second.is_some_and(named),
        (Presence::No, _) => named(first),
        // The first record holds either column names or, as the second, values behind a name.
        (Presence::Auto, Some(second)) => named(second) && (named(first) || names_from(first, 1)),
        (Presence::Auto, None) => named(first) && !names_from(first, 1),
    }
}

/// Whether the first cell is a name.
fn named(record: &ByteRecord) -> bool {
    record.get(0).is_some_and(is_name)
}

/// Whether any cell from `start` on is a name.
fn names_from(record: &ByteRecord, start: usize) -> bool {
    record.iter().skip(start).any(is_name)
}

/// Whether a cell holds text; numbers, also those that no factorization takes, and gaps are values.
fn is_name(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    !cell.is_empty() && cell != b"NA" && parse(cell).is_none()
}

/// Whether the cells after the first are 0, 1, 2, ...: columns that pandas numbered.
fn counts_up(record: &ByteRecord) -> bool {
    record.iter().skip(1).enumerate().all(|(number, cell)| cell == number.to_string().as_bytes())
}
