//! An opened file: its bytes after decompression, a bound on their number, and errors that name the place.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

#[cfg(feature = "io")]
use flate2::bufread::MultiGzDecoder;

use super::memory::Budget;
use crate::error::{Error, Result};
use crate::wording::Wording;

/// DEFLATE spends at least two bits on at most 258 bytes, so that no stream grows more than 1032-fold.
pub(super) const DEFLATE_RATIO: u64 = 1032;

const BUFFER: usize = 1 << 17;

/// Bytes handed over at a time; a multiple of every number's width.
const CHUNK: usize = 1 << 16;

/// No line of a Matrix Market or label file comes near this; a stream without line ends must not fill the memory.
const LONGEST_LINE: u64 = 1 << 20;

/// A source of archives.
pub(super) trait ReadSeek: Read + Seek {}
impl<R: Read + Seek> ReadSeek for R {}

/// Bytes of a file, or of a member of an archive, read once from front to back.
pub(super) struct Source<'a> {
    pub path: &'a Path,
    /// No more bytes than this can come; the claims of a header are held against it.
    pub at_most: u64,
    /// The line last read by [`Source::line`], counted from 1.
    pub line: u64,
    member: Option<String>,
    reader: Reader<'a>,
}

/// The source of the bytes.
enum Reader<'a> {
    /// A plain file, in which any place can be sought.
    File(BufReader<File>),
    /// A decompressor.
    Stream(Box<dyn BufRead + 'a>),
}

impl<'a> Reader<'a> {
    fn get(&mut self) -> &mut (dyn BufRead + 'a) {
        match self {
            Reader::File(file) => file,
            Reader::Stream(stream) => stream.as_mut(),
        }
    }

    fn boxed(self) -> Box<dyn BufRead + 'a> {
        match self {
            Reader::File(file) => Box::new(file),
            Reader::Stream(stream) => stream,
        }
    }
}

/// Whether the name ends in `.gz`, and the name without it, in lower case.
pub(super) fn split_gz(path: &Path) -> (String, bool) {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match name.strip_suffix(".gz") {
        Some(stem) => (stem.to_string(), true),
        None => (name, false),
    }
}

/// Opens a plain file and tells its length. Folders and pipes are refused before opening could block.
fn open_file(path: &Path) -> Result<(File, u64)> {
    let metadata = std::fs::metadata(path).map_err(Error::io(path))?;
    if metadata.is_dir() {
        return Err(Error::format(path, "content", "this is a folder; give a file in it"));
    }
    if !metadata.is_file() {
        return Err(Error::format(
            path,
            "content",
            "this is a pipe or a device; save its data as a file first",
        ));
    }
    Ok((File::open(path).map_err(Error::io(path))?, metadata.len()))
}

/// The file's bytes, decompressed where its name ends in `.gz`, and a bound on their number.
pub(super) fn open_reader(path: &Path) -> Result<(Box<dyn BufRead>, u64)> {
    let (reader, at_most) = open_any(path)?;
    Ok((reader.boxed(), at_most))
}

fn open_any(path: &Path) -> Result<(Reader<'static>, u64)> {
    let (file, length) = open_file(path)?;
    let mut raw = BufReader::with_capacity(BUFFER, file);
    let start = raw.fill_buf().map_err(Error::io(path))?;
    if start.is_empty() {
        return Err(Error::format(path, "content", "the file is empty; create or download it again"));
    }
    if !split_gz(path).1 {
        return Ok((Reader::File(raw), length));
    }
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Err(Error::format(path, "content", "this is not gzip data; remove .gz from the name"));
    }
    #[cfg(feature = "io")]
    {
        let reader = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw));
        Ok((Reader::Stream(Box::new(reader)), length.saturating_mul(DEFLATE_RATIO)))
    }
    #[cfg(not(feature = "io"))]
    Err(Error::format(
        path,
        "content",
        "this build does not read gzip data; build it with the feature `io`, or decompress the file",
    ))
}

/// The file's bytes for reading at any place, and their number; compressed ones are expanded into memory.
pub(super) fn open_seekable<'a>(path: &'a Path, budget: Budget) -> Result<(Box<dyn ReadSeek + 'a>, u64)> {
    if !split_gz(path).1 {
        let (file, length) = open_file(path)?;
        return Ok((Box::new(BufReader::with_capacity(BUFFER, file)), length));
    }
    let bytes = expand(path, budget)?;
    let length = bytes.len() as u64;
    Ok((Box::new(Cursor::new(bytes)), length))
}

/// The bytes of a compressed file.
pub(super) fn expand(path: &Path, budget: Budget) -> Result<Vec<u8>> {
    let mut source = Source::open(path)?;
    let mut bytes = Vec::new();
    loop {
        let chunk = source.reader.get().fill_buf().map_err(|error| read_error(path, None, error))?;
        let length = chunk.len();
        if length == 0 {
            break;
        }
        budget.grow("the archive within", &mut bytes, length)?;
        bytes.extend_from_slice(chunk);
        source.reader.get().consume(length);
    }
    Ok(bytes)
}

impl<'a> Source<'a> {
    /// Opens a file, through gzip if its name ends in `.gz`.
    pub fn open(path: &'a Path) -> Result<Self> {
        let (reader, at_most) = open_any(path)?;
        Ok(Source { path, at_most, line: 0, member: None, reader })
    }

    /// A member of an archive at `path`.
    pub fn member(path: &'a Path, name: &str, reader: impl Read + 'a, at_most: u64) -> Self {
        let reader = Reader::Stream(Box::new(BufReader::with_capacity(BUFFER, reader)));
        Source { path, at_most, line: 0, member: Some(name.to_string()), reader }
    }

    /// An [`Error::Format`] at `place`.
    pub fn error(&self, place: &str, problem: impl Into<Wording>) -> Error {
        match &self.member {
            Some(member) => Error::format(self.path, format!("member {member}, {place}"), problem),
            None => Error::format(self.path, place, problem),
        }
    }

    /// An [`Error::Format`] at the line last read.
    pub fn line_error(&self, problem: impl Into<Wording>) -> Error {
        self.error(&format!("line {}", self.line), problem)
    }

    /// The next bytes, without consuming them.
    pub fn peek(&mut self) -> Result<&[u8]> {
        self.reader.get().fill_buf().map_err(|error| read_error(self.path, self.member.as_deref(), error))
    }

    /// Fills `buffer` as far as there are bytes and tells how many there were.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.get().read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(self.path, self.member.as_deref(), error)),
            }
        }
        Ok(filled)
    }

    /// Hands over the next `length` bytes piece by piece, each a multiple of 8 except perhaps the last; false if
    /// there are fewer. `take` may refuse with a sentence.
    pub fn chunks(
        &mut self,
        length: usize,
        mut take: impl FnMut(&[u8]) -> std::result::Result<(), String>,
    ) -> Result<bool> {
        let mut left = length;
        let mut buffer = vec![0u8; CHUNK.min(left)];
        while left > 0 {
            let chunk = &mut buffer[..CHUNK.min(left)];
            if self.fill(chunk)? < chunk.len() {
                return Ok(false);
            }
            take(chunk).map_err(|problem| self.error("data", problem))?;
            left -= chunk.len();
        }
        Ok(true)
    }

    /// Reads the next line, without its end, into `line`; false at the end of the file.
    pub fn line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let mut reader = self.reader.get().take(LONGEST_LINE);
        reader
            .read_until(b'\n', line)
            .map_err(|error| read_error(self.path, self.member.as_deref(), error))?;
        if line.is_empty() {
            return Ok(false);
        }
        self.line += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        } else if line.len() as u64 == LONGEST_LINE {
            return Err(self.line_error("the line is longer than 1 MiB; check that this is a text file"));
        }
        Ok(true)
    }

    /// The line, counted from 1, of the first byte from place `begin` on that belongs to no line end: LF, CRLF or CR.
    pub fn line_from(mut self, begin: u64) -> Result<u64> {
        let (mut line, mut place, mut after_cr) = (1, 0, false);
        loop {
            let chunk = self.peek()?;
            let length = chunk.len();
            for &byte in chunk {
                match byte {
                    b'\n' if after_cr => {}
                    b'\n' | b'\r' => line += 1,
                    _ if place >= begin => return Ok(line),
                    _ => {}
                }
                after_cr = byte == b'\r';
                place += 1;
            }
            if length == 0 {
                return Ok(line);
            }
            self.reader.get().consume(length);
        }
    }

    /// The reader alone, for a parser that brings its own buffer.
    pub fn into_reader(self) -> Box<dyn BufRead + 'a> {
        self.reader.boxed()
    }

    /// Leaves out the next `length` bytes; of a plain file, without reading them.
    pub fn skip(&mut self, length: u64) -> Result<()> {
        let skipped = match &mut self.reader {
            Reader::File(file) => i64::try_from(length)
                .map_err(std::io::Error::other)
                .and_then(|length| file.seek_relative(length)),
            // That there are fewer shows when what follows is read.
            Reader::Stream(stream) => {
                std::io::copy(&mut stream.take(length), &mut std::io::sink()).map(|_| ())
            }
        };
        skipped.map_err(|error| read_error(self.path, self.member.as_deref(), error))
    }
}

/// Tells damage that a decompressor found from a refusal of the operating system.
pub(super) fn read_error(path: &Path, member: Option<&str>, error: std::io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::io(path)(error);
    }
    let place = match member {
        Some(member) => format!("member {member}"),
        None => "compressed data".to_string(),
    };
    Error::format(path, place, format!("truncated or damaged ({error}); create or download the file again"))
}
