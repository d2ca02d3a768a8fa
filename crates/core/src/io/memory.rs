//! The guard in front of every allocation whose size a file decides.

use std::path::Path;

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::real::Real;
use crate::wording::Wording;

/// The memory that reading a file may take.
#[derive(Clone, Copy)]
pub(super) struct Budget<'a> {
    pub path: &'a Path,
    pub available: u64,
}

impl Budget<'_> {
    /// Refuses what does not fit. Sizes are products of untrusted numbers, multiplied with saturation:
    /// `u64::MAX` stands for "even more" and never fits.
    pub fn check(&self, what: &str, needed: u64) -> Result<()> {
        if needed <= self.available && needed < u64::MAX {
            return Ok(());
        }
        Err(self.error(what, needed))
    }

    /// Refuses a dense matrix that does not fit.
    pub fn check_dense(&self, rows: u64, cols: u64, bytes_each: u64) -> Result<()> {
        let needed = rows.saturating_mul(cols).saturating_mul(bytes_each);
        self.check(&format!("the dense matrix of {rows} x {cols} entries"), needed)
    }

    /// Refuses a sparse matrix that does not fit, with `copies` of its entries and their two coordinates while it
    /// is sorted. Offsets are counted for rows and columns, because every method needs the matrix both ways.
    pub fn check_sparse<T: Real>(&self, rows: u64, cols: u64, stored: u64, copies: u64) -> Result<()> {
        let offsets = rows.saturating_add(cols).saturating_add(2).saturating_mul(8);
        let triplet = 8 + T::PRECISION.bytes();
        let entries = stored.saturating_mul(4 + T::PRECISION.bytes() + copies * triplet);
        let what = format!("the sparse matrix of {rows} x {cols} with {stored} stored entries");
        self.check(&what, offsets.saturating_add(entries))?;
        self.check_dimensions(rows, cols)
    }

    /// Refuses a sparse matrix with more rows or columns than can be numbered.
    pub fn check_dimensions(&self, rows: u64, cols: u64) -> Result<()> {
        let limit = Csr::<f64>::MAX_DIMENSION as u64;
        if rows > limit || cols > limit {
            return Err(Error::format(
                self.path,
                "shape",
                format!(
                    "{rows} x {cols} is too large, because a sparse matrix can have at most {limit} rows and columns; \
                     remove empty ones"
                ),
            ));
        }
        Ok(())
    }

    /// An empty vector with room for `len` items. Memory that the system commits when it is first written
    /// makes this cheap even where the file turns out to be shorter than it claims.
    pub fn vec<E>(&self, what: &str, len: usize) -> Result<Vec<E>> {
        let needed = (len as u64).saturating_mul(size_of::<E>() as u64);
        self.check(what, needed)?;
        let mut vec = Vec::new();
        vec.try_reserve_exact(len).map_err(|_| self.error(what, needed))?;
        Ok(vec)
    }

    /// Makes room for `more` items, for data whose size only its end tells.
    pub fn grow<E>(&self, what: &str, vec: &mut Vec<E>, more: usize) -> Result<()> {
        let needed = (vec.len() as u64).saturating_add(more as u64).saturating_mul(size_of::<E>() as u64);
        self.check(what, needed)?;
        vec.try_reserve(more).map_err(|_| self.error(what, needed))
    }

    fn error(&self, what: &str, needed: u64) -> Error {
        Error::Memory {
            what: format!("{}: {what}", self.path.display()),
            needed,
            available: self.available,
            cure: Wording::new("check the sizes in the file, then use ")
                .field("memory")
                .text(", or use a machine with more memory"),
        }
    }
}
