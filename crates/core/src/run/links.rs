//! The communicators of a rank: with all others, and with those in its row or its column of the grid.

use std::borrow::Cow;

use crate::comm::{Alone, Comm, Meter, Metered, Numbers, gather_shares};
use crate::device::{Device, Resident};
use crate::error::Result;
use crate::grid::{Factor, Placement};
use crate::kernels::{Columns, multiply};
use crate::partition::{Access, Block, Shard};
use crate::threads::Threads;
use crate::{Precision, Real};

/// The groups of a rank's grid row and column, created once for all runs.
pub struct Groups<'a> {
    all: &'a dyn Comm,
    row: Option<Box<dyn Comm + 'a>>,
    column: Option<Box<dyn Comm + 'a>>,
}

impl<'a> Groups<'a> {
    /// Every rank calls this at the same time.
    pub fn new(all: &'a dyn Comm, place: Placement) -> Result<Self> {
        let grid = place.grid;
        let (mut row, mut column) = (None, None);
        if grid.rows > 1 && grid.cols > 1 {
            row = Some(all.split(place.rank / grid.cols)?);
            column = Some(all.split(place.rank % grid.cols)?);
        }
        Ok(Groups { all, row, column })
    }

    /// All ranks, not metered.
    pub fn all(&self) -> &'a dyn Comm {
        self.all
    }

    /// The same ranks with a separate meter.
    pub fn metered(&self, place: Placement) -> Meters<'_> {
        let all = Metered::new(self.all);
        let row = all.sharing(self.group(&self.row, place.grid.cols));
        let column = all.sharing(self.group(&self.column, place.grid.rows));
        Meters { all, row, column }
    }

    /// If the grid is a line, one of the groups is all ranks and the other one is the single rank.
    fn group<'b>(&'b self, group: &'b Option<Box<dyn Comm + 'a>>, size: usize) -> &'b dyn Comm {
        match group {
            Some(group) => group.as_ref(),
            None if size == 1 => &Alone,
            None => self.all,
        }
    }
}

/// One meter for everything that a rank uses for a purpose.
pub struct Meters<'a> {
    /// All ranks.
    pub all: Metered<'a>,
    row: Metered<'a>,
    column: Metered<'a>,
}

impl Meters<'_> {
    /// The metered communicator.
    pub fn links(&self) -> Links<'_> {
        Links { all: &self.all, row: &self.row, column: &self.column }
    }

    /// The counts of this meter.
    pub fn meter(&self) -> Meter {
        self.all.meter()
    }
}

/// A rank's communicators.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// All ranks.
    pub all: &'a dyn Comm,
    row: &'a dyn Comm,
    column: &'a dyn Comm,
}

impl<'a> Links<'a> {
    /// A single rank's.
    pub fn alone() -> Self {
        Links { all: &Alone, row: &Alone, column: &Alone }
    }

    /// The ranks that share the rows of a factor's block.
    fn mates(&self, place: Placement, factor: Factor) -> &'a dyn Comm {
        match (place.access, factor) {
            (Access::Sampled | Access::Lines, _) => &Alone,
            (Access::Whole, Factor::U) => self.row,
            (Access::Whole, Factor::V) => self.column,
        }
    }

    /// The processes with the rows of the other factor by which a factor's block is multiplied.
    fn sources(&self, place: Placement, factor: Factor) -> &'a dyn Comm {
        match place.access {
            Access::Sampled | Access::Lines => self.all,
            Access::Whole => self.mates(place, factor.other()),
        }
    }

    /// Gathers the rows of the other factor by which a factor's block is multiplied; this process has `own`.
    pub fn gather<'f, T: Real>(
        &self,
        place: Placement,
        factor: Factor,
        device: &dyn Device<T>,
        own: &'f mut Resident<T>,
        k: usize,
    ) -> Result<Gathered<'f, T>> {
        gather_resident(
            self.sources(place, factor),
            device,
            own,
            &place.counts(&place.sources(factor), factor.other()),
            k,
        )
    }

    /// Gathers the rows of a factor that belong to its block, of which this process owns some.
    pub fn rows_of_block<'f, T: Real>(
        &self,
        place: Placement,
        factor: Factor,
        device: &dyn Device<T>,
        own: &'f mut Resident<T>,
        k: usize,
    ) -> Result<Gathered<'f, T>> {
        let mates = place.mates(factor);
        gather_resident(self.mates(place, factor), device, own, &place.counts(&mates, factor), k)
    }

    /// Whether a factor's block has complete rows of M (or columns, for V), so that its products need not be
    /// summed.
    pub fn is_complete(&self, place: Placement, factor: Factor) -> bool {
        self.mates(place, factor).size() == 1
    }

    /// Sums `width` numbers for each row of a factor's block over the ranks that share these rows, and keeps the
    /// own rows.
    pub fn sum_rows<T: Real>(
        &self,
        place: Placement,
        factor: Factor,
        mut rows: Vec<T>,
        width: usize,
    ) -> Result<Vec<T>> {
        let comm = self.mates(place, factor);
        if comm.size() == 1 {
            return Ok(rows);
        }
        let counts: Vec<usize> =
            place.counts(&place.mates(factor), factor).iter().map(|count| count * width).collect();
        comm.reduce_scatter(numbers(&mut rows), &counts)?;
        let own = crate::comm::shares(&counts)[comm.rank()].clone();
        rows.truncate(own.end);
        rows.drain(..own.start);
        Ok(rows)
    }

    /// The own rows of (M Y) for U, (Mᵀ Y) for V, where this rank has some rows of Y.
    pub fn product<T: Real>(
        &self,
        threads: &Threads,
        shard: &Shard<T>,
        factor: Factor,
        own: &[T],
        width: usize,
    ) -> Result<Vec<T>> {
        let place = shard.place;
        let other = gather_rows(
            self.sources(place, factor),
            own,
            &place.counts(&place.sources(factor), factor.other()),
            width,
        )?;
        let block: &Block<T> = shard.block(factor);
        let products = multiply(threads, block, Columns::All, &other, width);
        self.sum_rows(shard.place, factor, products, width)
    }
}

/// Rows that a process owns or has gathered.
pub enum Gathered<'a, T> {
    /// Its own rows, which are all.
    Own(&'a mut Resident<T>),
    /// Those of several processes.
    All(Resident<T>),
}

impl<T> Gathered<'_, T> {
    /// The rows.
    pub fn rows(&mut self) -> &mut Resident<T> {
        match self {
            Gathered::Own(rows) => rows,
            Gathered::All(rows) => rows,
        }
    }
}

fn gather_resident<'f, T: Real>(
    comm: &dyn Comm,
    device: &dyn Device<T>,
    own: &'f mut Resident<T>,
    counts: &[usize],
    k: usize,
) -> Result<Gathered<'f, T>> {
    if comm.size() == 1 {
        return Ok(Gathered::Own(own));
    }
    device.pull(own)?;
    Ok(Gathered::All(Resident::new(gather_rows(comm, own.host(), counts, k)?.into_owned())))
}

fn gather_rows<'f, T: Real>(
    comm: &dyn Comm,
    own: &'f [T],
    counts: &[usize],
    k: usize,
) -> Result<Cow<'f, [T]>> {
    if comm.size() == 1 {
        return Ok(Cow::Borrowed(own));
    }
    let counts: Vec<usize> = counts.iter().map(|count| count * k).collect();
    Ok(Cow::Owned(gather_shares(comm, own, &counts)?))
}

/// The numbers of either precision, for a reduction.
pub fn numbers<T: Real>(values: &mut [T]) -> Numbers<'_> {
    match T::PRECISION {
        Precision::F32 => Numbers::F32(bytemuck::cast_slice_mut(values)),
        Precision::F64 => Numbers::F64(bytemuck::cast_slice_mut(values)),
    }
}

/// A whole factor from the rows of all ranks, in the order of its rows.
pub fn whole<T: Real>(
    comm: &dyn Comm,
    place: Placement,
    factor: Factor,
    own: &[T],
    k: usize,
) -> Result<Vec<T>> {
    if comm.size() == 1 {
        return Ok(own.to_vec());
    }
    let parts = comm.all_gather(bytemuck::cast_slice(own))?;
    let mut all = vec![T::ZERO; parts.iter().map(|part| part.len() / size_of::<T>()).sum()];
    for (rank, part) in parts.iter().enumerate() {
        let rows = place.owned_by(rank, factor);
        bytemuck::cast_slice_mut(&mut all[rows.start * k..rows.end * k]).copy_from_slice(part);
    }
    Ok(all)
}
