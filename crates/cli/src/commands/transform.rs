//! `partwise transform`: new rows or columns in terms of fixed factors.

use anyhow::{Result, bail};
use partwise::run::Side;
use partwise::{Precision, io};

use crate::args::{SideArg, TransformArgs};
use crate::{folder, input, machine, output};

pub fn run(args: &TransformArgs) -> Result<()> {
    let tsv = match args.out.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => false,
        Some("tsv") => true,
        _ => bail!("{} ends neither in .npy nor in .tsv; choose one of them for --out", args.out.display()),
    };
    output::check_file(&args.out, "--out", args.force)?;
    let record = folder::record(&args.dir)?;
    // In f64 whatever the run was: an exact fit should be one.
    let folder = folder::read::<f64>(&args.dir)?;
    let input =
        input::read_turned::<f64>(&args.file, &args.read, record.transpose || args.read.transpose, None)?;
    let labels = match args.side {
        SideArg::Rows => input.row_labels,
        SideArg::Columns => input.col_labels,
    };
    let k = folder.factors.k;
    let side: Side = args.side.into();
    let fitted = folder.factors.transform(input.matrix, side, machine::cores())?;
    let rows = fitted.len() / k;
    output::write_whole(&args.out, "--out", |file| match (tsv, record.precision) {
        (true, _) => io::tsv::write_factor(file, labels.as_deref(), rows, k, &fitted),
        (false, Precision::F64) => io::npy::write(file, rows, k, &fitted),
        (false, Precision::F32) => {
            let narrow: Vec<f32> = fitted.iter().map(|&value| value as f32).collect();
            io::npy::write(file, rows, k, &narrow)
        }
    })?;
    println!("{rows} fitted to {k} components, written to {}", args.out.display());
    Ok(())
}
