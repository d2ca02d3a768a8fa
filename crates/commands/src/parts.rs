//! Where MPI processes read their parts of a matrix: a shared file, or a folder of `partwise split`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow, bail};
use partwise::Real;
use partwise::error::Error;
use partwise::grid::{Factor, Placement};
use partwise::io::{self, Parts, ReadOptions, Region};
use partwise::matrix::Matrix;
use partwise::pipeline::{PlaceOf, RankBlocks, RankReader};
use partwise::wording::Wording;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{input, machine};

/// The record of a folder of parts.
pub const RECORD: &str = "split.json";

/// The content of `split.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Split {
    pub version: String,
    pub nodes: usize,
    pub rows: usize,
    pub cols: usize,
    pub format: String,
    /// The file that was split.
    pub sha256: String,
    /// Whole rows by process: file and SHA-256.
    pub row_parts: Vec<(String, String)>,
    /// Whole columns by process.
    pub col_parts: Vec<(String, String)>,
}

/// An input for MPI processes.
pub enum PartedInput {
    File(PathBuf),
    Folder(PathBuf, Box<Split>),
}

/// Opens the user's input for a job with this many processes.
pub fn open(path: &Path, size: usize) -> Result<PartedInput> {
    let record = path.join(RECORD);
    if !record.exists() {
        return Ok(PartedInput::File(path.to_path_buf()));
    }
    let text = std::fs::read(&record).map_err(Error::io(&record))?;
    let split: Split = serde_json::from_slice(&text)
        .map_err(|error| anyhow!("{}: damaged ({error}); split the matrix again", record.display()))?;
    if split.nodes != size {
        bail!(
            "{}: the matrix was split for {} processes, but {size} are running; start {}, or split the matrix again",
            path.display(),
            split.nodes,
            split.nodes
        );
    }
    if split.row_parts.len() != size || split.col_parts.len() != size {
        bail!("{}: damaged; split the matrix again", record.display());
    }
    Ok(PartedInput::Folder(path.to_path_buf(), Box::new(split)))
}

/// The blocks that a rank keeps: its block of the grid, or with sampled access whole rows and whole columns.
pub fn wanted(place: Placement) -> Vec<Region> {
    let region = |factor| {
        let (rows, cols) = place.block(factor);
        Region { rows, cols }
    };
    let mut regions = vec![region(Factor::U)];
    if place.access.has_lines() && place.grid.size() > 1 {
        regions.push(region(Factor::V));
    }
    regions
}

/// Reads regions of a file, or with `transpose` of its transpose.
pub fn read_regions<T: Real>(
    path: &Path,
    transpose: bool,
    choose: &dyn Fn(usize, usize) -> partwise::Result<Vec<Region>>,
) -> partwise::Result<Parts<T>> {
    let options = ReadOptions { memory: machine::available_memory(), ..ReadOptions::default() };
    if !transpose {
        return io::read_parts(path, &options, choose);
    }
    let turned = |region: Region| Region { rows: region.cols, cols: region.rows };
    let choose = |rows, cols| Ok(choose(cols, rows)?.into_iter().map(turned).collect());
    let parts = io::read_parts::<T>(path, &options, &choose)?;
    Ok(Parts {
        rows: parts.cols,
        cols: parts.rows,
        parts: parts.parts.into_iter().map(Matrix::into_transpose).collect(),
        ..parts
    })
}

impl PartedInput {
    /// Samples of the input, by which processes detect that they see different files.
    pub fn fingerprint(&self) -> Result<Vec<u8>> {
        match self {
            PartedInput::File(path) => Ok(samples(path)?),
            PartedInput::Folder(path, _) => Ok(samples(&path.join(RECORD))?),
        }
    }

    /// The SHA-256 of the file, or of the file that was split.
    pub fn hash_in_background(&self) -> JoinHandle<Result<String>> {
        match self {
            PartedInput::File(path) => {
                let path = path.clone();
                std::thread::spawn(move || Ok(input::sha256(&path)?))
            }
            PartedInput::Folder(_, split) => {
                let hash = split.sha256.clone();
                std::thread::spawn(move || Ok(hash))
            }
        }
    }
}

/// An input, and how its file is read.
pub struct PartReader<'a> {
    pub input: &'a PartedInput,
    pub transpose: bool,
}

impl<T: Real> RankReader<T> for PartReader<'_> {
    fn read(&self, place: PlaceOf<'_>) -> partwise::Result<RankBlocks<T>> {
        match self.input {
            PartedInput::File(path) => {
                let choose = |m, n| Ok(wanted(place(m, n)?));
                let parts = read_regions(path, self.transpose, &choose)?;
                Ok(RankBlocks { blocks: parts.parts, format: parts.format })
            }
            PartedInput::Folder(dir, split) => {
                if self.transpose {
                    let problem = format!("{} was split as it is; split the matrix with ", dir.display());
                    return Err(Error::parameter("transpose", Wording::new(problem).field("transpose")));
                }
                let place = place(split.rows, split.cols)?;
                Ok(RankBlocks { blocks: split.blocks(dir, place)?, format: split.format.clone() })
            }
        }
    }
}

/// The error for an unusable part.
fn bad_part(path: &Path, problem: impl Into<String>) -> Error {
    Error::Part { path: path.into(), problem: problem.into() }
}

impl Split {
    fn blocks<T: Real>(&self, dir: &Path, place: Placement) -> partwise::Result<Vec<Matrix<T>>> {
        let everything = |rows, cols| vec![Region { rows: 0..rows, cols: 0..cols }];
        if place.access.has_lines() {
            let rows = self.part(dir, &self.row_parts[place.rank], &everything)?;
            if place.grid.size() == 1 {
                return Ok(vec![rows]);
            }
            return Ok(vec![rows, self.part(dir, &self.col_parts[place.rank], &everything)?]);
        }
        // A block of the grid has the rows of the processes in its grid row, and some columns of each.
        let cols = place.block(Factor::U).1;
        let mut parts = Vec::new();
        for mate in place.mates(Factor::U) {
            let cut = |rows, _| vec![Region { rows: 0..rows, cols: cols.clone() }];
            parts.push(self.part(dir, &self.row_parts[mate], &cut)?);
        }
        let problem = "the parts do not match each other; split the matrix again";
        Matrix::stacked(parts).map(|block| vec![block]).ok_or_else(|| bad_part(dir, problem))
    }

    /// Reads one part, or some of it, after verifying its hash.
    fn part<T: Real>(
        &self,
        dir: &Path,
        (name, hash): &(String, String),
        choose: &dyn Fn(usize, usize) -> Vec<Region>,
    ) -> partwise::Result<Matrix<T>> {
        let path = dir.join(name);
        if !path.is_file() {
            return Err(bad_part(&path, "this part is missing; copy it here, or split the matrix again"));
        }
        if input::sha256(&path)? != *hash {
            let problem = format!(
                "this part does not match {RECORD}: it is damaged or belongs to another split; split the matrix again"
            );
            return Err(bad_part(&path, problem));
        }
        let mut parts = read_regions(&path, false, &|rows, cols| Ok(choose(rows, cols)))?;
        Ok(parts.parts.remove(0))
    }
}

/// A hash of the length and of up to 16 pieces spread over the file.
fn samples(path: &Path) -> partwise::Result<Vec<u8>> {
    use std::io::{Seek, SeekFrom};
    const PIECE: u64 = 1 << 16;
    const PIECES: u64 = 16;
    if path.is_dir() {
        return Err(Error::format(
            path,
            "content",
            "MPI processes cannot read a folder of images; convert it to .npy first",
        ));
    }
    let mut file = std::fs::File::open(path).map_err(Error::io(path))?;
    let length = file.metadata().map_err(Error::io(path))?.len();
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    for piece in 0..PIECES {
        let begin =
            (u128::from(length.saturating_sub(PIECE)) * u128::from(piece) / u128::from(PIECES - 1)) as u64;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin)).map_err(Error::io(path))?;
        (&mut file).take(PIECE).read_to_end(&mut bytes).map_err(Error::io(path))?;
        hash.update(&bytes);
    }
    Ok(hash.finalize().to_vec())
}
