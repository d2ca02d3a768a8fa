//! The process grid of the exact methods (Kannan, Ballard and Park 2016, "MPI-FAUN"), and who owns what on it.
//!
//! N ranks stand in pr rows and pc columns, rank r in row r / pc and column r mod pc. Rank (i, j) keeps the block of M in
//! the i-th of pr parts of the rows and the j-th of pc parts of the columns. Of the rows of U that belong to grid row i,
//! each of its ranks owns a part, and likewise of the rows of V and grid columns.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::comm::owned;
use crate::error::{Error, Result};
use crate::partition::Access;

/// How ranks are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Parts that the rows of M are cut into, pr.
    pub rows: usize,
    /// Parts that the columns of M are cut into, pc.
    pub cols: usize,
}

/// One of the two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Its rows are those of M.
    U,
    /// Its rows are the columns of M.
    V,
}

impl Factor {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Factor::U => Factor::V,
            Factor::V => Factor::U,
        }
    }
}

impl Grid {
    /// One rank.
    pub const ONE: Grid = Grid { rows: 1, cols: 1 };

    /// A single column of ranks.
    pub fn tall(size: usize) -> Self {
        Grid { rows: size, cols: 1 }
    }

    /// Number of ranks.
    pub fn size(self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// The grid on which an iteration sends the least: (pr − 1) n k / N + (pc − 1) m k / N numbers per rank in each
    /// half step. Nonzeros do not matter, because they are not sent. Parts without a row or column are avoided.
    pub fn choose(m: usize, n: usize, size: usize) -> Self {
        let cost = |grid: &Grid| {
            let empty = grid.rows.saturating_sub(m) + grid.cols.saturating_sub(n);
            let sent = (grid.rows as u128 - 1) * n as u128 + (grid.cols as u128 - 1) * m as u128;
            (empty, sent, grid.rows)
        };
        (1..=size.isqrt())
            .filter(|rows| size.is_multiple_of(*rows))
            .flat_map(|rows| [Grid { rows, cols: size / rows }, Grid { rows: size / rows, cols: rows }])
            .min_by_key(cost)
            .unwrap_or(Grid::ONE)
    }

    /// The requested grid, or otherwise the best one, for `size` ranks.
    pub fn of(asked: Option<Grid>, m: usize, n: usize, size: usize) -> Result<Self> {
        match asked {
            None => Ok(Self::choose(m, n, size)),
            Some(grid) if grid.size() == size => Ok(grid),
            Some(grid) => Err(Error::parameter(
                "grid",
                format!(
                    "{grid} needs {} processes, but there are {size}; give two numbers whose product is {size}, or \
                     leave it out",
                    grid.size()
                ),
            )),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)
    }
}

impl FromStr for Grid {
    type Err = String;

    /// `2x3`: two rows of three ranks.
    fn from_str(text: &str) -> Result<Self, String> {
        let sizes = text.split_once('x').map(|(rows, cols)| (rows.parse(), cols.parse()));
        match sizes {
            Some((Ok(rows), Ok(cols))) if rows > 0 && cols > 0 => Ok(Grid { rows, cols }),
            _ => Err("a grid is two numbers of 1 or more with an x between them, such as 2x3".into()),
        }
    }
}

/// A rank's place in the grid, and the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// The grid; a single column for sampled access.
    pub grid: Grid,
    /// The rank.
    pub rank: usize,
    /// Whether each side has its own block, whole rows and whole columns of M, or both have one block of the grid.
    pub access: Access,
}

impl Placement {
    fn at(self, row: usize, col: usize) -> usize {
        row * self.grid.cols + col
    }

    fn row(self) -> usize {
        self.rank / self.grid.cols
    }

    fn col(self) -> usize {
        self.rank % self.grid.cols
    }

    /// The rows of a factor that `rank` owns.
    pub fn owned_by(self, rank: usize, factor: Factor) -> Range<usize> {
        let Grid { rows, cols } = self.grid;
        match factor {
            Factor::U => owned(self.rows, rank, self.grid.size()),
            // Ranks of a grid column own consecutive rows of V.
            Factor::V => owned(self.cols, rank % cols * rows + rank / cols, self.grid.size()),
        }
    }

    /// The rows of a factor that this rank owns.
    pub fn own(self, factor: Factor) -> Range<usize> {
        self.owned_by(self.rank, factor)
    }

    /// The ranks whose rows of a factor make up the rows of that factor's block.
    pub fn mates(self, factor: Factor) -> Vec<usize> {
        match (self.access, factor) {
            (Access::Sampled | Access::Lines, _) => vec![self.rank],
            (Access::Whole, Factor::U) => (0..self.grid.cols).map(|col| self.at(self.row(), col)).collect(),
            (Access::Whole, Factor::V) => (0..self.grid.rows).map(|row| self.at(row, self.col())).collect(),
        }
    }

    /// The ranks whose rows of the other factor a factor's block is multiplied with.
    pub fn sources(self, factor: Factor) -> Vec<usize> {
        match self.access {
            Access::Sampled | Access::Lines => (0..self.grid.size()).collect(),
            Access::Whole => self.mates(factor.other()),
        }
    }

    /// Numbers of rows of a factor that each of `ranks` owns.
    pub fn counts(self, ranks: &[usize], factor: Factor) -> Vec<usize> {
        ranks.iter().map(|&rank| self.owned_by(rank, factor).len()).collect()
    }

    fn span(self, ranks: &[usize], factor: Factor) -> Range<usize> {
        match (ranks.first(), ranks.last()) {
            (Some(&first), Some(&last)) => {
                self.owned_by(first, factor).start..self.owned_by(last, factor).end
            }
            _ => 0..0,
        }
    }

    /// The block of M, by rows and columns of M, that moves a factor.
    pub fn block(self, factor: Factor) -> (Range<usize>, Range<usize>) {
        let own = self.span(&self.mates(factor), factor);
        let other = self.span(&self.sources(factor), factor.other());
        match factor {
            Factor::U => (own, other),
            Factor::V => (other, own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_sends_the_least() {
        assert_eq!(Grid::choose(1000, 1000, 4), Grid { rows: 2, cols: 2 });
        assert_eq!(Grid::choose(70_000, 784, 4), Grid { rows: 4, cols: 1 });
        assert_eq!(Grid::choose(784, 70_000, 4), Grid { rows: 1, cols: 4 });
        assert_eq!(Grid::choose(3000, 1000, 12), Grid { rows: 6, cols: 2 });
        assert_eq!(Grid::choose(1000, 1000, 7).size(), 7);
        // Three parts of two rows would leave one empty.
        assert_eq!(Grid::choose(2, 3, 3), Grid { rows: 1, cols: 3 });
        assert_eq!(Grid::choose(1, 1, 1), Grid::ONE);
    }

    #[test]
    fn invalid_requests_are_refused() {
        assert_eq!("2x3".parse(), Ok(Grid { rows: 2, cols: 3 }));
        for bad in ["", "2", "x", "0x3", "2x-1", "2x3x1", "ax2"] {
            assert!(bad.parse::<Grid>().is_err(), "{bad}");
        }
        assert!(Grid::of(Some(Grid { rows: 2, cols: 2 }), 9, 9, 4).is_ok());
        let message = Grid::of(Some(Grid { rows: 2, cols: 3 }), 9, 9, 4).unwrap_err().to_string();
        assert!(message.contains("2x3 needs 6 processes, but there are 4"), "{message}");
    }

    #[test]
    fn blocks_cover_m_once_and_rows_of_factors_are_owned_once() {
        for (m, n) in [(1, 1), (7, 5), (5, 7), (40, 3)] {
            for size in 1usize..9 {
                for rows in (1..=size).filter(|rows| size.is_multiple_of(*rows)) {
                    let grid = Grid { rows, cols: size / rows };
                    let place = |rank| Placement { rows: m, cols: n, grid, rank, access: Access::Whole };
                    let mut covered = vec![0; m * n];
                    let mut owners = [vec![0; m], vec![0; n]];
                    for rank in 0..size {
                        let (rows, cols) = place(rank).block(Factor::U);
                        assert_eq!(place(rank).block(Factor::V), (rows.clone(), cols.clone()));
                        for row in rows.clone() {
                            cols.clone().for_each(|col| covered[row * n + col] += 1);
                        }
                        for (owners, factor) in owners.iter_mut().zip([Factor::U, Factor::V]) {
                            place(rank).own(factor).for_each(|row| owners[row] += 1);
                        }
                        // Mates own the block's rows one after the other.
                        for (factor, span) in [(Factor::U, rows), (Factor::V, cols)] {
                            let mates = place(rank).mates(factor);
                            let rows: Vec<usize> =
                                mates.iter().flat_map(|&mate| place(rank).owned_by(mate, factor)).collect();
                            assert_eq!(rows, span.collect::<Vec<_>>(), "{grid} {factor:?}");
                        }
                    }
                    assert!(covered.iter().chain(owners.iter().flatten()).all(|&count| count == 1), "{grid}");
                }
            }
        }
    }
}
