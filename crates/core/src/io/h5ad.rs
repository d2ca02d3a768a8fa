//! AnnData's `.h5ad`: an HDF5 file whose `X`, dense or as compressed rows or columns, has a row for each
//! observation and a column for each variable, named by `obs` and `var`.
//!
//! The format: <https://anndata.readthedocs.io/en/stable/fileformat-prose.html>.

use std::sync::Arc;

use hdf5_reader::group::Group;
use hdf5_reader::messages::datatype::{StringSize, VarLenKind};
use hdf5_reader::storage::{BytesStorage, DynStorage, FileStorage};
use hdf5_reader::{Attribute, ByteOrder, Dataset, Datatype, FilterRegistry, Hdf5File, OpenOptions};

use super::format::{Format, FormatInfo, Opened, Signature, Writes};
use super::memory::Budget;
use super::npy::Element;
use super::source::{expand, split_gz};
use super::triplets::{Offsets, canonical, index_below};
use super::{Input, ReadOptions, lzf};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Dense, Matrix, Order, Values};
use crate::real::Real;
use crate::wording::Wording;

/// AnnData's format.
pub(super) struct H5ad;

impl Format for H5ad {
    const INFO: FormatInfo = FormatInfo {
        name: "an HDF5 file",
        endings: &["h5ad"],
        signature: Some(Signature {
            bytes: b"\x89HDF\r\n",
            what: "an HDF5 file",
            cure: "rename it to .h5ad if AnnData wrote it",
        }),
        in_parts: false,
        writes: Writes::Nothing,
    };

    fn read<T: Real>(file: Opened<'_>, _options: &ReadOptions) -> Result<Input<T>> {
        read(file.budget)
    }
}

fn read<T: Real>(budget: Budget) -> Result<Input<T>> {
    let file = AnnData { budget, root: open(budget)? };
    let (matrix, element, layout) = match file.root.dataset("X") {
        Ok(dataset) => {
            let (matrix, element) = file.dense(&dataset)?;
            (matrix, element, "dense")
        }
        Err(_) => file.sparse()?,
    };
    let (rows, cols) = (matrix.rows(), matrix.cols());
    Ok(Input {
        row_labels: file.names("obs", rows)?,
        col_labels: file.names("var", cols)?,
        ..Input::unlabelled(matrix, format!("AnnData, {layout}, {}", element.name()), element.precision())
    })
}

fn open(budget: Budget) -> Result<Group> {
    let wrong = |error| hdf_error(budget, "content", error);
    let storage: DynStorage = if split_gz(budget.path).1 {
        Arc::new(BytesStorage::new(expand(budget.path, budget)?))
    } else {
        // Not mapped: a file cut short while it is mapped ends the process.
        Arc::new(FileStorage::open(budget.path).map_err(wrong)?)
    };
    let limit = usize::try_from(budget.available).unwrap_or(usize::MAX);
    let mut filters = FilterRegistry::new();
    let lzf = |block: &[u8]| lzf::expand(block).map_err(hdf5_reader::error::Error::InvalidData);
    filters.register(lzf::FILTER, Box::new(move |_, block, _| lzf(block)));
    // No caching: everything is read once.
    let options = OpenOptions::default()
        .with_filter_registry(filters)
        .with_chunk_cache_bytes(0)
        .with_max_chunk_bytes(limit)
        .with_max_read_bytes(limit)
        .with_max_object_header_bytes(1 << 24);
    Hdf5File::from_storage_with_options(storage, options).and_then(|file| file.root_group()).map_err(wrong)
}

struct AnnData<'a> {
    budget: Budget<'a>,
    root: Group,
}

impl AnnData<'_> {
    fn error(&self, place: &str, problem: impl Into<Wording>) -> Error {
        Error::format(self.budget.path, place, problem)
    }

    fn wrong(&self, place: &str) -> impl FnOnce(hdf5_reader::error::Error) -> Error {
        let budget = self.budget;
        move |error| hdf_error(budget, place, error)
    }

    fn dense<T: Real>(&self, dataset: &Dataset) -> Result<(Matrix<T>, Element)> {
        let &[rows, cols] = dataset.shape() else {
            let dimensions = dataset.ndim();
            let problem = format!("{dimensions} dimensions instead of 2; save the object again");
            return Err(self.error("X", problem));
        };
        let element = self.element("X", dataset.dtype())?;
        let is_byte = element.name() == "uint8";
        // The stored bytes are in memory together with the numbers made of them.
        let width = if is_byte { 1 } else { element.width() + T::PRECISION.bytes() };
        self.budget.check_dense(rows, cols, width)?;
        let bytes = dataset.read_raw_bytes().map_err(self.wrong("X"))?;
        let values = if is_byte {
            Values::Bytes(bytes.into())
        } else {
            let mut reals = self.budget.vec("the values", bytes.len() / element.width() as usize)?;
            element.reals(&bytes, &mut reals);
            Values::Real(reals.into())
        };
        Ok((Matrix::Dense(Dense::new(rows as usize, cols as usize, Order::RowMajor, values)), element))
    }

    fn sparse<T: Real>(&self) -> Result<(Matrix<T>, Element, &'static str)> {
        let group = self.root.group("X").map_err(|_| {
            self.error(
                "X",
                "missing or damaged; save the AnnData object with its matrix as X, or download it again",
            )
        })?;
        // The second of each name is of AnnData before version 0.7.
        let attribute = |names: [&str; 2]| {
            names.iter().find_map(|name| group.attribute(name).ok()).ok_or_else(|| {
                self.error("X", format!("no attribute {:?}; save the object again with anndata", names[0]))
            })
        };
        let encoding =
            attribute(["encoding-type", "h5sparse_format"])?.read_string().map_err(self.wrong("X"))?;
        let [rows, cols] = self.sizes(&attribute(["shape", "h5sparse_shape"])?)?;
        match encoding.as_str() {
            "csr_matrix" | "csr" => {
                let (csr, element) = self.compressed(&group, [rows, cols], 0)?;
                Ok((Matrix::Sparse(csr), element, "csr"))
            }
            "csc_matrix" | "csc" => {
                let (csr, element) = self.compressed(&group, [cols, rows], 1)?;
                Ok((Matrix::Sparse(csr.transpose()), element, "csc"))
            }
            _ => {
                let problem =
                    format!("the encoding {encoding:.40?} is not supported; make X a csr matrix or an array");
                Err(self.error("X", problem))
            }
        }
    }

    /// Compressed vectors: `majors` of them, with entries numbered below `minors`.
    fn compressed<T: Real>(
        &self,
        group: &Group,
        [majors, minors]: [u64; 2],
        copies: u64,
    ) -> Result<(Csr<T>, Element)> {
        let member = |name: &str| group.dataset(name).map_err(self.wrong(&format!("X/{name}")));
        let [data, indices, offsets] = [member("data")?, member("indices")?, member("indptr")?];
        let stored = data.num_elements().map_err(self.wrong("X/data"))?;
        // One stored array at a time is in memory too, and counts as a copy.
        self.budget.check_sparse::<T>(majors, minors, stored, copies + 1)?;
        let element = self.element("X/data", data.dtype())?;
        let mut values = self.budget.vec("the values", stored as usize)?;
        element.reals(&self.bytes("X/data", &data, stored, element)?, &mut values);
        let indices =
            self.integers("X/indices", &indices, stored, |place, index| index_below(place, index, minors))?;
        let mut rising = Offsets::to(values.len());
        let offsets = self.integers("X/indptr", &offsets, majors + 1, |_, offset| rising.next(offset))?;
        let last = offsets[majors as usize];
        if last != values.len() {
            let problem = format!(
                "the last offset is {last}, but there are {} values; save the object again",
                values.len()
            );
            return Err(self.error("X/indptr", problem));
        }
        Ok((canonical(self.budget, majors as usize, minors as usize, offsets, indices, values)?, element))
    }

    fn integers<I>(
        &self,
        place: &str,
        dataset: &Dataset,
        count: u64,
        mut convert: impl FnMut(usize, i64) -> std::result::Result<I, String>,
    ) -> Result<Vec<I>> {
        let element = self.element(place, dataset.dtype())?;
        if !element.is_integer() {
            let problem = format!("{} numbers instead of integers; save the object again", element.name());
            return Err(self.error(place, problem));
        }
        let bytes = self.bytes(place, dataset, count, element)?;
        let mut integers = self.budget.vec("the offsets and column numbers", count as usize)?;
        let mut scratch = Vec::new();
        for chunk in bytes.chunks(1 << 16) {
            scratch.clear();
            element.integers(chunk, &mut scratch);
            for &integer in &scratch {
                let converted = convert(integers.len(), integer);
                integers.push(converted.map_err(|problem| self.error(place, problem))?);
            }
        }
        Ok(integers)
    }

    /// The bytes of a vector of `count` elements.
    fn bytes(&self, place: &str, dataset: &Dataset, count: u64, element: Element) -> Result<Vec<u8>> {
        if dataset.shape() != [count] {
            let problem = format!("{:?} entries instead of {count}; save the object again", dataset.shape());
            return Err(self.error(place, problem));
        }
        let needed = count.saturating_mul(element.width());
        self.budget.check(place, needed)?;
        dataset.read_raw_bytes().map_err(self.wrong(place))
    }

    fn element(&self, place: &str, datatype: &Datatype) -> Result<Element> {
        let (order, code, size) = match datatype {
            Datatype::FixedPoint { size, signed, byte_order } => {
                (byte_order, if *signed { 'i' } else { 'u' }, size)
            }
            Datatype::FloatingPoint { size, byte_order } => (byte_order, 'f', size),
            _ => {
                let problem =
                    "neither integers nor floating-point numbers; convert X with .astype('float32')";
                return Err(self.error(place, problem));
            }
        };
        let order = match order {
            ByteOrder::LittleEndian => '<',
            ByteOrder::BigEndian => '>',
        };
        Element::parse(&format!("{order}{code}{size}")).map_err(|problem| self.error(place, problem))
    }

    /// Rows and columns.
    fn sizes(&self, attribute: &Attribute) -> Result<[u64; 2]> {
        let element = self.element("X", &attribute.datatype)?;
        let mut sizes = Vec::new();
        element.integers(&attribute.raw_data, &mut sizes);
        match sizes.as_slice() {
            &[rows, cols] if element.is_integer() && rows >= 0 && cols >= 0 => Ok([rows as u64, cols as u64]),
            _ => Err(self.error("X", "the shape is not two sizes; save the object again")),
        }
    }

    /// The index of `obs` or `var`; `None` if there is none, as before version 0.7 of AnnData.
    fn names(&self, table: &str, count: usize) -> Result<Option<Vec<String>>> {
        let Ok(group) = self.root.group(table) else { return Ok(None) };
        let index = group.attribute("_index").and_then(|name| name.read_string());
        let index = index.unwrap_or_else(|_| "_index".to_string());
        let place = format!("{table}/{index:.40}");
        // Strings that may be missing are a group of values and a mask.
        let nullable = || group.group(&index).and_then(|group| group.dataset("values"));
        let dataset = group.dataset(&index).or_else(|_| nullable()).map_err(self.wrong(&place))?;
        if dataset.shape() != [count as u64] {
            let problem = format!("{:?} names instead of {count}; save the object again", dataset.shape());
            return Err(self.error(&place, problem));
        }
        self.strings(&place, &dataset, count).map(Some)
    }

    fn strings(&self, place: &str, dataset: &Dataset, count: usize) -> Result<Vec<String>> {
        match dataset.dtype() {
            Datatype::String { size: StringSize::Fixed(size), .. } => {
                let each = u64::from(*size) * 2 + size_of::<String>() as u64;
                self.budget.check("the names", each.saturating_mul(count as u64))?;
                dataset.read_strings().map_err(self.wrong(place))
            }
            Datatype::String { size: StringSize::Variable, .. }
            | Datatype::VarLen { kind: VarLenKind::String, .. } => {
                self.varying_strings(place, dataset, count)
            }
            _ => Err(self.error(place, "not text; make the names strings and save the object again")),
        }
    }

    /// Strings that each refer to a place in the file. Many may refer to one large place, so that they are counted
    /// against the memory one by one.
    fn varying_strings(&self, place: &str, dataset: &Dataset, count: usize) -> Result<Vec<String>> {
        let width = dataset.vlen_reference_size();
        let mut needed = (count as u64).saturating_mul((width + size_of::<String>()) as u64);
        self.budget.check("the names", needed)?;
        let references = dataset.read_raw_bytes().map_err(self.wrong(place))?;
        let mut names = self.budget.vec("the names", count)?;
        for reference in references.chunks_exact(width) {
            let bytes = dataset.resolve_vlen_reference_bytes(reference, 1).map_err(self.wrong(place))?;
            needed = needed.saturating_add(bytes.len() as u64);
            self.budget.check("the names", needed)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| self.error(place, "a name is not UTF-8; save the object again"))?;
            names.push(text.trim_end_matches('\0').to_string());
        }
        Ok(names)
    }
}

fn hdf_error(budget: Budget, place: &str, error: hdf5_reader::error::Error) -> Error {
    // Its message may show names of the file, of any length.
    let what: String = error.to_string().replace(['\n', '\r'], " ").chars().take(200).collect();
    Error::format(
        budget.path,
        place,
        format!("truncated, damaged or not supported ({what}); save or download the file again"),
    )
}
