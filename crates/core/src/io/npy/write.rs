//! Writing arrays, in version 1.0 of the format.

use std::io::{self, Write};

use crate::io::write::{each_line, each_row, put};
use crate::matrix::{Matrix, Order, Values};
use crate::real::{Precision, Real};

/// Writes a matrix, given row by row, as version 1.0 in C order.
pub fn write<T: Real>(mut writer: impl Write, rows: usize, cols: usize, values: &[T]) -> io::Result<()> {
    if rows.checked_mul(cols) != Some(values.len()) {
        let problem = format!("{} values for a matrix of {rows} x {cols}", values.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    write_header(&mut writer, descr(T::PRECISION), Order::RowMajor, &format!("({rows}, {cols})"))?;
    put(&mut writer, values, T::PRECISION)
}

/// Writes a matrix in its own order, a sparse one in C order with its zeros; bytes as such if `keep_bytes`.
pub(in crate::io) fn write_matrix<T: Real>(
    writer: &mut dyn Write,
    matrix: &Matrix<T>,
    precision: Precision,
    keep_bytes: bool,
) -> io::Result<()> {
    let shape = format!("({}, {})", matrix.rows(), matrix.cols());
    match matrix {
        Matrix::Dense(dense) => match dense.values() {
            Values::Bytes(bytes) if keep_bytes => {
                write_header(writer, "|u1", dense.order(), &shape)?;
                writer.write_all(bytes)
            }
            _ => {
                write_header(writer, descr(precision), dense.order(), &shape)?;
                each_line(dense, dense.order(), 0..dense.majors(), |line| put(writer, line, precision))
            }
        },
        Matrix::Sparse(csr) => {
            write_header(writer, descr(precision), Order::RowMajor, &shape)?;
            each_row(matrix, 0..csr.rows(), |row| put(writer, row, precision))
        }
    }
}

/// NumPy's name of a real type as [`put`] writes it.
pub(in crate::io) fn descr(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "<f4",
        Precision::F64 => "<f8",
    }
}

/// Writes the header in version 1.0.
pub(in crate::io) fn write_header(
    writer: &mut dyn Write,
    descr: &str,
    order: Order,
    shape: &str,
) -> io::Result<()> {
    let fortran = if order == Order::ColMajor { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    // Signature, version and length take 10 bytes; the data begin at a multiple of 64, for memory maps.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
    header.push('\n');
    writer.write_all(b"\x93NUMPY\x01\x00")?;
    writer.write_all(&(length as u16).to_le_bytes())?;
    writer.write_all(header.as_bytes())
}
