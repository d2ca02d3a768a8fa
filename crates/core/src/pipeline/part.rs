//! One rank's part of a matrix that no rank holds as a whole. Errors are shared with all ranks.

use std::cell::OnceCell;

use super::open::{Data, Facts, Opened, ReadFile, check_observed, read_file};
use super::request::Request;
use super::source::FileSource;
use crate::Real;
use crate::comm::{Comm, Numbers, Reduction, agree};
use crate::error::{Error, Result};
use crate::grid::{Factor, Placement};
use crate::matrix::{Matrix, Shape, range_problem};
use crate::objective::Loss;
use crate::partition::{Shard, observed_shard};
use crate::run::{CheckedSettings, Layout, MatrixSize, RunSettings, no_value_at_zero};

/// Computes a rank's place from the size of the matrix, m x n.
pub type PlaceOf<'a> = &'a dyn Fn(usize, usize) -> Result<Placement>;

/// The part that a rank has read.
#[derive(Clone, Debug)]
pub struct RankBlocks<T> {
    /// The rank's block of the grid; with sampled access its whole rows, and if there are several ranks, its whole
    /// columns.
    pub blocks: Vec<Matrix<T>>,
    /// The format of the file in words.
    pub format: String,
}

/// Reads the blocks of one rank.
pub trait RankReader<T> {
    /// The blocks of the rank at `place`.
    fn read(&self, place: PlaceOf<'_>) -> Result<RankBlocks<T>>;
}

/// A rank's part, and what is known about all parts together.
pub(super) struct RankPart<'a, T> {
    pub comm: &'a dyn Comm,
    reader: &'a dyn RankReader<T>,
    pub shard: Shard<T>,
    /// The squared norms of all rows and then of all columns of M; none for weighted entries.
    pub squares: Vec<f64>,
}

/// The part of a rank as it was read.
struct ReadPart<T> {
    settings: RunSettings,
    shard: Shard<T>,
    format: String,
    largest: f64,
    squares: Vec<f64>,
}

/// Opens a rank's part.
pub(super) fn open<'a, T: Real>(
    comm: &'a dyn Comm,
    reader: &'a dyn RankReader<T>,
    file: FileSource,
    request: Request,
) -> Result<Opened<'a, T>> {
    let mut request = request;
    if request.settings.is_incomplete() {
        let part = agree(comm, read_observed(comm, &file, &request))?;
        if let Some(ObservedPart { facts, size, settings, shard }) = part {
            let data = Data::Part(RankPart { comm, reader, shard, squares: Vec::new() });
            return Ok(Opened { facts, size, request, settings, data });
        }
        // It turned out that every entry is known.
        request = request.with_all_entries()?;
    }
    let read = read_all(comm, reader, &request, &request.settings)?;
    let ReadPart { settings, shard, format, largest, squares } = read;
    agree(comm, check_zeros(&settings, &shard))?;
    let mut largest = [largest];
    comm.all_reduce(Reduction::Max, Numbers::F64(&mut largest))?;
    let refused = |problem| Err(Error::format(&file.path, "entries", problem));
    agree(comm, range_problem::<T>(largest[0]).map_or(Ok(()), refused))?;
    let (row_labels, col_labels) = agree(comm, file.labels(shard.shape()))?;
    let name = file.path.display().to_string();
    let facts = Facts::new(name, shard.shape(), shard.stored, format);
    let facts = Facts { row_labels, col_labels, ..facts };
    let size = MatrixSize::of_shard(&shard);
    let data = Data::Part(RankPart { comm, reader, shard, squares });
    Ok(Opened { facts, size, request, settings, data })
}

/// A rank's part of entries of which some are missing, held out, or count more than others.
struct ObservedPart<T> {
    facts: Facts,
    size: MatrixSize,
    settings: RunSettings,
    shard: Shard<T>,
}

/// Reads the whole file, because that decides which entries count, and keeps this rank's part; nothing if every entry counts
/// once.
fn read_observed<T: Real>(
    comm: &dyn Comm,
    file: &FileSource,
    request: &Request,
) -> Result<Option<ObservedPart<T>>> {
    if file.path.is_dir() {
        let problem =
            "it needs the whole matrix, but this folder has its parts; give the file that was split";
        return Err(Error::parameter(file.what_hides(), problem));
    }
    let ReadFile { matrix, facts, observed } = read_file::<T>(file, request)?;
    drop(matrix);
    let Some(observed) = observed else { return Ok(None) };
    let refuse = |problem| Error::format(&file.path, "entries", problem);
    let (facts, settings) = check_observed(&observed, facts, request, &refuse)?;
    let machine = &request.resources.machine;
    let grid = settings.grid(machine.grid, facts.shape(), comm.size())?;
    let size = MatrixSize::of_observed(&observed);
    let layout = Layout::Node { grid, sketch: settings.sketch() };
    let needed = request.footprint::<T>(size, settings.algorithm, layout).most();
    request.check_available("a rank's work on its part", needed)?;
    let shard = observed_shard(&observed, comm.size(), comm.rank(), &machine.cancel);
    check_zeros(&settings, &shard)?;
    Ok(Some(ObservedPart { facts, size, settings, shard }))
}

/// Refuses a part with an entry that is 0, where the loss has no value there.
fn check_zeros<T: Real>(settings: &RunSettings, shard: &Shard<T>) -> Result<()> {
    if settings.loss != Loss::Is {
        return Ok(());
    }
    let row = shard.by_rows.first_row_with_zero();
    row.map_or(Ok(()), |row| Err(no_value_at_zero(shard.own_rows.start + row)))
}

impl<T: Real> RankPart<'_, T> {
    /// Reads the part that these settings need, if a different one was read.
    pub fn read_again(self, request: &Request, settings: &RunSettings) -> Result<Self> {
        if settings.access() == self.shard.place.access {
            return Ok(self);
        }
        let RankPart { comm, reader, shard, squares } = self;
        // There is room for one of both.
        drop(shard);
        let checked = agree(comm, (**settings).clone().checked())?;
        let shard = read_all(comm, reader, request, &checked)?.shard;
        Ok(RankPart { comm, reader, shard, squares })
    }
}

/// Reads this rank's part, and sums statistics over all ranks.
fn read_all<T: Real>(
    comm: &dyn Comm,
    reader: &dyn RankReader<T>,
    request: &Request,
    settings: &CheckedSettings,
) -> Result<ReadPart<T>> {
    let mut part = agree(comm, read(comm, reader, request, settings))?;
    let mut stored = [part.shard.stored as f64];
    comm.all_reduce(Reduction::Sum, Numbers::F64(&mut stored))?;
    part.shard.stored = stored[0] as usize;
    comm.all_reduce(Reduction::Sum, Numbers::F64(&mut part.squares))?;
    Ok(part)
}

fn read<T: Real>(
    comm: &dyn Comm,
    reader: &dyn RankReader<T>,
    request: &Request,
    settings: &CheckedSettings,
) -> Result<ReadPart<T>> {
    let placed = OnceCell::new();
    let place = |rows: usize, cols: usize| {
        let fitting = settings.for_matrix(rows, cols)?;
        let grid = settings.grid(request.resources.machine.grid, Shape { rows, cols }, comm.size())?;
        let access = settings.access();
        let place = Placement { rows, cols, grid, rank: comm.rank(), access };
        let _ = placed.set((fitting, place));
        Ok(place)
    };
    let RankBlocks { mut blocks, format } = reader.read(&place)?;
    let Some((settings, place)) = placed.into_inner() else { unreachable!("a reader asks for its place") };
    let stored = blocks[0].stored();
    let largest = blocks.iter().map(Matrix::largest).fold(0.0, f64::max);
    // The first blocks of all ranks together are M.
    let (own_rows, own_cols) = place.block(Factor::U);
    let (of_rows, of_cols) = blocks[0].squared_norms();
    let mut squares = vec![0.0; place.rows + place.cols];
    squares[own_rows].copy_from_slice(&of_rows);
    squares[place.rows..][own_cols].copy_from_slice(&of_cols);
    let columns = (blocks.len() > 1).then(|| blocks.remove(1));
    let shard = Shard::new(place, stored, blocks.remove(0), columns);
    let layout = Layout::Node { grid: place.grid, sketch: settings.sketch() };
    let needed = request.footprint::<T>(MatrixSize::of_shard(&shard), settings.algorithm, layout);
    request.check_available("a rank's work on its part", needed.working())?;
    Ok(ReadPart { settings, shard, format, largest, squares })
}
