//! The rows of a table, as numbers and names.

use csv::ByteRecord;

use super::layout::TableLayout;
use super::reader::{begin, cell_error, label, line, line_error, not_utf8};
use super::{parse, words};
use crate::error::{Error, Result};
use crate::io::assumption::Beginning;
use crate::io::check::missing_value;
use crate::io::memory::Budget;
use crate::real::Real;
use crate::wording::Wording;

/// The rows read so far.
pub struct Rows<T> {
    pub layout: TableLayout,
    delimiter: u8,
    /// Cells of the first record, and its position.
    pub width: Option<(usize, u64)>,
    pub count: usize,
    pub values: Vec<T>,
    pub names: Vec<String>,
    name_bytes: u64,
    pub beginning: Beginning,
    /// Whether `NA` and empty cells are missing values.
    missing_as_nan: bool,
}

impl<T: Real> Rows<T> {
    /// None yet.
    pub fn new(layout: TableLayout, delimiter: u8, missing_as_nan: bool) -> Self {
        Rows {
            layout,
            delimiter,
            width: None,
            count: 0,
            values: Vec::new(),
            names: Vec::new(),
            name_bytes: 0,
            beginning: Beginning::default(),
            missing_as_nan,
        }
    }

    /// Values in a row.
    pub fn cols(&self) -> usize {
        self.width.map_or(0, |(width, _)| width.saturating_sub(self.layout.row_names.into()))
    }

    pub fn push(&mut self, budget: Budget, record: &ByteRecord) -> Result<()> {
        let (width, first) = *self.width.get_or_insert((record.len(), begin(record)));
        if record.len() != width {
            let problem = format!(
                "{} cells, but line {} has {width}; complete or remove the line",
                record.len(),
                line(budget, first)
            );
            return Err(line_error(budget, begin(record), problem));
        }
        self.count += 1;
        if self.layout.row_names {
            let name = label(budget, record, 0)?;
            self.name_bytes = self.name_bytes.saturating_add((size_of::<String>() + name.len()) as u64);
            self.names.push(name);
        }
        let skip = usize::from(self.layout.row_names);
        let budget_left = Budget { available: budget.available.saturating_sub(self.name_bytes), ..budget };
        budget_left.grow("the table", &mut self.values, width.saturating_sub(skip))?;
        for (cell, bytes) in record.iter().enumerate().skip(skip) {
            let missing = self.missing_as_nan && is_missing(bytes);
            match parse(bytes.trim_ascii()).or(missing.then_some(f64::NAN)) {
                Some(value) => {
                    self.beginning.note(self.count - 1, cell - skip, value);
                    self.values.push(T::from_f64(value));
                }
                None => return Err(self.not_a_number(budget, record, cell, bytes)),
            }
        }
        Ok(())
    }

    fn not_a_number(&self, budget: Budget, record: &ByteRecord, cell: usize, bytes: &[u8]) -> Error {
        let Ok(text) = std::str::from_utf8(bytes) else { return not_utf8(budget, record, cell) };
        let text = text.trim();
        let shown: String = text.chars().take(40).collect();
        let what = if text.is_empty() {
            "the cell is empty".to_string()
        } else {
            format!("{shown:?} is not a number")
        };
        let missing = is_missing(bytes);
        let first = self.count == 1 && !self.layout.header;
        let cure: Wording = if missing && !(first && cell == 0) {
            missing_value()
        } else if first {
            "correct it, or specify that the table has a header".into()
        } else if cell == 0 {
            "correct it, or specify that the table has row names".into()
        } else {
            format!("correct it, and check that {} separate the cells", words(self.delimiter)).into()
        };
        let problem = Wording::new(format!("{what}; ")).then(cure);
        cell_error(budget, record, cell, problem)
    }
}

/// Whether a cell marks a missing value.
fn is_missing(cell: &[u8]) -> bool {
    let words = ["", "NA", "N/A", "null", "None"];
    words.iter().any(|word| cell.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}
