//! Comma- and tab-separated tables, with or without column names and row names.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::rc::Rc;

use csv::ByteRecord;

use super::assumption::{Beginning, Table};
use super::memory::Budget;
use super::source::{Source, read_error};
use super::tsv::write_shortest;
use super::write::each_row;
use super::{Input, Presence, ReadOptions};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};

/// Whether the table begins with column names, and each record with a row name.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    header: bool,
    row_names: bool,
}

/// Reads a matrix.
pub(super) fn read<T: Real>(
    source: Source,
    budget: Budget,
    delimiter: u8,
    options: &ReadOptions,
) -> Result<Input<T>> {
    let mut records = TableRows::new(source, budget, delimiter);
    let (mut first, mut second) = (ByteRecord::new(), ByteRecord::new());
    let has_first = records.next(&mut first)?;
    let has_second = has_first && records.next(&mut second)?;
    let layout = Layout::find(&first, has_second.then_some(&second), options.header, options.row_names);

    let mut rows = Rows::<T> {
        layout,
        delimiter,
        width: None,
        count: 0,
        values: Vec::new(),
        names: Vec::new(),
        name_bytes: 0,
        beginning: Beginning::default(),
    };
    if has_first && !layout.header {
        rows.push(budget, &first)?;
    }
    if has_second {
        rows.push(budget, &second)?;
    }
    while records.next(&mut second)? {
        rows.push(budget, &second)?;
    }
    let cols = rows.width.map_or(0, |(width, _)| width.saturating_sub(layout.row_names.into()));
    let col_labels =
        if layout.header { Some(column_names(budget, &first, layout, cols, rows.width)?) } else { None };
    if rows.width.is_some() && cols == 0 {
        let problem = format!(
            "row names but no values beside them; check that {} separate the cells",
            words(delimiter)
        );
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

/// Writes the given rows of a matrix, below its column names and beside its row names if it has them.
pub(super) fn write<T: Real>(
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

/// What to say if reading the written table would take names for numbers or the other way round.
pub(super) fn unclear<T: Real>(input: &Input<T>, delimiter: u8) -> Option<String> {
    let written = Layout { header: input.col_labels.is_some(), row_names: input.row_labels.is_some() };
    let mut text = Vec::new();
    write(&mut text, input, delimiter, 0..input.matrix.rows().min(2)).ok()?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(&text[..]);
    let mut records = reader.byte_records().map_while(|record| record.ok());
    let first = records.next()?;
    let found = Layout::find(&first, records.next().as_ref(), Presence::Auto, Presence::Auto);
    let when = |there| if there { "yes" } else { "no" };
    (found != written).then(|| {
        format!(
            "some names could be taken for numbers; read the table with --header {} --row-names {}",
            when(written.header),
            when(written.row_names)
        )
    })
}

impl Layout {
    /// Decides from the first two records what the user did not say.
    fn find(
        first: &ByteRecord,
        second: Option<&ByteRecord>,
        header: Presence,
        row_names: Presence,
    ) -> Layout {
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
        Layout { header, row_names }
    }
}

/// Whether the first record is a header with nothing above the row names: an empty cell in the manner of
/// pandas, or one cell less than the values have in the manner of R. Numbers alone could be a gap or a ragged
/// table, except where they count up as pandas numbers columns.
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

fn parse(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn words(delimiter: u8) -> &'static str {
    if delimiter == b',' { "commas" } else { "tabs" }
}

/// An error at a cell, both counted from 1.
fn cell_error(budget: Budget, record: &ByteRecord, cell: usize, problem: impl Into<String>) -> Error {
    let line = line(budget, begin(record));
    Error::format(budget.path, format!("line {line}, column {}", cell + 1), problem)
}

fn line_error(budget: Budget, begin: u64, problem: impl Into<String>) -> Error {
    Error::format(budget.path, format!("line {}", line(budget, begin)), problem)
}

/// Where the parser began to look for a record, in bytes.
fn begin(record: &ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::byte)
}

/// The line of the record that the parser found from this byte on. Its own count misses line ends of CR alone, the LF of
/// a CRLF before the record, and empty lines, so the lines of the file are counted; only a message needs them.
fn line(budget: Budget, begin: u64) -> u64 {
    Source::open(budget.path).and_then(|source| source.line_from(begin)).unwrap_or(1)
}

fn label(budget: Budget, record: &ByteRecord, cell: usize) -> Result<String> {
    let bytes = record.get(cell).unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| not_utf8(budget, record, cell))?;
    Ok(text.trim().to_string())
}

fn not_utf8(budget: Budget, record: &ByteRecord, cell: usize) -> Error {
    cell_error(budget, record, cell, "the text is not UTF-8; save the file in that encoding")
}

fn column_names(
    budget: Budget,
    record: &ByteRecord,
    layout: Layout,
    cols: usize,
    width: Option<(usize, u64)>,
) -> Result<Vec<String>> {
    let skip = usize::from(layout.row_names && record.len() != cols);
    if let Some((width, first)) = width
        && record.len() != cols + skip
    {
        let problem = format!(
            "{} column names, where line {} has {width} cells; complete the header",
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

/// The rows read so far.
struct Rows<T> {
    layout: Layout,
    delimiter: u8,
    /// Cells of the first record, and where it begins.
    width: Option<(usize, u64)>,
    count: usize,
    values: Vec<T>,
    names: Vec<String>,
    name_bytes: u64,
    beginning: Beginning,
}

impl<T: Real> Rows<T> {
    fn push(&mut self, budget: Budget, record: &ByteRecord) -> Result<()> {
        let (width, first) = *self.width.get_or_insert((record.len(), begin(record)));
        if record.len() != width {
            let problem = format!(
                "{} cells, where line {} has {width}; complete or remove the line",
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
            match parse(bytes.trim_ascii()) {
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
        let missing = ["", "NA", "N/A", "null", "None"].iter().any(|word| text.eq_ignore_ascii_case(word));
        let first = self.count == 1 && !self.layout.header;
        let cure = if missing && !(first && cell == 0) {
            "missing values are not supported yet, so give a value (0 only if 0 was measured) or remove the row or column"
                .to_string()
        } else if first {
            "correct it, or say that the table has a header".to_string()
        } else if cell == 0 {
            "correct it, or say that the table has row names".to_string()
        } else {
            format!("correct it, and check that {} separate the cells", words(self.delimiter))
        };
        let problem = format!("{what}; {cure}");
        cell_error(budget, record, cell, problem)
    }
}

/// Reads a table row by row. A quote that is never closed, or a stream without line ends, makes the rest of the file
/// one record: its bytes are counted against the memory.
struct TableRows<'a> {
    budget: Budget<'a>,
    reader: csv::Reader<Metered<'a>>,
    record_bytes: Rc<Cell<u64>>,
}

struct Metered<'a> {
    inner: Box<dyn io::BufRead + 'a>,
    record_bytes: Rc<Cell<u64>>,
    limit: u64,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.record_bytes.set(self.record_bytes.get().saturating_add(count as u64));
        if self.record_bytes.get() > self.limit {
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, "a record larger than the memory"));
        }
        Ok(count)
    }
}

impl<'a> TableRows<'a> {
    fn new(source: Source<'a>, budget: Budget<'a>, delimiter: u8) -> Self {
        let record_bytes = Rc::new(Cell::new(0));
        // The parser reads ahead by one buffer, whatever the memory.
        let limit = budget.available.saturating_add(1 << 20);
        let metered = Metered { inner: source.into_reader(), record_bytes: record_bytes.clone(), limit };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(metered);
        TableRows { budget, reader, record_bytes }
    }

    fn next(&mut self, record: &mut ByteRecord) -> Result<bool> {
        self.record_bytes.set(0);
        match self.reader.read_byte_record(record) {
            Ok(more) => Ok(more),
            Err(error) => Err(match error.into_kind() {
                csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    let problem = "a single record is larger than the memory; check its quotes and line ends";
                    line_error(self.budget, begin(record), problem)
                }
                csv::ErrorKind::Io(error) => read_error(self.budget.path, None, error),
                kind => {
                    Error::format(self.budget.path, "table", format!("unreadable ({kind:?}); save it again"))
                }
            }),
        }
    }
}
