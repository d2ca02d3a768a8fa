//! A dense block, which may share storage with the block of the other side.

use std::ops::Range;
use std::sync::Arc;

use crate::Real;
use crate::cancel::Cancel;
use crate::matrix::{Dense, Order, Values};

/// A dense block, as a view with strides of storage that it may share with the block of the other side.
#[derive(Clone, Debug)]
pub struct DenseBlock<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distance in storage between an entry and the one below it.
    pub row_stride: usize,
    /// Distance in storage between an entry and the one to its right.
    pub col_stride: usize,
    /// The storage; entry (i, j) is at `i * row_stride + j * col_stride`.
    pub values: Arc<Values<T>>,
}

impl<T: Real> DenseBlock<T> {
    pub(super) fn of(dense: Dense<T>) -> Self {
        let (rows, cols) = (dense.rows(), dense.cols());
        let (row_stride, col_stride) = match dense.order() {
            Order::RowMajor => (cols, 1),
            Order::ColMajor => (1, rows),
        };
        DenseBlock { rows, cols, row_stride, col_stride, values: Arc::new(dense.into_values()) }
    }

    pub(super) fn transposed(&self) -> Self {
        DenseBlock {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            values: self.values.clone(),
        }
    }

    /// The given rows, with every column contiguous: shared if they are so already, copied otherwise.
    pub(super) fn by_column(&self, range: Range<usize>, cancel: &Cancel) -> Self {
        if self.row_stride == 1 && range == (0..self.rows) {
            return self.clone();
        }
        let values = match &*self.values {
            Values::Bytes(bytes) => Values::Bytes(self.copy_by_column(bytes, range.clone(), cancel).into()),
            Values::Real(reals) => Values::Real(self.copy_by_column(reals, range.clone(), cancel).into()),
        };
        let rows = range.len();
        DenseBlock { rows, cols: self.cols, row_stride: 1, col_stride: rows, values: Arc::new(values) }
    }

    pub(super) fn mark_used<E: Copy + Default + PartialEq>(&self, values: &[E], used: &mut [bool]) {
        if self.row_stride == 1 {
            for col in 0..self.cols {
                let column = &values[col * self.col_stride..][..self.rows];
                used.iter_mut().zip(column).for_each(|(used, &value)| *used |= value != E::default());
            }
        } else {
            for (row, used) in used.iter_mut().enumerate() {
                *used =
                    values[row * self.row_stride..][..self.cols].iter().any(|&value| value != E::default());
            }
        }
    }

    /// In square patches, so that both the lines read and the lines written stay in cache.
    pub(super) fn copy_by_column<E: Copy + Default>(
        &self,
        values: &[E],
        range: Range<usize>,
        cancel: &Cancel,
    ) -> Vec<E> {
        const PATCH: usize = 64;
        let rows = range.len();
        let mut copy = vec![E::default(); rows * self.cols];
        for first_row in (0..rows).step_by(PATCH) {
            for first_col in (0..self.cols).step_by(PATCH) {
                cancel.check();
                for col in first_col..self.cols.min(first_col + PATCH) {
                    for row in first_row..rows.min(first_row + PATCH) {
                        copy[col * rows + row] =
                            values[(range.start + row) * self.row_stride + col * self.col_stride];
                    }
                }
            }
        }
        copy
    }
}
