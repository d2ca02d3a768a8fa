//! Labelled factors as a tab-separated table that spreadsheets, R and pandas read.

use std::io::{self, Write};

use super::write::write_shortest;
use crate::real::Real;

/// Writes a matrix, given row by row, with `column_names` and `row_labels`; `corner` stands above the row labels.
/// Numbers have the fewest digits that read back as the same value.
pub fn write<T: Real>(
    writer: impl Write,
    corner: &str,
    column_names: &[impl AsRef<str>],
    row_labels: &[impl AsRef<str>],
    rows: usize,
    cols: usize,
    values: &[T],
) -> io::Result<()> {
    if column_names.len() != cols || row_labels.len() != rows || rows.checked_mul(cols) != Some(values.len())
    {
        let problem = format!(
            "{} values, {} row labels and {} column names for a table of {rows} x {cols}",
            values.len(),
            row_labels.len(),
            column_names.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut table = csv::WriterBuilder::new().delimiter(b'\t').from_writer(writer);
    table.write_field(corner)?;
    table.write_record(column_names.iter().map(|name| name.as_ref().as_bytes()))?;
    let mut number = Vec::new();
    for (row, label) in row_labels.iter().enumerate() {
        table.write_field(label.as_ref())?;
        for &value in &values[row * cols..(row + 1) * cols] {
            number.clear();
            write_shortest(&mut number, value)?;
            table.write_field(&number)?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

/// Writes a factor with columns `component_1`, `component_2`, ...; rows without labels are counted from 1.
pub fn write_factor<T: Real>(
    writer: impl Write,
    row_labels: Option<&[String]>,
    rows: usize,
    k: usize,
    values: &[T],
) -> io::Result<()> {
    let components: Vec<String> = (1..=k).map(|component| format!("component_{component}")).collect();
    let counted: Vec<String>;
    let labels = match row_labels {
        Some(labels) => labels,
        None => {
            counted = (1..=rows).map(|row| row.to_string()).collect();
            &counted
        }
    };
    write(writer, "label", &components, labels, rows, k, values)
}
