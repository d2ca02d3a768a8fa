//! Comma- and tab-separated tables, with or without column names and row names.

mod layout;
mod reader;
mod rows;

use std::io::{self, Write};
use std::ops::Range;

use csv::ByteRecord;

use super::assumption::Table;
use super::format::{Format, FormatInfo, Opened, Writes};
use super::memory::Budget;
use super::source::Source;
use super::write::{each_row, write_shortest};
use super::{Input, Presence, ReadOptions, WriteOptions};
use crate::error::Result;
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};
use crate::wording::Wording;
use layout::TableLayout;
use reader::{TableRows, begin, label, line, line_error};
use rows::Rows;

/// Comma-separated tables.
pub(super) struct Csv;

/// Tab-separated tables.
pub(super) struct Tsv;

macro_rules! table_format {
    ($format:ident, $name:literal, $ending:literal, $delimiter:literal) => {
        impl Format for $format {
            const INFO: FormatInfo = FormatInfo {
                name: $name,
                endings: &[$ending],
                signature: None,
                in_parts: false,
                writes: Writes::Dense,
            };

            fn read<T: Real>(file: Opened<'_>, options: &ReadOptions) -> Result<Input<T>> {
                read(file.source, file.budget, $delimiter, options)
            }

            fn write_note<T: Real>(input: &Input<T>) -> Option<Wording> {
                unclear(input, $delimiter)
            }

            fn write<T: Real>(
                writer: &mut dyn Write,
                input: &Input<T>,
                _options: WriteOptions,
            ) -> io::Result<()> {
                write(writer, input, $delimiter, 0..input.matrix.rows())
            }
        }
    };
}

table_format!(Csv, "a comma-separated table", "csv", b',');
table_format!(Tsv, "a tab-separated table", "tsv", b'\t');

/// Reads a matrix.
fn read<T: Real>(source: Source, budget: Budget, delimiter: u8, options: &ReadOptions) -> Result<Input<T>> {
    let mut records = TableRows::new(source, budget, delimiter);
    let (mut first, mut second) = (ByteRecord::new(), ByteRecord::new());
    let has_first = records.next(&mut first)?;
    let has_second = has_first && records.next(&mut second)?;
    let layout = TableLayout::find(&first, has_second.then_some(&second), options.header, options.row_names);

    let mut rows = Rows::<T>::new(layout, delimiter, options.missing_as_nan);
    if has_first && !layout.header {
        rows.push(budget, &first)?;
    }
    if has_second {
        rows.push(budget, &second)?;
    }
    while records.next(&mut second)? {
        rows.push(budget, &second)?;
    }
    let cols = rows.cols();
    let col_labels =
        if layout.header { Some(column_names(budget, &first, layout, cols, rows.width)?) } else { None };
    if rows.width.is_some() && cols == 0 {
        let problem = format!("row names without values; check that {} separate the cells", words(delimiter));
        return Err(line_error(budget, begin(&first), problem));
    }
    let kind = if delimiter == b',' { "comma" } else { "tab" };
    let mut format = format!("{kind}-separated table");
    for (there, part) in [(layout.header, ", header"), (layout.row_names, ", row names")] {
        format.push_str(if there { part } else { "" });
    }
    rows.values.shrink_to_fit();
    let table = Table {
        options,
        col_labels: col_labels.as_deref(),
        row_labels: layout.row_names.then_some(&rows.names),
        values: &rows.values,
        cols,
        beginning: &rows.beginning,
    };
    let assumptions = table.assumptions();
    Ok(Input {
        matrix: Matrix::Dense(Dense::new(
            rows.count,
            cols,
            Order::RowMajor,
            Values::Real(rows.values.into()),
        )),
        row_labels: layout.row_names.then_some(rows.names),
        col_labels,
        format,
        precision: Precision::F64,
        image: None,
        assumptions,
    })
}

/// Writes the given rows of a matrix, with its column names and row names if it has any.
fn write<T: Real>(
    writer: &mut dyn Write,
    input: &Input<T>,
    delimiter: u8,
    rows: Range<usize>,
) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(writer);
    if let Some(names) = &input.col_labels {
        if input.row_labels.is_some() {
            table.write_field("")?;
        }
        table.write_record(names)?;
    }
    let mut row = rows.start;
    let mut number = Vec::new();
    each_row(&input.matrix, rows, |line| {
        if let Some(names) = &input.row_labels {
            table.write_field(&names[row])?;
        }
        row += 1;
        for &value in line {
            number.clear();
            write_shortest(&mut number, value)?;
            table.write_field(&number)?;
        }
        Ok(table.write_record(None::<&[u8]>)?)
    })?;
    table.flush()
}

/// The warning if reading the written table would take names for numbers or the other way round.
fn unclear<T: Real>(input: &Input<T>, delimiter: u8) -> Option<Wording> {
    let written = TableLayout { header: input.col_labels.is_some(), row_names: input.row_labels.is_some() };
    let mut text = Vec::new();
    write(&mut text, input, delimiter, 0..input.matrix.rows().min(2)).ok()?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(&text[..]);
    let mut records = reader.byte_records().map_while(|record| record.ok());
    let first = records.next()?;
    let found = TableLayout::find(&first, records.next().as_ref(), Presence::Auto, Presence::Auto);
    let when = |there| if there { "yes" } else { "no" };
    (found != written).then(|| {
        Wording::new("some names look like numbers; read the table with ")
            .choice("header", when(written.header))
            .text(" ")
            .choice("row_names", when(written.row_names))
    })
}

fn column_names(
    budget: Budget,
    record: &ByteRecord,
    layout: TableLayout,
    cols: usize,
    width: Option<(usize, u64)>,
) -> Result<Vec<String>> {
    let skip = usize::from(layout.row_names && record.len() != cols);
    if let Some((width, first)) = width
        && record.len() != cols + skip
    {
        let problem = format!(
            "{} column names, but line {} has {width} cells; complete the header",
            record.len(),
            line(budget, first)
        );
        return Err(line_error(budget, begin(record), problem));
    }
    let mut names =
        (skip..record.len()).map(|cell| label(budget, record, cell)).collect::<Result<Vec<_>>>()?;
    // numpy.savetxt puts its comment sign before the header.
    if let Some(name) = names.first_mut().filter(|_| skip == 0)
        && let Some(rest) = name.strip_prefix('#')
    {
        *name = rest.trim_start().to_string();
    }
    Ok(names)
}

fn words(delimiter: u8) -> &'static str {
    if delimiter == b',' { "commas" } else { "tabs" }
}

fn parse(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}
