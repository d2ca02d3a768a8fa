//! Matrix Market: coordinate and array files of real, integer or pattern entries, general or symmetric.
//!
//! The format: Boisvert, Pozo and Remington, "The Matrix Market exchange formats", NISTIR 5935, 1996.

use std::io::{self, Write};

use super::format::{Format, FormatInfo, Opened, Signature, Writes};
use super::memory::Budget;
use super::part::{Keep, Parts, Wanted};
use super::source::Source;
use super::triplets::Triplets;
use super::write::{each_line, write_shortest};
use super::{Input, ReadOptions, WriteOptions, sniff};
use crate::error::{Error, Result};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::{Precision, Real};

/// Matrix Market.
pub(super) struct MatrixMarket;

impl Format for MatrixMarket {
    const INFO: FormatInfo = FormatInfo {
        name: "a Matrix Market file",
        endings: &["mtx"],
        signature: Some(Signature {
            bytes: b"%%MatrixMarket",
            what: "a Matrix Market file",
            cure: "rename it to .mtx",
        }),
        in_parts: true,
        writes: Writes::Sparse,
    };

    fn read<T: Real>(file: Opened<'_>, _options: &ReadOptions) -> Result<Input<T>> {
        read(file.source, file.budget)
    }

    fn read_parts<T: Real>(file: Opened<'_>, wanted: Wanted<'_>) -> Result<Parts<T>> {
        read_parts(file.source, file.budget, wanted)
    }

    fn write<T: Real>(writer: &mut dyn Write, input: &Input<T>, _options: WriteOptions) -> io::Result<()> {
        write(writer, &input.matrix)
    }
}

/// The content of the first line.
struct Banner {
    coordinate: bool,
    field: String,
    pattern: bool,
    symmetric: bool,
}

/// Banner and sizes, which are rows, columns and for coordinates entries.
fn header(source: &mut Source) -> Result<(Banner, Vec<u64>)> {
    let mut line = Vec::new();
    source.line(&mut line)?;
    let banner = Banner::parse(&line).map_err(|problem| source.line_error(problem))?;
    // Comments and empty lines may stand before the sizes.
    loop {
        if !source.line(&mut line)? {
            return Err(
                source.line_error("the file ends before the line of sizes; create or download it again")
            );
        }
        let text = line.trim_ascii();
        if !text.is_empty() && text[0] != b'%' {
            break;
        }
    }
    let sizes: Option<Vec<u64>> = Tokens(&line).map(parse_index).collect();
    let expected = if banner.coordinate { 3 } else { 2 };
    match sizes {
        Some(sizes) if sizes.len() == expected => Ok((banner, sizes)),
        _ if banner.coordinate => Err(source.line_error(
            "a coordinate file needs three sizes here (rows, columns, entries); correct the line",
        )),
        _ => Err(source.line_error("an array file needs two sizes here (rows, columns); correct the line")),
    }
}

/// Reads a matrix.
fn read<T: Real>(mut source: Source, budget: Budget) -> Result<Input<T>> {
    let (banner, sizes) = header(&mut source)?;
    let [rows, cols] = [sizes[0], sizes[1]];
    let matrix = if banner.coordinate {
        let promised = entries_promised(&source, &banner, &sizes)?;
        let room = if banner.symmetric { promised.saturating_mul(2) } else { promised };
        budget.check_sparse::<T>(rows, cols, room as u64, 1)?;
        let mut triplets = Triplets::with_room(budget, room)?;
        coordinate(&mut source, &banner, Promised { rows, cols, entries: promised }, |row, col, value| {
            triplets.push(row, col, value);
            Ok(())
        })?;
        Matrix::Sparse(triplets.into_csr(budget, rows as usize, cols as usize)?)
    } else {
        array(&mut source, budget, &banner, [rows, cols])?
    };
    Ok(Input::unlabelled(matrix, banner.format(), Precision::F64))
}

/// Reads the selected parts of a matrix.
fn read_parts<T: Real>(mut source: Source, budget: Budget, wanted: Wanted<'_>) -> Result<Parts<T>> {
    let (banner, sizes) = header(&mut source)?;
    if !banner.coordinate {
        let problem = "MPI processes cannot read parts of a Matrix Market array; convert it to .npy with `partwise \
             convert`";
        return Err(source.line_error(problem));
    }
    let promised = entries_promised(&source, &banner, &sizes)?;
    budget.check_sparse::<T>(sizes[0], sizes[1], 0, 0)?;
    let (rows, cols) = (sizes[0] as usize, sizes[1] as usize);
    let mut keep = Keep::new(budget, wanted(rows, cols)?);
    let promised = Promised { rows: sizes[0], cols: sizes[1], entries: promised };
    coordinate(&mut source, &banner, promised, |row, col, value| keep.push(row, col, value))?;
    Ok(Parts { rows, cols, parts: keep.finish()?, format: banner.format(), precision: Precision::F64 })
}

impl Banner {
    fn parse(line: &[u8]) -> std::result::Result<Banner, String> {
        let text = String::from_utf8_lossy(line).to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[banner, object, format, field, symmetry] = words.as_slice() else {
            if words.first() == Some(&"%%matrixmarket") {
                return Err(
                    "the banner is incomplete; write for example '%%MatrixMarket matrix coordinate real general'"
                        .to_string(),
                );
            }
            return Err(no_banner(line));
        };
        if banner != "%%matrixmarket" {
            return Err(no_banner(line));
        }
        if object != "matrix" {
            return Err(format!("the object is {object:.40} instead of matrix; export the matrix itself"));
        }
        let coordinate = match format {
            "coordinate" => true,
            "array" => false,
            _ => return Err(format!("the layout {format:.40} is unknown; use coordinate or array")),
        };
        let pattern = match field {
            "real" | "double" | "integer" | "unsigned-integer" => false,
            "pattern" if coordinate => true,
            "pattern" => return Err("an array of pattern entries has no values; use coordinate".to_string()),
            "complex" => {
                return Err(
                    "complex entries cannot be factorized; export real parts or magnitudes".to_string()
                );
            }
            _ => return Err(format!("the field {field:.40} is unknown; use real, integer or pattern")),
        };
        let symmetric = match symmetry {
            "general" => false,
            "symmetric" => true,
            "skew-symmetric" => {
                return Err(
                    "a skew-symmetric matrix has negative entries; give a nonnegative one".to_string()
                );
            }
            "hermitian" => {
                return Err(
                    "a hermitian matrix has complex entries; export real parts or magnitudes".to_string()
                );
            }
            _ => return Err(format!("the symmetry {symmetry:.40} is unknown; use general or symmetric")),
        };
        Ok(Banner { coordinate, field: field.to_string(), pattern, symmetric })
    }

    /// The format in words.
    fn format(&self) -> String {
        let layout = if self.coordinate { "coordinate" } else { "array" };
        let symmetry = if self.symmetric { "symmetric" } else { "general" };
        format!("Matrix Market {layout}, {}, {symmetry}", self.field)
    }
}

fn no_banner(line: &[u8]) -> String {
    format!(
        "the first line is {} instead of a %%MatrixMarket banner; correct the file or its name",
        sniff::looks_like(line)
    )
}

fn check_square(source: &Source, rows: u64, cols: u64) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    Err(source
        .line_error(format!("a symmetric matrix cannot be {rows} x {cols}; correct the sizes or the banner")))
}

/// Refuses a number of items, of at least `shortest` bytes each, that exceeds the file.
fn check_count(source: &Source, count: Option<u64>, shortest: u64, items: &str) -> Result<usize> {
    // The last item may lack a line end.
    let fits = |count: &u64| {
        count.checked_mul(shortest).is_some_and(|bytes| bytes <= source.at_most.saturating_add(1))
    };
    count.filter(fits).and_then(|count| usize::try_from(count).ok()).ok_or_else(|| {
        let promised = count.map_or("2^64 or more".to_string(), |count| count.to_string());
        source.line_error(format!(
            "{promised} {items} are announced, more than the file can contain; correct the line, or download the file \
             again"
        ))
    })
}

fn wrong_count(source: &Source, found: usize, promised: usize, items: &str) -> Error {
    let more = if found > promised { "more" } else { "only" };
    let found = if found > promised { String::new() } else { format!(" {found}") };
    source.line_error(format!(
        "{more}{found} {items}, but the sizes announce {promised}; correct the sizes, or download the file again"
    ))
}

/// The number of entries of a coordinate file, after checking that the file is large enough.
fn entries_promised(source: &Source, banner: &Banner, sizes: &[u64]) -> Result<usize> {
    if banner.symmetric {
        check_square(source, sizes[0], sizes[1])?;
    }
    check_count(source, Some(sizes[2]), if banner.pattern { 4 } else { 6 }, "entries")
}

/// The sizes of a coordinate file.
struct Promised {
    rows: u64,
    cols: u64,
    entries: usize,
}

/// Passes on the entries of a coordinate file, for a symmetric one both halves.
fn coordinate<T: Real>(
    source: &mut Source,
    banner: &Banner,
    promised: Promised,
    mut take: impl FnMut(u32, u32, T) -> Result<()>,
) -> Result<()> {
    let Promised { rows, cols, entries: promised } = promised;
    let mut found = 0;
    let mut line = Vec::new();
    while source.line(&mut line)? {
        let mut tokens = Tokens(&line);
        let Some(row) = tokens.next() else { continue };
        if row[0] == b'%' {
            continue;
        }
        found += 1;
        if found > promised {
            return Err(wrong_count(source, found, promised, "entries"));
        }
        let row = index(source, Some(row), rows, "row")?;
        let col = index(source, tokens.next(), cols, "column")?;
        let value = if banner.pattern { T::ONE } else { T::from_f64(real(source, tokens.next())?) };
        if let Some(rest) = tokens.next() {
            let problem = format!("{:?} follows the entry; remove it", shown(rest));
            return Err(source.line_error(problem));
        }
        take(row, col, value)?;
        if banner.symmetric && row != col {
            take(col, row, value)?;
        }
    }
    if found < promised {
        return Err(wrong_count(source, found, promised, "entries"));
    }
    Ok(())
}

fn array<T: Real>(
    source: &mut Source,
    budget: Budget,
    banner: &Banner,
    [rows, cols]: [u64; 2],
) -> Result<Matrix<T>> {
    let count = if banner.symmetric {
        check_square(source, rows, cols)?;
        rows.checked_add(1).and_then(|more| rows.checked_mul(more)).map(|twice| twice / 2)
    } else {
        rows.checked_mul(cols)
    };
    let promised = check_count(source, count, 2, "values")?;
    budget.check_dense(rows, cols, T::PRECISION.bytes() * if banner.symmetric { 2 } else { 1 })?;
    let mut values: Vec<T> = budget.vec("the values", promised)?;
    let mut line = Vec::new();
    while source.line(&mut line)? {
        for token in Tokens(&line) {
            if token[0] == b'%' {
                break;
            }
            if values.len() == promised {
                return Err(wrong_count(source, promised.saturating_add(1), promised, "values"));
            }
            values.push(T::from_f64(real(source, Some(token))?));
        }
    }
    if values.len() < promised {
        return Err(wrong_count(source, values.len(), promised, "values"));
    }
    let (rows, cols) = (rows as usize, cols as usize);
    if banner.symmetric {
        values = mirrored(budget, rows, &values)?;
    }
    Ok(Matrix::Dense(Dense::new(rows, cols, Order::ColMajor, Values::Real(values.into()))))
}

/// The complete symmetric matrix from its lower triangle, column by column.
fn mirrored<T: Real>(budget: Budget, size: usize, lower: &[T]) -> Result<Vec<T>> {
    let mut whole = budget.vec("the values", size * size)?;
    whole.resize(size * size, T::ZERO);
    let mut next = lower.iter();
    for col in 0..size {
        for (row, &value) in (col..size).zip(next.by_ref()) {
            whole[col * size + row] = value;
            whole[row * size + col] = value;
        }
    }
    Ok(whole)
}

/// Writes a matrix: a dense one as an array, a sparse one by coordinates.
fn write<T: Real>(writer: &mut dyn Write, matrix: &Matrix<T>) -> io::Result<()> {
    // Whole numbers up to here are exact and written without an exponent.
    const LARGEST: f64 = 9007199254740992.0;
    let mut whole = true;
    matrix.for_each_stored(|_, _, value| whole &= value.fract() == 0.0 && value <= LARGEST);
    let field = if whole { "integer" } else { "real" };
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let mut text = Vec::new();
    match matrix {
        Matrix::Dense(dense) => {
            writeln!(writer, "%%MatrixMarket matrix array {field} general\n{rows} {cols}")?;
            each_line(dense, Order::ColMajor, 0..cols, |line| {
                text.clear();
                for &value in line {
                    write_shortest(&mut text, value)?;
                    text.push(b'\n');
                }
                writer.write_all(&text)
            })
        }
        Matrix::Sparse(csr) => {
            writeln!(writer, "%%MatrixMarket matrix coordinate {field} general")?;
            writeln!(writer, "{rows} {cols} {}", csr.stored())?;
            for row in 0..rows {
                let (cols, values) = csr.row(row);
                text.clear();
                for (&col, &value) in cols.iter().zip(values) {
                    write!(text, "{} {} ", row + 1, u64::from(col) + 1)?;
                    write_shortest(&mut text, value)?;
                    text.push(b'\n');
                }
                writer.write_all(&text)?;
            }
            Ok(())
        }
    }
}

/// The words of a line.
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.0[begin..];
        let (token, rest) =
            rest.split_at(rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()));
        self.0 = rest;
        Some(token)
    }
}

fn parse_index(token: &[u8]) -> Option<u64> {
    token.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// A row or column number of at most `size`, from 0. Sparse sizes fit 32 bits.
#[inline]
fn index(source: &Source, token: Option<&[u8]>, size: u64, what: &str) -> Result<u32> {
    let parsed = token.and_then(parse_index);
    if let Some(number) = parsed.filter(|&number| number >= 1 && number <= size) {
        return Ok((number - 1) as u32);
    }
    let problem = match token {
        None => format!("the {what} number is missing; correct the line"),
        Some(token) if parsed.is_some() => {
            format!("{what} {} is outside 1 to {size}; correct the line or the sizes", shown(token))
        }
        Some(token) => format!("{:?} is not a {what} number; correct the line", shown(token)),
    };
    Err(source.line_error(problem))
}

#[inline]
fn real(source: &Source, token: Option<&[u8]>) -> Result<f64> {
    if let Some(token) = token {
        // Counts, the most frequent values, are exact in f64 up to 15 digits.
        if token.len() <= 15
            && let Some(count) = parse_index(token)
        {
            return Ok(count as f64);
        }
        if let Some(value) = std::str::from_utf8(token).ok().and_then(|text| text.parse().ok()) {
            return Ok(value);
        }
        return Err(source.line_error(format!("{:?} is not a number; correct the line", shown(token))));
    }
    Err(source.line_error("the value is missing; correct the line, or make the field pattern"))
}

/// A word of the file, shortened for a message.
fn shown(token: &[u8]) -> String {
    String::from_utf8_lossy(&token[..token.len().min(40)]).into_owned()
}
