//! NumPy's `.npy`: read and written in either order.
//!
//! The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

mod array;
mod element;
mod header;
mod write;

use std::io;
use std::path::Path;

use super::format::{Format, FormatInfo, Opened, Signature, Writes};
use super::memory::Budget;
use super::part::{self, Parts, Wanted};
use super::source::Source;
use super::stream::{Body, Layout};
use super::{FileFormat, Input, ReadOptions, WriteOptions, check, sniff};
use crate::error::Result;
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::Real;
pub(super) use array::Array;
pub(super) use element::Element;
pub use write::write;
pub(super) use write::{descr, write_header};

/// NumPy's format.
pub(super) struct Npy;

impl Format for Npy {
    const INFO: FormatInfo = FormatInfo {
        name: "a NumPy array",
        endings: &["npy"],
        signature: Some(Signature { bytes: b"\x93NUMPY", what: "a NumPy array", cure: "rename it to .npy" }),
        in_parts: true,
        writes: Writes::Dense,
    };

    fn read<T: Real>(file: Opened<'_>, _options: &ReadOptions) -> Result<Input<T>> {
        read(file.source, file.budget)
    }

    fn read_parts<T: Real>(file: Opened<'_>, wanted: Wanted<'_>) -> Result<Parts<T>> {
        read_parts(file.source, file.budget, wanted)
    }

    fn layout(file: Opened<'_>) -> Result<Option<Layout>> {
        layout(file.source, 0).map(Some)
    }

    fn write<T: Real>(writer: &mut dyn io::Write, input: &Input<T>, options: WriteOptions) -> io::Result<()> {
        let precision = options.precision_of(input);
        write::write_matrix(writer, &input.matrix, precision, options.precision.is_none())
    }
}

/// Reads a matrix, in the order and for bytes in the width that the file has.
pub(super) fn read<T: Real>(source: Source, budget: Budget) -> Result<Input<T>> {
    let mut array = Array::open(source)?;
    let part::DenseArray { rows, cols, order, element } = array.matrix()?;
    let is_byte = element.is_byte();
    budget.check_dense(rows as u64, cols as u64, if is_byte { 1 } else { T::PRECISION.bytes() })?;
    let values = if is_byte {
        Values::Bytes(array.bytes(element, budget)?.into())
    } else {
        Values::Real(array.reals(budget)?.into())
    };
    let format = array.format(element);
    let matrix = Matrix::Dense(Dense::new(rows, cols, order, values));
    Ok(Input::unlabelled(matrix, format, element.precision()))
}

/// How a matrix is laid out in a file in which the array begins at `first`.
pub(super) fn layout(source: Source, first: u64) -> Result<Layout> {
    let array = Array::open(source)?;
    let (rows, cols) = array.shape_2d()?;
    let part = array.part(first)?;
    let order = array.order();
    let format = array.format(part.element);
    Ok(Layout { rows, cols, order, body: Body::Dense(part), format })
}

/// Reads the wanted parts of a matrix.
pub(super) fn read_parts<T: Real>(source: Source, budget: Budget, wanted: Wanted<'_>) -> Result<Parts<T>> {
    let mut array = Array::open(source)?;
    let matrix = array.matrix()?;
    let part::DenseArray { rows, cols, element, .. } = matrix;
    let parts = array.regions(budget, matrix, &wanted(rows, cols)?)?;
    Ok(Parts { rows, cols, parts, format: array.format(element), precision: element.precision() })
}

/// Reads a factor: a matrix of finite nonnegative numbers, as rows, columns and the entries row by row.
pub fn read_array<T: Real>(path: &Path, memory: u64) -> Result<(usize, usize, Vec<T>)> {
    let budget = Budget { path, available: memory };
    let matrix = check::entries(path, read_factor::<T>(budget)?, || read_factor(budget))?;
    check::size(path, &matrix)?;
    let Matrix::Dense(dense) = matrix else { unreachable!("a NumPy array is dense") };
    let (rows, cols) = (dense.rows(), dense.cols());
    if let (Order::RowMajor, Values::Real(_)) = (dense.order(), dense.values()) {
        let Values::Real(reals) = dense.into_values() else { unreachable!("matched above") };
        return Ok((rows, cols, reals.into_vec()));
    }
    let mut reals = budget.vec("the array", rows * cols)?;
    reals.extend(
        (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))).map(|(row, col)| dense.get(row, col)),
    );
    Ok((rows, cols, reals))
}

fn read_factor<T: Real>(budget: Budget) -> Result<Matrix<T>> {
    let mut source = Source::open(budget.path)?;
    sniff::expect(FileFormat::Npy, &mut source)?;
    Ok(read(source, budget)?.matrix)
}
