//! `partwise split`: splits a matrix into one part per MPI process.

use std::fs;
use std::path::Path;

use anyhow::Result;
use partwise::error::Error;
use partwise::grid::{Factor, Grid, Placement};
use partwise::io::{self, Input, Parts, Region};
use partwise::matrix::Matrix;
use partwise::partition::Access;
use partwise::{Precision, Real};

use crate::args::SplitArgs;
use crate::context::Context;
use crate::output::Staging;
use crate::parts::{self, RECORD, Split};
use crate::{input, machine, output};

pub fn run(args: &SplitArgs, context: &Context) -> Result<()> {
    match args.precision {
        Some(Precision::F32) => split::<f32>(args, context),
        _ => split::<f64>(args, context),
    }
}

fn split<T: Real>(args: &SplitArgs, context: &Context) -> Result<()> {
    if args.nodes == 0 {
        return Err(Error::parameter("nodes", "0 is too few; give 1 or more").into());
    }
    output::check_new_folder(&args.out)?;
    let sha256 = input::sha256(&args.file)?;
    let staging = context.outputs.folder(&args.out)?;
    let (mut row_parts, mut col_parts) = (Vec::new(), Vec::new());
    let mut record = None;
    // One process's parts at a time, so that the whole need not fit in memory.
    for rank in 0..args.nodes {
        let mut read = read_parts::<T>(args, rank)?;
        let writer = Writer { args, staging: &staging, format: &read.format, precision: read.precision };
        col_parts.push(writer.write(format!("columns-{rank}"), read.parts.remove(1))?);
        row_parts.push(writer.write(format!("rows-{rank}"), read.parts.remove(0))?);
        record = Some((read.rows, read.cols, read.format));
    }
    let Some((rows, cols, format)) = record else { unreachable!("at least one part") };
    let record = Split {
        version: env!("CARGO_PKG_VERSION").into(),
        nodes: args.nodes,
        rows,
        cols,
        format,
        sha256,
        row_parts,
        col_parts,
    };
    let text = serde_json::to_string_pretty(&record)?;
    staging.write(RECORD, |file| writeln!(file, "{text}"))?;
    staging.commit()?;
    let bytes = fs::read_dir(&args.out).map_err(Error::io(&args.out))?;
    let bytes: u64 = bytes.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    context.console.answer(&format!(
        "{rows} x {cols}, {} parts of rows and of columns, {} written to {}",
        args.nodes,
        input::size(bytes),
        args.out.display()
    ))
}

/// The whole rows and the whole columns of a process.
fn read_parts<T: Real>(args: &SplitArgs, rank: usize) -> partwise::Result<Parts<T>> {
    let grid = Grid::tall(args.nodes);
    let choose = |rows, cols| {
        let place = Placement { rows, cols, grid, rank, access: Access::Sampled };
        let [of_rows, of_cols] = [Factor::U, Factor::V].map(|factor| place.block(factor));
        Ok(vec![Region { rows: of_rows.0, cols: of_rows.1 }, Region { rows: of_cols.0, cols: of_cols.1 }])
    };
    parts::read_regions::<T>(&args.file, args.transpose, &choose)
}

/// Writes parts of a matrix into the folder.
struct Writer<'a> {
    args: &'a SplitArgs,
    staging: &'a Staging,
    format: &'a str,
    /// The precision of the file's own numbers.
    precision: Precision,
}

impl Writer<'_> {
    /// Writes one part; returns its file and its SHA-256.
    fn write<T: Real>(&self, name: String, part: Matrix<T>) -> Result<(String, String)> {
        let ending = if let Matrix::Dense(_) = part { "npy" } else { "npz" };
        let name = format!("{name}.{ending}");
        let path = Path::new(&name);
        let precision = self.args.precision.unwrap_or(self.precision);
        let input = Input::unlabelled(part, self.format.to_string(), precision);
        io::check_write(path, &input, machine::available_memory())?;
        let options = io::WriteOptions { precision: self.args.precision, ..io::WriteOptions::default() };
        self.staging.write(&name, |file| io::write(file, path, &input, options))?;
        let hash = input::sha256(&self.staging.path().join(&name))?;
        Ok((name, hash))
    }
}
