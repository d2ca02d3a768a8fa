//! Reading a table record by record, and errors that name their lines.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use csv::ByteRecord;

use crate::error::{Error, Result};
use crate::io::memory::Budget;
use crate::io::source::{Source, read_error};
use crate::wording::Wording;

/// Reads a table row by row. An unclosed quote, or a stream without line ends, makes the rest of the file one
/// record: its bytes are counted against the memory.
pub struct TableRows<'a> {
    budget: Budget<'a>,
    reader: csv::Reader<LimitedReader<'a>>,
    record_bytes: Rc<Cell<u64>>,
}

struct LimitedReader<'a> {
    inner: Box<dyn io::BufRead + 'a>,
    record_bytes: Rc<Cell<u64>>,
    limit: u64,
}

impl Read for LimitedReader<'_> {
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
    pub fn new(source: Source<'a>, budget: Budget<'a>, delimiter: u8) -> Self {
        let record_bytes = Rc::new(Cell::new(0));
        // The parser reads ahead by one buffer, which is not counted.
        let limit = budget.available.saturating_add(1 << 20);
        let metered =
            LimitedReader { inner: source.into_reader(), record_bytes: record_bytes.clone(), limit };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(metered);
        TableRows { budget, reader, record_bytes }
    }

    pub fn next(&mut self, record: &mut ByteRecord) -> Result<bool> {
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

/// An error at a cell, both counted from 1.
pub fn cell_error(budget: Budget, record: &ByteRecord, cell: usize, problem: impl Into<Wording>) -> Error {
    let line = line(budget, begin(record));
    Error::format(budget.path, format!("line {line}, column {}", cell + 1), problem)
}

pub fn line_error(budget: Budget, begin: u64, problem: impl Into<Wording>) -> Error {
    Error::format(budget.path, format!("line {}", line(budget, begin)), problem)
}

/// Where the parser started to look for a record, in bytes.
pub fn begin(record: &ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::byte)
}

/// The line of the record that the parser found from this byte on. Its own count misses line ends of CR only, the
/// LF of a CRLF before the record, and empty lines, so the lines of the file are counted, for messages only.
pub fn line(budget: Budget, begin: u64) -> u64 {
    Source::open(budget.path).and_then(|source| source.line_from(begin)).unwrap_or(1)
}

pub fn label(budget: Budget, record: &ByteRecord, cell: usize) -> Result<String> {
    let bytes = record.get(cell).unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| not_utf8(budget, record, cell))?;
    Ok(text.trim().to_string())
}

pub fn not_utf8(budget: Budget, record: &ByteRecord, cell: usize) -> Error {
    cell_error(budget, record, cell, "the text is not UTF-8; save the file in that encoding")
}
