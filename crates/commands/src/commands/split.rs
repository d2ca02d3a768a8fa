//! `partwise split`: a matrix in parts, one for each rank of a job.

use std::fs;
use std::path::Path;

use anyhow::Result;
use partwise::error::Error;
use partwise::grid::{Factor, Grid, Placement};
use partwise::io::{self, Input, Region};
use partwise::matrix::Matrix;
use partwise::partition::Access;
use partwise::{Precision, Real};

use crate::args::SplitArgs;
use crate::parts::{self, RECORD, Split};
use crate::{input, machine, output, say};

pub fn run(args: &SplitArgs) -> Result<()> {
    match args.precision {
        Some(Precision::F32) => split::<f32>(args),
        _ => split::<f64>(args),
    }
}

fn split<T: Real>(args: &SplitArgs) -> Result<()> {
    if args.nodes == 0 {
        return Err(Error::parameter("--nodes", "0 parts hold nothing; give 1 or more").into());
    }
    output::check_new_folder(&args.out)?;
    let sha256 = input::sha256(&args.file)?;
    let staging = output::Staging::new(&args.out)?;
    let (mut row_parts, mut col_parts) = (Vec::new(), Vec::new());
    let mut record = None;
    for rank in 0..args.nodes {
        // One rank's parts at a time, so that the whole need not fit the memory.
        let place = |rows, cols| Placement {
            rows,
            cols,
            grid: Grid::tall(args.nodes),
            rank,
            access: Access::Sampled,
        };
        let choose = |rows, cols| {
            let [of_rows, of_cols] = [Factor::U, Factor::V].map(|factor| place(rows, cols).block(factor));
            Ok(vec![Region { rows: of_rows.0, cols: of_rows.1 }, Region { rows: of_cols.0, cols: of_cols.1 }])
        };
        let mut read = parts::read_regions::<T>(&args.file, args.transpose, &choose)?;
        let precision = args.precision.unwrap_or(read.precision);
        let format = read.format.clone();
        for (name, list, part) in [
            ("columns", &mut col_parts, read.parts.remove(1)),
            ("rows", &mut row_parts, read.parts.remove(0)),
        ] {
            let ending = if let Matrix::Dense(_) = part { "npy" } else { "npz" };
            let name = format!("{name}-{rank}.{ending}");
            let path = Path::new(&name);
            let input = Input::unlabelled(part, format.clone(), precision);
            io::check_write(path, &input, machine::available_memory())?;
            let options = io::WriteOptions { precision: args.precision, ..io::WriteOptions::default() };
            staging.write(&name, |file| io::write(file, path, &input, options))?;
            let hash = input::sha256(&staging.path().join(&name))?;
            list.push((name, hash));
        }
        record = Some((read.rows, read.cols, format));
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
    say::answer(&format!(
        "{rows} x {cols}, {} parts of rows and of columns, {} written to {}",
        args.nodes,
        input::size(bytes),
        args.out.display()
    ))
}
