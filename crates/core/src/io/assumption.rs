//! Alternative readings of a text table. A table does not say whether its first line and column contain numbers or
//! names that are numbers, so its reader should report what was assumed.

use std::collections::HashMap;

use serde::Serialize;

use super::{Presence, ReadOptions};
use crate::real::Real;

/// The assumptions made for an ambiguous text table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "assumption", rename_all = "snake_case")]
pub enum Assumption {
    /// The first column is data, although it looks like identifiers.
    FirstColumnIsData {
        /// The first values, for messages.
        shown: String,
    },
    /// The first line is data, although it looks like column names.
    FirstLineIsData {
        /// The first values, for messages.
        shown: String,
    },
    /// A record is a row of the matrix, although it looks like row, column and value of a single entry.
    RecordsAreRows,
}

/// Records that are examined; the beginning of a table is enough.
const LOOKED_AT: usize = 10_000;

/// Cells of a record that are examined.
const CELLS: usize = 4;

/// Tables with fewer rows look like identifiers by chance.
const FEWEST: usize = 5;

/// Names of a column of identifiers, in addition to those that end in `id`.
const IDENTIFIERS: [&str; 6] = ["id", "index", "idx", "no", "nr", "unnamed: 0"];

/// Names of the first two columns of triples, in addition to identifiers, and of the third.
const PLACES: [&str; 7] = ["user", "item", "row", "column", "col", "i", "j"];
const VALUES: [&str; 5] = ["rating", "value", "count", "score", "weight"];

/// The first cells of the first records, in the precision of the file.
#[derive(Default)]
pub(super) struct Beginning(Vec<[f64; CELLS]>);

impl Beginning {
    /// Keeps a value if it is among the first; values come row by row.
    #[inline]
    pub fn note(&mut self, row: usize, col: usize, value: f64) {
        if row < LOOKED_AT && col < CELLS {
            if col == 0 {
                self.0.push([0.0; CELLS]);
            }
            self.0[row][col] = value;
        }
    }

    fn column(&self, col: usize) -> Vec<f64> {
        self.0.iter().map(|cells| cells[col]).collect()
    }
}

/// A table and how it was read.
pub(super) struct Table<'a, T> {
    pub options: &'a ReadOptions,
    pub col_labels: Option<&'a [String]>,
    pub row_labels: Option<&'a Vec<String>>,
    /// The values, row by row.
    pub values: &'a [T],
    pub cols: usize,
    pub beginning: &'a Beginning,
}

impl<T: Real> Table<'_, T> {
    /// The assumptions that the table itself casts doubt on.
    pub fn assumptions(&self) -> Vec<Assumption> {
        let guessed = |told: Presence| told == Presence::Auto;
        if guessed(self.options.row_names) && self.looks_like_triples() {
            return vec![Assumption::RecordsAreRows];
        }
        let mut assumptions = Vec::new();
        if guessed(self.options.row_names) && self.row_labels.is_none() && self.looks_like_identifiers() {
            let shown = shown(&self.beginning.column(0));
            assumptions.push(Assumption::FirstColumnIsData { shown });
        }
        if guessed(self.options.header) && self.col_labels.is_none() && self.looks_like_header() {
            let shown = shown(&self.row(0));
            assumptions.push(Assumption::FirstLineIsData { shown });
        }
        assumptions
    }

    /// A row of the table; empty if it does not exist.
    fn row(&self, row: usize) -> Vec<f64> {
        let rest = self.values.get(row * self.cols..).unwrap_or_default();
        rest.iter().take(self.cols).map(|value| value.to_f64()).collect()
    }

    fn rows_looked_at(&self) -> usize {
        self.beginning.0.len()
    }

    /// Whether the first column has distinct whole numbers that are named as identifiers, or are unlikely
    /// measurements: consecutive numbers, ascending years, or numbers of one length far above all others.
    fn looks_like_identifiers(&self) -> bool {
        let column = self.beginning.column(0);
        let mut sorted = column.clone();
        sorted.sort_by(f64::total_cmp);
        if self.cols < 2
            || column.len() < 2
            || !whole(&column)
            || sorted.windows(2).any(|pair| pair[0] == pair[1])
        {
            return false;
        }
        if self.col_labels.is_some_and(|names| names_identifiers(&names[0])) {
            return true;
        }
        let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
        let others =
            self.values[..self.rows_looked_at() * self.cols].chunks(self.cols).flat_map(|row| &row[1..]);
        let largest = || others.fold(0.0, |largest: f64, value| largest.max(value.to_f64()));
        // A named column may contain calories, which look like years.
        let long = if self.col_labels.is_some() { 1e5 } else { 1e3 };
        let one_length = least >= long && least.log10().floor() == most.log10().floor();
        column.len() >= FEWEST
            && (counts_up(&column) && !counts_up(&self.beginning.column(1))
                || years(&column)
                || one_length && least > 10.0 * largest())
    }

    /// Whether the first line has ascending years or the numbers of the columns, and the second does not.
    fn looks_like_header(&self) -> bool {
        let (first, second) = (self.row(0), self.row(1));
        let fewest = if self.row_labels.is_some() { 2 } else { 3 };
        if second.is_empty() || first.len() < fewest {
            return false;
        }
        let numbered =
            || first.len() >= FEWEST && first[0] <= 1.0 && counts_up(&first) && !counts_up(&second);
        // A corner may stand before years.
        let begin = if years(&first) { 0 } else { 1 };
        let dated =
            first.len() - begin >= fewest && years(&first[begin..]) && !second[begin..].iter().all(year);
        dated || whole(&first) && numbered()
    }

    /// Whether records are (row, column, value), perhaps with one more cell such as a time: no position occurs
    /// twice, although rows and columns do, and positions are named or in order, or are so many that independent
    /// data would repeat some.
    fn looks_like_triples(&self) -> bool {
        let named = usize::from(self.row_labels.is_some());
        if !(3..=4).contains(&(self.cols + named)) {
            return false;
        }
        let Some(places) = self.places() else { return false };
        let mut sorted = places.clone();
        sorted.sort_unstable();
        let count = places.len();
        if count < 2 || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        if named == 0 && self.col_labels.is_some_and(names_triples) {
            return true;
        }
        let by_column: Vec<(u64, u64)> = places.iter().map(|&(row, col)| (col, row)).collect();
        let (rows, cols) = (Repeats::of(&places), Repeats::of(&by_column));
        let several = |repeats: &Repeats| repeats.distinct >= 2 && 2 * repeats.distinct <= count;
        let in_order = places.is_sorted() && several(&rows) && cols.distinct < count
            || by_column.is_sorted() && several(&cols) && rows.distinct < count;
        let pairs = count as f64 * (count as f64 - 1.0) / 2.0;
        let unlikely = pairs * rows.chance * cols.chance >= 10.0;
        count > FEWEST && in_order || unlikely
    }

    /// The first two cells of each record, a row name being the first, as whole numbers.
    fn places(&self) -> Option<Vec<(u64, u64)>> {
        let numbers = |col: usize| {
            let column = self.beginning.column(col);
            whole(&column).then(|| column.iter().map(|&value| value as u64).collect::<Vec<_>>())
        };
        let Some(names) = self.row_labels else {
            return Some(numbers(0)?.into_iter().zip(numbers(1)?).collect());
        };
        let mut known = HashMap::new();
        let number = |name| {
            let next = known.len() as u64;
            *known.entry(name).or_insert(next)
        };
        Some(names.iter().map(number).zip(numbers(0)?).collect())
    }
}

/// How the first of two numbers repeats.
struct Repeats {
    distinct: usize,
    /// The share of pairs of records with the same first number.
    chance: f64,
}

impl Repeats {
    fn of(places: &[(u64, u64)]) -> Repeats {
        let mut counts: HashMap<u64, f64> = HashMap::new();
        places.iter().for_each(|&(number, _)| *counts.entry(number).or_default() += 1.0);
        let total = places.len() as f64;
        let same: f64 = counts.values().map(|count| count * (count - 1.0)).sum();
        Repeats { distinct: counts.len(), chance: same / (total * (total - 1.0)) }
    }
}

/// Whether all numbers are whole and at least 0.
fn whole(numbers: &[f64]) -> bool {
    numbers.iter().all(|&number| number >= 0.0 && number.fract() == 0.0)
}

fn counts_up(numbers: &[f64]) -> bool {
    numbers.len() > 1 && numbers.windows(2).all(|pair| pair[1] - pair[0] == 1.0)
}

fn year(number: &f64) -> bool {
    number.fract() == 0.0 && (1800.0..=2100.0).contains(number)
}

/// Whether the numbers are years, all rising or all falling.
fn years(numbers: &[f64]) -> bool {
    numbers.iter().all(year)
        && (numbers.windows(2).all(|pair| pair[0] < pair[1])
            || numbers.windows(2).all(|pair| pair[0] > pair[1]))
}

/// `id`, `index`, `patient_id`, `PatientID`, but not `acid`.
fn names_identifiers(name: &str) -> bool {
    let lower = name.to_lowercase();
    let before = |end: &str| name.strip_suffix(end).and_then(|rest| rest.chars().next_back());
    IDENTIFIERS.contains(&lower.as_str())
        || before("Id").or(before("ID")).is_some_and(char::is_alphanumeric)
        || lower.strip_suffix("id").is_some_and(|rest| rest.ends_with(['_', '-', '.', ' ']))
}

fn names_triples(names: &[String]) -> bool {
    let place = |name: &String| PLACES.contains(&name.to_lowercase().as_str()) || names_identifiers(name);
    names[..2].iter().all(place) && VALUES.contains(&names[2].to_lowercase().as_str())
}

/// The first numbers.
fn shown(numbers: &[f64]) -> String {
    let first: Vec<String> = numbers.iter().take(3).map(f64::to_string).collect();
    first.join(", ") + if numbers.len() > 3 { ", ..." } else { "" }
}
