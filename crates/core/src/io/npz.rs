//! SciPy's sparse `.npz`: a zip archive of NumPy arrays, as csr, csc or coo. An archive of a single array is
//! read as that array.

use std::io::{self, Write};
use std::path::Path;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::format::{Format, FormatInfo, Opened, Signature, Writes};
use super::memory::Budget;
use super::npy::{self, Array, Element};
use super::part::{self, Column, CompressedVectors, Keep, Parts, Wanted};
use super::source::{DEFLATE_RATIO, ReadSeek, Source, open_seekable, read_error};
use super::stream::{ArrayAt, Body, Layout};
use super::triplets::{Offsets, Triplets, canonical, index_below};
use super::write::{each_line, put};
use super::{Input, ReadOptions, WriteOptions};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Matrix, Order};
use crate::real::{Precision, Real};

/// How zip archives begin.
pub(super) const ZIP: Signature = Signature {
    bytes: b"PK\x03\x04",
    what: "a zip archive",
    cure: "rename it to .npz if NumPy or SciPy wrote it, or to .zip if it contains images",
};

/// SciPy's format.
pub(super) struct Npz;

impl Format for Npz {
    const INFO: FormatInfo = FormatInfo {
        name: "an .npz archive",
        endings: &["npz"],
        signature: Some(ZIP),
        in_parts: true,
        writes: Writes::Sparse,
    };

    fn read<T: Real>(file: Opened<'_>, _options: &ReadOptions) -> Result<Input<T>> {
        read(file.budget.path, file.budget)
    }

    fn read_parts<T: Real>(file: Opened<'_>, wanted: Wanted<'_>) -> Result<Parts<T>> {
        read_parts(file.budget.path, file.budget, wanted)
    }

    fn layout(file: Opened<'_>) -> Result<Option<Layout>> {
        layout(file.budget.path, file.budget)
    }

    fn write<T: Real>(writer: &mut dyn Write, input: &Input<T>, options: WriteOptions) -> io::Result<()> {
        write(writer, &input.matrix, options.precision_of(input), options.uncompressed)
    }
}

struct Archive<'a> {
    path: &'a Path,
    length: u64,
    zip: ZipArchive<Box<dyn ReadSeek + 'a>>,
}

/// Reads a matrix.
fn read<T: Real>(path: &Path, budget: Budget) -> Result<Input<T>> {
    let mut archive = Archive::open(path, budget)?;
    if archive.zip.index_for_name("format.npy").is_none() {
        return archive.single_array(budget);
    }
    let format = archive.member("format.npy")?.text()?;
    let (matrix, element) = match format.as_str() {
        "csr" => archive.csr(budget)?,
        "csc" => archive.csc(budget)?,
        "coo" => archive.coo(budget)?,
        _ => return Err(unread_format(path, &format)),
    };
    let words = format!("SciPy sparse {format}, {}", element.name());
    Ok(Input::unlabelled(Matrix::Sparse(matrix), words, element.precision()))
}

/// Reads the wanted parts of a matrix. Indices and values are members that are read side by side, through an archive
/// opened for each.
fn read_parts<T: Real>(path: &Path, budget: Budget, wanted: Wanted<'_>) -> Result<Parts<T>> {
    let mut archive = Archive::open(path, budget)?;
    if archive.zip.index_for_name("format.npy").is_none() {
        let name = archive.single_name()?;
        let mut parts = npy::read_parts(archive.source(&name)?, budget, wanted)?;
        parts.format.push_str(IN_AN_ARCHIVE);
        return Ok(parts);
    }
    let format = archive.member("format.npy")?.text()?;
    let shape = archive.shape(budget)?;
    budget.check_sparse::<T>(shape[0], shape[1], 0, 0)?;
    let [rows, cols] = shape.map(|size| size as usize);
    let mut keep = Keep::new(budget, wanted(rows, cols)?);
    let mut others = [Archive::open(path, budget)?, Archive::open(path, budget)?];
    let [of_first, of_second] = &mut others;
    let data = archive.member("data.npy")?;
    let stored = data.shape_1d()? as usize;
    let values = data.column()?;
    let element = values.element;
    let order = match format.as_str() {
        "csr" => Some(Order::RowMajor),
        "csc" => Some(Order::ColMajor),
        "coo" => None,
        _ => return Err(unread_format(path, &format)),
    };
    if let Some(order) = order {
        let (majors, minors) =
            if order == Order::RowMajor { (shape[0], shape[1]) } else { (shape[1], shape[0]) };
        let offsets = of_first.offsets(budget, majors, stored)?;
        let indices = of_second.entries("indices.npy", stored)?;
        let vectors = CompressedVectors { order, offsets: &offsets, minors };
        part::compressed(&mut keep, vectors, [indices, values])?;
    } else {
        let columns = [of_first.entries("row.npy", stored)?, of_second.entries("col.npy", stored)?, values];
        part::coordinates(&mut keep, columns, stored, shape)?;
    }
    let format = format!("SciPy sparse {format}, {}", element.name());
    Ok(Parts { rows, cols, parts: keep.finish()?, format, precision: element.precision() })
}

/// The layout of a matrix in the archive; `None` if it is compressed, or coo, which has no order.
fn layout(path: &Path, budget: Budget) -> Result<Option<Layout>> {
    let mut archive = Archive::open(path, budget)?;
    if archive.zip.index_for_name("format.npy").is_none() {
        let name = archive.single_name()?;
        let Some(first) = archive.place(&name)? else { return Ok(None) };
        let mut layout = npy::layout(archive.source(&name)?, first)?;
        layout.format.push_str(IN_AN_ARCHIVE);
        return Ok(Some(layout));
    }
    let format = archive.member("format.npy")?.text()?;
    let order = match format.as_str() {
        "csr" => Order::RowMajor,
        "csc" => Order::ColMajor,
        _ => return Ok(None),
    };
    let [rows, cols] = archive.shape(budget)?;
    budget.check_dimensions(rows, cols)?;
    let stored = archive.member("data.npy")?.shape_1d()? as usize;
    archive.entries("indices.npy", stored)?;
    let (Some(values), Some(indices)) = (archive.part("data.npy")?, archive.part("indices.npy")?) else {
        return Ok(None);
    };
    let majors = if order == Order::RowMajor { rows } else { cols };
    let offsets = archive.offsets(budget, majors, stored)?;
    let format = format!("SciPy sparse {format}, {}", values.element.name());
    let body = Body::Sparse { offsets, indices, values };
    Ok(Some(Layout { rows: rows as usize, cols: cols as usize, order, body, format }))
}

const IN_AN_ARCHIVE: &str = ", in an .npz archive";

fn unread_format(path: &Path, format: &str) -> Error {
    let problem = format!("the sparse format {format:?} is not supported; convert the matrix with .tocsr()");
    Error::format(path, "member format.npy", problem)
}

impl<'a> Archive<'a> {
    fn open(path: &'a Path, budget: Budget) -> Result<Self> {
        let (reader, length) = open_seekable(path, budget)?;
        let zip = ZipArchive::new(reader).map_err(|error| zip_error(path, None, error))?;
        Ok(Archive { path, length, zip })
    }

    /// Where a member's bytes begin in the file, if they are stored as they are.
    fn place(&mut self, name: &str) -> Result<Option<u64>> {
        let file = self.zip.by_name(name).map_err(|error| zip_error(self.path, Some(name), error))?;
        let stored = file.compression() == CompressionMethod::Stored;
        Ok(file.data_start().filter(|_| stored))
    }

    /// Where a member's numbers are in the file, likewise.
    fn part(&mut self, name: &str) -> Result<Option<ArrayAt>> {
        let Some(first) = self.place(name)? else { return Ok(None) };
        self.member(name)?.part(first).map(Some)
    }

    /// A member with an integer for each of `count` entries, to be read a few at a time.
    fn entries(&mut self, name: &str, count: usize) -> Result<Column<'_>> {
        let array = self.member(name)?;
        check_length(&array, count as u64, "as data.npy has values")?;
        array.check_integers()?;
        array.column()
    }

    /// Where each of `majors` compressed vectors begins, and the end, which is `stored`.
    fn offsets(&mut self, budget: Budget, majors: u64, stored: usize) -> Result<Vec<usize>> {
        let mut array = self.member("indptr.npy")?;
        check_length(&array, majors + 1, "for this shape")?;
        let mut rising = Offsets::to(stored);
        let offsets = array.integers(budget, |_, offset| rising.next(offset))?;
        let last = offsets[majors as usize];
        if last != stored {
            let problem =
                format!("the last offset is {last}, but data.npy has {stored} values; save the matrix again");
            return Err(array.data_error(problem));
        }
        Ok(offsets)
    }

    fn source(&mut self, name: &str) -> Result<Source<'_>> {
        let file = self.zip.by_name(name).map_err(|error| zip_error(self.path, Some(name), error))?;
        let at_most = file.compressed_size().min(self.length).saturating_mul(DEFLATE_RATIO).min(file.size());
        Ok(Source::member(self.path, name, file, at_most))
    }

    fn member(&mut self, name: &str) -> Result<Array<'_>> {
        Array::open(self.source(name)?)
    }

    fn single_array<T: Real>(&mut self, budget: Budget) -> Result<Input<T>> {
        let name = self.single_name()?;
        let mut input = npy::read(self.source(&name)?, budget)?;
        input.format.push_str(IN_AN_ARCHIVE);
        Ok(input)
    }

    /// The name of the only array.
    fn single_name(&self) -> Result<String> {
        let names: Vec<String> =
            self.zip.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
        if let [name] = names.as_slice()
            && name.ends_with(".npy")
        {
            return Ok(name.clone());
        }
        let mut list = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        if names.len() > 5 {
            list.push_str(", ...");
        }
        let problem = format!(
            "the archive contains {} members ({list:.200}) but no SciPy sparse matrix; use scipy.sparse.save_npz, or \
             save a single array as .npy",
            names.len()
        );
        Err(Error::format(self.path, "archive", problem))
    }

    /// Rows and columns.
    fn shape(&mut self, budget: Budget) -> Result<[u64; 2]> {
        let mut array = self.member("shape.npy")?;
        check_length(&array, 2, "for a matrix")?;
        let shape = array.integers(budget, |_, size| {
            u64::try_from(size).map_err(|_| format!("the size {size} is negative; save the matrix again"))
        })?;
        Ok([shape[0], shape[1]])
    }

    /// The values, once a matrix of this shape with as many entries is known to fit, and their type.
    fn values<T: Real>(
        &mut self,
        budget: Budget,
        [rows, cols]: [u64; 2],
        copies: u64,
    ) -> Result<(Vec<T>, Element)> {
        let mut data = self.member("data.npy")?;
        budget.check_sparse::<T>(rows, cols, data.shape_1d()?, copies)?;
        Ok((data.reals(budget)?, data.element()?))
    }

    /// Row or column numbers below `size`, one for each of `count` entries.
    fn indices(&mut self, budget: Budget, name: &str, size: u64, count: usize) -> Result<Vec<u32>> {
        let mut array = self.member(name)?;
        check_length(&array, count as u64, "as data.npy has values")?;
        array.integers(budget, |place, index| index_below(place, index, size))
    }

    /// Compressed vectors: `majors` of them, with entries numbered below `minors`.
    fn compressed<T: Real>(
        &mut self,
        budget: Budget,
        shape: [u64; 2],
        [majors, minors]: [u64; 2],
        copies: u64,
    ) -> Result<(Csr<T>, Element)> {
        let (values, element) = self.values::<T>(budget, shape, copies)?;
        let indices = self.indices(budget, "indices.npy", minors, values.len())?;
        let offsets = self.offsets(budget, majors, values.len())?;
        Ok((canonical(budget, majors as usize, minors as usize, offsets, indices, values)?, element))
    }

    fn csr<T: Real>(&mut self, budget: Budget) -> Result<(Csr<T>, Element)> {
        let shape = self.shape(budget)?;
        self.compressed(budget, shape, shape, 0)
    }

    /// Compressed columns are the compressed rows of the transpose.
    fn csc<T: Real>(&mut self, budget: Budget) -> Result<(Csr<T>, Element)> {
        let shape = self.shape(budget)?;
        let (transpose, element) = self.compressed::<T>(budget, shape, [shape[1], shape[0]], 1)?;
        Ok((transpose.transpose(), element))
    }

    fn coo<T: Real>(&mut self, budget: Budget) -> Result<(Csr<T>, Element)> {
        let shape = self.shape(budget)?;
        let (values, element) = self.values(budget, shape, 1)?;
        let rows = self.indices(budget, "row.npy", shape[0], values.len())?;
        let cols = self.indices(budget, "col.npy", shape[1], values.len())?;
        let triplets = Triplets { rows, cols, values };
        Ok((triplets.into_csr(budget, shape[0] as usize, shape[1] as usize)?, element))
    }
}

fn check_length(array: &Array, expected: u64, why: &str) -> Result<()> {
    let length = array.shape_1d()?;
    if length == expected {
        return Ok(());
    }
    Err(array.error(format!("{length} entries instead of {expected} {why}; save the matrix again")))
}

pub(super) fn zip_error(path: &Path, member: Option<&str>, error: ZipError) -> Error {
    let place = member.map_or("archive".to_string(), |member| format!("member {member}"));
    match (error, member) {
        (ZipError::Io(error), _) => read_error(path, member, error),
        (ZipError::FileNotFound, _) => {
            Error::format(path, place, "missing; save the matrix again with scipy.sparse.save_npz")
        }
        (error, _) => Error::format(
            path,
            place,
            format!("truncated or damaged ({error}); create or download the file again"),
        ),
    }
}

/// Writes a csr matrix as `scipy.sparse.save_npz` does; of a dense one only what is not 0.
fn write<T: Real>(
    writer: &mut dyn Write,
    matrix: &Matrix<T>,
    precision: Precision,
    uncompressed: bool,
) -> io::Result<()> {
    let mut offsets = vec![0u64];
    each_compressed(matrix, |cols, _| {
        offsets.push(offsets[offsets.len() - 1] + cols.len() as u64);
        Ok(())
    })?;
    let (rows, cols, stored) = (matrix.rows(), matrix.cols(), offsets[matrix.rows()]);
    let wide = stored.max(cols as u64) > i32::MAX as u64;
    let integer = if wide { "<i8" } else { "<i4" };
    // Sizes are not known before a member ends; those that may pass 4 GiB must say so in advance.
    let large = stored.max(rows as u64 + 1) >= 1 << 28;
    let method = if uncompressed { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    let options = SimpleFileOptions::default().compression_method(method).large_file(large);
    let mut zip = ZipWriter::new_stream(writer);
    zip.start_file("indices.npy", options)?;
    npy::write_header(&mut zip, integer, Order::RowMajor, &format!("({stored},)"))?;
    each_compressed(matrix, |cols, _| put_integers(&mut zip, wide, cols.iter().map(|&col| col.into())))?;
    zip.start_file("indptr.npy", options)?;
    npy::write_header(&mut zip, integer, Order::RowMajor, &format!("({},)", offsets.len()))?;
    put_integers(&mut zip, wide, offsets.iter().copied())?;
    zip.start_file("format.npy", options)?;
    npy::write_header(&mut zip, "|S3", Order::RowMajor, "()")?;
    zip.write_all(b"csr")?;
    zip.start_file("shape.npy", options)?;
    npy::write_header(&mut zip, "<i8", Order::RowMajor, "(2,)")?;
    [rows, cols].iter().try_for_each(|&size| zip.write_all(&(size as u64).to_le_bytes()))?;
    zip.start_file("data.npy", options)?;
    npy::write_header(&mut zip, npy::descr(precision), Order::RowMajor, &format!("({stored},)"))?;
    each_compressed(matrix, |_, values| put(&mut zip, values, precision))?;
    zip.finish()?.flush()
}

/// Writes integers of 64 bits if `wide`, else of 32.
fn put_integers(writer: &mut dyn Write, wide: bool, integers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut bytes = Vec::new();
    for integer in integers {
        bytes.extend_from_slice(&integer.to_le_bytes()[..if wide { 8 } else { 4 }]);
    }
    writer.write_all(&bytes)
}

/// Hands over the columns and values of each row.
fn each_compressed<T: Real>(
    matrix: &Matrix<T>,
    mut take: impl FnMut(&[u32], &[T]) -> io::Result<()>,
) -> io::Result<()> {
    match matrix {
        Matrix::Sparse(csr) => (0..csr.rows()).try_for_each(|row| {
            let (cols, values) = csr.row(row);
            take(cols, values)
        }),
        Matrix::Dense(dense) => {
            let (mut cols, mut values) = (Vec::new(), Vec::new());
            each_line(dense, Order::RowMajor, 0..dense.rows(), |line| {
                cols.clear();
                values.clear();
                for (col, &value) in line.iter().enumerate().filter(|(_, value)| **value != T::ZERO) {
                    cols.push(col as u32);
                    values.push(value);
                }
                take(&cols, &values)
            })
        }
    }
}
