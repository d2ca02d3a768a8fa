//! The first pass: every entry is checked, and rows and columns are summed.

use std::ops::Range;

use crate::Real;
use crate::comm::Alone;
use crate::error::Result;
use crate::io::stream::Stream;
use crate::matrix::{Dominants, Matrix, Shape, Values};
use crate::partition::{Block, RowSums};
use crate::run::start::{MatrixStats, constants_of};
use crate::threads::Threads;

/// What a pass over M has found.
pub struct Survey {
    /// What a start needs to know, with the bits that it has in memory.
    pub known: MatrixStats,
    /// The largest entry.
    pub largest: f64,
    /// The row and the column that dominate.
    pub dominant: Dominants,
}

/// Reads all of M once.
pub fn survey<T: Real>(stream: &Stream, blocks: &[Range<usize>], threads: &Threads) -> Result<Survey> {
    let mut by_line = RowSums::new(stream.lines());
    let mut across = RowSums::new(stream.line_length());
    let mut largest = 0f64;
    stream.pass::<T>(blocks, |lines, matrix| {
        stream.check(lines.start, &matrix)?;
        largest = largest.max(largest_of(&matrix));
        let (block, turned) = Block::both_ways(matrix);
        let mut own = RowSums::new(lines.len());
        let work = vec![(&block, &mut own), (&turned, &mut across)];
        threads.map(work, || (), |(), (block, sums)| block.add_row_sums(sums));
        by_line.sums[lines.clone()].copy_from_slice(&own.sums);
        by_line.squares[lines].copy_from_slice(&own.squares);
        Ok(block.into_matrix(turned))
    })?;
    if largest == 0.0 {
        return Err(stream.nothing::<T>(blocks));
    }
    let (rows, cols) = if stream.by_columns() { (across, by_line) } else { (by_line, across) };
    let constants = constants_of(&Alone, Shape { rows: stream.rows(), cols: stream.cols() }, &rows)?;
    let used = |sums: RowSums| sums.sums.into_iter().map(|sum| sum > 0.0).collect();
    let dominant = Dominants::among(&rows.squares, &cols.squares);
    let known = MatrixStats { constants, used_rows: used(rows), used_cols: used(cols) };
    Ok(Survey { known, largest, dominant })
}

fn largest_of<T: Real>(matrix: &Matrix<T>) -> f64 {
    let reals = match matrix {
        Matrix::Dense(dense) => match dense.values() {
            Values::Bytes(bytes) => return bytes.iter().copied().max().unwrap_or(0).into(),
            Values::Real(reals) => reals,
        },
        Matrix::Sparse(csr) => csr.values(),
    };
    reals.iter().fold(T::ZERO, |largest, &value| if value > largest { value } else { largest }).to_f64()
}
